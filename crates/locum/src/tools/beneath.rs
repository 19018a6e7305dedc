//! The files beneath a task's root, reached through an open directory: no `..`, absolute path or symbolic link leads
//! out of it, whatever changes meanwhile, and nothing but regular files is opened.

use std::cell::RefCell;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, FileType, FileTypeExt as _, OpenOptions, OpenOptionsExt as _};
use locum_core::transcript::{FileMark, ToolOutput};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use tokio_util::sync::CancellationToken;

use super::bounded::{cut, shown};
use super::similar;
use super::{ToolLayerError, ToolScope};

/// Bytes of a path: the most that Linux takes.
const PATH_BYTES_MAX: usize = 4096;

/// Bytes of a path that an answer repeats.
const SAID_BYTES_MAX: usize = 300;

/// Entries that are read of one directory: more are a cache, not something to read through.
const DIRECTORY_ENTRIES_MAX: usize = 100_000;

/// How many entries go by between two looks at the stop token.
const ENTRIES_PER_LOOK: usize = 1024;

/// What a file tool may know of the call: where it reads, and when to stop.
#[derive(Debug, Clone)]
pub(crate) struct FileScope {
    /// The directory that cannot be left.
    pub(crate) root: PathBuf,
    /// Where relative paths begin, below the root.
    pub(crate) cwd: PathBuf,
    /// Set when the call is no longer wanted.
    pub(crate) stop: CancellationToken,
}

impl From<&ToolScope> for FileScope {
    fn from(scope: &ToolScope) -> Self {
        Self { root: scope.root.clone(), cwd: scope.cwd.clone(), stop: scope.stop.clone() }
    }
}

/// The open root of a task.
#[derive(Debug)]
pub(crate) struct Beneath {
    pub(super) root: Dir,
    scope: FileScope,
    /// The files that were read whole, for the log.
    marks: RefCell<Vec<FileMark>>,
}

/// What is at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Directory,
    Link,
    Fifo,
    Socket,
    Device,
}

/// Something that exists beneath the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Located {
    /// Where it is from the root, without links and `..` for files and directories; empty for the root itself.
    pub(crate) path: PathBuf,
    /// What it is; never a link.
    pub(crate) kind: Kind,
}

/// One name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: OsString,
    pub(crate) kind: Kind,
}

/// The names in a directory.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// Sorted by name.
    pub(crate) entries: Vec<Entry>,
    /// How many more there are.
    pub(crate) left_out: u64,
}

impl Beneath {
    /// Opens the root. Without it no file tool can work.
    pub(crate) fn open(scope: FileScope) -> Result<Self, ToolLayerError> {
        let root = Dir::open_ambient_dir(&scope.root, ambient_authority()).map_err(|error| {
            ToolLayerError(format!("the task's directory {} cannot be opened: {error}", shown(&scope.root)))
        })?;
        Ok(Self { root, scope, marks: RefCell::default() })
    }

    /// Finds what a model named. A relative path begins at the working directory; one that leads nowhere from there
    /// is tried from the root, because that is how the tools' own output names files.
    pub(crate) fn locate(&self, said: &str) -> Result<Located, ToolOutput> {
        check_spelling(said)?;
        let Some(wanted) = self.relative(Path::new(said)) else { return Err(outside(said)) };
        let found = self.locate_from_root(&wanted).or_else(|error| {
            let is_elsewhere = is_missing(&error) && !self.scope.cwd.as_os_str().is_empty();
            if is_elsewhere && Path::new(said).is_relative() {
                return self.locate_from_root(Path::new(said)).map_err(|_| error);
            }
            Err(error)
        });
        found.map_err(|error| self.explain(said, &wanted, &error))
    }

