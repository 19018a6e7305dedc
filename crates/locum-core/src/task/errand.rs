//! A request for several tasks whose answer is to be had later, also after a restart: the first of them keeps it.

use serde::{Deserialize, Serialize};

use crate::ids::TaskId;
use crate::protocol::response::RefusedEntry;

/// What was asked for together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Errand {
    /// How it is answered.
    pub form: Form,
    /// What became of each entry, in order.
    pub entries: Vec<ErrandEntry>,
}

impl Errand {
    /// Its tasks, in order.
    pub fn tasks(&self) -> impl Iterator<Item = TaskId> {
        self.entries.iter().filter_map(|entry| match entry {
            ErrandEntry::Task(id) => Some(*id),
            ErrandEntry::Refused(_) => None,
        })
    }
}

/// How several tasks are answered for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// With all results.
    Parallel,
    /// With the last, or the first that did not complete.
    Chain,
    /// With the first that completed.
    Race,
}

/// One entry of what was asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrandEntry {
    /// It became a task.
    Task(TaskId),
    /// It was refused.
    Refused(RefusedEntry),
}
