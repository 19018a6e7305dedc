//! Reading a directory of agent files: bounded, regular files only, and never waiting for anything. What is read is
//! read once, so that what is hashed is what is parsed. It does not know what the files mean.

use std::collections::BTreeSet;
use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use locum_core::limits;
use nix::fcntl::OFlag;

/// The name of the file with fallbacks for every agent.
pub(crate) const DEFAULTS_FILE: &str = "_defaults.md";

/// A file, as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileRead {
    pub(crate) path: PathBuf,
    /// Its bytes, or why there are none.
    pub(crate) bytes: Result<Vec<u8>, String>,
}

/// What a directory holds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Walked {
    /// The agent files, by path; a directory's own before those below it.
    pub(crate) agents: Vec<FileRead>,
    /// The fallbacks, if there are any.
    pub(crate) defaults: Option<FileRead>,
    /// What could not be looked at.
    pub(crate) unread: Vec<(PathBuf, String)>,
    /// The directories that were looked at.
    pub(crate) directories: Vec<PathBuf>,
}

/// Reads the agent files of a directory and its subdirectories. With `within`, symbolic links that lead out of that
/// directory are not followed. A directory that does not exist is empty.
pub(crate) fn read_directory(directory: &Path, within: Option<&Path>) -> Walked {
    let mut walk = Walk { within: within.map(real), seen: BTreeSet::new(), walked: Walked::default() };
    if directory.symlink_metadata().is_ok() {
        walk.enter(directory, 0);
    }
    walk.walked
}

struct Walk {
    within: Option<PathBuf>,
    /// The directories that were entered: a link that leads back into one is not followed.
    seen: BTreeSet<(u64, u64)>,
    walked: Walked,
}

impl Walk {
    fn enter(&mut self, directory: &Path, depth: usize) {
        if let Err(why) = self.try_enter(directory, depth) {
            self.walked.unread.push((directory.to_owned(), why));
        }
    }

    fn try_enter(&mut self, directory: &Path, depth: usize) -> Result<(), String> {
        let metadata = directory.metadata().map_err(|error| error.to_string())?;
        if !metadata.is_dir() {
            return Err("not a directory".to_owned());
        }
        self.check_within(directory)?;
        if !self.seen.insert((metadata.dev(), metadata.ino())) {
            return Ok(());
        }
        if depth > limits::AGENT_DIRECTORY_DEPTH_MAX {
            return Err(format!("deeper than {} directories", limits::AGENT_DIRECTORY_DEPTH_MAX));
        }
        if self.seen.len() > limits::AGENT_DIRECTORIES_MAX {
            return Err(format!("more than {} directories", limits::AGENT_DIRECTORIES_MAX));
        }
        self.walked.directories.push(directory.to_owned());
        let mut entries = Vec::new();
        for entry in directory.read_dir().map_err(|error| error.to_string())? {
            if entries.len() == limits::AGENT_DIRECTORY_ENTRIES_MAX {
                let most = limits::AGENT_DIRECTORY_ENTRIES_MAX;
                self.walked
                    .unread
                    .push((directory.to_owned(), format!("more than {most} entries: the rest is not read")));
                break;
            }
            entries.push(entry.map_err(|error| error.to_string())?.path());
        }
        entries.sort();
        let (below, files): (Vec<PathBuf>, Vec<PathBuf>) = entries.into_iter().partition(|path| path.is_dir());
        for path in files {
            self.take(path, depth);
        }
        for path in below.iter().filter(|path| !name_of(path).starts_with('.')) {
            self.enter(path, depth + 1);
        }
        Ok(())
    }

    fn take(&mut self, path: PathBuf, depth: usize) {
        let name = name_of(&path);
        let is_defaults = name == DEFAULTS_FILE && depth == 0;
        if !is_defaults && (!name.ends_with(".md") || name.starts_with(['_', '.'])) {
            return;
        }
        if self.walked.agents.len() >= limits::AGENT_FILES_MAX {
            self.walked.unread.push((path, format!("more than {} agent files in one place", limits::AGENT_FILES_MAX)));
            return;
        }
        let bytes = self.check_within(&path).and_then(|()| read_file(&path));
        let read = FileRead { path, bytes };
        if is_defaults {
            self.walked.defaults = Some(read);
        } else {
            self.walked.agents.push(read);
        }
    }

    fn check_within(&self, path: &Path) -> Result<(), String> {
        self.within.as_ref().map_or(Ok(()), |within| check_within(path, within))
    }
}

fn check_within(path: &Path, within: &Path) -> Result<(), String> {
    if real(path).starts_with(within) { Ok(()) } else { Err("a link that leads out of the project".to_owned()) }
}

/// The bytes of a regular file, at most a few more than an agent file may have. Nothing else is opened: a pipe would
/// wait for a writer that never comes, and a device may do anything.
pub(crate) fn read_file(path: &Path) -> Result<Vec<u8>, String> {
    let said = |error: std::io::Error| error.to_string();
    check_regular(&path.metadata().map_err(said)?)?;
    let mut options = File::options();
    // What was a file a moment ago may be a pipe now: opening must not wait.
    options.read(true).custom_flags((OFlag::O_NONBLOCK | OFlag::O_NOCTTY).bits());
    let file = options.open(path).map_err(said)?;
    check_regular(&file.metadata().map_err(said)?)?;
    let mut bytes = Vec::new();
    file.take(limits::AGENT_FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(said)?;
    if bytes.len() > limits::AGENT_FILE_BYTES_MAX {
        return Err(format!("the file is larger than {} bytes", limits::AGENT_FILE_BYTES_MAX));
    }
    Ok(bytes)
}

/// The same for a file that need not exist, and must not be a link that leads out of a directory.
pub(crate) fn read_if_there(path: &Path, within: &Path) -> Option<FileRead> {
    match path.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound || error.kind() == ErrorKind::NotADirectory => None,
        _ => {
            let bytes = check_within(path, &real(within)).and_then(|()| read_file(path));
            Some(FileRead { path: path.to_owned(), bytes })
        }
    }
}

fn check_regular(metadata: &Metadata) -> Result<(), String> {
    let kind = metadata.file_type();
    if kind.is_file() {
        return Ok(());
    }
    let what = if kind.is_fifo() {
        "a pipe"
    } else if kind.is_dir() {
        "a directory"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    };
    Err(format!("{what}, not a regular file"))
}

/// The path without symbolic links, as far as it exists.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