    /// Like [`Beneath::locate`], for something that must be a directory; the working directory where none is named.
    pub(crate) fn locate_directory(&self, said: Option<&str>) -> Result<Located, ToolOutput> {
        let said = said.unwrap_or(".");
        let located = self.locate(said)?;
        match located.kind {
            Kind::Directory => Ok(located),
            Kind::File | Kind::Link | Kind::Fifo | Kind::Socket | Kind::Device => {
                Err(ToolOutput::failed(format!("{} is a {}, not a directory", quoted(said), located.kind.noun())))
            }
        }
    }

    /// Opens a regular file by its path from the root, which must not end in a link. Never blocks on anything else.
    pub(crate) fn open_file(&self, path: &Path) -> io::Result<std::fs::File> {
        let mut options = OpenOptions::new();
        // A FIFO would wait for a writer and a terminal could become ours. The kind was looked at before, but what is
        // there may have been exchanged since.
        let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_NOFOLLOW;
        let file = self.root.open_with(path, options.read(true).custom_flags(flags.bits()))?.into_std();
        if file.metadata()?.is_file() {
            return Ok(file);
        }
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"))
    }

    /// Reads the names in a directory, given by its path from the root.
    pub(crate) fn list(&self, directory: &Path) -> io::Result<Listing> {
        let mut listing = Listing::default();
        for (index, entry) in self.root.read_dir(or_dot(directory))?.enumerate() {
            if index % ENTRIES_PER_LOOK == 0 && self.is_stopped() {
                return Err(io::Error::other("stopped"));
            }
            let entry = entry?;
            if listing.entries.len() == DIRECTORY_ENTRIES_MAX {
                listing.left_out += 1;
                continue;
            }
            // Some file systems do not tell the type with the name. An entry that is gone again is no entry.
            let kind = Kind::of(entry.file_type()?).or_else(|| Kind::of(entry.metadata().ok()?.file_type()));
            if let Some(kind) = kind {
                listing.entries.push(Entry { name: entry.file_name(), kind });
            }
        }
        listing.entries.sort_unstable_by(|left, right| left.name.cmp(&right.name));
        Ok(listing)
    }

    /// The directory at a path from the root that may contain links and `..`; nothing where there is none.
    pub(crate) fn directory_at(&self, path: &Path) -> Option<PathBuf> {
        let located = self.locate_from_root(path).ok()?;
        (located.kind == Kind::Directory).then_some(located.path)
    }

    /// The bytes of a file, without opening it; nothing where it is gone.
    pub(crate) fn size(&self, path: &Path) -> Option<u64> {
        self.root.symlink_metadata(path).ok().map(|metadata| metadata.len())
    }

    /// What a link says, without following it.
    pub(crate) fn link_text(&self, path: &Path) -> Option<PathBuf> {
        self.root.read_link_contents(path).ok()
    }

    /// Notes what is in a file that was read.
    pub(crate) fn mark(&self, mark: FileMark) {
        self.marks.borrow_mut().push(mark);
    }

    /// What was noted of files.
    pub(crate) fn take_marks(&self) -> Vec<FileMark> {
        self.marks.take()
    }

    /// Whether the call is no longer wanted.
    pub(crate) fn is_stopped(&self) -> bool {
        self.scope.stop.is_cancelled()
    }

    /// The same as something to return on.
    pub(crate) fn check_stop(&self) -> Result<(), ToolOutput> {
        if self.is_stopped() { Err(stopped()) } else { Ok(()) }
    }

    /// A reader that fails once the call is no longer wanted.
    pub(crate) fn stoppable<R: io::Read>(&self, reader: R) -> Stoppable<R> {
        Stoppable { reader, stop: self.scope.stop.clone() }
    }

    /// The path from the root, or nothing for an absolute path that is elsewhere.
    pub(super) fn relative(&self, said: &Path) -> Option<PathBuf> {
        let path = self.scope.cwd.join(said);
        if path.is_relative() {
            return Some(path);
        }
        if let Ok(relative) = path.strip_prefix(&self.scope.root) {
            return Some(relative.to_owned());
        }
        // The root may be reached through links that the path does not use.
        let root = self.scope.root.canonicalize().ok()?;
        path.strip_prefix(root).ok().map(Path::to_owned)
    }

