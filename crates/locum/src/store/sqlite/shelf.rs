//! A session's tasks in the database, to be settled: as few of them are read as a decision looks at.

use std::collections::HashSet;

use locum_core::ids::{TaskId, Timestamp, Uid};
use locum_core::release::Unsettled;
use locum_core::task::Record;
use locum_core::task::outcome::Outcome;
use locum_core::task::summary::{Standing, TaskSummary};
use rusqlite::Connection;

use super::leases;
use super::logs::{decode_events, events, forget_commands, insert_events, task_key};
use super::rows::{EventRow, all, first, select_tasks, task_row};
use super::standing::{StandingRow, UnfinishedTask};
use crate::store::settling::{self, Shelf, outcome_of};
use crate::store::{Command, Error};

/// Settles a session after tasks were accepted in it.
pub(super) fn settle(connection: &Connection, session: i64, at: Timestamp) -> Result<Vec<Uid>, Error> {
    settling::settle(&mut SessionShelf { connection, session }, at, None)
}

/// One session's tasks.
pub(super) struct SessionShelf<'a> {
    pub(super) connection: &'a Connection,
    pub(super) session: i64,
}

impl SessionShelf<'_> {
    fn task(&self, task_id: TaskId) -> Result<Option<TaskSummary>, Error> {
        let query = select_tasks!("WHERE session = ?1 AND number = ?2");
        first(self.connection, query, (self.session, task_id.number()), |row| Ok(task_row(row)?.summary))
    }

    /// The tasks of each queue, oldest first, no more than there are places for them.
    fn heads_of_queues(&self) -> Result<Vec<TaskSummary>, Error> {
        // Each queue is one step of the index: who is in it is not looked through for the next.
        let next = "SELECT place, places FROM tasks WHERE session = ?1 AND status = 'queued' \
                    AND (place, places) > (?2, ?3) ORDER BY place, places LIMIT 1";
        let heads = select_tasks!(
            "WHERE session = ?1 AND status = 'queued' AND place = ?2 AND places = ?3 ORDER BY number LIMIT ?3"
        );
        let mut tasks = Vec::new();
        let mut queue = (String::new(), 0_i64);
        loop {
            let (place, places) = &queue;
            let found = first(self.connection, next, (self.session, place, places), |row| {
                Ok((row.get::<_, String>("place")?, row.get::<_, i64>("places")?))
            })?;
            let Some(found) = found else { return Ok(tasks) };
            queue = found;
            let (place, places) = &queue;
            tasks.extend(all(self.connection, heads, (self.session, place, places), |row| Ok(task_row(row)?.summary))?);
        }
    }

    /// These tasks and those that they wait for, by id.
    fn with_what_they_wait_for(&self, mut tasks: Vec<TaskSummary>) -> Result<Vec<TaskSummary>, Error> {
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
}

impl Shelf for SessionShelf<'_> {
    fn is_anything_parked(&self) -> Result<bool, Error> {
        let query = "SELECT unfinished > running FROM sessions WHERE id = ?1";
        Ok(first(self.connection, query, [self.session], |row| Ok(row.get(0)?))?.unwrap_or(false))
    }

    fn unsettled(&self) -> Result<Unsettled, Error> {
        let query = select_tasks!("WHERE session = ?1 AND completed_at IS NULL AND status IN ('running', 'waiting')");
        let mut tasks = all(self.connection, query, [self.session], |row| Ok(task_row(row)?.summary))?;
        tasks.extend(self.heads_of_queues()?);
        let query = "SELECT DISTINCT parent FROM tasks \
                     WHERE session = ?1 AND completed_at IS NULL AND parent IS NOT NULL";
        let delegating: Vec<Uid> =
            all(self.connection, query, [self.session], |row| Ok(Uid::try_from(row.get::<_, String>("parent")?)?))?;
        let delegating: HashSet<Uid> = delegating.into_iter().collect();
        Ok(Unsettled { tasks: self.with_what_they_wait_for(tasks)?, delegating })
    }

    fn unfinished(&self) -> Result<Vec<TaskSummary>, Error> {
        let query = select_tasks!("WHERE session = ?1 AND completed_at IS NULL");
        let tasks = all(self.connection, query, [self.session], |row| Ok(task_row(row)?.summary))?;
        self.with_what_they_wait_for(tasks)
    }

    fn log(&self, uid: &Uid) -> Result<Vec<Record>, Error> {
        decode_events(&events(self.connection, uid, 0, usize::MAX)?, 0, usize::MAX)
    }

    fn outcome(&self, uid: &Uid) -> Result<Outcome, Error> {
        let task = task_key(self.connection, uid)?;
        let query = "SELECT seq, at, event FROM events WHERE task = ?1 ORDER BY seq DESC LIMIT 1";
        let last = first(self.connection, query, [task], EventRow::read)?;
        outcome_of(last.as_ref().map(EventRow::decode).transpose()?.and_then(|mut records| records.pop()))
    }

    fn write(&mut self, uid: &Uid, record: Record, standing: Standing) -> Result<(), Error> {
        let standing = StandingRow::encode(standing)?;
        let query = "SELECT key, status = 'running' FROM tasks WHERE uid = ?1 AND completed_at IS NULL";
        let task = first(self.connection, query, [uid.as_str()], |row| {
            Ok(UnfinishedTask { key: row.get(0)?, session: self.session, is_running: row.get(1)? })
        })?;
        let task = task.ok_or(Error::NotFound)?;
        task.set(self.connection, record.seq, &standing)?;
        insert_events(self.connection, task.key, &EventRow::encode(&record, &[])?)?;
        if standing.completed_at.is_some() {
            forget_commands(self.connection, task.key)?;
        }
        Ok(())
    }

    fn send(&mut self, uid: &Uid, command: Command) -> Result<(), Error> {
        leases::send(self.connection, uid, command).map(drop)
    }
}
