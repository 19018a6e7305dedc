//! The files that a task knows, as its log tells it: what is in them when it last looked, and which of them it wrote.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{PendingCall, Phase, Task, ToolState};
use crate::limits;
use crate::transcript::{FileMark, FileUse, Intent};

/// What a task knows of files, by their path from the root.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownFiles {
    files: BTreeMap<String, Known>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Known {
    hash: String,
    is_written: bool,
}

impl KnownFiles {
    /// The hash of what the task last saw or wrote there.
    pub fn hash_of(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(|known| known.hash.as_str())
    }

    /// The files that the task wrote.
    pub fn written(&self) -> impl Iterator<Item = &str> {
        self.files.iter().filter(|(_, known)| known.is_written).map(|(path, _)| path.as_str())
    }

    /// Takes in what a call read or wrote.
    pub fn note(&mut self, FileMark { path, hash, by }: FileMark) {
        let was_written = self.files.get(&path).is_some_and(|known| known.is_written);
        let is_written = was_written || by == FileUse::Written;
        self.files.insert(path, Known { hash, is_written });
    }
}

impl Task {
    /// The files that it knows.
    pub fn files(&self) -> &Arc<KnownFiles> {
        &self.files
    }

    /// What the open call with this id was about to do when its start was recorded.
    pub fn intent(&self, call_id: &str) -> Option<&Intent> {
        let Phase::Tooling(pending) = &self.phase else { return None };
        let is_it = |pending: &&PendingCall| pending.call.id == call_id && pending.is_open();
        match &pending.iter().find(is_it)?.state {
            ToolState::Started(intent) => intent.as_ref(),
            ToolState::Asked | ToolState::Ended(_) => None,
        }
    }

    /// What its open calls were about to do when their starts were recorded.
    pub fn intents(&self) -> impl Iterator<Item = &Intent> {
        let pending: &[PendingCall] = match &self.phase {
            Phase::Tooling(pending) => pending,
            _ => &[],
        };
        pending.iter().filter(|pending| pending.is_open()).filter_map(|pending| match &pending.state {
            ToolState::Started(intent) => intent.as_ref(),
            ToolState::Asked | ToolState::Ended(_) => None,
        })
    }

    /// What the rules did not allow it to do, for whoever delegated.
    pub fn forbidden(&self) -> &[String] {
        &self.spent.forbidden
    }

    pub(super) fn note_forbidden(&mut self, why: Option<String>) {
        let known = &mut self.spent.forbidden;
        if let Some(why) = why.filter(|why| known.len() < limits::FORBIDDEN_TOLD_MAX && !known.contains(why)) {
            known.push(why);
        }
    }

    pub(super) fn note_files(&mut self, marks: Vec<FileMark>) {
        if !marks.is_empty() {
            let files = Arc::make_mut(&mut self.files);
            marks.into_iter().for_each(|mark| files.note(mark));
        }
    }
}
