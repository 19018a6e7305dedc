//! What a door is answered. The shapes are the contract: fields appear in the order in which they are written here.

mod board;
mod shared_context;

use serde::{Deserialize, Serialize};

use crate::ids::{AgentName, TaskId, Timestamp, Uid};
use crate::protocol::Refusal;
use crate::task::event::ProcessEnd;
use crate::task::outcome::{Reason, Status};
use crate::task::plan::Receipt;
use crate::task::workspace::Worktree;
use crate::usage::Usage;

pub use board::{BoardAdded, BoardArchived, BoardComment, BoardCompleted, BoardStatus, BoardTask, BoardTasks};
pub use shared_context::{
    Batch, Deleted, Entry, History, KeyLine, Keys, Restored, RestoredKey, SnapshotLine, Snapshots, Version, Written,
};

/// An answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Response {
    /// To `list_agents`.
    Agents(Agents),
    /// To `define`.
    Defined(Defined),
    /// To `spawn`.
    Spawned(Spawned),
    /// To `status` with an id.
    Status(Box<TaskStatus>),
    /// To `status` without one.
    Tasks(Tasks),
    /// To `wait`.
    Waited(Waited),
    /// To `collect` and `run`.
    Collected(Box<Collected>),
    /// To `result`.
    ResultPage(ResultText),
    /// To `cancel`.
    Cancelled(Box<Cancelled>),
    /// To `parallel` and `map`.
    Parallel(Parallel),
    /// To `chain`.
    Chain(Box<Chain>),
    /// To `race`.
    Race(Box<Race>),
    /// To a foreground action with `background: true`.
    Background(TaskIds),
    /// To `list_keys`.
    Keys(Keys),
    /// To `read`.
    Entry(Entry),
    /// To `write`.
    Written(Written),
    /// To `delete`.
    Deleted(Deleted),
    /// To `read_batch`.
    Batch(Batch),
    /// To `read_history`.
    History(History),
    /// To `snapshot`.
    Snapshot(SnapshotLine),
    /// To `list_snapshots`.
    Snapshots(Snapshots),
    /// To `restore`.
    Restored(Restored),
    /// To `add`.
    BoardAdded(BoardAdded),
    /// To `list`.
    BoardTasks(BoardTasks),
    /// To `get`, `update`, `claim` and `complete`.
    BoardTask(Box<BoardTask>),
    /// To `complete_all`.
    BoardCompleted(BoardCompleted),
    /// To `clear`.
    BoardArchived(BoardArchived),
}

/// The agents that can be asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Agents {
    /// By name.
    pub agents: Vec<AgentLine>,
}

/// One agent in `list_agents`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentLine {
    /// Its name.
    pub name: AgentName,
    /// When to delegate to it.
    pub description: String,
    /// The model that would answer.
    pub model: String,
    /// Its turns.
    pub max_turns: u32,
    /// The tools that it would have.
    pub tools: Vec<String>,
    /// Where it came from.
    pub source: String,
    /// Which redefinition it is, for agents defined in the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
}

/// The answer to `define`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Defined {
    /// The agent's name.
    pub defined: AgentName,
    /// Its description.
    pub description: String,
    /// 1, and one more with each redefinition.
    pub version: u32,
    /// What was changed in the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// The answer to `spawn`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spawned {
    /// The task's id in the session.
    pub task_id: TaskId,
    /// The agent that works on it.
    pub agent: AgentName,
    /// Its state.
    pub status: Status,
    /// The task's id everywhere else.
    pub uid: Uid,
    /// Its place in the queue, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<u32>,
    /// The tasks that it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<Vec<TaskId>>,
    /// What was changed in the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// How a task stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskStatus {
    /// Its id.
    pub task_id: TaskId,
    /// The agent that works on it.
    pub agent: AgentName,
    /// Its state.
    pub status: Status,
    /// Model calls so far.
    pub turns_used: u32,
    /// What its caller called it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Why it failed, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Why it failed, as a word to branch on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// Its place in the queue, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<u32>,
    /// The tasks that it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<Vec<TaskId>>,
    /// What it is doing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<String>,
    /// What it used.
    pub usage: Usage,
    /// When to look again; `wait` is better.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll_after_ms: Option<u64>,
    /// What to do instead of polling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
}

