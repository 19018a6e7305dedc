//! What must be so after the life of a worktree, whatever happened to its processes.

use std::fs;
use std::path::{Path, PathBuf};

use locum::task::{Record, TaskEvent, Workspace, Worktree};

use super::woods::{git, try_git};

/// How many processes a task may lose before it is given up.
const LOST_MAX: u32 = 3;

/// What is not as it must be after a task. The files that its commands have noted are its work.
pub(super) fn of_life(project: &Path, task: &str, log: &[Record], noted: &[&str]) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut workspaces: Vec<&Workspace> = Vec::new();
    let mut closed: Vec<&Worktree> = Vec::new();
    let (mut lost, mut error) = (0, None);
    for record in log {
        match &record.event {
            TaskEvent::WorkspaceReady { workspace } => workspaces.push(workspace),
            TaskEvent::WorkspaceClosed { worktree } => closed.push(worktree),
            TaskEvent::WorkerLost { .. } => lost += 1,
            TaskEvent::Ended { outcome } => error = outcome.error().map(str::to_owned),
            _ => {}
        }
    }
    // Chance may kill whoever works on a task as often as a task may lose somebody. Its work is kept all the same.
    let is_given_up = lost >= LOST_MAX && error.as_ref().is_some_and(|error| error.starts_with("Interrupted: "));
    complaints.extend(error.filter(|_| !is_given_up));
    let (workspace, worktree) = match (&workspaces[..], &closed[..]) {
        ([workspace], [worktree]) => (workspace, worktree),
        ([], []) if is_given_up && noted.is_empty() => return complaints,
        (made, seen) => {
            complaints.push(format!("{} worktrees were made and {} seen to", made.len(), seen.len()));
            return complaints;
        }
    };
    complaints.extend(worktree.problem.clone());
    let path = Path::new(&workspace.path);
    if path.exists() == worktree.removed {
        complaints.push(format!("{} is not as the log says: {worktree:?}", path.display()));
    }
    let work = format!("work of {task}\n");
    for name in noted {
        let on_branch = try_git(project, &["show", &format!("{}:{name}", workspace.branch)]);
        let committed = on_branch.is_ok_and(|found| found == work.trim_end());
        let in_directory = fs::read_to_string(path.join(name)).is_ok_and(|found| found == work);
        let is_ignored = name.ends_with(".log");
        if !(committed || is_ignored && in_directory) {
            complaints.push(format!("{name} cannot be reached: {worktree:?}"));
        }
    }
    complaints.extend(strays(project, workspace));
    complaints
}

/// Files that are in a directory and not on its branch, byte by byte, though git does not ignore them.
fn strays(project: &Path, workspace: &Workspace) -> Vec<String> {
    let Ok(entries) = fs::read_dir(&workspace.path) else { return Vec::new() };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let stray = |name: &String| {
        let committed = try_git(project, &["show", &format!("{}:{name}", workspace.branch)]);
        let found = fs::read_to_string(Path::new(&workspace.path).join(name)).unwrap();
        committed.as_deref() != Ok(found.trim_end())
    };
    let names = names.filter(|name| name != ".git" && !name.ends_with(".log")).filter(stray);
    names.map(|name| format!("{name} is in the directory and not on the branch")).collect()
}

/// What is wrong with the repository.
pub(super) fn of_repository(project: &Path) -> Vec<String> {
    let mut complaints: Vec<String> = try_git(project, &["fsck", "--strict"]).err().into_iter().collect();
    complaints.extend(locks(project).into_iter().map(|lock| format!("{} was left behind", lock.display())));
    if git(project, &["status", "--short"]) != " M a.txt\n?? untracked.txt" {
        complaints.push("the checkout has changed for git".to_owned());
    }
    complaints
}

/// Locks that git left in the repository.
fn locks(project: &Path) -> Vec<PathBuf> {
    let repository = project.join(".git");
    let within = |directory: PathBuf| fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let all = within(repository.clone()).chain(within(repository.join("refs/heads/locum")));
    all.filter(|path| path.extension().is_some_and(|kind| kind == "lock")).collect()
}
