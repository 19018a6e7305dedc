//! Model APIs over real sockets: what is sent, what is understood, and what every kind of failure becomes.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod asking;
mod conformance;
mod openai_chat;
mod openai_chat_failures;
mod openai_chat_reasoning;
mod openai_chat_transport;
mod server;
mod tls;
