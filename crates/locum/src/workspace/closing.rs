//! Seeing to a worktree when its task ends: what is in it is committed to its branch, and it stays unless it is empty.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use locum_core::task::{Workspace, Worktree};
use tokio_util::sync::CancellationToken;

use super::temporary_index::TemporaryIndex;
use super::{RepositoryLock, Site, WorkspaceError, registration};
use crate::git::{Checkout, GitError};

/// Lines of the summary of a diff; more are counted.
const STAT_LINES_MAX: u32 = 20;

/// Bytes of the file in a worktree that says where its repository is: a path.
const LINK_BYTES_MAX: u64 = 8192;

/// Commits what is in a task's worktree, removes the directory if nothing is in it, and says what was seen. Doing it
/// again after a process was lost in between does the rest.
pub(crate) fn close(
    site: &Site,
    workspace: &Workspace,
    title: &str,
    stop: &CancellationToken,
) -> Result<Worktree, WorkspaceError> {
    let project = Checkout::open(&site.project, stop)?;
    let path = Path::new(&workspace.path);
    let mut seen = Worktree { problem: None, ..Worktree::unseen(workspace, String::new()) };
    let tip = if path.symlink_metadata().is_err() {
        seen.removed = true;
        project.commit(&format!("refs/heads/{}", workspace.branch))?
    } else {
        let here = registration::open(&project, path).ok_or_else(|| WorkspaceError::Unknown(path.to_owned()))?;
        let (tip, uncommitted) = commit(&site.directory, &here, &workspace.branch, title)?;
        seen.uncommitted = uncommitted;
        if tip == workspace.base && uncommitted == 0 && may_go(&here, workspace)? {
            let _lock = RepositoryLock::hold(&site.directory, project.common_dir(), stop)?;
            remove(&project, &here, workspace)?;
            seen.removed = true;
        }
        Some(tip)
    };
    if let Some(tip) = tip {
        (seen.files_changed, seen.diff_stat) = difference(&project, &workspace.base, &tip)?;
    }
    Ok(seen)
}

/// Commits everything in the worktree that can be; the tip of the branch, and how many files are not on it.
pub(crate) fn commit(
    directory: &Path,
    here: &Checkout,
    branch: &str,
    title: &str,
) -> Result<(String, u64), WorkspaceError> {
    let index = TemporaryIndex::of(here, directory)?;
    let beside = here.with_index(index.path());
    let (files, repositories) = files_of(here.work_tree(), beside.changed_since_index()?);
    // What is ignored is somebody's work too.
    let left = repositories + beside.ignored()?.len() as u64;
    beside.take_into_index(&files)?;
    let head = here.head()?;
    let tip = here.commit(&format!("refs/heads/{branch}"))?;
    let tree = beside.write_tree()?;
    let on_branch = here.branch()?.as_deref() == Some(branch);
    if tree == here.tree_of(&head)? && tip.as_deref() == Some(&head) {
        return Ok((head, left));
    }
    // Wherever the agent went meanwhile, everything that it committed stays within reach of the branch.
    let mut parents = vec![head.as_str()];
    if let Some(tip) = tip.as_deref().filter(|tip| *tip != head)
        && !here.contains(&head, tip)?
    {
        parents.push(tip);
    }
    let made = here.commit_tree(&tree, &parents, title)?;
    here.move_branch(branch, &made, tip.as_deref())?;
    if on_branch {
        // The worktree's own index follows, so that its status says what is so. Without it nothing is lost.
        fs::rename(index.path(), here.index_file()?).ok();
    }
    Ok((made, left))
}

/// The files among changed names, and how many are repositories of their own: those cannot be committed.
pub(super) fn files_of(root: &Path, names: Vec<Vec<u8>>) -> (Vec<Vec<u8>>, u64) {
    let is_directory = |name: &[u8]| {
        let path = root.join(OsStr::from_bytes(name.strip_suffix(b"/").unwrap_or(name)));
        path.symlink_metadata().is_ok_and(|found| found.is_dir())
    };
    let (repositories, files): (Vec<_>, Vec<_>) = names.into_iter().partition(|name| is_directory(name));
    (files, repositories.len() as u64)
}

/// Whether git can be asked to remove the directory: its own look follows the file that it wrote into it, and looks into
/// repositories within.
fn may_go(here: &Checkout, workspace: &Workspace) -> Result<bool, GitError> {
    Ok(is_as_made(here, &workspace.branch)? && !here.has_submodules(&workspace.base)?)
}

/// Whether the worktree is where the repository has it, on its branch.
pub(crate) fn is_as_made(here: &Checkout, branch: &str) -> Result<bool, GitError> {
    let link = here.work_tree().join(".git");
    let is_file = fs::symlink_metadata(&link).is_ok_and(|found| found.is_file() && found.len() < LINK_BYTES_MAX);
    let leads_home = is_file
        && fs::read(&link).is_ok_and(|said| {
            let said = said.strip_prefix(b"gitdir: ".as_slice()).unwrap_or_default();
            said.strip_suffix(b"\n").unwrap_or(said) == here.git_dir().as_os_str().as_bytes()
        });
    Ok(leads_home && here.branch()?.as_deref() == Some(branch))
}

/// Removes a directory in which nothing is, and its branch if another one has its commit.
fn remove(project: &Checkout, here: &Checkout, workspace: &Workspace) -> Result<(), GitError> {
    project.remove_worktree(here.work_tree())?;
    if project.is_elsewhere(&workspace.branch, &workspace.base)? {
        project.remove_branch(&workspace.branch, &workspace.base)?;
    }
    Ok(())
}

/// How many files differ between two commits, and which.
pub(crate) fn difference(project: &Checkout, base: &str, tip: &str) -> Result<(u64, String), GitError> {
    project.summary(base, tip, STAT_LINES_MAX)
}
