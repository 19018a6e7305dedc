//! `locum worktree list`: what there is, and what does not go together.

use locum_core::protocol::Refusal;

use super::shelf::{Entry, Shelf};
use super::{Conflict, WorktreeLine, refusal};
use crate::workspace::difference;

/// The newest worktrees are compared with each other: the number of pairs grows with the square.
const COMPARED_MAX: usize = 12;

/// Every worktree, oldest first.
pub(crate) fn list(shelf: &Shelf) -> Result<Vec<WorktreeLine>, Refusal> {
    let entries = shelf.entries()?;
    let mut lines = Vec::with_capacity(entries.len());
    for entry in &entries {
        lines.push(line(shelf, entry)?);
    }
    let first = entries.len().saturating_sub(COMPARED_MAX);
    for left in first..entries.len() {
        for right in left + 1..entries.len() {
            let files = shelf.project.merge(&entries[left].tip, &entries[right].tip).map_err(refusal)?.conflicts;
            if !files.is_empty() {
                lines[left].conflicts.push(Conflict { with: entries[right].branch.clone(), files: files.clone() });
                lines[right].conflicts.push(Conflict { with: entries[left].branch.clone(), files });
            }
        }
    }
    Ok(lines)
}

fn line(shelf: &Shelf, entry: &Entry) -> Result<WorktreeLine, Refusal> {
    let base = base(shelf, entry)?;
    let (files_changed, diff_stat) = difference(&shelf.project, &base, &entry.tip).map_err(refusal)?;
    Ok(WorktreeLine {
        uid: entry.uid.clone(),
        branch: entry.branch.clone(),
        path: entry.path.as_ref().map(|path| path.to_string_lossy().into_owned()),
        base,
        files_changed,
        diff_stat,
        uncommitted: shelf.uncommitted(entry)?,
        task: None,
        conflicts: Vec::new(),
    })
}

/// What a branch has in common with what is checked out; its own commit if that is nothing.
pub(super) fn base(shelf: &Shelf, entry: &Entry) -> Result<String, Refusal> {
    let head = shelf.project.head().map_err(refusal)?;
    let common = shelf.project.common_ancestor(&head, &entry.tip).map_err(refusal)?;
    Ok(common.unwrap_or_else(|| entry.tip.clone()))
}
