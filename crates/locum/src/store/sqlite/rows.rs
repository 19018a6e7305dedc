//! Rows of the database and the types that they stand for. JSON is made by whoever asks, before its turn on the
//! writer thread, wherever that is possible.

use locum_core::ids::{AgentName, InvalidName, Seq, SessionId, SessionKey, TaskId, Timestamp, Uid};
use locum_core::session::KnownTask;
use locum_core::task::outcome::{Reason, Status};
use locum_core::task::summary::{Standing, TaskSummary};
use locum_core::task::{Record, TaskEvent};
use rusqlite::{Connection, Row};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::failure::{Failure, Unreadable};
use crate::store::{Error, OwnerId, TaskRow};

/// A query for [`task_row`]; `$rest` begins after the tables' names.
macro_rules! select_tasks {
    ($rest:literal) => {
        concat!(
            "SELECT project, name, uid, number, agent, parent, label, start, seq, status, activity, usage, error, \
             reason, completed_at, created_at, collected_at, owner \
             FROM tasks JOIN sessions ON sessions.id = tasks.session ",
            $rest
        )
    };
}
pub(super) use select_tasks;

/// Reads a row of [`select_tasks`].
pub(super) fn task_row(row: &Row<'_>) -> Result<TaskRow, Unreadable> {
    let reason: Option<String> = row.get("reason")?;
    let standing = Standing {
        status: status(row)?,
        activity: row.get("activity")?,
        usage: decode(row.get_ref("usage")?.as_str().map_err(rusqlite::Error::from)?)?,
        error: row.get("error")?,
        reason: reason.map(|word| Reason::parse(&word).ok_or_else(|| corrupt("reason", &word))).transpose()?,
        completed_at: row.get::<_, Option<i64>>("completed_at")?.map(Timestamp::from_millis),
        draw: None,
        won: None,
    };
    let summary = TaskSummary {
        uid: name(row, "uid")?,
        task_id: TaskId::new(row.get("number")?),
        agent: name(row, "agent")?,
        parent: row.get::<_, Option<String>>("parent")?.map(Uid::try_from).transpose()?,
        label: row.get("label")?,
        start: decode(row.get_ref("start")?.as_str().map_err(rusqlite::Error::from)?)?,
        seq: row.get::<_, i64>("seq")?.cast_unsigned(),
        standing,
        created_at: Timestamp::from_millis(row.get("created_at")?),
    };
    Ok(TaskRow {
        session: SessionKey { project: row.get("project")?, id: name::<SessionId>(row, "name")? },
        summary,
        collected: row.get::<_, Option<i64>>("collected_at")?.is_some(),
        owner: row.get::<_, Option<i64>>("owner")?.map(|id| OwnerId(id.cast_unsigned())),
    })
}

/// Reads `uid`, `agent`, `status` and `collected_at`.
pub(super) fn known_task(row: &Row<'_>) -> Result<KnownTask, Unreadable> {
    Ok(KnownTask {
        uid: name(row, "uid")?,
        agent: name::<AgentName>(row, "agent")?,
        status: status(row)?,
        collected: row.get::<_, Option<i64>>("collected_at")?.is_some(),
    })
}

/// Reads `status`.
pub(super) fn status(row: &Row<'_>) -> Result<Status, Unreadable> {
    let word = row.get_ref("status")?.as_str().map_err(rusqlite::Error::from)?;
    Ok(Status::parse(word).ok_or_else(|| corrupt("status", word))?)
}

pub(super) fn name<N: TryFrom<String, Error = InvalidName>>(row: &Row<'_>, column: &str) -> Result<N, Unreadable> {
    Ok(N::try_from(row.get(column)?)?)
}

