//! Files of locum's own that only its user may read, and that no reader ever sees half of.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Makes a directory, and those above it, for its user alone.
pub(crate) fn make_directory(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Writes beside a file and puts it in its place. Whoever may write at the same time must be kept out by the caller, or
/// must write the same.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        make_directory(directory)?;
    }
    let beside = path.with_extension(format!("{}.new", std::process::id()));
    let mut file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&beside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&beside, path)
}
