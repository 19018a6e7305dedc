//! Ask a specialist, get an answer: the delegation engine for agents.
//!
//! An orchestrating program hands a task to a specialist; locum runs that specialist's whole agent loop (a model,
//! tools, limits), alone, in parallel, in a chain or in the background, and hands back an answer that is never lost,
//! never faked and never over budget.
//!
//! Everything goes through one entrance, [`Desk::handle`]: a [`Request`] in, a [`Response`] or a [`Refusal`] out. The
//! command line and the MCP server are thin doors to the same desk.
//!
//! ```
//! use std::sync::Arc;
//!
//! use locum::models::scripted::{Say, Scripted};
//! use locum::{AgentName, AgentSpec, Desk, Response};
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A scripted model answers the same every time: your agents can be tested without a key.
//! let model = Scripted::new().agent("greeter", [Say::text("Good morning.")]);
//! let greeter = AgentSpec::new(AgentName::parse("greeter")?, "Greets people", "You greet people.");
//! let desk = Desk::builder().model("script", Arc::new(model)).agent(greeter).build()?;
//!
//! let answer = desk.call("subagent", json!({"action": "run", "agent": "greeter", "task": "Greet me."})).await?;
//! let Response::Collected(task) = answer else { panic!("run answers with the collected task") };
//! assert_eq!(task.result.as_deref(), Some("Good morning."));
//! # Ok(())
//! # }
//! ```

pub mod desk;
pub mod progress;

pub mod agents;
pub mod tools;

pub mod store;

pub mod launch;
pub mod settings;
pub mod setup;

pub mod clock;
pub mod operation_log;
pub mod redact;

mod driver;
mod engine;
mod hands;
mod journal;
mod pool;
mod process;
mod prompt;
mod worker;

pub use desk::{BuildError, Desk, DeskBuilder, Stay};
pub use engine::Executor;
pub use locum_core::agent::AgentSpec;
pub use locum_core::ids::{AgentName, SessionId, SessionKey, TaskId, Timestamp, Uid};
pub use locum_core::limits::Limits;
pub use locum_core::liveness::Patience;
pub use locum_core::protocol::{self, Code, Refusal, Request, Response, ToolRequest};
pub use locum_core::{limits, task, transcript};
pub use locum_models as models;
