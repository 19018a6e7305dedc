//! `locum serve` from outside, over real sockets: what it answers, whom it refuses, and how it begins and ends.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

#[path = "../cli/home.rs"]
#[expect(dead_code, reason = "the other doors are tested in it too")]
mod home;
mod served;
mod visit;

mod bodies;
mod client;
mod events;
mod life;
mod mcp;
mod mcp_asking;
mod mcp_resources;
mod mcp_tasks;
mod refused;
mod requests;
mod resources;
