//! `locum worktree fsck`: what processes that were lost left behind, and what to do about it. Nothing is changed.

use std::fs;
use std::path::{Path, PathBuf};

use locum_core::protocol::Refusal;

use super::shelf::Shelf;
use super::{Finding, refusal};
use crate::workspace::BRANCH_PREFIX;

/// What was left behind in a project's repository and in the place for its worktrees.
pub(crate) fn check(shelf: &Shelf) -> Result<Vec<Finding>, Refusal> {
    let mut findings = unfinished(shelf)?;
    findings.extend(branches(shelf)?);
    findings.extend(unknown_directories(shelf)?);
    findings.extend(locks(shelf));
    Ok(findings)
}

fn finding(what: impl Into<String>, place: &Path, advice: impl Into<String>) -> Finding {
    Finding { what: what.into(), place: place.display().to_string(), advice: advice.into() }
}

fn is_ours(shelf: &Shelf, path: &Path) -> bool {
    let directory = shelf.directory.canonicalize().unwrap_or_else(|_| shelf.directory.clone());
    path.starts_with(&directory) || path.starts_with(&shelf.directory)
}

/// Worktrees that git knows and no task works in.
fn unfinished(shelf: &Shelf) -> Result<Vec<Finding>, Refusal> {
    let listed = shelf.project.worktrees().map_err(refusal)?;
    let ours = listed.into_iter().filter(|listed| is_ours(shelf, &listed.path));
    Ok(ours
        .filter_map(|listed| {
            let path = listed.path.display();
            if listed.prunable || !listed.path.exists() {
                return Some(finding("git knows a worktree that is gone", &listed.path, "git worktree prune"));
            }
            if listed.branch.is_none() {
                let unlock = if listed.locked { format!("git worktree unlock {path} and ") } else { String::new() };
                let advice =
                    format!("look into it; when you need nothing of it, delete it, then: {unlock}git worktree prune");
                return Some(finding(
                    "a worktree on no branch: its task never began, or left its branch",
                    &listed.path,
                    advice,
                ));
            }
            None
        })
        .collect())
}

/// Branches without a worktree.
fn branches(shelf: &Shelf) -> Result<Vec<Finding>, Refusal> {
    let mut findings = Vec::new();
    for entry in shelf.entries()?.into_iter().filter(|entry| entry.path.is_none()) {
        let (what, advice) = if shelf.project.is_elsewhere(&entry.branch, &entry.tip).map_err(refusal)? {
            ("a branch without a worktree; other branches have its work", format!("locum worktree drop {}", entry.uid))
        } else {
            ("a branch without a worktree; its work is nowhere else", format!("locum worktree apply {}", entry.uid))
        };
        findings.push(finding(what, Path::new(&entry.branch), advice));
    }
    Ok(findings)
}

/// Directories that say they are worktrees of this repository and that it does not know.
fn unknown_directories(shelf: &Shelf) -> Result<Vec<Finding>, Refusal> {
    let known: Vec<PathBuf> =
        shelf.project.worktrees().map_err(refusal)?.into_iter().map(|listed| listed.path).collect();
    let worktrees = shelf.project.common_dir().join("worktrees");
    let claims = |path: &Path| {
        let said = fs::read_to_string(path.join(".git")).unwrap_or_default();
        said.strip_prefix("gitdir: ").is_some_and(|kept| Path::new(kept.trim_end()).starts_with(&worktrees))
    };
    let directory = shelf.directory.canonicalize().unwrap_or_else(|_| shelf.directory.clone());
    let Ok(entries) = fs::read_dir(&directory) else { return Ok(Vec::new()) };
    let paths = entries.flatten().map(|entry| entry.path());
    let unknown = paths.filter(|path| !known.contains(path) && claims(path));
    Ok(unknown
        .map(|path| {
            finding("a directory that git no longer knows", &path, format!("git worktree repair {}", path.display()))
        })
        .collect())
}

/// Locks that a git which was killed left behind.
fn locks(shelf: &Shelf) -> Vec<Finding> {
    let common = shelf.project.common_dir();
    let mut places: Vec<PathBuf> = ["index.lock", "packed-refs.lock"].map(|name| common.join(name)).to_vec();
    let within = |directory: PathBuf| fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    places.extend(within(common.join("worktrees")).map(|kept| kept.join("index.lock")));
    let references = common.join("refs/heads").join(BRANCH_PREFIX.trim_end_matches('/'));
    places.extend(within(references).filter(|path| path.extension().is_some_and(|kind| kind == "lock")));
    let advice = |path: &Path| format!("if no git is at work: rm {}", path.display());
    places.iter().filter(|path| path.exists()).map(|path| finding("a lock of git", path, advice(path))).collect()
}
