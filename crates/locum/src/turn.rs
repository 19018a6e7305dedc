//! Taking one's turn at a file: whoever changes it holds its lock meanwhile. A process that was stopped while it held one
//! is waited for, but not for ever: every verb ends.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long somebody else's turn may take: each is a matter of milliseconds.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Between two attempts.
const LOOK: Duration = Duration::from_millis(2);

/// Waits until nobody else holds the lock of this file. It ends with the handle, or with [`File::unlock`].
pub(crate) fn take(file: &File, path: &Path, patience: Duration) -> io::Result<()> {
    let begun = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if begun.elapsed() >= patience => {
                let message = format!(
                    "another process has held {} for {} s; it may be stopped, and must go on or be ended",
                    path.display(),
                    patience.as_secs()
                );
                return Err(io::Error::new(io::ErrorKind::TimedOut, message));
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOOK),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_stopped_in_its_turn_is_not_waited_for_without_end() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.lock");
        let open = || File::options().create(true).append(true).open(&path).unwrap();
        let (held, other) = (open(), open());
        take(&held, &path, Duration::ZERO).unwrap();
        let refused = take(&other, &path, Duration::from_millis(30)).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::TimedOut);
        assert!(refused.to_string().contains("a.lock"), "{refused}");
        drop(held);
        take(&other, &path, Duration::ZERO).unwrap();
    }
}
