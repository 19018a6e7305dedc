//! What is collected while a file is read: the remarks, and where each value was written.

use std::collections::BTreeMap;

use serde::Serialize;

use super::note::{Note, Place, Severity, Topic};
use super::yaml::Entry;

/// Where a value was written, and under which key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Origin {
    /// Where its key is.
    #[serde(flatten)]
    pub at: Place,
    /// The key as it is written in the file.
    pub written: String,
}

/// The origins of the fields that a file sets, by the names that locum uses for them: `maxTurns`, `locum.budget`.
pub type Origins = BTreeMap<String, Origin>;

#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) notes: Vec<Note>,
    pub(super) origins: Origins,
}

impl Findings {
    /// Remembers where a field was written; one that was written before under another name is an error.
    pub(super) fn place(&mut self, field: &str, entry: &Entry) -> bool {
        if let Some(first) = self.origins.get(field) {
            let message = format!(
                "`{}` and `{}` (line {}) are the same field: keep one of them",
                entry.key, first.written, first.at.line
            );
            self.error(entry.at, message);
            return false;
        }
        self.origins.insert(field.to_owned(), Origin { at: entry.at, written: entry.key.clone() });
        true
    }

    pub(super) fn error(&mut self, at: Place, message: impl Into<String>) {
        self.notes.push(Note::error(at, Topic::Value, message));
    }

    pub(super) fn warn(&mut self, at: Place, topic: Topic, message: impl Into<String>) {
        self.notes.push(Note::warning(at, topic, message));
    }

    pub(super) fn info(&mut self, at: Place, message: impl Into<String>) {
        self.notes.push(Note::info(at, Topic::NotHonoured, message));
    }

    pub(super) fn has_errors(&self) -> bool {
        self.notes.iter().any(|note| note.severity == Severity::Error)
    }
}
