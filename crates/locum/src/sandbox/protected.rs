//! Names inside a project that a command may read and not change, because a program outside the sandbox acts on them:
//! git runs hooks, and agents obey settings.
//!
//! What is there is mounted read-only over itself, and so is what a link at such a name leads to, with all that is on
//! the way. What is not there cannot be mounted over. For directories that agents are read from, an empty directory
//! stands in while commands run; the last command to end removes it again. A lock on the project's root tells who is
//! last, and the mode of a placeholder that it is one: an empty directory of the user stays. For all other names the
//! launcher is the [sentry](super::sentry).

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use locum_core::permission::{AGENT_DIRECTORIES, protected_paths};
use nix::fcntl::{Flock, FlockArg};

use super::trail;

/// The mode of a placeholder, which nobody gives to a directory of their own: nothing can be put into it, and it is
/// sticky.
const PLACEHOLDER_MODE: u32 = 0o1500;

/// The protected names of a project, held in place until this is dropped.
pub(super) struct Protected {
    pub(super) names: Vec<Name>,
    /// Where nothing is, below the root.
    pub(super) vacant: Vec<PathBuf>,
    root: PathBuf,
    lock: Option<Flock<File>>,
}

/// What a command may do with a protected name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// Read it.
    Read,
    /// Whatever it likes but for moving it: a protected name is in it.
    Stay,
    /// Go where it leads: it is a link.
    Follow,
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
    /// What is not what it was is refused. Nothing is left to protect where the sentry of another command has moved
    /// what was there away.
    pub(super) fn again(&self) -> Result<Option<Self>, String> {
        let failed = |error: io::Error| format!("{} cannot be protected: {error}", self.path.display());
        let file = match open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(failed)?,
        };
        let (before, now) = (self.file.metadata().map_err(failed)?, file.metadata().map_err(failed)?);
        if (before.dev(), before.ino()) != (now.dev(), now.ino()) {
            return Err(format!("{} cannot be protected: it has changed meanwhile", self.path.display()));
        }
        Ok(Some(Self { path: self.path.clone(), allowed: self.allowed, file }))
    }

    /// What the name stood for, as a path that does not go by the name. It is good for this process and those forked
    /// from it.
    pub(super) fn source(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
    }
}

impl Protected {
    /// Names below the root at which something is that commands may only read.
    pub(super) fn occupied(&self) -> Vec<PathBuf> {
        let read = self.names.iter().filter(|name| name.allowed == Use::Read);
        read.filter_map(|name| name.path.strip_prefix(&self.root).ok().map(Path::to_owned)).collect()
    }
}

/// Finds what must be protected, and puts placeholders where nothing is and agents would be read from.
pub(super) fn hold(root: &Path) -> Result<Protected, String> {
    let lock = File::open(root)
        .and_then(|file| Flock::lock(file, FlockArg::LockShared).map_err(|(_, error)| error.into()))
        .map_err(|error| format!("{} cannot be opened: {error}", root.display()))?;
    let mut held = Protected { names: Vec::new(), vacant: Vec::new(), root: root.to_owned(), lock: Some(lock) };
    for name in AGENT_DIRECTORIES {
        let path = root.join(name);
        match fs::DirBuilder::new().mode(PLACEHOLDER_MODE).create(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            // Where the user cannot write, the command cannot either.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => {}
            Err(error) => return Err(format!("{} cannot be protected: {error}", path.display())),
        }
    }
    let mut found = BTreeMap::new();
    for name in protected_paths() {
        let trail = trail::follow(root, &name)?;
        held.vacant.extend(trail.vacant);
        for (path, allowed) in trail.held {
            // What one name needs to stay, another one may need unchanged.
            let known = found.entry(path).or_insert(allowed);
            if allowed == Use::Read {
                *known = Use::Read;
            }
        }
    }
    let only_read: Vec<PathBuf> =
        found.iter().filter(|(_, allowed)| **allowed == Use::Read).map(|(path, _)| path.clone()).collect();
    // Mounted again, what is in a directory that may only be read could be written.
    found.retain(|path, _| !only_read.iter().any(|around| path != around && path.starts_with(around)));
    for (path, allowed) in found {
        let file = open(&path).map_err(|error| format!("{} cannot be protected: {error}", path.display()))?;
        held.names.push(Name { path, allowed, file });
    }
    Ok(held)
}