/// Everything that a query finds.
pub(super) fn all<T>(
    connection: &Connection,
    query: &str,
    parameters: impl rusqlite::Params,
    read: impl Fn(&Row<'_>) -> Result<T, Unreadable>,
) -> Result<Vec<T>, Error> {
    let mut statement = connection.prepare_cached(query).map_err(Failure::new)?;
    let mut rows = statement.query(parameters).map_err(Failure::new)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next().map_err(Failure::new)? {
        found.push(read(row)?);
    }
    Ok(found)
}

/// The first row that a query finds.
pub(super) fn first<T>(
    connection: &Connection,
    query: &str,
    parameters: impl rusqlite::Params,
    read: impl Fn(&Row<'_>) -> Result<T, Unreadable>,
) -> Result<Option<T>, Error> {
    let mut statement = connection.prepare_cached(query).map_err(Failure::new)?;
    let mut rows = statement.query(parameters).map_err(Failure::new)?;
    let row = rows.next().map_err(Failure::new)?;
    Ok(row.map(read).transpose()?)
}

/// What a query counts.
pub(super) fn count(connection: &Connection, query: &str, parameters: impl rusqlite::Params) -> Result<usize, Error> {
    let count = first(connection, query, parameters, |row| Ok(row.get::<_, i64>(0)?))?.unwrap_or(0);
    Ok(usize::try_from(count).unwrap_or(0))
}

/// Does several writes that belong together: a failure, or a panic, undoes them and nothing else of the transaction.
pub(super) fn undone_on_failure<T>(
    connection: &Connection,
    work: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    struct Undo<'a>(&'a Connection);
    impl Drop for Undo<'_> {
        fn drop(&mut self) {
            // Fails if SQLite has undone the whole transaction, and then there is nothing left to undo.
            self.0.execute_batch("ROLLBACK TO work; RELEASE work").ok();
        }
    }
    execute(connection, "SAVEPOINT work", [])?;
    let undo = Undo(connection);
    let done = work()?;
    std::mem::forget(undo);
    execute(connection, "RELEASE work", [])?;
    Ok(done)
}

/// Ends the transaction with everything in it: half of what belongs together must not be committed.
pub(super) fn abandon(connection: &Connection) {
    // Fails if SQLite has done it already.
    connection.execute_batch("ROLLBACK").ok();
}

/// Runs a statement and says how many rows it changed.
pub(super) fn execute(
    connection: &Connection,
    statement: &str,
    parameters: impl rusqlite::Params,
) -> Result<usize, Error> {
    let changed = connection.prepare_cached(statement).and_then(|mut statement| statement.execute(parameters));
    Ok(changed.map_err(Failure::new)?)
}

/// Records that were appended together, as they are kept: the number and the time of the first, and what happened. That
/// is one event, or a list of times and events.
#[derive(Debug)]
pub(super) struct EventRow {
    pub(super) seq: Seq,
    pub(super) at: Timestamp,
    pub(super) json: String,
}

impl EventRow {
    pub(super) fn encode(first: &Record, rest: &[Record]) -> Result<Self, Error> {
        let json = if rest.is_empty() {
            encode(&first.event)?
        } else {
            let records = std::iter::once(first).chain(rest);
            encode(&records.map(|record| (record.at.millis(), &record.event)).collect::<Vec<_>>())?
        };
        Ok(Self { seq: first.seq, at: first.at, json })
    }

    /// Reads `seq`, `at` and `event`.
    pub(super) fn read(row: &Row<'_>) -> Result<Self, Unreadable> {
        let seq = row.get::<_, i64>("seq")?.cast_unsigned();
        Ok(Self { seq, at: Timestamp::from_millis(row.get("at")?), json: row.get("event")? })
    }

    pub(super) fn decode(&self) -> Result<Vec<Record>, Error> {
        if !self.json.starts_with('[') {
            return Ok(vec![Record { seq: self.seq, at: self.at, event: decode(&self.json)? }]);
        }
        let timed: Vec<(i64, TaskEvent)> = decode(&self.json)?;
        let record = |(seq, (at, event))| Record { seq, at: Timestamp::from_millis(at), event };
        Ok((self.seq..).zip(timed).map(record).collect())
    }
}

pub(super) fn encode(value: &impl Serialize) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|error| Error::Failed(Box::new(error)))
}

pub(super) fn decode<T: DeserializeOwned>(json: &str) -> Result<T, Error> {
    serde_json::from_str(json).map_err(|error| Error::Corrupt(error.to_string()))
}

fn corrupt(what: &str, word: &str) -> Error {
    Error::Corrupt(format!("`{word}` is no {what}"))
}

impl From<InvalidName> for Unreadable {
    fn from(error: InvalidName) -> Self {
        Error::Corrupt(error.to_string()).into()
    }
}
