//! One connection to a server, on the official SDK: hello, the list of tools, calls, and the end. Nothing here waits
//! without a bound but what its caller bounds.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use locum_core::limits;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ClientConfig, ErrorCode,
    Implementation, PaginatedRequestParams, ProtocolVersion,
};
use rmcp::service::{ClientInitializeError, NotificationContext, RunningService};
use rmcp::transport::IntoTransport;
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt as _, Peer, RoleClient, ServiceError};
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::conversation::Trouble;
use super::pins::Offer;
use super::program::Program;

/// How long the SDK may take to let go of a connection.
const LETTING_GO: Duration = Duration::from_secs(1);

/// Why a call has no result.
pub(super) enum CallFailure {
    /// The server answered that it cannot be done.
    Refused(String),
    /// The connection is lost: nobody knows whether the call had an effect.
    Lost(String),
}

/// Why there is no connection.
pub(super) enum OpenFailure {
    /// The server does not know the way in which it was greeted; there is another.
    OtherEra,
    /// For this reason.
    Failed(String),
}

/// An open connection.
pub(super) struct Connection {
    peer: Peer<RoleClient>,
    trouble: Trouble,
    has_changed: Arc<AtomicBool>,
    used_at: Mutex<Instant>,
    /// Taken at the end.
    parts: Mutex<Option<Parts>>,
}

struct Parts {
    service: RunningService<RoleClient, Listener>,
    program: Option<Program>,
}

/// What a server may say without being asked: that its tools have changed. It is given nothing else to ask for.
struct Listener {
    has_changed: Arc<AtomicBool>,
}

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        let locum = Implementation::new("locum", env!("CARGO_PKG_VERSION"));
        // The newest version that is agreed upon by a greeting; later ones need none.
        ClientConfig::new(ClientCapabilities::default(), locum).with_protocol_version(ProtocolVersion::V_2025_06_18)
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.has_changed.store(true, Ordering::Relaxed);
    }
}

/// How a server is greeted. Servers of before 2026 want `initialize`; some of those answer anything to a method that
/// they do not know, so the newer way is the second one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    Greeting,
    Discovery,
}

impl Era {
    pub(super) const ALL: [Self; 2] = [Self::Greeting, Self::Discovery];

    fn lifecycle(self) -> ClientLifecycleMode {
        match self {
            Self::Greeting => ClientLifecycleMode::Initialize,
            Self::Discovery => {
                ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
            }
        }
    }
}

impl Connection {
    /// Greets a server.
    pub(super) async fn open<T, E, A>(
        transport: T,
        era: Era,
        trouble: Trouble,
        program: Option<Program>,
    ) -> Result<Self, OpenFailure>
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        let has_changed = Arc::new(AtomicBool::new(false));
        let listener = Listener { has_changed: Arc::clone(&has_changed) };
        match listener.serve_with_lifecycle(transport, era.lifecycle()).await {
            Ok(service) => Ok(Self {
                peer: service.peer().clone(),
                trouble,
                has_changed,
                used_at: Mutex::new(Instant::now()),
                parts: Mutex::new(Some(Parts { service, program })),
            }),
            Err(error) => {
                if let Some(program) = program {
                    // It said nothing sensible; how it ends is its launcher's affair.
                    drop(program);
                }
                Err(failure(era, &error, &trouble))
            }
        }
    }

    /// What the server offers.
    pub(super) async fn offers(&self) -> Result<Vec<Offer>, String> {
        self.has_changed.store(false, Ordering::Relaxed);
        let mut offers = Vec::new();
        let mut cursor = None;
        for _ in 0..limits::MCP_TOOL_PAGES_MAX {
            let page = PaginatedRequestParams::default().with_cursor(cursor);
            let page = self.peer.list_tools(Some(page)).await;
            let page = page.map_err(|error| self.trouble.explain(&format!("its tools are not known: {error}")))?;
            offers.extend(page.tools.into_iter().filter_map(offer));
            cursor = page.next_cursor;
            if cursor.is_none() || offers.len() >= limits::MCP_TOOLS_MAX {
                break;
            }
        }
        offers.truncate(limits::MCP_TOOLS_MAX);
        Ok(offers)
    }

    /// Whether the server has said that its tools have changed.
    pub(super) fn has_changed(&self) -> bool {
        self.has_changed.load(Ordering::Relaxed)
    }

    /// Calls a tool. Dropping the future tells the server that nobody waits for the result.
    pub(super) async fn call(&self, tool: &str, input: Map<String, Value>) -> Result<CallToolResult, CallFailure> {
        let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(input);
        let answer = self.peer.call_tool_once(request).await;
        self.note_use();
        match answer {
            Ok(CallToolResponse::Complete(result)) => Ok(result),
            Ok(CallToolResponse::InputRequired(_)) => {
                Err(CallFailure::Refused("it wants to ask a person something, and nobody can be asked here".to_owned()))
            }
            Ok(_) => Err(CallFailure::Refused("it answered in a way that is not known here".to_owned())),
            Err(ServiceError::McpError(error)) => Err(CallFailure::Refused(error.message.into_owned())),
            Err(error) => Err(CallFailure::Lost(self.trouble.explain(&error.to_string()))),
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.peer.is_transport_closed()
    }

    pub(super) fn note_use(&self) {
        *self.used_at.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    pub(super) fn idle_for(&self) -> Duration {
        self.used_at.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }

    /// Ends the connection and, with proof, the server's program. What is under way is lost.
    pub(super) async fn close(&self) -> Result<(), String> {
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Parts { mut service, program }) = parts else { return Ok(()) };
        // However it ends, it is dropped here.
        drop(service.close_with_timeout(LETTING_GO).await);
        drop(service);
        match program {
            Some(program) => program.end().await,
            None => Ok(()),
        }
    }
}

fn failure(era: Era, error: &ClientInitializeError, trouble: &Trouble) -> OpenFailure {
    match error {
        ClientInitializeError::JsonRpcError(error)
            if era == Era::Greeting && error.code == ErrorCode::METHOD_NOT_FOUND =>
        {
            OpenFailure::OtherEra
        }
        ClientInitializeError::ConnectionClosed(_) => {
            OpenFailure::Failed(trouble.explain("it ended before it said hello"))
        }
        error => OpenFailure::Failed(trouble.explain(&format!("it does not say hello: {error}"))),
    }
}

/// A tool as it is kept; none for one that no model could use.
fn offer(tool: rmcp::model::Tool) -> Option<Offer> {
    let input_schema = Value::Object(tool.input_schema.as_ref().clone());
    if tool.name.is_empty() || input_schema.to_string().len() > limits::MCP_SCHEMA_BYTES_MAX {
        return None;
    }
    let description = tool.description.unwrap_or_default();
    let description = description.chars().take(limits::MCP_DESCRIPTION_CHARS_MAX).collect();
    Some(Offer { name: tool.name.into_owned(), description, input_schema })
}
