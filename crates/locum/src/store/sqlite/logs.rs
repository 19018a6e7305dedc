//! Logs in the database: compare-and-append, and reading.

use locum_core::budget::{self, Draw, Scarce};
use locum_core::ids::{Seq, Timestamp, Uid};
use locum_core::task::Record;
use locum_core::task::summary::Standing;
use rusqlite::Connection;

use super::rows::{EventRow, abandon, all, execute, first, undone_on_failure};
use super::shelf::SessionShelf;
use super::spending;
use super::standing::{StandingRow, UnfinishedTask};
use crate::store::settling::{self, Shelf as _};
use crate::store::{Appended, Error, Lease};

/// Records and a standing, ready to be written.
#[derive(Debug)]
pub(super) struct Append {
    lease: Lease,
    /// The numbers of the first and the last record.
    numbers: (Seq, Seq),
    /// When the last of them was made.
    at: Timestamp,
    events: EventRow,
    standing: StandingRow,
    /// What it draws from purses, and whether that must be covered.
    draw: Option<(Draw, bool)>,
    /// The race that is won with it.
    won: Option<Uid>,
}

impl Append {
    /// Encodes what is to be appended; none if it is nothing.
    pub(super) fn encode(lease: &Lease, records: &[Record], standing: Standing) -> Result<Option<Self>, Error> {
        settling::check_records(records, &standing)?;
        let (Some(first), Some(last)) = (records.first(), records.last()) else { return Ok(None) };
        let events = EventRow::encode(first, &records[1..])?;
        let draw = standing.draw.clone().map(|draw| (draw, budget::asks(records)));
        let won = standing.won.clone();
        let standing = StandingRow::encode(standing)?;
        let numbers = (first.seq, last.seq);
        Ok(Some(Self { lease: lease.clone(), numbers, at: last.at, events, standing, draw, won }))
    }

    /// Whether the task ends with it.
    pub(super) fn ends(&self) -> bool {
        self.standing.status.is_final()
    }

    /// Appends, if the lease is good and the log is where the caller believes it to be. A refusal, or a failure after
    /// something was written, leaves nothing behind.
    pub(super) fn write(&self, connection: &Connection) -> Result<Appended, Error> {
        let task = self.task(connection)?;
        if self.draw.is_some() {
            return undone_on_failure(connection, || {
                let nearing = self.spend(connection, &task)?;
                let appended = self.write_at(connection, &task)?;
                Ok(Appended { nearing, ..appended })
            });
        }
        self.write_at(connection, &task)
    }

    /// Draws on the task's purses, or refuses.
    fn spend(&self, connection: &Connection, task: &UnfinishedTask) -> Result<Option<Scarce>, Error> {
        let Some((draw, asks)) = &self.draw else { return Ok(None) };
        spending::spend(connection, (task.session, task.key), draw, *asks)
    }

    fn write_at(&self, connection: &Connection, task: &UnfinishedTask) -> Result<Appended, Error> {
        if !self.ends() {
            self.advance(connection, task)?;
            return Ok(Appended::default());
        }
        let mut shelf = SessionShelf { connection, session: task.session };
        if self.won.is_none() && !shelf.is_anything_parked()? {
            self.end(connection, task)?;
            return Ok(Appended::default());
        }
        // What it releases is written after it.
        undone_on_failure(connection, || {
            self.end(connection, task)?;
            let moved = settling::settle(&mut shelf, self.at, self.won.as_ref())?;
            Ok(Appended { moved, nearing: None })
        })
    }

