//! Answers of the tool `manage_tasks`. A store keeps a [`BoardTask`] as it is written here.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ids::{BoardTaskId, Timestamp};
use crate::task::outcome::Status;

/// A task on the board.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BoardTask {
    /// Its id.
    pub id: BoardTaskId,
    /// What is to be done.
    pub subject: String,
    /// Details.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What is shown in the subject's place while it is worked on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_form: Option<String>,
    /// How far it is.
    pub status: BoardStatus,
    /// Who has it: an identity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// How the task stands that has it, if it is one. It is looked up for every answer and never kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner_status: Option<Status>,
    /// The tasks that must be completed before it.
    pub blocked_by: Vec<BoardTaskId>,
    /// What was said about it, oldest first.
    pub comments: Vec<BoardComment>,
    /// Anything else.
    pub metadata: Map<String, Value>,
    /// When it was added.
    pub created_at: Timestamp,
    /// When it was completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    /// When it was archived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived_at: Option<Timestamp>,
}

/// How far a task on the board is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BoardStatus {
    /// Nobody has begun.
    Pending,
    /// Somebody has it.
    InProgress,
    /// Done.
    Completed,
}

impl BoardStatus {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
        }
    }
}

/// A comment on a task of the board.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoardComment {
    /// Who said it: an identity.
    pub author: String,
    /// What.
    pub text: String,
    /// When.
    pub created_at: Timestamp,
}

/// The answer to `add`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BoardAdded {
    /// The new tasks, in the order of the request.
    pub added: Vec<BoardTask>,
}

/// The answer to `list`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BoardTasks {
    /// Oldest first.
    pub tasks: Vec<BoardTask>,
}

/// The answer to `complete_all`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BoardCompleted {
    /// How many were completed by it.
    pub completed: usize,
}

/// The answer to `clear`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BoardArchived {
    /// How many were archived by it.
    pub archived: usize,
}
