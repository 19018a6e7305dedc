//! The MCP door: the native tools over standard input and output, on the official SDK. The only module that knows it.

use std::sync::Arc;

use anyhow::Context as _;
use locum::protocol::schema::native_tools;
use locum::protocol::{Refusal, Response};
use locum::{Desk, Executor, Stay};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::Value;

use crate::args::Global;
use crate::door::{Door, Orchestrator};
use crate::output::{Exit, Output};

/// Serves one connection, then hands unfinished tasks on.
pub(crate) async fn serve(global: &Global, output: Output) -> anyhow::Result<Exit> {
    let door = Door::open(global, output, Orchestrator::Model, Executor::InProcess)?;
    let desk = door.opened.desk;
    desk.adopt_orphans(Stay::Long).await.context("tasks of this session cannot be taken up")?;
    let instructions = desk.prompt().await.map_err(|refusal| anyhow::anyhow!(refusal.message))?;
    let server = Server { desk: desk.clone(), instructions };
    // A client that leaves before it has said hello has nothing unfinished.
    if let Ok(running) = server.serve(rmcp::transport::stdio()).await {
        running.waiting().await.context("the connection ended badly")?;
    }
    desk.close().await.context("unfinished tasks could not be handed on")?;
    Ok(Exit::Done)
}

struct Server {
    desk: Desk,
    instructions: String,
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("locum", env!("CARGO_PKG_VERSION")))
            .with_instructions(self.instructions.clone())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tool = |definition: locum::protocol::schema::ToolDefinition| {
            let schema = match definition.input_schema {
                Value::Object(schema) => schema,
                _ => serde_json::Map::new(),
            };
            Tool::new(definition.name, definition.description, Arc::new(schema))
        };
        Ok(ListToolsResult::with_all_items(native_tools().into_iter().map(tool).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let input = Value::Object(request.arguments.unwrap_or_default());
        let answer = self.desk.call(&request.name, input).await;
        Ok(result(&answer).into())
    }
}

/// An answer as structured content, mirrored as text for clients that read only that. A refusal is an answer too: the
/// model must see it.
fn result(answer: &Result<Response, Refusal>) -> CallToolResult {
    let (text, value, refused) = match answer {
        Ok(response) => (serde_json::to_string(response), serde_json::to_value(response), false),
        Err(refusal) => (serde_json::to_string(refusal), serde_json::to_value(refusal), true),
    };
    let content = vec![ContentBlock::text(text.unwrap_or_default())];
    let mut result = if refused { CallToolResult::error(content) } else { CallToolResult::success(content) };
    result.structured_content = value.ok();
    result
}
