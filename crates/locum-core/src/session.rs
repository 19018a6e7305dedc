//! A session inside one transaction: what a decision may look at, and what it may change.
//!
//! A store loads a [`SessionView`], hands it to a pure decision and writes the [`SessionChange`]s that come back, all
//! or none. Two processes can therefore never take the same id or the same last place.

use std::collections::BTreeMap;

use crate::agent::AgentSpec;
use crate::ids::{AgentName, TaskId, Timestamp, Uid};
use crate::protocol::response::{Entry, KeyLine};
use crate::task::event::Parked;
use crate::task::outcome::Status;
use crate::task::plan::Plan;

/// What a decision needs to see. A store loads no more than this.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lookup {
    /// The agents that were defined in the session.
    pub agents: bool,
    /// How these tasks stand.
    pub tasks: Vec<TaskId>,
    /// The tasks that were accepted under these keys.
    pub idempotency_keys: Vec<String>,
    /// What of the shared context.
    pub context: ContextLookup,
}

/// What of the shared context a decision needs to see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ContextLookup {
    /// Nothing.
    #[default]
    None,
    /// One key and the size of the whole.
    Key(String),
    /// Every key, without values.
    Keys,
}

/// A session, as far as a decision asked to see it.
#[derive(Debug, Clone, Default)]
pub struct SessionView {
    /// Whether the session can only be read.
    pub archived: bool,
    /// The number of the next task.
    pub next_task: u32,
    /// Running tasks.
    pub running: u32,
    /// Tasks that were ever accepted.
    pub spawned: u32,
    /// The agents that were defined in the session.
    pub defined: Vec<AgentSpec>,
    /// The tasks that were looked up and exist.
    pub tasks: BTreeMap<TaskId, KnownTask>,
    /// The tasks that were accepted under the keys that were looked up.
    pub idempotent: BTreeMap<String, IdempotentTask>,
    /// The shared context.
    pub context: ContextView,
}

/// A task of the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownTask {
    /// Its id everywhere.
    pub uid: Uid,
    /// The agent that works on it.
    pub agent: AgentName,
    /// Its state.
    pub status: Status,
    /// Whether it was collected.
    pub collected: bool,
}

/// A task that was accepted under an idempotency key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotentTask {
    /// What was asked, shortened to a number.
    pub fingerprint: u64,
    /// The task.
    pub task_id: TaskId,
    /// How it stands.
    pub known: KnownTask,
}

/// The shared context, as far as it was looked up.
#[derive(Debug, Clone, Default)]
pub struct ContextView {
    /// The key that was asked for, if it exists.
    pub entry: Option<Entry>,
    /// The last version that the key ever had, also if it is deleted; 0 if it never existed.
    pub last_version: u64,
    /// Tokens of all values.
    pub total_tokens: usize,
    /// Every key, where that was asked for.
    pub keys: Vec<KeyLine>,
}

/// What a decision changes.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionChange {
    /// An agent is defined, or defined anew.
    Define(Box<AgentSpec>),
    /// A task is accepted.
    Accept(Box<Acceptance>),
    /// A finished task leaves active tracking.
    Collect {
        /// The task.
        task_id: TaskId,
        /// When.
        at: Timestamp,
    },
    /// A value of the shared context is set.
    PutContext(Entry),
    /// A value of the shared context is removed; its version is kept.
    RemoveContext {
        /// The key.
        key: String,
    },
}

/// A task that is accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct Acceptance {
    /// Everything it may use.
    pub plan: Plan,
    /// Whether it has to wait.
    pub parked: Option<Parked>,
    /// The key under which the same request finds it again, and what was asked.
    pub idempotency: Option<(String, u64)>,
}
