//! One at a time: git keeps what it knows of worktrees in files that several processes must not write at once.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::WorkspaceError;

/// How long the lock is waited for: a large checkout is made in minutes.
const WAIT: Duration = Duration::from_secs(300);

/// Between two attempts.
const LOOK: Duration = Duration::from_millis(5);

/// The lock of one repository. It ends with this value, or with the process.
pub(crate) struct RepositoryLock {
    _file: File,
}

impl RepositoryLock {
    /// Waits for the lock of the repository with this common directory.
    pub(crate) fn hold(directory: &Path, common: &Path, stop: &CancellationToken) -> Result<Self, WorkspaceError> {
        let locks = directory.join("locks");
        fs::create_dir_all(&locks).map_err(WorkspaceError::file(&locks))?;
        let path = locks.join(name(common));
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
        let file = file.map_err(WorkspaceError::file(&path))?;
        let begun = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::Error(source)) => return Err(WorkspaceError::File { path, source }),
                Err(TryLockError::WouldBlock) if stop.is_cancelled() => return Err(WorkspaceError::Stopped),
                Err(TryLockError::WouldBlock) if begun.elapsed() > WAIT => {
                    return Err(WorkspaceError::Locked(WAIT.as_secs()));
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(LOOK),
            }
        }
    }
}

/// A short name for a path. Two repositories that share one merely wait for each other.
fn name(common: &Path) -> String {
    let mut hasher = DefaultHasher::new();
    common.hash(&mut hasher);
    format!("{:016x}.lock", hasher.finish())
}
