//! What a repository knows of its worktrees: the directory that it keeps for each.
//!
//! A worktree's own `.git` says where that is too, but it lies among files that an agent may have written.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::git::Checkout;

/// Worktrees of one repository that are looked through: git itself is slow long before.
const WORKTREES_MAX: usize = 100_000;

/// The repository's directory for the worktree at this path.
fn find(common: &Path, path: &Path) -> Option<PathBuf> {
    let wanted = path.join(".git");
    let entries = fs::read_dir(common.join("worktrees")).ok()?;
    entries.flatten().take(WORKTREES_MAX).map(|entry| entry.path()).find(|kept| {
        let said = fs::read(kept.join("gitdir")).unwrap_or_default();
        let said = said.strip_suffix(b"\n").unwrap_or(&said);
        Path::new(OsStr::from_bytes(said)) == wanted
    })
}

/// The worktree at this path, as a checkout; none if the repository does not know it.
pub(crate) fn open(project: &Checkout, path: &Path) -> Option<Checkout> {
    find(project.common_dir(), path).map(|kept| project.elsewhere(path, &kept))
}