/// Every uncollected task, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tasks {
    /// The tasks.
    pub tasks: Vec<TaskStatus>,
}

/// The answer to `wait`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Waited {
    /// How the tasks stand.
    pub tasks: Vec<TaskStatus>,
    /// Whether the time ran out first.
    pub timed_out: bool,
}

/// A finished task: the answer to `collect` and `run`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Collected {
    /// Its id.
    pub task_id: TaskId,
    /// The agent that worked on it.
    pub agent: AgentName,
    /// How it ended.
    pub status: Status,
    /// The final answer; null unless completed.
    pub result: Option<String>,
    /// Why it failed, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Why it failed, as a word to branch on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// What it had said before it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial_result: Option<String>,
    /// Model calls.
    pub turns_used: u32,
    /// What it used.
    pub usage: Usage,
    /// What it was launched with.
    pub receipt: Receipt,
    /// The worktree that it worked in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Worktree>,
    /// Whether the result was cut; `result` has the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<bool>,
    /// What the caller should know about this result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// One page of a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResultText {
    /// The task.
    pub task_id: TaskId,
    /// How it ended.
    pub status: Status,
    /// The page.
    pub text: String,
    /// Its first character.
    pub offset: usize,
    /// Where the next page begins, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<usize>,
    /// Characters of the whole.
    pub total_chars: usize,
}

/// The answer to `cancel`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cancelled {
    /// The task.
    pub task_id: TaskId,
    /// Its state now.
    pub status: Status,
    /// What it had said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial_result: Option<String>,
    /// What was observed.
    pub receipt: CancelReceipt,
}

/// What was observed after a cancel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CancelReceipt {
    /// Whether everything below has ended.
    pub confirmed: bool,
    /// The task and its descendants.
    pub tasks: Vec<CancelledTask>,
    /// The processes that worked on them.
    pub processes: Vec<ProcessEnd>,
    /// The worktree that the task worked in, as it was left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Worktree>,
    /// What the task used.
    pub usage: Usage,
}

/// A task in a cancel's receipt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CancelledTask {
    /// The task.
    pub task_id: TaskId,
    /// Its state.
    pub status: Status,
}

/// The answer to `parallel`, in the order of the request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Parallel {
    /// One for each entry.
    pub results: Vec<ParallelResult>,
    /// How many completed.
    pub completed: usize,
    /// How many failed or were refused.
    pub failed: usize,
    /// How many stalled.
    pub stalled: usize,
}

/// One entry's result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ParallelResult {
    /// It ran.
    Collected(Box<Collected>),
    /// It was refused.
    Refused(RefusedEntry),
}

/// An entry of `parallel` that was refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RefusedEntry {
    /// Why.
    #[serde(flatten)]
    pub refusal: Refusal,
    /// The agent that was asked for.
    pub agent: String,
    /// The task that was given.
    pub task: String,
}

/// The answer to `chain`: the last step, or the one that failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Chain {
    /// The step's result.
    #[serde(flatten)]
    pub collected: Collected,
    /// Which step it is, from 1.
    pub step: usize,
    /// How many there were.
    pub steps: usize,
}

/// The answer to `race`: the first that completed, or one that failed where none did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Race {
    /// Its result.
    #[serde(flatten)]
    pub collected: Collected,
    /// The tasks that were cancelled because it won.
    pub cancelled: Vec<TaskId>,
    /// What `cancel` would have answered for each of them, and for those that have not ended yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub receipts: Vec<Cancelled>,
}

/// The tasks that were started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskIds {
    /// In the order of the request; refused entries are absent.
    pub task_ids: Vec<TaskId>,
    /// The entries that were refused, with their place in the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedEntry>,
}
