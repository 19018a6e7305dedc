//! Replacing a file beneath the root: a new one is written beside it and takes its place in one step, so that nobody
//! ever sees half of it, and no other name of the old file, inside or outside, is written through.

use std::ffi::OsStr;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};

use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt as _};
use locum_core::limits;
use locum_core::transcript::ToolOutput;
use nix::fcntl::OFlag;

use super::beneath::{Beneath, Kind, check_spelling, is_missing, outside, quoted};

/// Names that are tried for the new file.
const ATTEMPTS_MAX: usize = 8;

/// Whether missing directories are made on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Missing {
    Make,
    Fail,
}

impl Beneath {
    /// Where a file that is to be written is or will be: from the root, without links and `..`.
    pub(crate) fn place(&self, said: &str) -> Result<PathBuf, ToolOutput> {
        check_spelling(said)?;
        if said.is_empty() || said.ends_with('/') {
            return Err(ToolOutput::failed(format!("{} is not the name of a file", quoted(said))));
        }
        let Some(wanted) = self.relative(Path::new(said)) else { return Err(outside(said)) };
        let located = self.locate_from_root(&wanted).or_else(|error| {
            if is_missing(&error) && Path::new(said).is_relative() {
                return self.locate_from_root(Path::new(said)).map_err(|_| error);
            }
            Err(error)
        });
        match located {
            Ok(located) if located.kind == Kind::File => Ok(located.path),
            Ok(located) => {
                let noun = located.kind.noun();
                Err(ToolOutput::failed(format!("{} is a {noun}; only files are written", quoted(said))))
            }
            Err(error) if is_missing(&error) => self.new_place(said, &wanted),
            Err(error) => Err(self.explain(said, &wanted, &error)),
        }
    }