    pub(super) fn locate_from_root(&self, path: &Path) -> io::Result<Located> {
        let kind = Kind::of(self.root.metadata(or_dot(path))?.file_type()).ok_or(io::ErrorKind::NotFound)?;
        let path = match kind {
            Kind::File | Kind::Directory => self.root.canonicalize(or_dot(path))?,
            // Where the system cannot resolve beneath a directory by itself, making a path canonical opens what is
            // there, and that could wait for ever. Nobody reads these, so nobody needs their path.
            Kind::Link | Kind::Fifo | Kind::Socket | Kind::Device => path.to_owned(),
        };
        let path = if path == Path::new(".") { PathBuf::new() } else { path };
        Ok(Located { path, kind })
    }

    pub(super) fn explain(&self, said: &str, wanted: &Path, error: &io::Error) -> ToolOutput {
        if is_escape(error) {
            return outside(said);
        }
        if is_missing(error) {
            let similar = similar::similar(self, wanted);
            let hint = if similar.is_empty() { String::new() } else { format!("; similar: {}", similar.join(", ")) };
            return ToolOutput::failed(format!("no such file: {}{hint}", repeated(said)));
        }
        if error.raw_os_error() == Some(Errno::ELOOP as i32) {
            return ToolOutput::failed(format!("{} leads through too many symbolic links", quoted(said)));
        }
        unreadable(said, error)
    }
}

impl Kind {
    /// What a model calls it.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Directory => "directory",
            Self::Link => "symbolic link",
            Self::Fifo => "FIFO",
            Self::Socket => "socket",
            Self::Device => "device",
        }
    }

    fn of(kind: FileType) -> Option<Self> {
        let is = [
            (kind.is_file(), Self::File),
            (kind.is_dir(), Self::Directory),
            (kind.is_symlink(), Self::Link),
            (kind.is_fifo(), Self::Fifo),
            (kind.is_socket(), Self::Socket),
            (kind.is_block_device() || kind.is_char_device(), Self::Device),
        ];
        is.into_iter().find_map(|(is_it, kind)| is_it.then_some(kind))
    }
}

/// A reader that fails once the call is no longer wanted.
#[derive(Debug)]
pub(crate) struct Stoppable<R> {
    reader: R,
    stop: CancellationToken,
}

impl<R: io::Read> io::Read for Stoppable<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_cancelled() {
            // Not `Interrupted`: the standard library would try again.
            return Err(io::Error::other("stopped"));
        }
        self.reader.read(buffer)
    }
}

/// What a model reads when the call was stopped.
pub(crate) fn stopped() -> ToolOutput {
    ToolOutput::failed("stopped before it was done")
}

/// What a model reads about a file that exists but cannot be read.
pub(crate) fn unreadable(said: &str, error: &io::Error) -> ToolOutput {
    ToolOutput::failed(format!("{} cannot be read: {error}", quoted(said)))
}

/// What a model said, in backquotes.
pub(crate) fn quoted(said: &str) -> String {
    format!("`{}`", repeated(said))
}

fn repeated(said: &str) -> String {
    shown(cut(said.as_bytes(), SAID_BYTES_MAX).as_ref())
}

pub(super) fn outside(said: &str) -> ToolOutput {
    let why = "is outside the task's directory, or a symbolic link on the way leads outside";
    ToolOutput::denied(format!("{} {why}; only what is inside can be used", quoted(said)))
}

pub(super) fn check_spelling(said: &str) -> Result<(), ToolOutput> {
    if said.len() > PATH_BYTES_MAX {
        return Err(ToolOutput::failed(format!("the path is too long: {} bytes", said.len())));
    }
    if said.contains('\0') {
        return Err(ToolOutput::failed("the path contains a NUL character"));
    }
    Ok(())
}

pub(super) fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// An attempt to leave is refused before the system is asked, so it has no number of an operating system's error.
fn is_escape(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none()
}

fn or_dot(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}
