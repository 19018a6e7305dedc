//! `locum worktree drop`: a directory goes when everything in it is on a branch. A branch goes when another one has its
//! work.

use locum_core::protocol::{Code, Refusal};

use super::shelf::{Entry, Shelf};
use super::{Consent, Dropped, refusal};
use crate::git::Checkout;
use crate::workspace;

/// Removes a worktree's directory, and its branch if that holds nothing of its own.
pub(crate) fn drop_worktree(shelf: &Shelf, name: &str, consent: Consent) -> Result<Dropped, Refusal> {
    let mut entry = shelf.find(name)?;
    let here = shelf.checkout(&entry);
    if entry.path.is_some() && here.is_none() {
        let message = format!("git no longer knows the worktree of {}", entry.branch);
        return Err(Refusal::new(Code::IsolationFailed, message).hint("`locum worktree fsck` says more"));
    }
    if let Some(here) = &here {
        entry.tip = keep_everything(shelf, &entry, here)?;
    }
    let elsewhere = shelf.project.is_elsewhere(&entry.branch, &entry.tip).map_err(refusal)?;
    if !elsewhere && here.is_none() {
        let message =
            format!("nothing is left of it but the branch {}, and no other branch has its work", entry.branch);
        let hint = format!("merge it, or remove it yourself: git branch -D {}", entry.branch);
        return Err(Refusal::invalid(message).hint(hint));
    }
    if !elsewhere && consent == Consent::Missing {
        let message = format!("no other branch has the work of {}", entry.branch);
        let hint = "apply or merge it first; or say --yes: the directory goes and the branch stays";
        return Err(Refusal::invalid(message).hint(hint));
    }
    let _lock = shelf.lock()?;
    if let Some(here) = &here {
        shelf.project.remove_worktree(here.work_tree()).map_err(refusal)?;
    }
    if elsewhere {
        shelf.project.remove_branch(&entry.branch, &entry.tip).map_err(refusal)?;
    }
    let path = entry.path.map(|path| path.to_string_lossy().into_owned());
    Ok(Dropped { branch: entry.branch, path, branch_kept: !elsewhere })
}

/// Brings everything in the directory onto its branch; the branch's commit. What git does not keep is not let go.
fn keep_everything(shelf: &Shelf, entry: &Entry, here: &Checkout) -> Result<String, Refusal> {
    let title = format!("What was in the worktree of {}", entry.branch);
    let (tip, left) = workspace::commit(&shelf.directory, here, &entry.branch, &title).map_err(refusal)?;
    let whole = workspace::is_as_made(here, &entry.branch).map_err(refusal)?;
    if left > 0 || !whole || here.has_submodules(&tip).map_err(refusal)? {
        let path = here.work_tree().display();
        let message = match left {
            0 => format!("{path} is not as locum made it, or has repositories within it"),
            left => format!("{path} has {left} files or directories that are ignored or are repositories of their own"),
        };
        let hint = format!("git -C {path} status --ignored shows them: move or delete them, then drop it again");
        return Err(Refusal::invalid(message).hint(hint));
    }
    Ok(tip)
}
