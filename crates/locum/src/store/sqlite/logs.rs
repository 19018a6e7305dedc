//! Logs in the database: compare-and-append, reading, and settling what an append has ended.

use locum_core::ids::{Seq, TaskId, Timestamp, Uid};
use locum_core::task::Record;
use locum_core::task::outcome::{Outcome, Status};
use locum_core::task::summary::{Standing, TaskSummary};
use rusqlite::{Connection, named_params};

use super::failure::Unreadable;
use super::rows::{EventRow, StandingRow, all, execute, first, select_tasks, task_row};
use crate::store::settling::{self, Shelf, outcome_of};
use crate::store::{Appended, Error, Lease};

/// Records and a standing, ready to be written.
#[derive(Debug)]
pub(super) struct Append {
    lease: Lease,
    events: Vec<EventRow>,
    standing: StandingRow,
}

/// A task in the database, and its session.
struct Place {
    task: i64,
    session: i64,
}

impl Append {
    /// Encodes what is to be appended; none if it is nothing.
    pub(super) fn encode(lease: &Lease, records: &[Record], standing: Standing) -> Result<Option<Self>, Error> {
        settling::check_records(records, &standing)?;
        if records.is_empty() {
            return Ok(None);
        }
        let events = records.iter().map(EventRow::encode).collect::<Result<_, _>>()?;
        Ok(Some(Self { lease: lease.clone(), events, standing: StandingRow::encode(standing)? }))
    }

    /// Whether the task ends with it.
    pub(super) fn ends(&self) -> bool {
        self.standing.status.is_final()
    }

    /// Appends, if the lease is good and the log is where the caller believes it to be.
    pub(super) fn write(&self, connection: &Connection) -> Result<Appended, Error> {
        let (Some(head), Some(last)) = (self.events.first(), self.events.last()) else {
            return Ok(Appended::default());
        };
        let before = head.seq.saturating_sub(1);
        let place = match self.advance(connection, before, last.seq)? {
            Some(place) => place,
            None => self.change(connection, before, last.seq)?.ok_or_else(|| self.refusal(connection))?,
        };
        for event in &self.events {
            insert_event(connection, place.task, event)?;
        }
        if !self.ends() {
            return Ok(Appended::default());
        }
        forget_commands(connection, place.task)?;
        let moved = settling::settle(&mut SessionShelf { connection, session: place.session }, last.at)?;
        Ok(Appended { moved })
    }

    /// The common case: a running task goes on. It leaves every column alone that an index names.
    fn advance(&self, connection: &Connection, before: Seq, after: Seq) -> Result<Option<Place>, Error> {
        if self.standing.status != Status::Running {
            return Ok(None);
        }
        let statement = "UPDATE tasks SET seq = :after, activity = :activity, usage = :usage \
                         WHERE uid = :uid AND owner = :owner AND epoch = :epoch AND seq = :before \
                         AND status = 'running' RETURNING key, session";
        let parameters = named_params! {
            ":after": after.cast_signed(),
            ":activity": self.standing.activity,
            ":usage": self.standing.usage,
            ":uid": self.lease.uid.as_str(),
            ":owner": self.lease.owner.0.cast_signed(),
            ":epoch": self.lease.epoch.cast_signed(),
            ":before": before.cast_signed(),
        };
        first(connection, statement, parameters, read_place)
    }

    /// The task's status changes.
    fn change(&self, connection: &Connection, before: Seq, after: Seq) -> Result<Option<Place>, Error> {
        let statement = "UPDATE tasks SET seq = :after, status = :status, activity = :activity, usage = :usage, \
                         error = :error, reason = :reason, completed_at = :completed_at, \
                         owner = CASE WHEN :completed_at IS NULL THEN owner END \
                         WHERE uid = :uid AND owner = :owner AND epoch = :epoch AND seq = :before \
                         AND completed_at IS NULL RETURNING key, session";
        let parameters = named_params! {
            ":after": after.cast_signed(),
            ":status": self.standing.status.as_str(),
            ":activity": self.standing.activity,
            ":usage": self.standing.usage,
            ":error": self.standing.error,
            ":reason": self.standing.reason,
            ":completed_at": self.standing.completed_at,
            ":uid": self.lease.uid.as_str(),
            ":owner": self.lease.owner.0.cast_signed(),
            ":epoch": self.lease.epoch.cast_signed(),
            ":before": before.cast_signed(),
        };
        first(connection, statement, parameters, read_place)
    }

    fn refusal(&self, connection: &Connection) -> Error {
        match task_key(connection, &self.lease.uid) {
            Ok(_) => Error::Conflict,
            Err(error) => error,
        }
    }
}

fn read_place(row: &rusqlite::Row<'_>) -> Result<Place, Unreadable> {
    Ok(Place { task: row.get("key")?, session: row.get("session")? })
}

