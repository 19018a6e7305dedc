//! How a task stands and how it ended, with the failure texts of the contract.

use serde::{Deserialize, Serialize};

/// The state of a task, as callers see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Accepted, and no place is free yet.
    Queued,
    /// Accepted, and a task that it depends on has not ended yet.
    Waiting,
    /// Being worked on.
    Running,
    /// Ended with a final answer of the model.
    Completed,
    /// Ended without one.
    Failed,
    /// Stopped by a caller.
    Cancelled,
}

impl Status {
    /// Whether nothing more will happen.
    pub fn is_final(self) -> bool {
        match self {
            Self::Completed | Self::Failed | Self::Cancelled => true,
            Self::Queued | Self::Waiting | Self::Running => false,
        }
    }

    /// The word for it in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Reads the word for it.
    pub fn parse(text: &str) -> Option<Self> {
        let all = [Self::Queued, Self::Waiting, Self::Running, Self::Completed, Self::Failed, Self::Cancelled];
        all.into_iter().find(|status| status.as_str() == text)
    }
}

/// Why a task failed, as a word to branch on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// No final answer within its turns.
    MaxTurns,
    /// The wall clock ran out.
    Timeout,
    /// No sign of life.
    Stalled,
    /// The budget ran out.
    Budget,
    /// The model's API failed.
    Model,
    /// The tool layer is unusable.
    Tool,
    /// The model refused.
    Refused,
    /// The answer was cut.
    Cut,
    /// The answer was empty.
    Empty,
    /// A task that it depends on did not complete.
    Dependency,
    /// It repeated itself.
    Loop,
    /// It could not be set apart as asked.
    Isolation,
    /// Its worker was lost too often.
    Interrupted,
    /// A fault of locum.
    Internal,
}

/// Every reason, with its word.
const REASONS: [(Reason, &str); 14] = [
    (Reason::MaxTurns, "max_turns"),
    (Reason::Timeout, "timeout"),
    (Reason::Stalled, "stalled"),
    (Reason::Budget, "budget"),
    (Reason::Model, "model"),
    (Reason::Tool, "tool"),
    (Reason::Refused, "refused"),
    (Reason::Cut, "cut"),
    (Reason::Empty, "empty"),
    (Reason::Dependency, "dependency"),
    (Reason::Loop, "loop"),
    (Reason::Isolation, "isolation"),
    (Reason::Interrupted, "interrupted"),
    (Reason::Internal, "internal"),
];

impl Reason {
    /// The word for it in answers.
    pub fn as_str(self) -> &'static str {
        REASONS.iter().find(|(reason, _)| *reason == self).map_or("internal", |(_, word)| word)
    }

    /// Reads the word for it.
    pub fn parse(text: &str) -> Option<Self> {
        REASONS.iter().find(|(_, word)| *word == text).map(|(reason, _)| *reason)
    }
}

/// Why a task failed, with what its text needs. [`Failure::error`] has the contract's words.
#[derive(Debug, Clone, PartialEq)]
pub enum Failure {
    /// See [`Reason::MaxTurns`].
    MaxTurns,
    /// See [`Reason::Timeout`].
    Timeout {
        /// The limit.
        after_s: u64,
    },
    /// See [`Reason::Stalled`].
    Stalled {
        /// The limit.
        after_s: u64,
        /// What it was doing: startup, model or tool.
        during: &'static str,
    },
    /// See [`Reason::Budget`].
    Budget {
        /// Which budget.
        what: &'static str,
        /// Its limit.
        limit: String,
    },
    /// See [`Reason::Model`].
    Model(String),
    /// See [`Reason::Tool`].
    Tool {
        /// The turn in which it happened.
        turn: u32,
        /// What happened.
        details: String,
    },
    /// See [`Reason::Refused`].
    Refused(String),
    /// See [`Reason::Cut`].
    Cut,
    /// See [`Reason::Empty`].
    Empty,
    /// See [`Reason::Dependency`].
    Dependency {
        /// The task that did not complete.
        task_id: crate::ids::TaskId,
        /// Why it did not.
        error: String,
    },
    /// See [`Reason::Loop`].
    Loop {
        /// How often the same was done in a row.
        times: u32,
    },
    /// See [`Reason::Isolation`].
    Isolation(String),
    /// See [`Reason::Interrupted`].
    Interrupted(String),
    /// See [`Reason::Internal`].
    Internal(String),
}

