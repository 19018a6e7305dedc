//! The core's behaviour at its boundaries: requests and refusals, conversations, logs. No clock, no files, no async:
//! every case is data, and what a random case did can be repeated from the seed that a failure prints.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod world;

mod script;
mod stage;

mod conversation;
mod crash;
mod golden;
mod log;
mod permission;

mod admission;
mod agent_files;
mod board;
mod definition;
mod order_of_checks;
mod receipts;
mod release;
mod routing;
mod servers;
mod session_life;
mod shared_context;
mod workspace;

mod admission_properties;
mod budget;
mod budget_properties;
mod context_extensions;
mod context_properties;
mod task_properties;
