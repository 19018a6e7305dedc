//! A session inside one transaction: what a decision may look at, and what it may change.
//!
//! A store loads a [`SessionView`], hands it to a pure decision and writes the [`SessionChange`]s that come back, all
//! or none. Two processes can therefore never take the same id or the same last place.

pub mod life;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::agent::AgentSpec;
use crate::budget::{PurseKey, PurseState};
use crate::ids::{AgentName, TaskId, Timestamp, Uid};
use crate::protocol::response::{BoardTask, Entry, KeyLine, SnapshotLine};
use crate::task::event::{Parked, TaskEvent};
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
    /// How these purses stand.
    pub purses: Vec<PurseKey>,
    /// What of the shared context.
    pub context: ContextLookup,
    /// What of the board.
    pub board: BoardLookup,
}

/// What of the board a decision needs to see.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BoardLookup {
    /// Nothing.
    #[default]
    None,
    /// What is on it.
    Tasks,
    /// What is on it, and what was archived.
    Everything,
}

/// What of the shared context a decision needs to see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ContextLookup {
    /// Nothing.
    #[default]
    None,
    /// Every key, without values.
    Keys,
    /// One key with its value, and every key without.
    Key(String),
    /// These keys with their values.
    Values(Vec<String>),
    /// What one key held.
    History(String),
    /// The snapshots, without values.
    Snapshots,
    /// Every key with its value, the snapshots, and the values of this one.
    Snapshot(String),
}

/// A session, as far as a decision asked to see it.
#[derive(Debug, Clone, Default)]
pub struct SessionView {
    /// Whether it was made, by a request or by its first change.
    pub exists: bool,
    /// Whether the session can only be read.
    pub archived: bool,
    /// The number of the next task.
    pub next_task: u32,
    /// Running tasks.
    pub running: u32,
    /// Tasks that have not ended, running or not.
    pub unfinished: u32,
    /// Tasks that models have ever started, those of a person's command left out.
    pub spawned: u32,
    /// The agents that were defined in the session.
    pub defined: Vec<AgentSpec>,
    /// The tasks that were looked up and exist.
    pub tasks: BTreeMap<TaskId, KnownTask>,
    /// The tasks that were accepted under the keys that were looked up.
    pub idempotent: BTreeMap<String, IdempotentTask>,
    /// The purses that were looked up and from which something was drawn.
    pub purses: BTreeMap<PurseKey, PurseState>,
    /// The shared context.
    pub context: ContextView,
    /// The board.
    pub board: BoardView,
}

/// The board, as far as it was looked up.
#[derive(Debug, Clone, Default)]
pub struct BoardView {
    /// Its tasks, oldest first; archived ones say so themselves.
    pub tasks: Vec<BoardTask>,
    /// How the tasks of the session stand that own one of them.
    pub owners: BTreeMap<TaskId, Status>,
    /// The number of the newest task that it ever had.
    pub last: u32,
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
    /// The keys whose values were asked for, as far as they ever had one.
    pub slots: BTreeMap<String, Slot>,
    /// Every key that has a value, also if that has expired, by name.
    pub keys: Vec<KeyLine>,
    /// The last versions of a key, newest first.
    pub history: Vec<Entry>,
    /// The snapshots, by label.
    pub snapshots: Vec<SnapshotLine>,
    /// The values of the snapshot that was asked for, if it exists.
    pub snapshot: Option<Vec<Entry>>,
}

/// A key that had a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Slot {
    /// The last version that it ever had, also if it was removed.
    pub last_version: u64,
    /// Its value, if it was not removed; it may have expired.
    pub entry: Option<Entry>,
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
    /// A value of the shared context is removed; its version and its history are kept.
    RemoveContext {
        /// The key.
        key: String,
        /// The version that is removed.
        version: u64,
        /// Who removes it; `expiry` if its time was over.
        by: String,
    },
    /// The shared context is kept under a label, in the place of what was kept under it.
    PutSnapshot(Box<Snapshot>),
    /// A task is put on the board, in the place of what it was. Of those that are archived the newest are kept.
    PutBoardTask(Box<BoardTask>),
    /// The session is made. Every other change makes it too.
    Create,
    /// From now on the session can only be read.
    Archive,
    /// The session and everything in it is removed.
    Delete,
}

/// The shared context as it was at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// What is shown of it.
    pub line: SnapshotLine,
    /// The values.
    pub entries: Vec<Entry>,
}

/// A task that is accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct Acceptance {
    /// Everything it may use.
    pub plan: Arc<Plan>,
    /// Whether it has to wait.
    pub parked: Option<Parked>,
    /// The key under which the same request finds it again, and what was asked.
    pub idempotency: Option<(String, u64)>,
    /// The announcement of its first turn, where that is written together with the acceptance.
    pub first_turn: Option<TaskEvent>,
}
