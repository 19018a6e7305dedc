//! Forgetting what is older than it is kept.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use locum_core::ids::{Timestamp, Uid};
use locum_core::limits;
use locum_core::protocol::Refusal;
use serde::Serialize;

use super::Desk;
use crate::engine::store_refusal;
use crate::operation_log;
use crate::store::{Sweep, Sweeping, Swept};

/// Tasks that are removed in one transaction: whoever writes meanwhile waits for it.
const TASKS_AT_ONCE: usize = 200;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// What was older than it is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Forgotten {
    /// What was in the store.
    #[serde(flatten)]
    pub swept: Swept,
    /// Files with operations, and with what was said in tasks.
    pub files: Vec<PathBuf>,
    /// How large they were.
    pub bytes: u64,
}

impl Desk {
    /// Removes tasks that ended more than 30 days ago with their results and logs, and files of these directories that
    /// are as old: those of the [operation log](crate::operation_log) and transcripts. Nothing that is unfinished goes,
    /// nothing that it came from or waits for, no session, and no task that left a worktree. With [`Sweeping::Look`] it
    /// says what it would remove.
    ///
    /// # Errors
    ///
    /// The store failed, or a file could not be removed; what was removed before is gone.
    ///
    /// # Cancel safety
    ///
    /// Dropped early, some of it is done and the rest is not; it can be asked for again.
    pub async fn forget_old(&self, directories: &[PathBuf], sweeping: Sweeping) -> Result<Forgotten, Refusal> {
        let before = Timestamp::from_millis(self.now().millis().saturating_sub(limits::RETENTION_DAYS * DAY_MS));
        let (directories, worktrees) = (directories.to_vec(), self.engine.hands.worktrees.clone());
        let kept = self.off_thread(move || worktrees.as_deref().map(tasks_with_worktrees).unwrap_or_default()).await?;
        let swept = self.sweep(before, kept, sweeping).await?;
        let (files, bytes) = self.off_thread(move || old_files(&directories, before, sweeping)).await??;
        Ok(Forgotten { swept, files, bytes })
    }

    async fn sweep(&self, before: Timestamp, kept: Vec<Uid>, sweeping: Sweeping) -> Result<Swept, Refusal> {
        let store = &self.engine.hands.store;
        let most = match sweeping {
            Sweeping::Look => usize::MAX,
            Sweeping::Remove => TASKS_AT_ONCE,
        };
        let mut all = Swept::default();
        loop {
            let sweep = Sweep { before, kept: kept.clone(), most, sweeping };
            let swept = store.sweep(sweep).await.map_err(|error| store_refusal(&error))?;
            all.tasks += swept.tasks;
            all.entries += swept.entries;
            all.owners += swept.owners;
            if swept.tasks < most {
                return Ok(all);
            }
        }
    }
}

/// The tasks whose worktrees are still there: what was worked on in them is told by their logs alone.
fn tasks_with_worktrees(directory: &Path) -> Vec<Uid> {
    let names = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let uid = |name: std::ffi::OsString| {
        let name = name.into_string().ok()?;
        // A second attempt has a number behind it.
        let uid = name.split('-').next()?;
        Uid::parse(uid).ok()
    };
    names.filter_map(uid).collect()
}

/// The files that are old, and how large they are; they are gone where that was asked for.
fn old_files(directories: &[PathBuf], before: Timestamp, sweeping: Sweeping) -> Result<(Vec<PathBuf>, u64), Refusal> {
    let (mut files, mut bytes) = (Vec::new(), 0);
    for entry in directories.iter().filter_map(|directory| fs::read_dir(directory).ok()).flatten().flatten() {
        let Ok(metadata) = entry.metadata() else { continue };
        let path = entry.path();
        if !metadata.is_file() || !is_old(&path, metadata.modified().ok(), before) {
            continue;
        }
        if sweeping == Sweeping::Remove {
            let problem = |error| Refusal::internal(format!("{} cannot be removed: {error}", path.display()));
            fs::remove_file(&path).map_err(problem)?;
        }
        bytes += metadata.len();
        files.push(path);
    }
    files.sort();
    Ok((files, bytes))
}

/// Whether a file is one of ours and old. Those of the operation log say their day; others have a time.
fn is_old(path: &Path, modified: Option<SystemTime>, before: Timestamp) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if let Some(is_before) = operation_log::is_of_day_before(name, before) {
        return is_before;
    }
    let millis = modified.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
    let millis = millis.and_then(|since| i64::try_from(since.as_millis()).ok());
    name.ends_with(".jsonl") && millis.is_some_and(|millis| millis < before.millis())
}
