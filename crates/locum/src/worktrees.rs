//! What a person does with the worktrees of a project after their tasks: look at them, take what is in them, let them
//! go, and find what lost processes left behind. [`Desk`](crate::Desk) has the verbs.
//!
//! Only [`Desk::apply_worktree`](crate::Desk::apply_worktree) writes to the user's checkout, and it writes nothing over
//! what is not committed. Nothing here is done by force.

pub(crate) mod applying;
pub(crate) mod checking;
pub(crate) mod comparing;
pub(crate) mod dropping;
pub(crate) mod listing;
pub(crate) mod shelf;

use locum_core::ids::TaskId;
use locum_core::protocol::{Code, Refusal};
use locum_core::task::Status;
use serde::Serialize;

use crate::workspace::WorkspaceError;

/// A worktree, or the branch that is left of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WorktreeLine {
    /// The task's id everywhere.
    pub uid: String,
    /// The branch that has its work.
    pub branch: String,
    /// The directory, if it is still there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The commit that it has in common with what is checked out in the project.
    pub base: String,
    /// How many files its branch changes.
    pub files_changed: u64,
    /// Which, and how much, for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub diff_stat: String,
    /// How many files are in the directory and not on the branch.
    pub uncommitted: u64,
    /// The task, if this project's store knows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<WorktreeTask>,
    /// What it would conflict with.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<Conflict>,
}

/// The task of a worktree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WorktreeTask {
    /// Its session.
    pub session: String,
    /// Its id in the session.
    pub task_id: TaskId,
    /// The agent that works on it.
    pub agent: String,
    /// How it stands.
    pub status: Status,
}

/// Files that two branches change in ways that do not go together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Conflict {
    /// The other branch.
    pub with: String,
    /// The files.
    pub files: Vec<String>,
}

/// What a worktree's branch changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Comparison {
    /// The branch.
    pub branch: String,
    /// What it is compared with: a commit, or another branch.
    pub against: String,
    /// The changes as a patch.
    pub patch: String,
    /// Whether there is more than is shown.
    pub cut: bool,
    /// Files that would conflict if both were taken.
    pub conflicts: Vec<String>,
    /// How many files are in the directory and not on the branch.
    pub uncommitted: u64,
}

/// What was taken into the project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Applied {
    /// The branch.
    pub branch: String,
    /// The files that were changed, added or removed; nothing is committed.
    pub files: Vec<String>,
}

/// What was let go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Dropped {
    /// The branch.
    pub branch: String,
    /// The directory that was removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Whether the branch stays, because nothing else has its work.
    pub branch_kept: bool,
}

/// Something that was left behind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What it is.
    pub what: String,
    /// Where it is.
    pub place: String,
    /// What to do about it.
    pub advice: String,
}

/// Whether the user has agreed that a directory goes whose work is on its branch alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// Not asked yet.
    Missing,
    /// Yes.
    Given,
}

/// A failure of git or the file system, as a refusal.
pub(crate) fn refusal(error: impl Into<WorkspaceError>) -> Refusal {
    let error = error.into();
    let refusal = Refusal::new(Code::IsolationFailed, error.to_string());
    match error.hint() {
        Some(hint) => refusal.hint(hint),
        None => refusal,
    }
}
