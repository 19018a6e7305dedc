//! What happens to a task. The log of these is the task; everything else is derived.
//!
//! The log is append-only and versioned: a field may be added with a default, never removed or given another meaning.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::budget::{Scarce, Shortage};
use crate::ids::{AgentName, Seq, TaskId, Timestamp};
use crate::task::outcome::Outcome;
use crate::task::plan::{ModelName, Plan};
use crate::task::workspace::{Workspace, Worktree};
use crate::transcript::{Intent, Repeat, Reply, ToolOutput};
use crate::usage::TokenCount;

/// One entry of a task's log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Its position, from 1.
    pub seq: Seq,
    /// When it was written.
    pub at: Timestamp,
    /// What happened.
    pub event: TaskEvent,
}

/// What can happen to a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum TaskEvent {
    /// It was admitted; always the first.
    Accepted {
        /// Everything it may use.
        plan: Arc<Plan>,
        /// Whether it has to wait before it runs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parked: Option<Parked>,
    },
    /// What it waited for has happened.
    Released {
        /// The results that are handed on to it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        inputs: Vec<HandedOn>,
    },
    /// A worktree of its own was made, before its first turn.
    WorkspaceReady {
        /// The worktree.
        workspace: Workspace,
    },
    /// What is in its worktree was seen to; its end follows.
    WorkspaceClosed {
        /// What was seen.
        worktree: Worktree,
    },
    /// A model call begins. Written before the request is sent.
    TurnStarted {
        /// Which turn, from 1.
        turn: u32,
        /// What is set aside for it; counted as spent if no answer is ever recorded.
        reserved: TokenCount,
        /// The limit that makes it the last request, if one does: its answer may call no tools.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        closing: Option<Scarce>,
    },
    /// The request of a turn was not made: something that the task shares with others does not cover it. Written in
    /// the place of the request, and nothing is set aside for it.
    TurnDeclined {
        /// Which turn.
        turn: u32,
        /// What is missing.
        shortage: Shortage,
    },
    /// Most of a budget is used up; the model is told with the next request.
    BudgetNearing {
        /// Which limit.
        scarce: Scarce,
    },
    /// The model answered.
    Replied {
        /// Which turn.
        turn: u32,
        /// What it said.
        reply: Reply,
    },
    /// A model call failed.
    ModelFailed {
        /// Which turn.
        turn: u32,
        /// How.
        failure: ModelFailure,
        /// When the call is made again; absent when it is not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_in_ms: Option<u64>,
        /// What it spent before it failed; nothing if no answer had begun.
        #[serde(default, skip_serializing_if = "TokenCount::is_zero")]
        tokens: TokenCount,
    },
    /// The model gave up and the next one of the plan answers from here on; the turn is announced again.
    ModelReplaced {
        /// The turn in which it gave up.
        turn: u32,
        /// The model that gave up.
        from: ModelName,
        /// The model that answers from here on.
        to: ModelName,
        /// What the first one said.
        why: String,
    },
    /// A tool call begins. Written before an unrepeatable one acts.
    ToolStarted {
        /// Which turn.
        turn: u32,
        /// Which call of the reply.
        call_id: String,
        /// The tool.
        name: String,
        /// Whether it may be made again if its end is never recorded.
        repeat: Repeat,
        /// What it is about to do to a file, where it says so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        intent: Option<Intent>,
        /// The rule that a person agreed to before, where one asks for that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        consent: Option<String>,
    },
    /// A tool call ended.
    ToolEnded {
        /// Which turn.
        turn: u32,
        /// Which call of the reply.
        call_id: String,
        /// What it returned.
        output: ToolOutput,
        /// How long it took.
        #[serde(default)]
        duration_ms: u64,
    },
    /// Something from outside the conversation ends it.
    Stopped {
        /// What.
        cause: StopCause,
        /// What the model had said in the call that was cut off.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        partial: Option<String>,
    },
    /// The process that worked on it ended before it did; another one goes on.
    WorkerLost {
        /// How, as far as that is known.
        why: String,
    },
    /// The processes that were under way for it when it ended were seen to; its end follows.
    ProcessesEnded {
        /// Each of them.
        processes: Vec<ProcessEnd>,
    },
    /// It ended; always the last.
    Ended {
        /// How.
        outcome: Outcome,
    },
}

