//! Model APIs behind one trait. Nobody outside this crate sees a provider's wire format.

pub mod catalogue;
pub mod model;
pub mod registry;
pub mod retry;

pub mod offline;
pub mod openai_chat;
pub mod scripted;

pub mod http;

mod sse;

pub use model::{BoxFuture, Delta, Deltas, Model, ModelError, Prefix};
pub use registry::{Access, Registry, script_path};
