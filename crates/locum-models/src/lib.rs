//! Model APIs behind one trait. Nobody outside this crate sees a provider's wire format.

pub mod catalogue;
pub mod model;
pub mod registry;
pub mod retry;

pub mod access;
pub mod providers;

pub mod offline;
pub mod recording;
pub mod replay;
pub mod scripted;

pub mod api;
pub mod http;

mod anthropic_messages;
mod google_gemini;
mod openai_chat;
mod openai_responses;

mod calls;
mod chosen;
mod encoding;
mod failure;
mod governor;
mod json_text;
mod probe;
mod recovery;
mod said;
mod sse;

pub use access::{Access, ProviderAccess};
pub use governor::Hold;
pub use model::{BoxFuture, Delta, Deltas, Model, ModelError, Prefix};
pub use probe::Probed;
pub use registry::{Registry, script_path};
