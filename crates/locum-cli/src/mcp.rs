//! The MCP door: the tools of a face over standard input and output, on the official SDK. The only module that knows it.

mod call;
mod connection;
mod pace;

use std::sync::Arc;

use anyhow::Context as _;
use locum::faces::{Face, FaceAnswer};
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
pub(crate) async fn serve(face: Face, global: &Global, output: Output) -> anyhow::Result<Exit> {
    let door = Door::open(global, output, Orchestrator::Model, Executor::InProcess)?;
    let desk = door.opened.desk;
    desk.follow_agent_files();
    desk.adopt_orphans(Stay::Long).await.context("tasks of this session cannot be taken up")?;
    let instructions = face.instructions(&desk).await.map_err(|refusal| anyhow::anyhow!(refusal.message))?;
    let left = CancellationToken::new();
    let places = Semaphore::new(CALLS_MAX);
    let server = Server { face, desk: desk.clone(), instructions, left: left.clone(), places };
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
    face: Face,
    desk: Desk,
    instructions: Option<String>,
    /// Cancelled when the client says no more.
    left: CancellationToken,
    places: Semaphore,
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let config = ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("locum", env!("CARGO_PKG_VERSION")));
        match &self.instructions {
            Some(instructions) => config.with_instructions(instructions.clone()),
            None => config,
        }
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
        Ok(ListToolsResult::with_all_items(self.face.tools(&self.desk.muster().roster).into_iter().map(tool).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Ok(_place) = self.places.try_acquire() else {
            return Err(ErrorData::internal_error(format!("{CALLS_MAX} calls are under way already"), None));
        };
        match call::carry_out(self.face, &self.desk, request, &context, &self.left).await {
            Ended::Answered(answer) => Ok(result(*answer).into()),
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

/// An answer as text for a model, with what a program reads as structured content. A failure is an answer too: the model
/// must see it.
fn result(answer: FaceAnswer) -> CallToolResult {
    let content = vec![ContentBlock::text(answer.text)];
    let mut result = if answer.is_error { CallToolResult::error(content) } else { CallToolResult::success(content) };
    result.structured_content = answer.structured;
    result
}
