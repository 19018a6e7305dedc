//! All that is below a directory, in the order of its paths, without what ignore files leave out.
//!
//! The walk holds one directory open at a time, reaches each from the root and never follows a link. What it cannot
//! show is counted, not fatal.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::beneath::{Beneath, Entry, Kind};
use super::ignore_rules::IgnoreRules;

/// Entries of one walk: a tree beyond this is searched part by part.
const ENTRIES_MAX: u64 = 1_000_000;

/// Whether names that begin with a dot are shown. `.git` never is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hidden {
    Skip,
    Show,
}

/// Something that a walk came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    /// Where it is from the root.
    pub(crate) path: PathBuf,
    pub(crate) kind: Kind,
}

/// A walk under way. It ends early when the call is stopped.
#[derive(Debug)]
pub(crate) struct Walk<'a> {
    surroundings: Surroundings<'a>,
    levels: Vec<Level>,
    left_out: LeftOut,
    entries: u64,
}

/// What a walk could not show.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LeftOut {
    unreadable: u64,
    entries: u64,
}

/// One directory with the rules that hold in it, for those who list directory by directory.
#[derive(Debug)]
pub(crate) struct Level {
    pub(crate) directory: PathBuf,
    pub(crate) rules: IgnoreRules,
    /// What is not ignored or hidden, sorted by name.
    pub(crate) entries: std::vec::IntoIter<Entry>,
    /// How many more there are than were read.
    pub(crate) left_out: u64,
}

/// What stays the same for all directories of a walk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Surroundings<'a> {
    pub(crate) files: &'a Beneath,
    pub(crate) hidden: Hidden,
}

impl<'a> Walk<'a> {
    /// A walk through a directory, given from the root. The directory itself may be hidden or ignored: it was named.
    pub(crate) fn new(files: &'a Beneath, directory: &Path, hidden: Hidden) -> Self {
        let surroundings = Surroundings { files, hidden };
        let mut walk = Self { surroundings, levels: Vec::new(), left_out: LeftOut::default(), entries: 0 };
        walk.enter(directory, &IgnoreRules::above(files, directory));
        walk
    }

    /// What was not shown so far.
    pub(crate) fn left_out(&self) -> LeftOut {
        self.left_out
    }

    fn enter(&mut self, directory: &Path, above: &IgnoreRules) {
        let Some(level) = self.surroundings.level(directory, above) else {
            self.left_out.unreadable += 1;
            return;
        };
        let entries = level.entries.len() as u64;
        self.left_out.entries += level.left_out;
        if self.entries + entries > ENTRIES_MAX {
            self.left_out.entries += entries;
            return;
        }
        self.entries += entries;
        self.levels.push(level);
    }
}

impl Iterator for Walk<'_> {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        if self.surroundings.files.is_stopped() {
            return None;
        }
        loop {
            let level = self.levels.last_mut()?;
            let Some(entry) = level.entries.next() else {
                self.levels.pop();
                continue;
            };
            let path = level.directory.join(&entry.name);
            if entry.kind == Kind::Directory {
                let rules = level.rules.clone();
                self.enter(&path, &rules);
            }
            return Some(Found { path, kind: entry.kind });
        }
    }
}

impl Surroundings<'_> {
    /// Reads one directory; nothing if it cannot be read.
    pub(crate) fn level(self, directory: &Path, above: &IgnoreRules) -> Option<Level> {
        let mut listing = self.files.list(directory).ok()?;
        let rules = above.below(self.files, directory, &listing.entries);
        listing.entries.retain(|entry| {
            let is_hidden = self.hidden == Hidden::Skip && entry.name.as_bytes().starts_with(b".");
            let is_left_out = is_hidden || entry.name == OsStr::new(".git");
            !is_left_out && !rules.is_ignored(&directory.join(&entry.name), entry.kind)
        });
        let entries = listing.entries.into_iter();
        Some(Level { directory: directory.to_owned(), rules, entries, left_out: listing.left_out })
    }
}

impl LeftOut {
    /// What the model is told of it.
    pub(crate) fn notices(self) -> Vec<String> {
        let mut notices = Vec::new();
        if self.unreadable > 0 {
            let what = if self.unreadable == 1 { "directory" } else { "directories" };
            notices.push(format!("{} {what} could not be read", self.unreadable));
        }
        if self.entries > 0 {
            notices.push(format!("the tree is too large: {}+ entries were not looked at", self.entries));
        }
        notices
    }
}
