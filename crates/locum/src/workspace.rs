//! The worktrees of tasks: made before the first turn, seen to at the end.
//!
//! A worktree is a directory below locum's own and a branch `locum/<uid>` in the user's repository. It is made in two
//! steps, so that a process may be lost anywhere in between: first a checkout of a commit on no branch, under a name
//! that nobody used before; then the branch. A checkout that was not finished is left alone. At the end what is in the
//! directory is committed to the branch, by hand and through an index of its own, so that nothing of the repository is
//! run. A directory goes only if nothing is in it, and a branch only if its commit is on another one; neither is ever
//! removed by force. The user's own checkout and its index are read and never written.

mod closing;
mod lock;
mod preparing;
pub(crate) mod registration;
pub(crate) mod temporary_index;

use std::path::PathBuf;

use locum_core::ids::Uid;
use locum_core::task::{Task, TaskEvent, Workspace, Worktree};
use tokio_util::sync::CancellationToken;

use crate::git::GitError;
use crate::hands::Hands;
use crate::pool::PoolError;

pub(crate) use closing::{close, commit, difference, is_as_made};
pub(crate) use lock::RepositoryLock;
pub(crate) use preparing::prepare;

/// What every branch of ours begins with.
pub(crate) const BRANCH_PREFIX: &str = "locum/";

/// Where the worktrees of a project are, and whose.
#[derive(Debug, Clone)]
pub(crate) struct Site {
    /// Where worktrees are kept.
    pub(crate) directory: PathBuf,
    /// The project's root.
    pub(crate) project: PathBuf,
    /// The task.
    pub(crate) uid: Uid,
}

impl Site {
    /// The branch of the task's work.
    pub(crate) fn branch(&self) -> String {
        format!("{BRANCH_PREFIX}{}", self.uid)
    }
}

/// Why a worktree could not be made or seen to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorkspaceError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("{}: {source}", path.display())]
    File {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("git no longer knows the worktree {}", .0.display())]
    Unknown(PathBuf),
    #[error("{0} earlier attempts to make this worktree were left behind in {path}", path = .1.display())]
    Attempts(u32, PathBuf),
    #[error("the name of {} is no text", .0.display())]
    Unnamed(PathBuf),
    #[error("it was told to stop")]
    Stopped,
    #[error("another process has kept the repository locked for {0} s")]
    Locked(u64),
    #[error("nobody said where worktrees are kept")]
    NoPlace,
    #[error(transparent)]
    Pool(#[from] PoolError),
}

impl WorkspaceError {
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }

    /// Whether it was told to stop, which is nobody's fault.
    pub(crate) fn is_stop(&self) -> bool {
        match self {
            Self::Stopped => true,
            Self::Git(error) => error.is_stop(),
            _ => false,
        }
    }

    /// What to do about it, where that is known.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Git(error) => error.hint(),
            Self::Attempts(..) | Self::Unknown(_) => Some("`locum worktree fsck` says what was left behind"),
            Self::NoPlace => Some("name a directory with DeskBuilder::worktrees"),
            Self::File { .. } | Self::Unnamed(_) | Self::Stopped | Self::Locked(_) | Self::Pool(_) => None,
        }
    }

    /// The whole of it, for a task's error.
    pub(crate) fn told(&self) -> String {
        self.hint().map_or_else(|| self.to_string(), |hint| format!("{self} ({hint})"))
    }
}

fn site(hands: &Hands, task: &Task) -> Result<Site, WorkspaceError> {
    let directory = hands.worktrees.clone().ok_or(WorkspaceError::NoPlace)?;
    let plan = task.plan();
    // A worktree is one of the project's repository, whoever delegated the task.
    Ok(Site { directory, project: PathBuf::from(&*plan.session.project), uid: plan.uid.clone() })
}

/// Makes the worktree of a task. Dropping the future stops the work; what was made until then is found again.
pub(crate) async fn made_for(hands: &Hands, task: &Task) -> Result<Workspace, WorkspaceError> {
    let site = site(hands, task)?;
    let include_dirty = task.plan().agent.locum.include_dirty == Some(true);
    let stop = CancellationToken::new();
    let _ended = stop.clone().drop_guard();
    hands.pool.run(move || prepare(&site, include_dirty, &stop)).await?
}

/// Sees to the worktree of a task that ends, and says what was seen; nothing if it was told to stop. That it fails is
/// said too: what is in the directory stays there.
pub(crate) async fn closed(hands: &Hands, task: &Task, stop: CancellationToken) -> Option<TaskEvent> {
    let workspace = task.workspace()?.clone();
    let title = title(task);
    let seen = match site(hands, task) {
        Err(error) => Err(error),
        Ok(site) => {
            let (workspace, title) = (workspace.clone(), title);
            let ran = hands.pool.run(move || close(&site, &workspace, &title, &stop)).await;
            ran.map_err(WorkspaceError::from).and_then(|seen| seen)
        }
    };
    let worktree = match seen {
        Ok(worktree) => worktree,
        Err(error) if error.is_stop() => return None,
        Err(error) => Worktree::unseen(&workspace, error.told()),
    };
    Some(TaskEvent::WorkspaceClosed { worktree })
}

/// The first line of the commit: whose work it is and what was asked.
fn title(task: &Task) -> String {
    let plan = task.plan();
    let asked: String = plan.assignment.task.lines().next().unwrap_or_default().chars().take(60).collect();
    format!("{} {}: {asked}", plan.agent.name, plan.task_id)
}
