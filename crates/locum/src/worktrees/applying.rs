//! `locum worktree apply`: what a worktree changes is taken into the user's checkout, because the user says so. Both
//! sides are merged first, where nobody sees it; only a merge without conflicts that touches nothing uncommitted is
//! written.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use locum_core::protocol::{Code, Refusal};

use super::shelf::Shelf;
use super::{Applied, refusal};
use crate::git::merging::Change;

/// Files that a refusal names.
const NAMED_MAX: usize = 10;

/// Takes the changes of a branch into the checkout and its index; nothing is committed.
pub(crate) fn apply(shelf: &Shelf, name: &str) -> Result<Applied, Refusal> {
    let entry = shelf.find(name)?;
    let project = &shelf.project;
    let head = project.head().map_err(refusal)?;
    let merged = project.merge(&head, &entry.tip).map_err(refusal)?;
    if !merged.conflicts.is_empty() {
        let message = format!("{} conflicts with what is checked out in {}", entry.branch, some(&merged.conflicts));
        let hint = format!("nothing was changed; to resolve it by hand: git merge {}", entry.branch);
        return Err(Refusal::new(Code::InvalidRequest, message).hint(hint));
    }
    let _lock = shelf.lock()?;
    let changes = project.changes(&head, &merged.tree).map_err(refusal)?;
    let dirty: BTreeSet<Vec<u8>> = project.dirty_files().map_err(refusal)?.into_iter().collect();
    let in_the_way: Vec<String> =
        changes.iter().filter(|change| is_in_the_way(change, &dirty, project.work_tree())).map(Change::shown).collect();
    if !in_the_way.is_empty() {
        let message = format!("files that are not committed would be written over: {}", some(&in_the_way));
        let hint = "nothing was changed; commit or stash them first, or move them away";
        return Err(Refusal::new(Code::InvalidRequest, message).hint(hint));
    }
    project.write_merge(&head, &merged.tree).map_err(refusal)?;
    Ok(Applied { branch: entry.branch, files: changes.iter().map(Change::shown).collect() })
}

/// Whether something is where a change goes that the commit does not have: changed, new, ignored, or a file in the place
/// of a directory.
fn is_in_the_way(change: &Change, dirty: &BTreeSet<Vec<u8>>, root: &Path) -> bool {
    let path = Path::new(OsStr::from_bytes(&change.path));
    let is_there = |path: &Path| root.join(path).symlink_metadata();
    let replaced = path.ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty()).any(|parent| {
        is_there(parent).is_ok_and(|found| !found.is_dir()) && dirty.contains(parent.as_os_str().as_bytes())
    });
    let ignored_parent = change.is_new
        && path
            .ancestors()
            .skip(1)
            .filter(|parent| !parent.as_os_str().is_empty())
            .any(|parent| is_there(parent).is_ok_and(|found| !found.is_dir()));
    dirty.contains(&change.path) || replaced || ignored_parent || (change.is_new && is_there(path).is_ok())
}

fn some(files: &[String]) -> String {
    let named = files.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
    match files.len().saturating_sub(NAMED_MAX) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}
