//! An index beside the one of a checkout: what a checkout holds is gathered in it, and the checkout's own is not touched.

use std::fs;
use std::path::{Path, PathBuf};

use crate::git::Checkout;

use super::WorkspaceError;

/// An index that goes with this value.
pub(crate) struct TemporaryIndex {
    path: PathBuf,
}

impl TemporaryIndex {
    /// A copy of a checkout's index, so that files which have not changed need not be read; one of its commit if there
    /// is none.
    pub(crate) fn of(checkout: &Checkout, directory: &Path) -> Result<Self, WorkspaceError> {
        let indices = directory.join("indices");
        fs::create_dir_all(&indices).map_err(WorkspaceError::file(&indices))?;
        let index = Self { path: indices.join(format!("{:016x}", fastrand::u64(..))) };
        let own = checkout.index_file()?;
        match copy_with_time(&own, &index.path) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                checkout.with_index(&index.path).fill_index(&checkout.head()?)?;
            }
            Err(source) => return Err(WorkspaceError::File { path: own, source }),
        }
        Ok(index)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// Copies an index with its time. Git compares that with the times of files: a file that was written in the same second
/// as the index is read to see whether it has changed, and beside a younger index it would pass for unchanged.
fn copy_with_time(from: &Path, to: &Path) -> std::io::Result<()> {
    let modified = fs::metadata(from)?.modified()?;
    fs::copy(from, to)?;
    fs::OpenOptions::new().write(true).open(to)?.set_modified(modified)
}

impl Drop for TemporaryIndex {
    fn drop(&mut self) {
        // It may have taken the place of another one, and a lock is there only if git was ended.
        fs::remove_file(&self.path).ok();
        fs::remove_file(self.path.with_extension("lock")).ok();
    }
}
