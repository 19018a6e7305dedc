//! Accepted tasks in the database.

use locum_core::ids::Uid;
use locum_core::session::Acceptance;
use rusqlite::Connection;

use super::logs::insert_events;
use super::rows::{EventRow, abandon, encode, execute};
use super::standing::StandingRow;
use crate::store::{Error, OwnerId, TaskRow};

/// A task that was accepted, ready to be written.
pub(super) struct AcceptedTask {
    pub(super) row: TaskRow,
    start: String,
    /// Where it waits for how many places, if it does.
    queue: Option<(String, u32)>,
    standing: StandingRow,
    events: EventRow,
}

impl AcceptedTask {
    pub(super) fn encode(acceptance: &Acceptance, holder: Option<OwnerId>) -> Result<Self, Error> {
        let (task, records) = acceptance.begin()?;
        let events = EventRow::encode(&records[0], &records[1..])?;
        let mut summary = task.summary();
        summary.standing.draw = None;
        let standing = StandingRow::encode(summary.standing.clone())?;
        let queue = match standing.is_running() {
            true => None,
            false => Some((encode(&summary.start.among)?, summary.start.running_max)),
        };
        let start = encode(&summary.start)?;
        let row = TaskRow { session: acceptance.plan.session.clone(), summary, collected: false, owner: holder };
        Ok(Self { row, start, queue, standing, events })
    }

    pub(super) fn is_running(&self) -> bool {
        self.standing.is_running()
    }

    /// Writes the task and its first events, or nothing; the task's key.
    pub(super) fn insert(&self, connection: &Connection, session: i64) -> Result<i64, Error> {
        let task = self.insert_task(connection, session)?;
        insert_events(connection, task, &self.events).inspect_err(|_| take_back(connection, task))?;
        Ok(task)
    }

    fn insert_task(&self, connection: &Connection, session: i64) -> Result<i64, Error> {
        let (summary, standing) = (&self.row.summary, &self.standing);
        let statement = "INSERT INTO tasks (uid, session, number, agent, parent, label, start, created_at, seq, \
                         status, activity, usage, owner, epoch, place, places) \
                         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)";
        let parameters = (
            summary.uid.as_str(),
            session,
            summary.task_id.number(),
            summary.agent.as_str(),
            summary.parent.as_ref().map(Uid::as_str),
            &summary.label,
            &self.start,
            summary.created_at.millis(),
            summary.seq.cast_signed(),
            standing.status.as_str(),
            &standing.activity,
            &standing.usage,
            self.row.owner.map(|owner| owner.0.cast_signed()),
            i64::from(self.row.owner.is_some()),
            self.queue.as_ref().map(|(place, _)| place),
            self.queue.as_ref().map(|(_, places)| places),
        );
        execute(connection, statement, parameters)?;
        Ok(connection.last_insert_rowid())
    }
}

/// Removes a task that was accepted a moment ago, without the price of a savepoint for every acceptance.
fn take_back(connection: &Connection, task: i64) {
    if execute(connection, "DELETE FROM tasks WHERE key = ?1", [task]).is_err() {
        abandon(connection);
    }
}
