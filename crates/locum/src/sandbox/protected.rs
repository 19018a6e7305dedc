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

use locum_core::permission::{AGENT_DIRECTORIES, protected_paths};
use nix::fcntl::{Flock, FlockArg};

/// The directory of a repository. Like those that agents are read from, it must not be a link.
const REPOSITORY: &str = ".git";

/// The mode of a placeholder, which nobody gives to a directory of their own: nothing can be put into it, and it is
/// sticky.
const PLACEHOLDER_MODE: u32 = 0o1500;

/// The protected names of a project, held in place until this is dropped.
pub(super) struct Protected {
    pub(super) names: Vec<Name>,
    placeholders: Vec<PathBuf>,
    lock: Option<Flock<File>>,
}

/// What a command may do with a protected name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// Read it.
    Read,
    /// Whatever it likes but for moving it: a protected name is in it.
    Stay,
}

/// One protected name, and what it named when it was looked at. Another command may change what it names meanwhile, and
/// nothing else may be shown in its place.
pub(super) struct Name {
    pub(super) path: PathBuf,
    pub(super) allowed: Use,
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
        Ok(Self { path: self.path.clone(), allowed: self.allowed, file })
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
    for name in AGENT_DIRECTORIES {
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
    for name in protected_paths() {
        let path = root.join(&name);
        let is_strict = name == REPOSITORY || AGENT_DIRECTORIES.contains(&name.as_str());
        let around = path.parent().filter(|around| *around != root).map(Path::to_owned);
        if around.as_ref().is_some_and(|around| around.is_symlink()) {
            continue;
        }
        match open(&path).and_then(|file| Ok((file.metadata()?, file))) {
            // Nothing is mounted over a link. What it leads to is protected where it is, or is not in the project.
            Ok((found, _)) if found.is_symlink() && !is_strict => {}
            Ok((found, _)) if found.is_symlink() => {
                return Err(format!(
                    "{} is a symbolic link, which cannot be protected: put the directory itself there",
                    path.display()
                ));
            }
            Ok((_, file)) => {
                if let Some(around) = around {
                    let file = open(&around).map_err(|error| format!("{}: {error}", around.display()))?;
                    held.names.push(Name { path: around, allowed: Use::Stay, file });
                }
                held.names.push(Name { path, allowed: Use::Read, file });
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
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
        assert_eq!(names(&first), AGENT_DIRECTORIES);
        drop(first);
        assert!(there(), "the second command still runs");
        drop(second);
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_was_there_stays() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join(".git")).unwrap();
        fs::create_dir_all(root.path().join(".locum")).unwrap();
        fs::write(root.path().join(".locum/config.toml"), "").unwrap();
        let held = hold(root.path()).unwrap();
        assert_eq!(names(&held), [&AGENT_DIRECTORIES[..], &[".git"]].concat());
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
    fn every_name_that_file_tools_protect_is_held() {
        let root = tempfile::tempdir().unwrap();
        for path in protected_paths() {
            fs::create_dir_all(root.path().join(path)).unwrap();
        }
        let held = hold(root.path()).unwrap();
        for path in protected_paths() {
            let path = root.path().join(path);
            assert!(held.names.iter().any(|name| name.path == path && name.allowed == Use::Read), "{path:?}");
        }
        let kept =
            |path: &str| held.names.iter().any(|name| name.path == root.path().join(path) && name.allowed == Use::Stay);
        assert!(kept(".config") && kept(".cargo") && !kept(".git"));
    }

    #[test]
    fn a_link_elsewhere_is_no_reason_to_refuse_commands() {
        let root = tempfile::tempdir().unwrap();
        for name in [".envrc", ".config"] {
            std::os::unix::fs::symlink("elsewhere", root.path().join(name)).unwrap();
        }
        assert_eq!(names(&hold(root.path()).unwrap()), AGENT_DIRECTORIES);
    }

    #[test]
    fn a_link_is_refused() {
        let root = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("elsewhere", root.path().join(".claude")).unwrap();
        let error = hold(root.path()).err().unwrap();
        assert!(error.contains(".claude is a symbolic link"), "{error}");
    }
}
