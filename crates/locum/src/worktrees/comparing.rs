//! `locum worktree diff`: what a worktree changes, alone or beside another one.

use locum_core::protocol::Refusal;

use super::shelf::Shelf;
use super::{Comparison, listing, refusal};

/// Bytes of a patch that are shown: more is read with git.
const PATCH_BYTES_MAX: usize = 4 * 1024 * 1024;

/// What a branch changes since it left what is checked out, or how it differs from another branch of ours.
pub(crate) fn compare(shelf: &Shelf, name: &str, against: Option<&str>) -> Result<Comparison, Refusal> {
    let entry = shelf.find(name)?;
    let head = shelf.project.head().map_err(refusal)?;
    let (from, shown, other) = match against {
        None => {
            let base = listing::base(shelf, &entry)?;
            (base.clone(), base, head)
        }
        Some(other) => {
            let other = shelf.find(other)?;
            (other.tip.clone(), other.branch, other.tip)
        }
    };
    let merged = shelf.project.merge(&other, &entry.tip).map_err(refusal)?;
    let (mut patch, cut) = shelf.project.patch(&from, &entry.tip).map_err(refusal)?;
    let end = (0..=PATCH_BYTES_MAX.min(patch.len())).rev().find(|end| patch.is_char_boundary(*end)).unwrap_or(0);
    let longer = end < patch.len();
    patch.truncate(end);
    Ok(Comparison {
        branch: entry.branch.clone(),
        against: shown,
        patch,
        cut: cut || longer,
        conflicts: merged.conflicts,
        uncommitted: shelf.uncommitted(&entry)?,
    })
}
