//! What is said about an agent file: each remark with its place, how much it matters and what to do.

use serde::Serialize;

/// A place in a file, both from 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The character in the line.
    pub column: usize,
}

impl Place {
    /// Where every file begins: the place of what is missing.
    pub const START: Self = Self { line: 1, column: 1 };

    /// The place of a byte in a text.
    pub(super) fn of_byte(text: &str, at: usize) -> Self {
        let before = text.get(..at).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self { line: before.matches('\n').count() + 1, column: before[line_start..].chars().count() + 1 }
    }

    /// A place further to the right in the same line.
    pub(super) fn right(self, characters: usize) -> Self {
        Self { column: self.column + characters, ..self }
    }
}

/// How much a remark matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The file is not an agent.
    Error,
    /// The file is an agent, and probably not the one that was meant.
    Warning,
    /// The file is the agent that was meant, less what locum cannot do.
    Info,
}

impl Severity {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }
}

/// What a remark is about, for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// The shape of the file: its frontmatter, its size, its letters.
    File,
    /// A value that cannot be used.
    Value,
    /// A key that nobody knows.
    UnknownKey,
    /// A tool that locum does not have.
    UnknownTool,
    /// Something that is read and kept, and has no effect.
    NotHonoured,
    /// Characters that are not seen.
    Hidden,
    /// How another program would read the file.
    Portability,
}

/// One remark about a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Note {
    /// Where.
    #[serde(flatten)]
    pub at: Place,
    /// How much it matters.
    pub severity: Severity,
    /// What it is about.
    pub topic: Topic,
    /// What is the matter and what to do.
    pub message: String,
}

impl Note {
    /// A reason why the file is not an agent.
    pub fn error(at: Place, topic: Topic, message: impl Into<String>) -> Self {
        Self { at, severity: Severity::Error, topic, message: message.into() }
    }

    /// Something that was probably not meant.
    pub fn warning(at: Place, topic: Topic, message: impl Into<String>) -> Self {
        Self { at, severity: Severity::Warning, topic, message: message.into() }
    }

    /// Something worth knowing.
    pub fn info(at: Place, topic: Topic, message: impl Into<String>) -> Self {
        Self { at, severity: Severity::Info, topic, message: message.into() }
    }
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: {}", self.at.line, self.at.column, self.message)
    }
}

/// Why a text is not an agent: at least one error, and what else was seen, by place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    notes: Vec<Note>,
}

impl Broken {
    /// A file with these errors among its notes. Without an error it would not be broken, so one is added.
    pub(super) fn new(mut notes: Vec<Note>) -> Self {
        if notes.iter().all(|note| note.severity != Severity::Error) {
            notes.push(Note::error(Place::START, Topic::File, "the file cannot be read"));
        }
        sort(&mut notes);
        Self { notes }
    }

    /// Everything that was seen, by place.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// Everything that was seen, by place.
    pub fn into_notes(self) -> Vec<Note> {
        self.notes
    }

    /// The first error.
    pub fn first(&self) -> &Note {
        let error = self.notes.iter().find(|note| note.severity == Severity::Error);
        error.or(self.notes.first()).expect("a broken file has at least one note")
    }
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.first().fmt(f)
    }
}

impl std::error::Error for Broken {}

/// Puts notes into the order in which a reader of the file meets them.
pub(super) fn sort(notes: &mut [Note]) {
    notes.sort_by_key(|note| (note.at, note.severity));
}
