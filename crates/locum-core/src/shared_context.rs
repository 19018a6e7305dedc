//! The rules of the shared context: a small, versioned key-value store of a session. Pure: a store loads what
//! [`lookup`] names and writes what [`decide`] changes, in one transaction.
//!
//! A value that has expired, and one that the caller may not read, is as if it were not there; it is not listed, and
//! reading it is `KEY_NOT_FOUND`. Writing needs a right of its own: without it a write is refused.

mod participants;
mod snapshots;
mod writing;

use crate::ids::{Identity, Timestamp};
use crate::limits;
use crate::protocol::request::{ContextBatch, ContextHistory};
use crate::protocol::response::{Batch, Entry, History, KeyLine, Keys, Version};
use crate::protocol::{Code, ContextAction, Refusal, Response};
use crate::session::{ContextLookup, SessionChange, SessionView};

pub use participants::matches;

/// Who removes a value whose time was over, where a participant would be named.
pub const EXPIRY: &str = "expiry";

/// Under which an action is decided.
#[derive(Debug, Clone, Copy)]
pub struct Terms<'a> {
    /// Who acts.
    pub participant: &'a Identity,
    /// When.
    pub now: Timestamp,
    /// Whether keys may have a `name:` before them.
    pub namespaces: bool,
}

/// An answer and what changes.
type Verdict = Result<(Response, Vec<SessionChange>), Refusal>;

/// What a decision about this action needs to see.
pub fn lookup(action: &ContextAction) -> ContextLookup {
    match action {
        ContextAction::ListKeys(_) => ContextLookup::Keys,
        ContextAction::Read(read) => ContextLookup::Values(vec![read.key.clone()]),
        // A list that is too long is refused unseen.
        ContextAction::ReadBatch(batch) => {
            ContextLookup::Values(batch.keys.iter().take(limits::CONTEXT_BATCH_KEYS_MAX).cloned().collect())
        }
        ContextAction::ReadHistory(history) => ContextLookup::History(history.key.clone()),
        ContextAction::Write(write) => ContextLookup::Key(write.key.clone()),
        ContextAction::Delete(delete) => ContextLookup::Key(delete.key.clone()),
        ContextAction::ListSnapshots(_) => ContextLookup::Snapshots,
        ContextAction::Snapshot(named) | ContextAction::Restore(named) => ContextLookup::Snapshot(named.label.clone()),
    }
}

/// Decides about an action.
pub fn decide(
    action: &ContextAction,
    terms: &Terms<'_>,
    view: &SessionView,
) -> Result<(Response, Vec<SessionChange>), Refusal> {
    match action {
        ContextAction::ListKeys(_) => list_keys(terms, view),
        ContextAction::Read(read) => {
            check_key(&read.key, terms)?;
            let entry = readable(&read.key, terms, view).ok_or_else(|| key_not_found(&read.key))?;
            Ok((Response::Entry(entry.clone()), Vec::new()))
        }
        ContextAction::ReadBatch(batch) => read_batch(batch, terms, view),
        ContextAction::ReadHistory(history) => read_history(history, terms, view),
        ContextAction::Write(write) => writing::write(write, terms, view),
        ContextAction::Delete(delete) => writing::delete(delete, terms, view),
        ContextAction::Snapshot(named) => snapshots::take(&named.label, terms, view),
        ContextAction::ListSnapshots(_) => snapshots::list(view),
        ContextAction::Restore(named) => snapshots::restore(&named.label, terms, view),
    }
}

fn list_keys(terms: &Terms<'_>, view: &SessionView) -> Verdict {
    let live: Vec<&KeyLine> = live_keys(terms, view).collect();
    let total_size_tokens = live.iter().map(|line| line.value_size_tokens).sum();
    let shown = live.into_iter().filter(|line| participants::allows(&line.readable_by, terms.participant));
    Ok((Response::Keys(Keys { keys: shown.cloned().collect(), total_size_tokens }), Vec::new()))
}

fn read_batch(batch: &ContextBatch, terms: &Terms<'_>, view: &SessionView) -> Verdict {
    if batch.keys.len() > limits::CONTEXT_BATCH_KEYS_MAX {
        let (is, most) = (batch.keys.len(), limits::CONTEXT_BATCH_KEYS_MAX);
        return Err(Refusal::invalid(format!("read_batch has {is} keys; at most {most} are allowed")));
    }
    let (mut entries, mut missing): (Vec<Entry>, Vec<String>) = (Vec::new(), Vec::new());
    for (place, key) in batch.keys.iter().enumerate() {
        check_key(key, terms)?;
        if batch.keys[..place].contains(key) {
            continue;
        }
        match readable(key, terms, view) {
            Some(entry) => entries.push(entry.clone()),
            None => missing.push(key.clone()),
        }
    }
    Ok((Response::Batch(Batch { entries, missing }), Vec::new()))
}

