//! The shared context in the database.

use std::collections::BTreeMap;

use locum_core::ids::Timestamp;
use locum_core::limits;
use locum_core::protocol::response::{Entry, KeyLine, SnapshotLine};
use locum_core::session::{ContextLookup, ContextView, Slot, Snapshot};
use locum_core::usage::estimate_tokens;
use rusqlite::{Connection, Row, named_params};

use super::failure::Unreadable;
use super::rows::{all, decode, encode, execute, first};
use crate::store::Error;

/// What a decision asked to see.
pub(super) fn view(connection: &Connection, session: i64, lookup: &ContextLookup) -> Result<ContextView, Error> {
    let mut view = ContextView::default();
    match lookup {
        ContextLookup::None => {}
        ContextLookup::Keys => view.keys = keys(connection, session)?,
        ContextLookup::Key(key) => {
            view.slots = slots(connection, session, std::slice::from_ref(key))?;
            view.keys = keys(connection, session)?;
        }
        ContextLookup::Values(keys) => view.slots = slots(connection, session, keys)?,
        ContextLookup::History(key) => {
            let query = "SELECT key, value, written_by, written_at, version, expires_at, readable_by, writable_by \
                         FROM context_history WHERE session = ?1 AND key = ?2 ORDER BY version DESC";
            view.history = all(connection, query, (session, key), |row| entry(row, row.get("value")?))?;
        }
        ContextLookup::Snapshots => view.snapshots = snapshots(connection, session)?,
        ContextLookup::Snapshot(label) => {
            let query = "SELECT key, value, written_by, written_at, version, expires_at, readable_by, writable_by \
                         FROM context WHERE session = ?1";
            view.slots = all(connection, query, [session], slot)?.into_iter().collect();
            view.snapshots = snapshots(connection, session)?;
            let query = "SELECT entries FROM snapshots WHERE session = ?1 AND label = ?2";
            view.snapshot =
                first(connection, query, (session, label), |row| Ok(decode(&row.get::<_, String>("entries")?)?))?;
        }
    }
    Ok(view)
}

/// Sets a value, and forgets the versions that are too old.
pub(super) fn put(connection: &Connection, session: i64, entry: &Entry) -> Result<(), Error> {
    let statement = "INSERT INTO context (session, key, value, tokens, written_by, written_at, version, expires_at, \
                     readable_by, writable_by) \
                     VALUES (:session, :key, :value, :tokens, :written_by, :written_at, :version, :expires_at, \
                     :readable_by, :writable_by) \
                     ON CONFLICT DO UPDATE SET value = excluded.value, tokens = excluded.tokens, \
                     written_by = excluded.written_by, written_at = excluded.written_at, \
                     version = excluded.version, expires_at = excluded.expires_at, \
                     readable_by = excluded.readable_by, writable_by = excluded.writable_by";
    let parameters = named_params! {
        ":session": session,
        ":key": entry.key,
        ":value": entry.value,
        ":tokens": whole(estimate_tokens(&entry.value)),
        ":written_by": entry.written_by,
        ":written_at": entry.written_at.millis(),
        ":version": entry.version.cast_signed(),
        ":expires_at": entry.expires_at.map(Timestamp::millis),
        ":readable_by": encode(&entry.readable_by)?,
        ":writable_by": encode(&entry.writable_by)?,
    };
    execute(connection, statement, parameters)?;
    let statement = "INSERT OR REPLACE INTO context_history \
                     SELECT session, key, value, written_by, written_at, version, expires_at, readable_by, writable_by \
                     FROM context WHERE session = ?1 AND key = ?2";
    execute(connection, statement, (session, &entry.key))?;
    let statement = "DELETE FROM context_history WHERE session = ?1 AND key = ?2 AND version NOT IN \
                     (SELECT version FROM context_history WHERE session = ?1 AND key = ?2 \
                     ORDER BY version DESC LIMIT ?3)";
    execute(connection, statement, (session, &entry.key, whole(limits::CONTEXT_HISTORY_MAX)))?;
    Ok(())
}