    /// The content of a file by its place; nothing where there is no file.
    pub(crate) fn content(&self, path: &Path) -> io::Result<Option<Vec<u8>>> {
        let opened = self.parent(path, Missing::Fail).and_then(|(directory, name)| {
            let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_NOFOLLOW;
            directory.open_with(name, OpenOptions::new().read(true).custom_flags(flags.bits()))
        });
        let file = match opened {
            Ok(file) => file.into_std(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
        }
        let most = limits::WRITTEN_BYTES_MAX as u64;
        let mut content = Vec::new();
        self.stoppable(file).take(most + 1).read_to_end(&mut content)?;
        if content.len() as u64 > most {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is too large to be changed with this tool"));
        }
        Ok(Some(content))
    }

    /// Puts a content at a place, in one step. Mode and owner stay what they were.
    pub(crate) fn replace(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        let (directory, name) = self.parent(path, Missing::Make)?;
        let old = match directory.open_with(name, OpenOptions::new().read(true).custom_flags(looking().bits())) {
            Ok(file) => Some(file.into_std().metadata()?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        if old.as_ref().is_some_and(|old| !old.is_file()) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
        }
        let temporary = temporary_name(name, content);
        let mut file = create(&directory, &temporary, old.is_some())?;
        let filled = file.write_all(content).and_then(|()| match &old {
            Some(old) => keep_mode(&file, old),
            None => Ok(()),
        });
        let replaced = filled
            .and_then(|()| file.sync_all())
            .and_then(|()| if self.is_stopped() { Err(io::Error::other("stopped")) } else { Ok(()) })
            .and_then(|()| directory.rename(&temporary, &directory, name));
        if replaced.is_err() {
            // It is ours and nobody knows of it; that it cannot be removed is no further harm.
            directory.remove_file(&temporary).ok();
        }
        replaced
    }

    /// A place where nothing is yet: below the deepest directory that exists, by plain names.
    fn new_place(&self, said: &str, wanted: &Path) -> Result<PathBuf, ToolOutput> {
        let parts: Vec<Component<'_>> = wanted.components().collect();
        for end in (0..parts.len()).rev() {
            let above: PathBuf = parts[..end].iter().collect();
            let rest = &parts[end..];
            let located = match self.locate_from_root(&above) {
                Ok(located) => located,
                Err(error) if is_missing(&error) => continue,
                Err(error) => return Err(self.explain(said, &above, &error)),
            };
            if located.kind != Kind::Directory {
                return Err(ToolOutput::failed(format!(
                    "{} leads through something that is no directory",
                    quoted(said)
                )));
            }
            if !rest.iter().all(|part| matches!(part, Component::Normal(_))) {
                return Err(ToolOutput::failed(format!(
                    "{} leads through a directory that does not exist",
                    quoted(said)
                )));
            }
            let first = rest.first().map(|first| located.path.join(first)).unwrap_or_default();
            if self.root.symlink_metadata(&first).is_ok() {
                return Err(ToolOutput::failed(format!("{} is a symbolic link that leads nowhere", quoted(said))));
            }
            return Ok(located.path.join(rest.iter().collect::<PathBuf>()));
        }
        Err(ToolOutput::failed(format!("{} is not the name of a file", quoted(said))))
    }

    /// The directory of a place, reached without following any link, and the name in it.
    fn parent<'a>(&self, path: &'a Path, missing: Missing) -> io::Result<(Dir, &'a OsStr)> {
        let wrong = || io::Error::new(io::ErrorKind::InvalidInput, "it is not the name of a file");
        let name = path.file_name().ok_or_else(wrong)?;
        let mut directory = self.root.try_clone()?;
        for part in path.parent().into_iter().flat_map(Path::components) {
            let Component::Normal(part) = part else { return Err(wrong()) };
            directory = match enter(&directory, part) {
                Err(error) if error.kind() == io::ErrorKind::NotFound && missing == Missing::Make => {
                    match directory.create_dir(part) {
                        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                        // Somebody may have made it in this moment; what it is, is seen when it is entered.
                        Ok(()) | Err(_) => enter(&directory, part)?,
                    }
                }
                entered => entered?,
            };
        }
        Ok((directory, name))
    }
}

/// Opens what is at a name without following a link, and without waiting for whoever is at the other end.
fn looking() -> OFlag {
    OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_NOFOLLOW
}

fn enter(directory: &Dir, name: &OsStr) -> io::Result<Dir> {
    let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW;
    let opened = directory.open_with(name, OpenOptions::new().read(true).custom_flags(flags.bits()))?;
    Ok(Dir::from_std_file(opened.into_std()))
}

/// The name of a content until it is in its place. It is the same when a call is made again after a crash, so that what
/// the crash left behind is taken away then.
fn temporary_name(name: &OsStr, content: &[u8]) -> String {
    let hash = super::content::hash(&[name.as_encoded_bytes(), b"\n", content].concat());
    format!(".locum-{}.tmp", &hash[hash.len() - 16..])
}

/// A new file beside the one that it will replace. One that replaces another is nobody's to read before it has the
/// other's mode.
fn create(directory: &Dir, name: &str, is_replacement: bool) -> io::Result<std::fs::File> {
    let mode = if is_replacement { 0o600 } else { 0o666 };
    let mut last = io::Error::other("no name was free");
    for _ in 0..ATTEMPTS_MAX {
        match directory.open_with(name, OpenOptions::new().write(true).create_new(true).mode(mode)) {
            Ok(file) => return Ok(file.into_std()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                last = error;
                // Nobody else writes this content to this file: it was left behind by a process that was killed.
                directory.remove_file(name)?;
            }
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

fn keep_mode(file: &std::fs::File, old: &std::fs::Metadata) -> io::Result<()> {
    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
        // Only root can give a file away; anybody else who may write here keeps it.
        std::os::unix::fs::fchown(file, Some(old.uid()), Some(old.gid())).ok();
    }
    // A program that runs as its owner must not be changed and stay one.
    file.set_permissions(std::fs::Permissions::from_mode(old.mode() & 0o777))
}
