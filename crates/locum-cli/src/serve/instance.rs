//! One server for each user's directories: whoever comes second is told where the first one listens.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use locum::settings::Places;
use serde::{Deserialize, Serialize};

/// Where a server is, for those who come later.
#[derive(Debug, Serialize, Deserialize)]
struct Note {
    url: String,
    project: String,
    pid: u32,
}

/// The right to be the one server. It ends with the process, however that ends.
#[derive(Debug)]
pub(super) struct Instance {
    _lock: File,
    note: PathBuf,
}

impl Instance {
    /// Takes the right, or says who has it.
    pub(super) fn take(places: &Places) -> anyhow::Result<Self> {
        let (path, note) = (places.server_lock(), places.server_note());
        DirBuilder::new().recursive(true).mode(0o700).create(&places.state)?;
        let lock = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path);
        let lock = lock.with_context(|| format!("{} cannot be opened", path.display()))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => bail!("{}", taken(&note)),
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("{} cannot be locked", path.display()));
            }
        }
        Ok(Self { _lock: lock, note })
    }

    /// Writes down where this server is.
    pub(super) fn note(&mut self, url: &str, project: &str) -> anyhow::Result<()> {
        let note = Note { url: url.to_owned(), project: project.to_owned(), pid: std::process::id() };
        // Nobody reads half a note: it is written beside its place and then put there.
        let unfinished = self.note.with_extension("json.new");
        let written = serde_json::to_vec(&note).map_err(anyhow::Error::from).and_then(|text| {
            std::fs::write(&unfinished, text)?;
            Ok(std::fs::rename(&unfinished, &self.note)?)
        });
        written.with_context(|| format!("{} cannot be written", self.note.display()))
    }

    /// Takes the note away. One that stays is out of date, and nobody reads it while nobody holds the lock.
    pub(super) fn forget(&mut self) {
        std::fs::remove_file(&self.note).ok();
    }
}

fn taken(note: &std::path::Path) -> String {
    let note: Option<Note> = std::fs::read(note).ok().and_then(|text| serde_json::from_slice(&text).ok());
    match note {
        Some(Note { url, project, pid }) => {
            format!("locum serves already at {url}, for {project} (process {pid}); use it with --server {url}")
        }
        None => "another process is just beginning to serve".to_owned(),
    }
}