impl Failure {
    /// The word to branch on.
    pub fn reason(&self) -> Reason {
        match self {
            Self::MaxTurns => Reason::MaxTurns,
            Self::Timeout { .. } => Reason::Timeout,
            Self::Stalled { .. } => Reason::Stalled,
            Self::Budget { .. } => Reason::Budget,
            Self::Model(_) => Reason::Model,
            Self::Tool { .. } => Reason::Tool,
            Self::Refused(_) => Reason::Refused,
            Self::Cut => Reason::Cut,
            Self::Empty => Reason::Empty,
            Self::Dependency { .. } => Reason::Dependency,
            Self::Loop { .. } => Reason::Loop,
            Self::Isolation(_) => Reason::Isolation,
            Self::Interrupted(_) => Reason::Interrupted,
            Self::Internal(_) => Reason::Internal,
        }
    }

    /// The contract's words for it.
    pub fn error(&self) -> String {
        match self {
            Self::MaxTurns => "Max turns exceeded without producing a final response".to_owned(),
            Self::Timeout { after_s } => format!("Timed out after {after_s} s"),
            Self::Stalled { after_s, during } => format!("Stalled: no activity for {after_s} s during {during}"),
            Self::Budget { what, limit } => format!("Budget exceeded: {what} would pass {limit}"),
            Self::Model(details) => format!("Model API error: {details}"),
            Self::Tool { turn, details } => format!("Tool execution error in turn {turn}: {details}"),
            Self::Refused(details) => format!("The model refused to answer: {details}"),
            Self::Cut => "The answer was cut at the model's output limit".to_owned(),
            Self::Empty => "The model ended without an answer".to_owned(),
            Self::Dependency { task_id, error } => format!("Dependency {task_id} failed: {error}"),
            Self::Loop { times } => format!("Stopped: the same tool call was repeated {times} times"),
            Self::Isolation(details) => format!("Isolation failed: {details}"),
            Self::Interrupted(details) => format!("Interrupted: {details}"),
            Self::Internal(details) => format!("Internal error: {details}"),
        }
    }
}

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Outcome {
    /// The model ended with a final answer.
    Completed {
        /// The whole answer.
        text: String,
    },
    /// It did not.
    Failed {
        /// Why, as a word.
        reason: Reason,
        /// Why, in words.
        error: String,
        /// What it had said before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        partial: Option<String>,
    },
    /// A caller stopped it.
    Cancelled {
        /// What it had said before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        partial: Option<String>,
    },
}

impl Outcome {
    /// A failure, with what the task had said before.
    pub fn failed(failure: &Failure, partial: Option<String>) -> Self {
        Self::Failed { reason: failure.reason(), error: failure.error(), partial }
    }

    /// The task's final state.
    pub fn status(&self) -> Status {
        match self {
            Self::Completed { .. } => Status::Completed,
            Self::Failed { .. } => Status::Failed,
            Self::Cancelled { .. } => Status::Cancelled,
        }
    }

    /// Everything that the task said: its answer, or what it had before it ended.
    pub fn text(&self) -> &str {
        match self {
            Self::Completed { text } => text,
            Self::Failed { partial, .. } | Self::Cancelled { partial } => partial.as_deref().unwrap_or_default(),
        }
    }

    /// Why it failed.
    pub fn error(&self) -> Option<&str> {
        match self {
            Self::Failed { error, .. } => Some(error),
            Self::Completed { .. } | Self::Cancelled { .. } => None,
        }
    }

    /// Why it failed, as a word.
    pub fn reason(&self) -> Option<Reason> {
        match self {
            Self::Failed { reason, .. } => Some(*reason),
            Self::Completed { .. } | Self::Cancelled { .. } => None,
        }
    }
}
