//! The worktrees and branches of a project that are locum's.

use std::path::{Path, PathBuf};

use locum_core::protocol::{Code, Refusal};
use tokio_util::sync::CancellationToken;

use super::refusal;
use crate::git::{Checkout, GitError};
use crate::workspace::{BRANCH_PREFIX, RepositoryLock, registration};

/// A project with the place where its worktrees are.
pub(crate) struct Shelf {
    pub(crate) project: Checkout,
    pub(crate) directory: PathBuf,
    stop: CancellationToken,
}

/// One branch of ours, with its worktree if there is one.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) uid: String,
    pub(crate) branch: String,
    pub(crate) tip: String,
    pub(crate) path: Option<PathBuf>,
}

impl Shelf {
    pub(crate) fn open(directory: &Path, project: &Path, stop: &CancellationToken) -> Result<Self, Refusal> {
        let project = Checkout::open(project, stop).map_err(refusal)?;
        Ok(Self { project, directory: directory.to_owned(), stop: stop.clone() })
    }

    /// All of them, oldest first: the ids begin with the time.
    pub(crate) fn entries(&self) -> Result<Vec<Entry>, Refusal> {
        let worktrees = self.project.worktrees().map_err(refusal)?;
        let entry = |(branch, tip): (String, String)| {
            let uid = branch.strip_prefix(BRANCH_PREFIX)?.to_owned();
            let listed = worktrees.iter().find(|listed| listed.branch.as_deref() == Some(&branch));
            let path = listed.filter(|listed| listed.path.exists()).map(|listed| listed.path.clone());
            Some(Entry { uid, branch, tip, path })
        };
        let branches = self.project.branches(BRANCH_PREFIX.trim_end_matches('/')).map_err(refusal)?;
        Ok(branches.into_iter().filter_map(entry).collect())
    }

    /// The one of this branch, or whose task's id begins so.
    pub(crate) fn find(&self, name: &str) -> Result<Entry, Refusal> {
        let wanted = name.strip_prefix(BRANCH_PREFIX).unwrap_or(name);
        let entries = self.entries()?;
        if let Some(exact) = entries.iter().find(|entry| entry.uid == wanted) {
            return Ok(exact.clone());
        }
        let mut near = entries.iter().filter(|entry| !wanted.is_empty() && entry.uid.starts_with(wanted));
        match (near.next(), near.next()) {
            (Some(one), None) => Ok(one.clone()),
            (Some(_), Some(_)) => {
                let message = format!("several worktrees begin with `{wanted}`");
                Err(Refusal::invalid(message).hint("say more of its name; `locum worktree list` shows all"))
            }
            (None, _) => {
                let shown: String = name.chars().take(80).collect();
                let message = format!("the project has no worktree `{shown}`");
                Err(Refusal::new(Code::TaskNotFound, message).hint("`locum worktree list` shows all"))
            }
        }
    }

    /// The worktree of an entry, as a checkout.
    pub(crate) fn checkout(&self, entry: &Entry) -> Option<Checkout> {
        registration::open(&self.project, entry.path.as_deref()?)
    }

    /// How many files are in the directory and not on the branch.
    pub(crate) fn uncommitted(&self, entry: &Entry) -> Result<u64, Refusal> {
        let Some(here) = self.checkout(entry) else { return Ok(0) };
        let count = || -> Result<usize, GitError> { Ok(here.dirty_files()?.len() + here.ignored()?.len()) };
        count().map(|count| count as u64).map_err(refusal)
    }

    pub(crate) fn lock(&self) -> Result<RepositoryLock, Refusal> {
        RepositoryLock::hold(&self.directory, self.project.common_dir(), &self.stop).map_err(refusal)
    }
}
