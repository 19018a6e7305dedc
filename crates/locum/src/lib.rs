//! Ask a specialist, get an answer: the delegation engine for agents.
//!
//! An orchestrating program hands a task to a specialist; locum runs that specialist's whole agent loop (a model,
//! tools, limits), alone, in parallel, in a chain or in the background, and hands back an answer that is never lost,
//! never faked and never over budget.
//!
//! Everything goes through one entrance, [`Desk::handle`]: a [`Request`] in, a [`Response`] or a [`Refusal`] out. The
//! command line and the MCP server are thin doors to the same desk.
//!
//! From here on: [the words](#the-words), [a first run](#a-first-run), [real models](#real-models),
//! [a tool](#a-tool-of-your-own) and [a model](#a-model-of-your-own) of your own, [keeping tasks](#keeping-tasks),
//! [watching](#watching), [ending](#ending), [errors](#errors) and [examples](#examples).
#![doc = include_str!("guide.md")]

pub mod context_changes;
pub mod desk;
pub mod faces;
pub mod progress;

pub mod agents;
pub mod asking;
pub mod mcp_servers;
pub mod tools;

pub mod store;
pub mod worktrees;

pub mod launch;
pub mod sandbox;
pub mod settings;
pub mod setup;

pub mod checkup;
pub mod clock;
pub mod operation_log;
pub mod recorder;
pub mod redact;

mod attached;
mod driver;
mod ears;
mod engine;
mod git;
mod hands;
mod jobs;
mod journal;
mod lookout;
mod pool;
mod private_file;
mod process;
mod prompt;
mod traces;
mod turn;
mod waits;
mod web;
mod worker;
mod workspace;
mod writers;

pub use desk::{
    BuildError, Desk, DeskBuilder, Following, Glance, ListedAgent, Mark, ORCHESTRATOR, ShownAgent, ShownValue, Stay,
};
pub use engine::Executor;
pub use locum_core::agent::AgentSpec;
pub use locum_core::ids::{AgentName, SessionId, SessionKey, TaskId, Timestamp, Uid};
pub use locum_core::limits::Limits;
pub use locum_core::liveness::Patience;
pub use locum_core::protocol::{Code, Refusal, Request, Response, ToolRequest};

// The rest of the core that public signatures speak of, so that an embedding program needs no other crate.
pub use locum_core::{
    agent, budget, ids, limits, neutral, permission, protocol, release, routing, session, task, transcript, usage,
};

pub use locum_models as models;

/// The snippets of the README are tested with the documentation.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
