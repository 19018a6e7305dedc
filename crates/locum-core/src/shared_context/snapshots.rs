//! Keeping the whole shared context under a label, and bringing it back.

use std::collections::BTreeSet;

use super::{Terms, Verdict, check_active, check_total, is_live, refuse_writer};
use crate::ids::Identity;
use crate::limits;
use crate::protocol::response::{Entry, Restored, RestoredKey, SnapshotLine, Snapshots};
use crate::protocol::{Code, Refusal, Response};
use crate::session::{SessionChange, SessionView, Slot, Snapshot};
use crate::usage::estimate_tokens;

/// Takes a snapshot. One under the same label is replaced, by whoever took it or by the orchestrator.
pub(super) fn take(label: &str, terms: &Terms<'_>, view: &SessionView) -> Verdict {
    check_active(view)?;
    check_label(label)?;
    let taken = &view.context.snapshots;
    let participant = terms.participant.to_string();
    match taken.iter().find(|line| line.label == label) {
        Some(line) if line.taken_by != participant && *terms.participant != Identity::Orchestrator => {
            let message = format!("the snapshot `{label}` was taken by {}", line.taken_by);
            return Err(Refusal::invalid(message).hint("choose another label"));
        }
        None if taken.len() >= limits::CONTEXT_SNAPSHOTS_MAX => {
            let message = format!("there are {} snapshots, as many as are kept", taken.len());
            return Err(Refusal::new(Code::StoreFull, message).hint("use a label again; list_snapshots shows them"));
        }
        Some(_) | None => {}
    }
    let live = |slot: &Slot| slot.entry.clone().filter(|entry| is_live(entry.expires_at, terms.now));
    let entries: Vec<Entry> = view.context.slots.values().filter_map(live).collect();
    let line = SnapshotLine {
        label: label.to_owned(),
        taken_by: participant,
        taken_at: terms.now,
        keys: entries.len(),
        total_size_tokens: tokens_of(&entries),
    };
    let change = SessionChange::PutSnapshot(Box::new(Snapshot { line: line.clone(), entries }));
    Ok((Response::Snapshot(line), vec![change]))
}

/// Shows the snapshots.
pub(super) fn list(view: &SessionView) -> Verdict {
    let snapshots = view.context.snapshots.clone();
    Ok((Response::Snapshots(Snapshots { snapshots }), Vec::new()))
}

/// Brings back a snapshot: its values become new versions by the restorer, and every other key is removed. What has
/// expired since it was taken stays gone.
pub(super) fn restore(label: &str, terms: &Terms<'_>, view: &SessionView) -> Verdict {
    check_active(view)?;
    check_label(label)?;
    let Some(kept) = &view.context.snapshot else {
        return Err(Refusal::new(Code::KeyNotFound, format!("there is no snapshot `{label}`"))
            .hint("list_snapshots shows them"));
    };
    let kept: Vec<&Entry> = kept.iter().filter(|entry| is_live(entry.expires_at, terms.now)).collect();
    check_total(kept.iter().map(|entry| estimate_tokens(&entry.value)).sum(), kept.len())?;
    let mut changes = Vec::new();
    let mut written = Vec::new();
    for entry in &kept {
        let entry = restored(entry, terms, view.context.slots.get(&entry.key))?;
        written.push(RestoredKey { key: entry.key.clone(), version: entry.version });
        changes.push(SessionChange::PutContext(entry));
    }
    let names: BTreeSet<&str> = kept.iter().map(|entry| entry.key.as_str()).collect();
    let mut deleted = Vec::new();
    for entry in view.context.slots.values().filter_map(|slot| slot.entry.as_ref()) {
        if names.contains(entry.key.as_str()) {
            continue;
        }
        if is_live(entry.expires_at, terms.now) {
            refuse_writer(entry, terms)?;
            deleted.push(entry.key.clone());
            changes.push(super::removal(&entry.key, entry.version, &terms.participant.to_string()));
        } else {
            changes.push(super::removal(&entry.key, entry.version, super::EXPIRY));
        }
    }
    Ok((Response::Restored(Restored { restored: label.to_owned(), written, deleted }), changes))
}

/// A kept value as a new version. Who may read and write it comes back with it only if the orchestrator restores it,
/// or if nothing is there that could say otherwise.
fn restored(kept: &Entry, terms: &Terms<'_>, slot: Option<&Slot>) -> Result<Entry, Refusal> {
    let live = slot.and_then(|slot| slot.entry.as_ref()).filter(|entry| is_live(entry.expires_at, terms.now));
    let rights = match (terms.participant, live) {
        (Identity::Subagent { .. }, Some(live)) => live,
        (Identity::Orchestrator, _) | (_, None) => kept,
    };
    refuse_writer(rights, terms)?;
    Ok(Entry {
        key: kept.key.clone(),
        value: kept.value.clone(),
        written_by: terms.participant.to_string(),
        written_at: terms.now,
        version: slot.map_or(0, |slot| slot.last_version) + 1,
        expires_at: kept.expires_at,
        readable_by: rights.readable_by.clone(),
        writable_by: rights.writable_by.clone(),
    })
}

fn tokens_of(entries: &[Entry]) -> usize {
    entries.iter().map(|entry| estimate_tokens(&entry.value)).sum()
}

fn check_label(label: &str) -> Result<(), Refusal> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
    if !label.is_empty() && label.len() <= limits::NAME_CHARS_MAX && label.chars().all(allowed) {
        return Ok(());
    }
    let shown: String = label.chars().take(80).collect();
    Err(Refusal::new(Code::InvalidKey, format!("`{shown}` is not a label")).hint("[a-z0-9_-], 1 to 64 characters"))
}
