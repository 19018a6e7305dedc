//! Everything that can be said about a file without running it, as one list.

use super::dialect::Dialect;
use super::markdown::Reading;
use super::note::{self, Broken, Note, Severity, Topic};
use super::{Source, defaults, frontmatter, markdown, portability, tool_list};
use crate::ids::AgentName;

/// What is asked about a file.
#[derive(Debug, Clone, Copy)]
pub struct Question {
    /// The conventions that the file follows.
    pub dialect: Dialect,
    /// The program whose view of the file is wanted beside locum's own.
    pub target: Option<Dialect>,
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Linted {
    /// The agent, if the file is one.
    pub reading: Option<Reading>,
    /// Everything worth saying, by place.
    pub notes: Vec<Note>,
}

impl Linted {
    /// The agent's name, if the file is one.
    pub fn name(&self) -> Option<&AgentName> {
        self.reading.as_ref().map(|reading| &reading.agent.name)
    }
}

/// Looks at an agent file.
pub fn agent(bytes: &[u8], stem: &str, question: Question) -> Linted {
    let read = markdown::read(bytes, stem, Source::Application, question.dialect);
    let (reading, notes) = match read {
        Ok(reading) => (Some(reading.clone()), reading.notes),
        Err(broken) => (None, broken.into_notes()),
    };
    Linted { reading, notes: with_portability(notes, bytes, Some(stem), question.target) }
}

/// Looks at a `_defaults.md`.
pub fn defaults_file(bytes: &[u8], target: Option<Dialect>) -> Linted {
    let notes = match defaults::read(bytes) {
        Ok(reading) => reading.notes,
        Err(broken) => Broken::into_notes(broken),
    };
    // A program that knows the file at all knows the same keys in it.
    let target = target.filter(|target| *target == Dialect::Tallow);
    Linted { reading: None, notes: with_portability(notes, bytes, None, target) }
}

/// Takes back what is said about tools that somebody has after all, such as the user's settings.
pub fn know_tools(notes: &mut Vec<Note>, tools: &[String]) {
    let known: Vec<String> = tools.iter().map(|tool| tool_list::nobody_has(tool)).collect();
    let is_known = |note: &Note| known.iter().any(|beginning| note.message.starts_with(beginning));
    notes.retain(|note| note.topic != Topic::UnknownTool || !is_known(note));
}

/// Makes errors of warnings, for those who want none.
pub fn be_strict(notes: &mut [Note]) {
    for note in notes.iter_mut().filter(|note| note.severity == Severity::Warning) {
        note.severity = Severity::Error;
    }
}

fn with_portability(mut notes: Vec<Note>, bytes: &[u8], stem: Option<&str>, target: Option<Dialect>) -> Vec<Note> {
    if let Some(target) = target
        && let Ok(text) = frontmatter::text_of(bytes)
        && let Ok(halves) = frontmatter::read(text, &mut Vec::new())
    {
        notes.extend(portability::check(&halves, stem, target));
    }
    note::sort(&mut notes);
    notes
}
