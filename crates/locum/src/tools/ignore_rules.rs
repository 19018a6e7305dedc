//! The rules of `.gitignore` and `.ignore` files, read through the task's root.
//!
//! The matching is ripgrep's. Its own walk is not used, because it opens ignore files and directories by path: a FIFO
//! called `.gitignore` would hang it, and a link would lead it outside.

use std::cell::Cell;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::beneath::{Beneath, Entry, Kind};

/// The later one decides where both have a rule.
const FILE_NAMES: [&str; 2] = [".gitignore", ".ignore"];

/// Bytes of one ignore file: what is beyond is not read.
const FILE_BYTES_MAX: u64 = 64 * 1024;

/// Bytes of all ignore files in use at a time: a compiled rule takes many times its text.
const BYTES_MAX: u64 = 512 * 1024;

/// The rules that hold in a directory: its own and those of all directories above it.
#[derive(Debug, Clone, Default)]
pub(crate) struct IgnoreRules {
    nearest: Option<Rc<Level>>,
    bytes: Rc<Cell<u64>>,
}

#[derive(Debug)]
struct Level {
    directory: PathBuf,
    matcher: Gitignore,
    above: Option<Rc<Level>>,
    bytes_own: u64,
    bytes: Rc<Cell<u64>>,
}

impl Drop for Level {
    fn drop(&mut self) {
        self.bytes.set(self.bytes.get().saturating_sub(self.bytes_own));
    }
}

impl IgnoreRules {
    /// The rules that hold above `directory`, which is given from the root.
    pub(crate) fn above(files: &Beneath, directory: &Path) -> Self {
        let mut ancestors: Vec<&Path> = directory.ancestors().skip(1).collect();
        ancestors.reverse();
        ancestors.into_iter().fold(Self::default(), |rules, ancestor| rules.with(files, ancestor, &FILE_NAMES))
    }

    /// These rules and those of one more directory, whose entries are sorted.
    pub(crate) fn below(&self, files: &Beneath, directory: &Path, entries: &[Entry]) -> Self {
        let is_there = |name: &&str| {
            let found = entries.binary_search_by(|entry| entry.name.as_os_str().cmp((*name).as_ref()));
            found.is_ok_and(|index| entries[index].kind == Kind::File)
        };
        let names: Vec<&str> = FILE_NAMES.into_iter().filter(is_there).collect();
        if names.is_empty() { self.clone() } else { self.with(files, directory, &names) }
    }

    /// Whether a path from the root is to be left out. The nearest directory with a rule for it decides.
    pub(crate) fn is_ignored(&self, path: &Path, kind: Kind) -> bool {
        let mut level = self.nearest.as_deref();
        while let Some(rules) = level {
            let relative = path.strip_prefix(&rules.directory).unwrap_or(path);
            let verdict = rules.matcher.matched(relative, kind == Kind::Directory);
            if !verdict.is_none() {
                return verdict.is_ignore();
            }
            level = rules.above.as_deref();
        }
        false
    }

    fn with(&self, files: &Beneath, directory: &Path, names: &[&str]) -> Self {
        // Paths are made relative here; a root of `.` tells the matcher to leave them alone.
        let mut builder = GitignoreBuilder::new(".");
        let mut bytes_own = 0;
        for name in names {
            let text = read(files, &directory.join(name)).unwrap_or_default();
            bytes_own += text.len() as u64;
            for line in text.trim_start_matches('\u{feff}').lines() {
                // A line that is no rule is left out, as git does, and the others hold.
                builder.add_line(None, line).ok();
            }
        }
        let bytes = self.bytes.get() + bytes_own;
        let matcher = if bytes > BYTES_MAX { None } else { builder.build().ok() };
        let Some(matcher) = matcher.filter(|matcher| !matcher.is_empty()) else { return self.clone() };
        self.bytes.set(bytes);
        let level = Level {
            directory: directory.to_owned(),
            matcher,
            above: self.nearest.clone(),
            bytes_own,
            bytes: Rc::clone(&self.bytes),
        };
        Self { nearest: Some(Rc::new(level)), bytes: Rc::clone(&self.bytes) }
    }
}

fn read(files: &Beneath, path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    let file = files.open_file(path).ok()?;
    files.stoppable(file).take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