/// What a key held, also if it was removed. Each version is shown to those who could read it.
fn read_history(history: &ContextHistory, terms: &Terms<'_>, view: &SessionView) -> Verdict {
    check_key(&history.key, terms)?;
    if history.versions == Some(0) {
        return Err(Refusal::invalid("read_history: `versions` must be at least 1"));
    }
    let most = history.versions.unwrap_or(usize::MAX).min(limits::CONTEXT_HISTORY_MAX);
    let shown = view.context.history.iter().filter(|entry| participants::allows(&entry.readable_by, terms.participant));
    let version = |entry: &Entry| Version {
        version: entry.version,
        value: entry.value.clone(),
        written_by: entry.written_by.clone(),
        written_at: entry.written_at,
    };
    let versions: Vec<Version> = shown.take(most).map(version).collect();
    if versions.is_empty() {
        return Err(key_not_found(&history.key));
    }
    Ok((Response::History(History { key: history.key.clone(), versions }), Vec::new()))
}

/// The entry that a participant may read.
fn readable<'a>(key: &str, terms: &Terms<'_>, view: &'a SessionView) -> Option<&'a Entry> {
    live_entry(key, terms, view).filter(|entry| participants::allows(&entry.readable_by, terms.participant))
}

fn live_entry<'a>(key: &str, terms: &Terms<'_>, view: &'a SessionView) -> Option<&'a Entry> {
    view.context.slots.get(key)?.entry.as_ref().filter(|entry| is_live(entry.expires_at, terms.now))
}

fn live_keys<'a>(terms: &Terms<'_>, view: &'a SessionView) -> impl Iterator<Item = &'a KeyLine> {
    let now = terms.now;
    view.context.keys.iter().filter(move |line| is_live(line.expires_at, now))
}

fn is_live(expires_at: Option<Timestamp>, now: Timestamp) -> bool {
    expires_at.is_none_or(|at| now < at)
}

fn removal(key: &str, version: u64, by: &str) -> SessionChange {
    SessionChange::RemoveContext { key: key.to_owned(), version, by: by.to_owned() }
}

fn check_active(view: &SessionView) -> Result<(), Refusal> {
    if view.archived {
        return Err(Refusal::new(
            Code::SessionArchived,
            "the session is archived: its shared context can only be read",
        ));
    }
    Ok(())
}

fn check_key(key: &str, terms: &Terms<'_>) -> Result<(), Refusal> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let is_word = |text: &str| !text.is_empty() && text.len() <= limits::NAME_CHARS_MAX && text.chars().all(allowed);
    let is_key = match key.split_once(':') {
        Some((name, key)) => terms.namespaces && is_word(name) && is_word(key),
        None => is_word(key),
    };
    if is_key {
        return Ok(());
    }
    let shown: String = key.chars().take(80).collect();
    let form = if terms.namespaces { "[a-z0-9_], 1 to 64 characters, after `name:` or alone" } else { KEY_FORM };
    Err(Refusal::new(Code::InvalidKey, format!("`{shown}` is not a key")).hint(form))
}

const KEY_FORM: &str = "[a-z0-9_], 1 to 64 characters";

/// Refuses what would make the whole too large.
fn check_total(tokens: usize, keys: usize) -> Result<(), Refusal> {
    let (tokens_max, keys_max) = (limits::CONTEXT_TOKENS_MAX, limits::CONTEXT_KEYS_MAX);
    let message = if tokens > tokens_max {
        format!("the shared context would have {tokens} tokens; at most {tokens_max} are allowed")
    } else if keys > keys_max {
        format!("the shared context would have {keys} keys; at most {keys_max} are allowed")
    } else {
        return Ok(());
    };
    Err(Refusal::new(Code::StoreFull, message).hint("delete or shorten keys that are no longer needed"))
}

/// Refuses a participant that may not write an entry.
fn refuse_writer(entry: &Entry, terms: &Terms<'_>) -> Result<(), Refusal> {
    if participants::allows(&entry.writable_by, terms.participant) {
        return Ok(());
    }
    let message = format!("`{}` is written by {} only", entry.key, entry.writable_by.join(", "));
    Err(Refusal::invalid(message).hint("use another key, or leave it to them"))
}

fn key_not_found(key: &str) -> Refusal {
    Refusal::new(Code::KeyNotFound, format!("the shared context has no key `{key}`")).hint("list_keys shows them")
}
