//! The MCP door: the native tools over standard input and output, on the official SDK. The only module that knows it.

mod call;
mod connection;
mod pace;

use std::sync::Arc;

use anyhow::Context as _;
use locum::protocol::schema::native_tools;
use locum::protocol::{Refusal, Response};
use locum::{Desk, Executor, Stay};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult, ErrorCode,
    Implementation, InitializeRequestParams, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
    Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use self::call::Ended;
use self::connection::Connection;
use crate::args::Global;
use crate::door::{Door, Orchestrator};
use crate::output::{Exit, Output};

/// Serves one connection, then hands unfinished tasks on.
pub(crate) async fn serve(global: &Global, output: Output) -> anyhow::Result<Exit> {
    let door = Door::open(global, output, Orchestrator::Model, Executor::InProcess)?;
    let desk = door.opened.desk;
    desk.follow_agent_files();
    desk.adopt_orphans(Stay::Long).await.context("tasks of this session cannot be taken up")?;
    let instructions = desk.prompt().await.map_err(|refusal| anyhow::anyhow!(refusal.message))?;
    let left = CancellationToken::new();
    let server = Server { desk: desk.clone(), instructions, left: left.clone(), places: Semaphore::new(CALLS_MAX) };
    let (input, output) = rmcp::transport::io::stdio_pipes();
    // A client that leaves before it has said hello has nothing unfinished.
    if let Ok(running) = server.serve(Connection::new(input, output, left)).await {
        running.waiting().await.context("the connection ended badly")?;
    }
    desk.close().await.context("unfinished tasks could not be handed on")?;
    Ok(Exit::Done)
}

/// Calls of one client under way at once: far above what a client makes, far below what hurts.
const CALLS_MAX: usize = 1000;

struct Server {
    desk: Desk,
    instructions: String,
    /// Cancelled when the client says no more.
    left: CancellationToken,
    places: Semaphore,
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
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Ok(_place) = self.places.try_acquire() else {
            return Err(ErrorData::internal_error(format!("{CALLS_MAX} calls are under way already"), None));
        };
        match call::carry_out(&self.desk, request, &context, &self.left).await {
            Ended::Answered(answer) => Ok(result(&answer).into()),
            // The SDK sends no answer to a call that was given up.
            Ended::GivenUp => Err(ErrorData::internal_error("the call was given up; its task goes on", None)),
            Ended::Left => Err(ErrorData::internal_error("the client left; the task goes on", None)),
        }
    }

    /// What the SDK could not read as one of its requests.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let problem = match request.method.as_str() {
            "tools/call" => request.params_as::<CallToolRequestParams>().err().map(|error| error.to_string()),
            "initialize" => request.params_as::<InitializeRequestParams>().err().map(|error| error.to_string()),
            "tools/list" => request.params_as::<PaginatedRequestParams>().err().map(|error| error.to_string()),
            _ => {
                let message = format!("there is no method {:?}", shortened(&request.method));
                return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None));
            }
        };
        let problem = problem.unwrap_or_else(|| "they are missing".to_owned());
        Err(ErrorData::invalid_params(format!("the params do not fit: {}", shortened(&problem)), None))
    }
}

/// The head of a text that a client chose, for an error.
fn shortened(text: &str) -> String {
    text.chars().take(200).collect()
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
