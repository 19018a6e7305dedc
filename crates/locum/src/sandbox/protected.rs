//! Names inside a project that a command may read and not change, because a program outside the sandbox acts on them:
//! git runs hooks, and agents obey settings.
//!
//! What is there is mounted read-only over itself. What is not there cannot be mounted over, so an empty directory
//! stands in its place while commands run; the last command to end removes it again. A lock on the project's root tells
//! who is last, and the mode of a placeholder that it is one: an empty directory of the user stays.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};

/// Protected where they are there.
const NAMES: [&str; 9] = [".git", ".acai", ".pi", ".tallow", ".cursor", ".codex", ".gemini", ".vscode", ".mcp.json"];

/// Protected also where they are not: a directory of this name changes what happens next.
const ALSO_MISSING: [&str; 2] = [".locum", ".claude"];

/// The mode of a placeholder, which nobody gives to a directory of their own: nothing can be put into it, and it is
/// sticky.
const PLACEHOLDER_MODE: u32 = 0o1500;

/// The protected names of a project, held in place until this is dropped.
pub(super) struct Protected {
    pub(super) names: Vec<Name>,
    placeholders: Vec<PathBuf>,
    lock: Option<Flock<File>>,
}

/// One protected name, and what it named when it was looked at. Another command may change what it names meanwhile, and
/// nothing else may be shown in its place.
pub(super) struct Name {
    pub(super) path: PathBuf,
    file: File,
}

impl Name {
    /// The same name once more, looked at in a namespace of its own: a mount can only be made of what was opened there.
    /// What is not what it was is refused.
    pub(super) fn again(&self) -> Result<Self, String> {
        let failed = |error: io::Error| format!("{} cannot be protected: {error}", self.path.display());
        let file = open(&self.path).map_err(failed)?;
        let (before, now) = (self.file.metadata().map_err(failed)?, file.metadata().map_err(failed)?);
        if (before.dev(), before.ino()) != (now.dev(), now.ino()) {
            return Err(format!("{} cannot be protected: it has changed meanwhile", self.path.display()));
        }
        Ok(Self { path: self.path.clone(), file })
    }

    /// What the name stood for, as a path that does not go by the name. It is good for this process and those forked
    /// from it.
    pub(super) fn source(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
    }
}

/// Finds what must be protected, and puts placeholders where nothing is.
pub(super) fn hold(root: &Path) -> Result<Protected, String> {
    let lock = File::open(root)
        .and_then(|file| Flock::lock(file, FlockArg::LockShared).map_err(|(_, error)| error.into()))
        .map_err(|error| format!("{} cannot be opened: {error}", root.display()))?;
    let mut held = Protected { names: Vec::new(), placeholders: Vec::new(), lock: Some(lock) };
    for name in ALSO_MISSING {
        let path = root.join(name);
        match fs::DirBuilder::new().mode(PLACEHOLDER_MODE).create(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            // Where the user cannot write, the command cannot either.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => continue,
            Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => continue,
            Err(error) => return Err(format!("{} cannot be protected: {error}", path.display())),
        }
        held.placeholders.push(path);
    }
    for name in NAMES.iter().chain(&ALSO_MISSING) {
        let path = root.join(name);
        match open(&path).and_then(|file| Ok((file.metadata()?, file))) {
            Ok((found, _)) if found.is_symlink() => {
                return Err(format!(
                    "{} is a symbolic link, which cannot be protected: put the directory itself there",
                    path.display()
                ));
            }
            Ok((_, file)) => held.names.push(Name { path, file }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(format!("{} cannot be protected: {error}", path.display())),
        }
    }
    Ok(held)
}

/// What is at a path, without following it.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_PATH | libc::O_NOFOLLOW).open(path)
}

impl Drop for Protected {
    fn drop(&mut self) {
        let Some(lock) = self.lock.take() else { return };
        let Ok(file) = lock.unlock() else { return };
        // Whoever else holds the lock still needs the placeholders, and looks again at its own end.
        let Ok(_alone) = Flock::lock(file, FlockArg::LockExclusiveNonblock) else { return };
        for path in &self.placeholders {
            let is_placeholder =
                path.symlink_metadata().is_ok_and(|found| found.is_dir() && found.mode() & 0o7700 == PLACEHOLDER_MODE);
            if is_placeholder {
                // Only an empty directory is removed: anything in it was put there from outside.
                fs::remove_dir(path).ok();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(held: &Protected) -> Vec<String> {
        let name = |name: &Name| name.path.file_name().unwrap().to_string_lossy().into_owned();
        held.names.iter().map(name).collect()
    }

    #[test]
    fn placeholders_stay_until_the_last_command_ends() {
        let root = tempfile::tempdir().unwrap();
        let there = || root.path().join(".locum").exists();
        let first = hold(root.path()).unwrap();
        let second = hold(root.path()).unwrap();
        assert_eq!(names(&first), [".locum", ".claude"]);
        drop(first);
        assert!(there(), "the second command still runs");
        drop(second);
        assert!(!there() && !root.path().join(".claude").exists());
    }

    #[test]
    fn what_was_there_stays() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join(".git")).unwrap();
        fs::create_dir_all(root.path().join(".locum")).unwrap();
        fs::write(root.path().join(".locum/config.toml"), "").unwrap();
        let held = hold(root.path()).unwrap();
        assert_eq!(names(&held), [".git", ".locum", ".claude"]);
        drop(held);
        assert!(root.path().join(".locum/config.toml").exists() && root.path().join(".git").exists());
    }

    #[test]
    fn an_empty_directory_of_the_user_stays() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join(".claude")).unwrap();
        let (first, second) = (hold(root.path()).unwrap(), hold(root.path()).unwrap());
        drop(first);
        drop(second);
        assert!(root.path().join(".claude").exists() && !root.path().join(".locum").exists());
    }

    #[test]
    fn a_link_is_refused() {
        let root = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("elsewhere", root.path().join(".claude")).unwrap();
        let error = hold(root.path()).err().unwrap();
        assert!(error.contains(".claude is a symbolic link"), "{error}");
    }
}
