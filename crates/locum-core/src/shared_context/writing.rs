//! Setting and removing one value.

use super::{EXPIRY, Terms, Verdict};
use super::{check_active, check_key, check_total, is_live, key_not_found, live_entry, live_keys, participants};
use super::{refuse_writer, removal};
use crate::ids::Timestamp;
use crate::limits;
use crate::protocol::request::{ContextDelete, ContextWrite};
use crate::protocol::response::{Deleted, Entry, Written};
use crate::protocol::{Code, Refusal, Response};
use crate::session::{SessionChange, SessionView};
use crate::usage::{estimate_tokens, fits_tokens};

/// Sets a value. Who may read and write it stays as it was unless that is said anew.
pub(super) fn write(write: &ContextWrite, terms: &Terms<'_>, view: &SessionView) -> Verdict {
    check_active(view)?;
    check_shape(write, terms)?;
    let current = live_entry(&write.key, terms, view);
    if let Some(entry) = current {
        refuse_writer(entry, terms)?;
    }
    check_version(write.expected_version, current)?;
    check_room(write, terms, view)?;
    let rights = |said: &Option<Vec<String>>, kept: fn(&Entry) -> &Vec<String>| {
        said.clone().or_else(|| current.map(|entry| kept(entry).clone())).unwrap_or_default()
    };
    let entry = Entry {
        key: write.key.clone(),
        value: write.value.clone(),
        written_by: terms.participant.to_string(),
        written_at: terms.now,
        version: view.context.slots.get(&write.key).map_or(0, |slot| slot.last_version) + 1,
        expires_at: write.ttl_seconds.map(|seconds| after(terms.now, seconds)),
        readable_by: rights(&write.readable_by, |entry| &entry.readable_by),
        writable_by: rights(&write.writable_by, |entry| &entry.writable_by),
    };
    let written = written(&entry);
    let mut changes = expired(&write.key, terms, view);
    changes.push(SessionChange::PutContext(entry));
    Ok((Response::Written(written), changes))
}

/// Removes a value.
pub(super) fn delete(delete: &ContextDelete, terms: &Terms<'_>, view: &SessionView) -> Verdict {
    check_active(view)?;
    check_key(&delete.key, terms)?;
    let entry = live_entry(&delete.key, terms, view).ok_or_else(|| key_not_found(&delete.key))?;
    refuse_writer(entry, terms)?;
    check_version(delete.expected_version, Some(entry))?;
    let mut changes = expired(&delete.key, terms, view);
    changes.push(removal(&delete.key, entry.version, &terms.participant.to_string()));
    Ok((Response::Deleted(Deleted { deleted: delete.key.clone(), previous_version: entry.version }), changes))
}

fn check_shape(write: &ContextWrite, terms: &Terms<'_>) -> Result<(), Refusal> {
    check_key(&write.key, terms)?;
    if !fits_tokens(&write.value, limits::CONTEXT_VALUE_TOKENS_MAX) {
        let (is, most) = (estimate_tokens(&write.value), limits::CONTEXT_VALUE_TOKENS_MAX);
        return Err(Refusal::new(
            Code::ValueTooLarge,
            format!("the value has {is} tokens; at most {most} are allowed"),
        )
        .hint("distil it, or split it over several keys"));
    }
    let most = limits::CONTEXT_TTL_SECONDS_MAX;
    if write.ttl_seconds.is_some_and(|seconds| !(1..=most).contains(&seconds)) {
        return Err(Refusal::invalid(format!("`ttl_seconds` must be from 1 to {most}"))
            .hint("leave it out to keep the value, or delete the key"));
    }
    for (field, patterns) in [("readable_by", &write.readable_by), ("writable_by", &write.writable_by)] {
        if let Some(patterns) = patterns {
            participants::check(field, patterns, terms.participant)?;
        }
    }
    Ok(())
}

fn check_version(expected: Option<u64>, current: Option<&Entry>) -> Result<(), Refusal> {
    let Some(expected) = expected else { return Ok(()) };
    match current {
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

/// The value that is replaced is not counted twice.
fn check_room(write: &ContextWrite, terms: &Terms<'_>, view: &SessionView) -> Result<(), Refusal> {
    let others = || live_keys(terms, view).filter(|line| line.key != write.key);
    let tokens: usize = others().map(|line| line.value_size_tokens).sum();
    check_total(tokens + estimate_tokens(&write.value), others().count() + 1)
}

fn written(entry: &Entry) -> Written {
    let size = estimate_tokens(&entry.value);
    let warning = (size >= limits::CONTEXT_VALUE_TOKENS_WARN)
        .then(|| format!("the value has {size} of at most {} tokens; distil it", limits::CONTEXT_VALUE_TOKENS_MAX));
    Written {
        key: entry.key.clone(),
        version: entry.version,
        written_by: entry.written_by.clone(),
        written_at: entry.written_at,
        expires_at: entry.expires_at,
        warning,
    }
}

/// The removal of every other value whose time is over: whoever changes something sweeps.
fn expired(but: &str, terms: &Terms<'_>, view: &SessionView) -> Vec<SessionChange> {
    let over = |line: &&crate::protocol::response::KeyLine| !is_live(line.expires_at, terms.now) && line.key != but;
    view.context.keys.iter().filter(over).map(|line| removal(&line.key, line.version, EXPIRY)).collect()
}

fn after(now: Timestamp, seconds: u64) -> Timestamp {
    let millis = i64::try_from(seconds.saturating_mul(1000)).unwrap_or(i64::MAX);
    Timestamp::from_millis(now.millis().saturating_add(millis))
}
