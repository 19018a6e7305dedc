//! Model APIs behind one trait. Nobody outside this crate sees a provider's wire format.

pub mod catalogue;
pub mod model;
pub mod retry;

pub mod http;
pub mod offline;
pub mod openai_chat;
pub mod scripted;

mod sse;

pub use model::{BoxFuture, Delta, Deltas, Model, ModelError, Prefix};
