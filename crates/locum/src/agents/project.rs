//! What a project says about agents and settings, read once: the bytes that trust is about are the bytes that are
//! parsed. Reading executes nothing and follows no link out of the project.

use std::path::{Path, PathBuf};

use super::files::{self, FileRead, Walked};
use super::places::{Place, Search};

/// Where a project keeps its settings.
pub(crate) const SETTINGS_FILE: &str = ".locum/config.toml";

/// Everything of a project that acts only after it was trusted.
#[derive(Debug, Clone)]
pub(crate) struct ProjectFiles {
    pub(crate) root: PathBuf,
    /// What its agent directories hold, lowest first.
    pub(crate) places: Vec<(Place, Walked)>,
    /// Its settings, if it has any.
    pub(crate) settings: Option<FileRead>,
    /// What all of it is, as one number.
    pub(crate) hash: String,
}

impl ProjectFiles {
    /// Reads what the project has where the search looks for it.
    pub(crate) fn read(search: &Search) -> Self {
        let root = &search.root;
        let read = |place: &Place| (place.clone(), files::read_directory(&place.directory, Some(root)));
        let places: Vec<(Place, Walked)> = search.project.iter().map(read).collect();
        let settings = files::read_if_there(&root.join(SETTINGS_FILE), root);
        let hash = hash(root, all(&places, settings.as_ref()));
        Self { root: root.to_owned(), places, settings, hash }
    }

    /// Every file, in the order in which it is hashed.
    pub(crate) fn files(&self) -> impl Iterator<Item = &FileRead> {
        all(&self.places, self.settings.as_ref())
    }

    /// Whether there is nothing to trust.
    pub(crate) fn is_empty(&self) -> bool {
        self.files().next().is_none()
    }
}

fn all<'a>(places: &'a [(Place, Walked)], settings: Option<&'a FileRead>) -> impl Iterator<Item = &'a FileRead> {
    places.iter().flat_map(|(_, walked)| walked.defaults.iter().chain(&walked.agents)).chain(settings)
}

/// One number for files: each with its path below the root and its bytes, both with their lengths, so that no two
/// different sets of files read the same.
fn hash<'a>(root: &Path, files: impl Iterator<Item = &'a FileRead>) -> String {
    let mut context = ring::digest::Context::new(&ring::digest::SHA256);
    let mut piece = |bytes: &[u8]| {
        context.update(&(bytes.len() as u64).to_le_bytes());
        context.update(bytes);
    };
    piece(b"locum project 1");
    for file in files {
        let path = file.path.strip_prefix(root).unwrap_or(&file.path);
        piece(path.as_os_str().as_encoded_bytes());
        match &file.bytes {
            Ok(bytes) => {
                piece(b"read");
                piece(bytes);
            }
            // Whatever it is now, when it can be read one day it is something else.
            Err(_) => piece(b"unread"),
        }
    }
    let digest = context.finish();
    digest.as_ref().iter().fold("sha256:".to_owned(), |text, byte| format!("{text}{byte:02x}"))
}
