//! Model APIs behind one trait. Nobody outside this crate sees a provider's wire format.

pub mod model;
pub mod retry;

pub mod offline;
pub mod openai_chat;
pub mod scripted;

mod http;
mod sse;

pub use model::{BoxFuture, Delta, Deltas, Model, ModelError, Prefix};
