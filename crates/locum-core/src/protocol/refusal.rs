//! Why a request was not carried out: a code to branch on, a message to read, a hint to act on.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A request that was refused. Nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Refusal {
    /// What to branch on.
    #[serde(rename = "error")]
    pub code: Code,
    /// What was wrong.
    pub message: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Refusal {
    /// A refusal without a hint.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None }
    }

    /// Adds what the caller can do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The request itself is malformed.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidRequest, message)
    }

    /// Something that is not the caller's fault.
    pub fn internal(error: impl fmt::Display) -> Self {
        Self::new(Code::Internal, error.to_string())
    }
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// The code of a refusal. The first nine are the specification's (§5).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
        pub enum Code {
            $($(#[$doc])* #[serde(rename = $text)] $name,)*
        }

        impl Code {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The code as it is written in answers.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

codes! {
    /// No agent of this name.
    AgentNotFound = "AGENT_NOT_FOUND",
    /// `define` with a name that is taken.
    AgentAlreadyExists = "AGENT_ALREADY_EXISTS",
    /// No such task, or it was collected.
    TaskNotFound = "TASK_NOT_FOUND",
    /// `collect` before the end.
    TaskNotReady = "TASK_NOT_READY",
    /// The task description is too long.
    TaskTooLarge = "TASK_TOO_LARGE",
    /// All places for running tasks are taken.
    MaxTasksExceeded = "MAX_TASKS_EXCEEDED",
    /// Not a name of an agent.
    InvalidAgentName = "INVALID_AGENT_NAME",
    /// `define` names a tool that does not exist.
    InvalidTool = "INVALID_TOOL",
    /// The system prompt is too long.
    PromptTooLarge = "PROMPT_TOO_LARGE",
    /// The tool has no such action.
    InvalidAction = "INVALID_ACTION",
    /// A missing, unknown or mistyped field.
    InvalidRequest = "INVALID_REQUEST",
    /// No model of this name.
    ModelNotFound = "MODEL_NOT_FOUND",
    /// Delegation would go deeper than allowed.
    DepthExceeded = "DEPTH_EXCEEDED",
    /// The budget does not cover the request.
    BudgetExceeded = "BUDGET_EXCEEDED",
    /// The session has started all the tasks it may.
    SpawnLimitExceeded = "SPAWN_LIMIT_EXCEEDED",
    /// The idempotency key was used for another request.
    IdempotencyConflict = "IDEMPOTENCY_CONFLICT",
    /// A project's agent, and the project is not trusted.
    NotTrusted = "NOT_TRUSTED",
    /// Delegation is switched off.
    SubagentsDisabled = "SUBAGENTS_DISABLED",
    /// The asked isolation cannot be had.
    IsolationFailed = "ISOLATION_FAILED",
    /// Not the caller's fault.
    Internal = "INTERNAL",
    /// The shared context has no such key.
    KeyNotFound = "KEY_NOT_FOUND",
    /// A value over the limit.
    ValueTooLarge = "VALUE_TOO_LARGE",
    /// The whole shared context is full.
    StoreFull = "STORE_FULL",
    /// Not a key.
    InvalidKey = "INVALID_KEY",
    /// No such session.
    SessionNotFound = "SESSION_NOT_FOUND",
    /// The session can only be read.
    SessionArchived = "SESSION_ARCHIVED",
    /// Another version is there.
    VersionConflict = "VERSION_CONFLICT",
    /// The board has no such task.
    BoardTaskNotFound = "BOARD_TASK_NOT_FOUND",
    /// The task on the board waits for others.
    Blocked = "BLOCKED",
    /// Somebody else has the task on the board.
    Owned = "OWNED",
    /// Tasks on the board would wait for each other.
    Cycle = "CYCLE",
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
