//! The git worktree that a task may have to itself: what is known of it when the task starts and when it ends.
//!
//! Both are entries of the log, so that whoever goes on with a task finds its worktree again and nobody makes a second
//! one, and so that what is said of it in the result is what was seen.

use serde::{Deserialize, Serialize};

use super::{Phase, Step, Task, TaskEvent};
use crate::agent::Isolation;

/// A worktree that a task works in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workspace {
    /// Its directory.
    pub path: String,
    /// Its branch.
    pub branch: String,
    /// The commit that it begins with.
    pub base: String,
    /// How many uncommitted files of the project are not in it.
    #[serde(default)]
    pub dirty_left_out: u64,
    /// How many uncommitted files of the project were copied into it; the base is a commit of them.
    #[serde(default)]
    pub dirty_taken: u64,
}

/// A worktree after its task has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worktree {
    /// Its directory.
    pub path: String,
    /// The branch that has the work.
    pub branch: String,
    /// The commit that it began with.
    pub base: String,
    /// How many files differ between the base and the branch.
    pub files_changed: u64,
    /// Which, and how much, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub diff_stat: String,
    /// How many files, ignored ones included, are in the directory and not on the branch; a directory that is ignored
    /// whole, or is a repository of its own, counts as one.
    pub uncommitted: u64,
    /// How many uncommitted files of the project were not in it.
    #[serde(default)]
    pub dirty_left_out: u64,
    /// Whether the directory is gone, because nothing was in it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
    /// Why the work is only in the directory and not on the branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl Worktree {
    /// A worktree of which nothing was seen at its end.
    pub fn unseen(workspace: &Workspace, problem: String) -> Self {
        Self {
            path: workspace.path.clone(),
            branch: workspace.branch.clone(),
            base: workspace.base.clone(),
            files_changed: 0,
            diff_stat: String::new(),
            uncommitted: 0,
            dirty_left_out: workspace.dirty_left_out,
            removed: false,
            problem: Some(problem),
        }
    }
}

/// What a task knows of its worktree.
#[derive(Debug, Clone, Default)]
pub(super) struct Surroundings {
    ready: Option<Workspace>,
    closed: Option<Worktree>,
}

impl Task {
    /// The worktree that it works in, once it was made.
    pub fn workspace(&self) -> Option<&Workspace> {
        self.surroundings.ready.as_ref()
    }

    /// What was seen of its worktree at its end.
    pub fn worktree(&self) -> Option<&Worktree> {
        self.surroundings.closed.as_ref()
    }

    /// The directory that its tools cannot leave.
    pub fn root(&self) -> &str {
        self.workspace().map_or(&self.plan.grants.root, |workspace| &workspace.path)
    }

    /// Whether a worktree must be made before its first turn.
    pub(super) fn needs_workspace(&self) -> bool {
        match self.plan.grants.isolation {
            Isolation::Worktree => self.surroundings.ready.is_none(),
            Isolation::Process | Isolation::None => false,
        }
    }

    /// What is in a worktree must be seen to before its task ends.
    pub(super) fn before_the_end(&self, step: Step) -> Step {
        let open = self.surroundings.ready.is_some() && self.surroundings.closed.is_none();
        match step {
            Step::Record(TaskEvent::Ended { .. }) if open => Step::CloseWorkspace,
            step => step,
        }
    }

    /// A worktree was made: the model is told of it.
    pub(super) fn enter(&mut self, workspace: Workspace) -> Result<(), &'static str> {
        if !self.needs_workspace() || !matches!(self.phase, Phase::Ready) {
            return Err("no worktree was needed");
        }
        let told = introduction(&workspace);
        self.conversation.chars += told.chars().count();
        self.conversation.system.push_str(&told);
        self.surroundings.ready = Some(workspace);
        Ok(())
    }

    /// What is in the worktree was seen to.
    pub(super) fn leave(&mut self, worktree: Worktree) -> Result<(), &'static str> {
        if self.surroundings.ready.is_none() || self.surroundings.closed.is_some() {
            return Err("no worktree was in use");
        }
        self.surroundings.closed = Some(worktree);
        Ok(())
    }
}

/// What the model is told of its worktree.
fn introduction(workspace: &Workspace) -> String {
    let Workspace { branch, base, dirty_left_out, dirty_taken, .. } = workspace;
    let files =
        |count: u64| if count == 1 { "1 uncommitted file".to_owned() } else { format!("{count} uncommitted files") };
    let begins = match dirty_taken {
        0 => format!("at commit {base}"),
        count => format!("at commit {base}, which has {} of the project in it", files(*count)),
    };
    let left_out = match dirty_left_out {
        0 => String::new(),
        1 => " 1 uncommitted file of the project is not in it.".to_owned(),
        count => format!(" {} of the project are not in it.", files(*count)),
    };
    format!(
        "\n\nYou work in a git worktree of your own, on the branch {branch}, which begins {begins}.{left_out} Your \
         changes reach nobody else's files; when you end, what you changed is committed to that branch."
    )
}
