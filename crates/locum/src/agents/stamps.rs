//! How files looked when they were read, so that a change is noticed by looking again.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Paths, each with how it looked.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stamps {
    all: Vec<(PathBuf, Option<Stamp>)>,
}

/// How a file or directory looked; nothing for one that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

impl Stamps {
    /// How these paths look now.
    pub(crate) fn of(mut paths: Vec<PathBuf>) -> Self {
        paths.sort();
        paths.dedup();
        Self { all: paths.into_iter().map(|path| (path.clone(), stamp(&path))).collect() }
    }

    /// Whether everything still looks as it did.
    pub(crate) fn are_current(&self) -> bool {
        self.all.iter().all(|(path, then)| stamp(path) == *then)
    }

    /// The paths.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.all.iter().map(|(path, _)| path.as_path())
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let metadata = path.metadata().ok()?;
    // The time of the last change to the inode cannot be set back, as the time of the last write can.
    let changed = (metadata.ctime(), metadata.ctime_nsec());
    Some(Stamp { device: metadata.dev(), inode: metadata.ino(), size: metadata.size(), changed })
}
