//! What a door may ask and what it is answered: one request type, one response type, one refusal type.
//!
//! This is the tool protocol, one of the three JSON families of locum (the others are the event log and each model
//! provider's private format). Every door and every face speaks it.

pub mod face;
pub mod parse;
pub mod refusal;
pub mod request;
pub mod response;
pub mod schema;
pub mod wire;

pub use face::FaceDefaults;
pub use refusal::{Code, Refusal};
pub use request::{BoardAction, ContextAction, Request, SpawnEntry, SubagentAction, ToolRequest};
pub use response::Response;