/// The records after `after`, still encoded: whoever asked decodes them.
pub(super) fn events(connection: &Connection, uid: &Uid, after: Seq, most: usize) -> Result<Vec<EventRow>, Error> {
    let task = task_key(connection, uid)?;
    let query = "SELECT seq, at, event FROM events WHERE task = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3";
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    all(connection, query, (task, i64::try_from(after).unwrap_or(i64::MAX), most), EventRow::read)
}

pub(super) fn task_key(connection: &Connection, uid: &Uid) -> Result<i64, Error> {
    let key = first(connection, "SELECT key FROM tasks WHERE uid = ?1", [uid.as_str()], |row| Ok(row.get("key")?))?;
    key.ok_or(Error::NotFound)
}

pub(super) fn insert_event(connection: &Connection, task: i64, event: &EventRow) -> Result<(), Error> {
    let statement = "INSERT INTO events (task, seq, at, event) VALUES (?1, ?2, ?3, ?4)";
    execute(connection, statement, (task, event.seq.cast_signed(), event.at.millis(), &event.event))?;
    Ok(())
}

fn forget_commands(connection: &Connection, task: i64) -> Result<(), Error> {
    execute(connection, "DELETE FROM inbox WHERE task = ?1", [task])?;
    Ok(())
}

/// Settles a session after tasks were accepted in it.
pub(super) fn settle(connection: &Connection, session: i64, at: Timestamp) -> Result<Vec<Uid>, Error> {
    settling::settle(&mut SessionShelf { connection, session }, at)
}

/// One session's tasks, to be settled.
struct SessionShelf<'a> {
    connection: &'a Connection,
    session: i64,
}

impl SessionShelf<'_> {
    fn is_anything_parked(&self) -> Result<bool, Error> {
        let query = "SELECT 1 FROM tasks WHERE session = ?1 AND completed_at IS NULL \
                     AND status IN ('queued', 'waiting') LIMIT 1";
        Ok(first(self.connection, query, [self.session], |_| Ok(()))?.is_some())
    }

    fn task(&self, task_id: TaskId) -> Result<Option<TaskSummary>, Error> {
        let query = select_tasks!("WHERE session = ?1 AND number = ?2");
        first(self.connection, query, (self.session, task_id.number()), |row| Ok(task_row(row)?.summary))
    }
}

impl Shelf for SessionShelf<'_> {
    fn unsettled(&self) -> Result<Vec<TaskSummary>, Error> {
        if !self.is_anything_parked()? {
            return Ok(Vec::new());
        }
        let query = select_tasks!("WHERE session = ?1 AND completed_at IS NULL");
        let mut tasks = all(self.connection, query, [self.session], |row| Ok(task_row(row)?.summary))?;
        let mut waited_for: Vec<TaskId> = tasks.iter().flat_map(|task| task.start.depends_on.clone()).collect();
        waited_for.sort_unstable();
        waited_for.dedup();
        tasks.sort_unstable_by_key(|task| task.task_id);
        waited_for.retain(|task_id| tasks.binary_search_by_key(task_id, |task| task.task_id).is_err());
        for task_id in waited_for {
            tasks.extend(self.task(task_id)?);
        }
        tasks.sort_unstable_by_key(|task| task.task_id);
        Ok(tasks)
    }

    fn log(&self, uid: &Uid) -> Result<Vec<Record>, Error> {
        events(self.connection, uid, 0, usize::MAX)?.iter().map(EventRow::decode).collect()
    }

    fn outcome(&self, uid: &Uid) -> Result<Outcome, Error> {
        let task = task_key(self.connection, uid)?;
        let query = "SELECT seq, at, event FROM events WHERE task = ?1 ORDER BY seq DESC LIMIT 1";
        let last = first(self.connection, query, [task], EventRow::read)?;
        outcome_of(last.as_ref().map(EventRow::decode).transpose()?)
    }

    fn write(&mut self, uid: &Uid, record: Record, standing: Standing) -> Result<(), Error> {
        let standing = StandingRow::encode(standing)?;
        let statement = "UPDATE tasks SET seq = :seq, status = :status, activity = :activity, usage = :usage, \
                         error = :error, reason = :reason, completed_at = :completed_at, \
                         owner = CASE WHEN :completed_at IS NULL THEN owner END \
                         WHERE uid = :uid AND completed_at IS NULL RETURNING key, session";
        let parameters = named_params! {
            ":seq": record.seq.cast_signed(),
            ":status": standing.status.as_str(),
            ":activity": standing.activity,
            ":usage": standing.usage,
            ":error": standing.error,
            ":reason": standing.reason,
            ":completed_at": standing.completed_at,
            ":uid": uid.as_str(),
        };
        let place = first(self.connection, statement, parameters, read_place)?.ok_or(Error::NotFound)?;
        insert_event(self.connection, place.task, &EventRow::encode(&record)?)?;
        if standing.completed_at.is_some() {
            forget_commands(self.connection, place.task)?;
        }
        Ok(())
    }
}
