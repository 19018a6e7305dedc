//! Asking a person whether a call may be made, where a rule wants that.
//!
//! An engine knows nobody: a door that has a person at its other end hands an [`Asker`] to its
//! [`DeskBuilder`](crate::desk::DeskBuilder::asker). Where there is none, what needs consent is denied, and whoever
//! delegated is told which rule it was.

use futures_util::future::BoxFuture;
use locum_core::ids::{AgentName, SessionId, TaskId};

/// Somebody who can be asked. Several tasks may ask at once; it is the asker's to put them in a row.
pub trait Asker: Send + Sync {
    /// Asks, and waits for the answer for as long as it takes: while somebody thinks, a task does not count as stalled.
    ///
    /// # Cancel safety
    ///
    /// The future is dropped when the task is cancelled or its time is over; then nobody waits for the answer.
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer>;
}

/// What a person is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The session that the task is in.
    pub session: SessionId,
    /// The task that wants it.
    pub task: TaskId,
    /// Its agent.
    pub agent: AgentName,
    /// The tool that it wants to use.
    pub tool: String,
    /// What for: a command, a path, an address. Written by a model; what a terminal could take for an order to itself is
    /// not in it.
    pub about: String,
    /// The rule that wants somebody to agree.
    pub rule: String,
}

/// What a person says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The call may be made.
    Yes,
    /// It may not.
    No,
    /// Nobody is there any more.
    Nobody,
}
