//! Making the worktree of a task.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use locum_core::task::Workspace;
use tokio_util::sync::CancellationToken;

use super::temporary_index::TemporaryIndex;
use super::{RepositoryLock, Site, WorkspaceError, registration};
use crate::git::Checkout;

/// Processes that may be lost while they make one worktree: each leaves a directory behind.
const ATTEMPTS_MAX: u32 = 50;

/// The commit that a worktree begins with, and what of the project is and is not in it.
struct Base {
    commit: String,
    dirty_taken: u64,
    dirty_left_out: u64,
}

/// Makes the worktree of a task, or finds the one that a lost process has made. Nothing is written to the user's
/// checkout or its index.
pub(crate) fn prepare(site: &Site, include_dirty: bool, stop: &CancellationToken) -> Result<Workspace, WorkspaceError> {
    let project = Checkout::open(&site.project, stop)?;
    let head = project.head()?;
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700).create(&site.directory).map_err(WorkspaceError::file(&site.directory))?;
    let _lock = RepositoryLock::hold(&site.directory, project.common_dir(), stop)?;
    let branch = site.branch();
    let begun = project.commit(&format!("refs/heads/{branch}"))?;
    let base = base(site, &project, head, begun.clone(), include_dirty)?;
    let whole = project.worktrees()?.into_iter().find(|listed| listed.branch.as_deref() == Some(&branch));
    let path = match whole {
        Some(listed) => listed.path,
        None => {
            let path = unused(site)?;
            project.add_worktree(&path, &base.commit)?;
            let made = registration::open(&project, &path).ok_or_else(|| WorkspaceError::Unknown(path.clone()))?;
            if begun.is_none() {
                made.move_branch(&branch, &base.commit, None)?;
            }
            made.enter_branch(&branch)?;
            path
        }
    };
    Ok(Workspace {
        path: named(&path)?,
        branch,
        base: base.commit,
        dirty_left_out: base.dirty_left_out,
        dirty_taken: base.dirty_taken,
    })
}

/// The path as text: the log, the prompt and the result name it.
fn named(path: &Path) -> Result<String, WorkspaceError> {
    path.to_str().map(str::to_owned).ok_or_else(|| WorkspaceError::Unnamed(path.to_owned()))
}

/// What the worktree begins with: the commit that is checked out, one of what is in the checkout, or the one that the
/// branch was made with.
fn base(
    site: &Site,
    project: &Checkout,
    head: String,
    begun: Option<String>,
    include_dirty: bool,
) -> Result<Base, WorkspaceError> {
    let dirty = project.dirty_files()?;
    let count = dirty.len() as u64;
    if !include_dirty || dirty.is_empty() {
        let commit = begun.unwrap_or(head);
        return Ok(Base { commit, dirty_taken: 0, dirty_left_out: count });
    }
    if let Some(commit) = begun {
        return Ok(Base { commit, dirty_taken: count, dirty_left_out: 0 });
    }
    let index = TemporaryIndex::of(project, &site.directory)?;
    let beside = project.with_index(index.path());
    let names = beside.changed_since_index()?;
    let (files, repositories) = super::closing::files_of(project.work_tree(), names);
    beside.take_into_index(&files)?;
    let message = format!("Uncommitted files of the project, for {}", site.branch());
    let commit = project.commit_tree(&beside.write_tree()?, &[&head], &message)?;
    Ok(Base { commit, dirty_taken: count.saturating_sub(repositories), dirty_left_out: repositories })
}

/// A directory that was never used: what a lost process left behind may still be written to by its git.
fn unused(site: &Site) -> Result<PathBuf, WorkspaceError> {
    let name = |attempt: u32| match attempt {
        1 => site.uid.to_string(),
        attempt => format!("{}-{attempt}", site.uid),
    };
    (1..=ATTEMPTS_MAX)
        .map(|attempt| site.directory.join(name(attempt)))
        .find(|path| path.symlink_metadata().is_err())
        .ok_or_else(|| WorkspaceError::Attempts(ATTEMPTS_MAX, site.directory.clone()))
}