/// A process that worked for a task, and whether it was seen to be gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessEnd {
    /// Its process id.
    pub pid: u32,
    /// When it started, in the system's own words; a process id alone is reused.
    pub started: String,
    /// Whether it is gone.
    pub ended: bool,
}

/// Why an accepted task does not run yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Parked {
    /// No place is free.
    Queued,
    /// A task that it depends on has not ended.
    Waiting,
}

/// A result that is handed on to a task that waited for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HandedOn {
    /// The task that it is from.
    pub task_id: TaskId,
    /// The agent that worked on it.
    pub agent: AgentName,
    /// The result.
    pub text: String,
}

/// How a model call failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelFailure {
    /// What kind of failure; it decides about another attempt.
    pub kind: FailureKind,
    /// What the API or the network said.
    pub message: String,
    /// What the model had said before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<String>,
}

/// Kinds of model failures, told apart by what to do about them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// Too many requests.
    RateLimit,
    /// The provider is overloaded.
    Overloaded,
    /// The provider failed.
    Server,
    /// The provider could not be reached.
    Network,
    /// No answer in time.
    Timeout,
    /// The stream ended before the answer did.
    CutStream,
    /// The answer makes no sense.
    Malformed,
    /// The answer is larger than any answer should be.
    TooLarge,
    /// The key is missing, wrong or not allowed.
    Auth,
    /// The request is wrong.
    BadRequest,
    /// The model does not exist.
    NotFound,
    /// The conversation is longer than the model takes.
    ContextOverflow,
}

impl FailureKind {
    /// Whether the same request may succeed later.
    pub fn is_transient(self) -> bool {
        match self {
            Self::RateLimit
            | Self::Overloaded
            | Self::Server
            | Self::Network
            | Self::Timeout
            | Self::CutStream
            | Self::Malformed => true,
            Self::TooLarge | Self::Auth | Self::BadRequest | Self::NotFound | Self::ContextOverflow => false,
        }
    }

    /// Whether another model may be asked instead: this one cannot be had, whatever it is asked.
    pub fn may_be_replaced(self) -> bool {
        match self {
            Self::RateLimit | Self::Overloaded | Self::Auth | Self::NotFound => true,
            Self::Server
            | Self::Network
            | Self::Timeout
            | Self::CutStream
            | Self::Malformed
            | Self::TooLarge
            | Self::BadRequest
            | Self::ContextOverflow => false,
        }
    }
}

/// What ends a task from outside its conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopCause {
    /// A caller asked for it.
    Cancelled,
    /// The wall clock ran out.
    TimedOut {
        /// The limit.
        after_s: u64,
    },
    /// There was no sign of life.
    Stalled {
        /// The limit.
        after_s: u64,
        /// What it was doing.
        during: Activity,
    },
    /// The tool layer cannot be used.
    ToolLayer {
        /// The turn.
        turn: u32,
        /// What is wrong.
        details: String,
    },
    /// It could not be set apart as asked.
    Isolation {
        /// Why not.
        details: String,
    },
    /// Nobody can go on with it.
    Interrupted {
        /// Why not.
        details: String,
    },
    /// A fault of locum, or of a component that it was given.
    Internal {
        /// What happened.
        details: String,
    },
}

/// What a task is doing, as the watchdog tells it apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// Getting ready; nothing was heard of it yet.
    Startup,
    /// Waiting for the model.
    Model,
    /// Running a tool.
    Tool,
}

impl Activity {
    /// The word for it in messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Startup => "startup",
            Self::Model => "model",
            Self::Tool => "tool",
        }
    }
}