/// What is at a path, without following it.
pub(super) fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_PATH | libc::O_NOFOLLOW).open(path)
}

impl Drop for Protected {
    fn drop(&mut self) {
        let Some(file) = self.lock.take().and_then(|lock| lock.unlock().ok()) else { return };
        clear(&self.root, file);
    }
}

/// Removes the placeholders that a launcher left behind in a project because it was killed.
pub(super) fn clear_left(root: &Path) -> usize {
    File::open(root).map_or(0, |file| clear(root, file))
}

/// Removes placeholders, unless somebody needs them, and says how many.
fn clear(root: &Path, file: File) -> usize {
    // Whoever else holds the lock still needs them, and looks again at its own end.
    let Ok(_alone) = Flock::lock(file, FlockArg::LockExclusiveNonblock) else { return 0 };
    let is_placeholder = |path: &PathBuf| {
        path.symlink_metadata().is_ok_and(|found| found.is_dir() && found.mode() & 0o7700 == PLACEHOLDER_MODE)
    };
    let placeholders = AGENT_DIRECTORIES.iter().map(|name| root.join(name)).filter(is_placeholder);
    // Only an empty directory is removed: anything in it was put there from outside.
    placeholders.filter(|path| fs::remove_dir(path).is_ok()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(held: &Protected) -> Vec<String> {
        let name = |name: &Name| name.path.file_name().unwrap().to_string_lossy().into_owned();
        held.names.iter().map(name).collect()
    }

    fn sorted(names: &[&str]) -> Vec<String> {
        let mut names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn placeholders_stay_until_the_last_command_ends() {
        let root = tempfile::tempdir().unwrap();
        let there = || root.path().join(".locum").exists();
        let first = hold(root.path()).unwrap();
        let second = hold(root.path()).unwrap();
        assert_eq!(names(&first), sorted(&AGENT_DIRECTORIES));
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
        assert_eq!(names(&held), sorted(&[&AGENT_DIRECTORIES[..], &[".git"]].concat()));
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
    fn a_link_is_held_with_what_it_leads_to() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("shared/claude")).unwrap();
        fs::create_dir_all(root.join(".git/inside")).unwrap();
        for (name, target) in
            [(".claude", "shared/claude"), (".envrc", "elsewhere"), (".config", "/nowhere"), (".codex", ".git/inside")]
        {
            std::os::unix::fs::symlink(target, root.join(name)).unwrap();
        }
        let held = hold(&root).unwrap();
        let seen = |path: &str| held.names.iter().find(|name| name.path == root.join(path)).map(|name| name.allowed);
        for (path, expected) in [
            (".claude", Some(Use::Follow)),
            ("shared", Some(Use::Stay)),
            ("shared/claude", Some(Use::Read)),
            (".envrc", Some(Use::Follow)),
            (".config", Some(Use::Follow)),
            (".codex", Some(Use::Follow)),
            (".git", Some(Use::Read)),
            // It must not be mounted again where the repository may only be read.
            (".git/inside", None),
        ] {
            assert_eq!(seen(path), expected, "{path}");
        }
        assert!(held.vacant.contains(&PathBuf::from("elsewhere")) && held.vacant.contains(&PathBuf::from(".mcp.json")));
    }

    #[test]
    fn what_a_killed_launcher_left_is_cleared_unless_somebody_needs_it() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join(".pi")).unwrap();
        let other = hold(root.path()).unwrap();
        assert_eq!(clear_left(root.path()), 0, "another command runs");
        drop(other);
        for name in [".locum", ".claude"] {
            fs::DirBuilder::new().mode(PLACEHOLDER_MODE).create(root.path().join(name)).unwrap();
        }
        assert_eq!((clear_left(root.path()), clear_left(root.path())), (2, 0));
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1, "the user's own directory stays");
    }
}
