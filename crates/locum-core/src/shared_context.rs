//! The rules of the shared context: a small, versioned key-value store of a session. Pure: a store loads what
//! [`lookup`] names and writes what [`decide`] changes, in one transaction.

use crate::ids::{Identity, Timestamp};
use crate::limits;
use crate::protocol::request::{ContextDelete, ContextWrite};
use crate::protocol::response::{Deleted, Entry, Keys, Written};
use crate::protocol::{Code, ContextAction, Refusal, Response};
use crate::session::{ContextLookup, SessionChange, SessionView};
use crate::usage::{estimate_tokens, fits_tokens};

/// What a decision about this action needs to see.
pub fn lookup(action: &ContextAction) -> ContextLookup {
    match action {
        ContextAction::ListKeys(_) => ContextLookup::Keys,
        ContextAction::Read(read) => ContextLookup::Key(read.key.clone()),
        ContextAction::Write(write) => ContextLookup::Key(write.key.clone()),
        ContextAction::Delete(delete) => ContextLookup::Key(delete.key.clone()),
    }
}

/// Decides about an action of this participant.
pub fn decide(
    action: &ContextAction,
    participant: &Identity,
    now: Timestamp,
    view: &SessionView,
) -> Result<(Response, Option<SessionChange>), Refusal> {
    match action {
        ContextAction::ListKeys(_) => {
            let keys = view.context.keys.clone();
            Ok((Response::Keys(Keys { keys, total_size_tokens: view.context.total_tokens }), None))
        }
        ContextAction::Read(read) => {
            check_key(&read.key)?;
            let entry = view.context.entry.clone().ok_or_else(|| key_not_found(&read.key))?;
            Ok((Response::Entry(entry), None))
        }
        ContextAction::Write(write) => {
            check_writable(view)?;
            let entry = write_entry(write, participant, now, view)?;
            let size = estimate_tokens(&entry.value);
            let warning = (size >= limits::CONTEXT_VALUE_TOKENS_WARN).then(|| {
                format!("the value has {size} of at most {} tokens; distil it", limits::CONTEXT_VALUE_TOKENS_MAX)
            });
            let written = Written {
                key: entry.key.clone(),
                version: entry.version,
                written_by: entry.written_by.clone(),
                written_at: entry.written_at,
                warning,
            };
            Ok((Response::Written(written), Some(SessionChange::PutContext(entry))))
        }
        ContextAction::Delete(delete) => {
            check_writable(view)?;
            let previous_version = delete_entry(delete, view)?;
            let deleted = Deleted { deleted: delete.key.clone(), previous_version };
            Ok((Response::Deleted(deleted), Some(SessionChange::RemoveContext { key: delete.key.clone() })))
        }
    }
}

fn write_entry(
    write: &ContextWrite,
    participant: &Identity,
    now: Timestamp,
    view: &SessionView,
) -> Result<Entry, Refusal> {
    check_key(&write.key)?;
    if !fits_tokens(&write.value, limits::CONTEXT_VALUE_TOKENS_MAX) {
        let (is, most) = (estimate_tokens(&write.value), limits::CONTEXT_VALUE_TOKENS_MAX);
        return Err(Refusal::new(
            Code::ValueTooLarge,
            format!("the value has {is} tokens; at most {most} are allowed"),
        )
        .hint("distil it, or split it over several keys"));
    }
    check_version(write.expected_version, view)?;
    let replaced = view.context.entry.as_ref().map_or(0, |entry| estimate_tokens(&entry.value));
    let total = view.context.total_tokens - replaced.min(view.context.total_tokens) + estimate_tokens(&write.value);
    if total > limits::CONTEXT_TOKENS_MAX {
        let message =
            format!("the shared context would have {total} tokens; at most {} are allowed", limits::CONTEXT_TOKENS_MAX);
        return Err(Refusal::new(Code::StoreFull, message).hint("delete or shorten keys that are no longer needed"));
    }
    Ok(Entry {
        key: write.key.clone(),
        value: write.value.clone(),
        written_by: participant.to_string(),
        written_at: now,
        version: view.context.last_version + 1,
    })
}

fn delete_entry(delete: &ContextDelete, view: &SessionView) -> Result<u64, Refusal> {
    check_key(&delete.key)?;
    let entry = view.context.entry.as_ref().ok_or_else(|| key_not_found(&delete.key))?;
    check_version(delete.expected_version, view)?;
    Ok(entry.version)
}

fn check_writable(view: &SessionView) -> Result<(), Refusal> {
    if view.archived {
        return Err(Refusal::new(
            Code::SessionArchived,
            "the session is archived: its shared context can only be read",
        ));
    }
    Ok(())
}

fn check_key(key: &str) -> Result<(), Refusal> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if !key.is_empty() && key.len() <= limits::NAME_CHARS_MAX && key.chars().all(allowed) {
        return Ok(());
    }
    let shown: String = key.chars().take(80).collect();
    Err(Refusal::new(Code::InvalidKey, format!("`{shown}` is not a key")).hint("[a-z0-9_], 1 to 64 characters"))
}

fn check_version(expected: Option<u64>, view: &SessionView) -> Result<(), Refusal> {
    let Some(expected) = expected else { return Ok(()) };
    match &view.context.entry {
        None if expected == 0 => Ok(()),
        None => {
            Err(Refusal::new(Code::VersionConflict, format!("version {expected} was expected; the key does not exist")))
        }
        Some(entry) if entry.version == expected => Ok(()),
        Some(entry) => {
            let what = if expected == 0 { "no such key".to_owned() } else { format!("version {expected}") };
            let message = format!("{what} was expected; version {} by {} is there", entry.version, entry.written_by);
            Err(Refusal::new(Code::VersionConflict, message).hint("read it again, then write"))
        }
    }
}

fn key_not_found(key: &str) -> Refusal {
    Refusal::new(Code::KeyNotFound, format!("the shared context has no key `{key}`")).hint("list_keys shows them")
}
