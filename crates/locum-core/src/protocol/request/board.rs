//! What may be asked of the tool `manage_tasks`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::protocol::response::BoardStatus;

/// An action of the tool `manage_tasks`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BoardAction {
    /// Put tasks on the board.
    Add(BoardAdd),
    /// Every task.
    List(BoardList),
    /// One task.
    Get(BoardId),
    /// Change a task.
    Update(Box<BoardUpdate>),
    /// Take a task and begin with it.
    Claim(BoardClaim),
    /// A task is done.
    Complete(BoardId),
    /// Every task is done.
    CompleteAll(BoardCompleteAll),
    /// Archive every task.
    Clear(BoardClear),
}

/// The tasks of `add`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BoardAdd {
    /// Several tasks for add, each with these fields.
    pub tasks: Vec<BoardEntry>,
}

/// A task for the board.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BoardEntry {
    /// What is to be done, one line.
    pub subject: String,
    /// Details.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Shown while it is worked on, e.g. Writing tests
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_form: Option<String>,
    /// Ids of tasks that must be completed first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_by: Option<Vec<String>>,
    /// Anything else, as an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
}

/// The field of `list`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BoardList {
    /// list: archived ones instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived: Option<bool>,
}

/// The field of `get` and `complete`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BoardId {
    /// Id on the board, e.g. b_01
    pub id: String,
}

/// The fields of `update`; what is left out stays.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BoardUpdate {
    /// Id on the board, e.g. b_01
    pub id: String,
    /// What is to be done, one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Details.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Shown while it is worked on, e.g. Writing tests
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_form: Option<String>,
    /// pending gives it back, in_progress claims it, completed completes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<BoardStatus>,
    /// Ids of tasks that must be completed first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_by: Option<Vec<String>>,
    /// Added to its comments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Merged in; null removes a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
}

/// The fields of `claim`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BoardClaim {
    /// Id on the board, e.g. b_01
    pub id: String,
    /// claim: the running task it is for, e.g. t_01
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}

/// `complete_all` has no fields.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BoardCompleteAll {}

/// `clear` has no fields.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BoardClear {}