    /// The task, if the lease is good and the log ends where these records begin.
    fn task(&self, connection: &Connection) -> Result<UnfinishedTask, Error> {
        let query = "SELECT key, session, status = 'running', seq, owner, epoch FROM tasks WHERE uid = ?1";
        let found = first(connection, query, [self.lease.uid.as_str()], |row| {
            let task = UnfinishedTask { key: row.get(0)?, session: row.get(1)?, is_running: row.get(2)? };
            let seq = row.get::<_, i64>(3)?.cast_unsigned();
            Ok((task, seq, row.get::<_, Option<i64>>(4)?, row.get::<_, i64>(5)?))
        })?;
        let (task, seq, owner, epoch) = found.ok_or(Error::NotFound)?;
        // Nobody holds a task that has ended.
        let is_held = owner == Some(self.lease.owner.0.cast_signed());
        if !is_held || epoch != self.lease.epoch.cast_signed() || seq.checked_add(1) != Some(self.numbers.0) {
            return Err(Error::Conflict);
        }
        Ok(task)
    }

    /// Writes the events, then how the task stands. The events come first because only they can be too large or in the
    /// way of others: what fails before anything was written need not be undone.
    fn advance(&self, connection: &Connection, task: &UnfinishedTask) -> Result<(), Error> {
        insert_events(connection, task.key, &self.events)?;
        let advanced = task.set(connection, self.numbers.1, &self.standing);
        advanced.inspect_err(|_| self.take_events_back(connection, task))
    }

    fn end(&self, connection: &Connection, task: &UnfinishedTask) -> Result<(), Error> {
        self.advance(connection, task)?;
        // Nothing about this task can make it fail: it is the database that does.
        forget_commands(connection, task.key).inspect_err(|_| abandon(connection))
    }

    /// Undoes what was written before a failure, without the price of a savepoint for every append.
    fn take_events_back(&self, connection: &Connection, task: &UnfinishedTask) {
        let statement = "DELETE FROM events WHERE task = ?1 AND seq = ?2";
        if execute(connection, statement, (task.key, self.events.seq.cast_signed())).is_err() {
            abandon(connection);
        }
    }
}

/// The rows that hold the records after `after`, still encoded: whoever asked decodes them. The first of them may hold
/// earlier records too, and the last more than was asked for.
pub(super) fn events(connection: &Connection, uid: &Uid, after: Seq, most: usize) -> Result<Vec<EventRow>, Error> {
    let task = task_key(connection, uid)?;
    let query = "SELECT seq, at, event FROM events WHERE task = ?1 AND seq >= \
                 coalesce((SELECT max(seq) FROM events WHERE task = ?1 AND seq <= ?2), 0) ORDER BY seq LIMIT ?3";
    let first = i64::try_from(after).unwrap_or(i64::MAX).saturating_add(1);
    let most = i64::try_from(most).unwrap_or(i64::MAX).saturating_add(1);
    all(connection, query, (task, first, most), EventRow::read)
}

/// The records of these rows, as far as they are after `after`, and no more than were asked for.
pub(super) fn decode_events(rows: &[EventRow], after: Seq, most: usize) -> Result<Vec<Record>, Error> {
    let mut records = Vec::with_capacity(rows.len().min(most));
    for row in rows {
        if records.len() >= most {
            break;
        }
        records.extend(row.decode()?.into_iter().filter(|record| record.seq > after));
    }
    records.truncate(most);
    Ok(records)
}

pub(super) fn task_key(connection: &Connection, uid: &Uid) -> Result<i64, Error> {
    let key = first(connection, "SELECT key FROM tasks WHERE uid = ?1", [uid.as_str()], |row| Ok(row.get("key")?))?;
    key.ok_or(Error::NotFound)
}

pub(super) fn insert_events(connection: &Connection, task: i64, events: &EventRow) -> Result<(), Error> {
    let statement = "INSERT INTO events (task, seq, at, event) VALUES (?1, ?2, ?3, ?4)";
    execute(connection, statement, (task, events.seq.cast_signed(), events.at.millis(), &events.json))?;
    Ok(())
}

pub(super) fn forget_commands(connection: &Connection, task: i64) -> Result<(), Error> {
    execute(connection, "DELETE FROM inbox WHERE task = ?1", [task])?;
    Ok(())
}