/// Removes a value; its version and its history stay.
pub(super) fn remove(connection: &Connection, session: i64, key: &str) -> Result<(), Error> {
    let statement = "UPDATE context SET value = NULL, tokens = 0 WHERE session = ?1 AND key = ?2";
    execute(connection, statement, (session, key))?;
    Ok(())
}

/// Keeps a snapshot in the place of the one of the same label.
pub(super) fn put_snapshot(connection: &Connection, session: i64, snapshot: &Snapshot) -> Result<(), Error> {
    let statement = "INSERT OR REPLACE INTO snapshots (session, label, taken_by, taken_at, keys, tokens, entries) \
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let Snapshot { line, entries } = snapshot;
    let (keys, tokens) = (whole(line.keys), whole(line.total_size_tokens));
    let at = line.taken_at.millis();
    let parameters = (session, &line.label, &line.taken_by, at, keys, tokens, encode(entries)?);
    execute(connection, statement, parameters)?;
    Ok(())
}

fn slots(connection: &Connection, session: i64, keys: &[String]) -> Result<BTreeMap<String, Slot>, Error> {
    let query = "SELECT key, value, written_by, written_at, version, expires_at, readable_by, writable_by \
                 FROM context WHERE session = ?1 AND key = ?2";
    let mut slots = BTreeMap::new();
    for key in keys {
        slots.extend(first(connection, query, (session, key), slot)?);
    }
    Ok(slots)
}

fn keys(connection: &Connection, session: i64) -> Result<Vec<KeyLine>, Error> {
    let query = "SELECT key, tokens, written_by, written_at, version, expires_at, readable_by, writable_by \
                 FROM context WHERE session = ?1 AND value IS NOT NULL ORDER BY key";
    all(connection, query, [session], key_line)
}

fn snapshots(connection: &Connection, session: i64) -> Result<Vec<SnapshotLine>, Error> {
    let query = "SELECT label, taken_by, taken_at, keys, tokens FROM snapshots WHERE session = ?1 ORDER BY label";
    all(connection, query, [session], |row| {
        Ok(SnapshotLine {
            label: row.get("label")?,
            taken_by: row.get("taken_by")?,
            taken_at: Timestamp::from_millis(row.get("taken_at")?),
            keys: count(row, "keys")?,
            total_size_tokens: count(row, "tokens")?,
        })
    })
}

fn slot(row: &Row<'_>) -> Result<(String, Slot), Unreadable> {
    let last_version = row.get::<_, i64>("version")?.cast_unsigned();
    let value: Option<String> = row.get("value")?;
    let entry = value.map(|value| entry(row, value)).transpose()?;
    Ok((row.get("key")?, Slot { last_version, entry }))
}

fn entry(row: &Row<'_>, value: String) -> Result<Entry, Unreadable> {
    Ok(Entry {
        key: row.get("key")?,
        value,
        written_by: row.get("written_by")?,
        written_at: Timestamp::from_millis(row.get("written_at")?),
        version: row.get::<_, i64>("version")?.cast_unsigned(),
        expires_at: row.get::<_, Option<i64>>("expires_at")?.map(Timestamp::from_millis),
        readable_by: patterns(row, "readable_by")?,
        writable_by: patterns(row, "writable_by")?,
    })
}

fn key_line(row: &Row<'_>) -> Result<KeyLine, Unreadable> {
    Ok(KeyLine {
        key: row.get("key")?,
        written_by: row.get("written_by")?,
        written_at: Timestamp::from_millis(row.get("written_at")?),
        version: row.get::<_, i64>("version")?.cast_unsigned(),
        value_size_tokens: count(row, "tokens")?,
        expires_at: row.get::<_, Option<i64>>("expires_at")?.map(Timestamp::from_millis),
        readable_by: patterns(row, "readable_by")?,
        writable_by: patterns(row, "writable_by")?,
    })
}

fn patterns(row: &Row<'_>, column: &str) -> Result<Vec<String>, Unreadable> {
    Ok(decode(row.get_ref(column)?.as_str().map_err(rusqlite::Error::from)?)?)
}

fn count(row: &Row<'_>, column: &str) -> Result<usize, Unreadable> {
    Ok(usize::try_from(row.get::<_, i64>(column)?).unwrap_or(usize::MAX))
}

fn whole(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
