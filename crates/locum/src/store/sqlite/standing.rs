//! How tasks stand in the database, and how many of a session do what.

use locum_core::ids::{Seq, Timestamp};
use locum_core::task::outcome::{Reason, Status};
use locum_core::task::summary::Standing;
use rusqlite::Connection;

use super::rows::{abandon, encode, execute};
use crate::store::Error;

/// A standing as it is kept.
#[derive(Debug)]
pub(super) struct StandingRow {
    pub(super) status: Status,
    pub(super) activity: Option<String>,
    pub(super) usage: String,
    pub(super) error: Option<String>,
    pub(super) reason: Option<&'static str>,
    pub(super) completed_at: Option<i64>,
}

impl StandingRow {
    pub(super) fn encode(standing: Standing) -> Result<Self, Error> {
        Ok(Self {
            status: standing.status,
            usage: encode(&standing.usage)?,
            activity: standing.activity,
            error: standing.error,
            reason: standing.reason.map(Reason::as_str),
            completed_at: standing.completed_at.map(Timestamp::millis),
        })
    }

    pub(super) fn is_running(&self) -> bool {
        self.status == Status::Running
    }
}

/// An unfinished task in the database, and whether it runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct UnfinishedTask {
    pub(super) key: i64,
    pub(super) session: i64,
    pub(super) is_running: bool,
}

impl UnfinishedTask {
    /// Notes how the task stands after the event with this number. What fails leaves nothing behind.
    pub(super) fn set(&self, connection: &Connection, seq: Seq, standing: &StandingRow) -> Result<(), Error> {
        if self.is_running && standing.is_running() {
            // The common case: it leaves every column alone that an index names.
            let statement = "UPDATE tasks SET seq = ?2, activity = ?3, usage = ?4 WHERE key = ?1";
            let parameters = (self.key, seq.cast_signed(), &standing.activity, &standing.usage);
            return execute(connection, statement, parameters).map(drop);
        }
        self.change(connection, seq, standing)?;
        let unfinished = if standing.completed_at.is_some() { -1 } else { 0 };
        let running = i64::from(standing.is_running()) - i64::from(self.is_running);
        // Nothing about this task can make it fail: it is the database that does.
        count(connection, self.session, unfinished, running).inspect_err(|_| abandon(connection))
    }

    /// Nobody holds a task that has ended.
    fn change(&self, connection: &Connection, seq: Seq, standing: &StandingRow) -> Result<(), Error> {
        let statement = "UPDATE tasks SET seq = ?2, status = ?3, activity = ?4, usage = ?5, error = ?6, reason = ?7, \
                         completed_at = ?8, owner = CASE WHEN ?8 IS NULL THEN owner END WHERE key = ?1";
        let StandingRow { status, activity, usage, error, reason, completed_at } = standing;
        let parameters = (self.key, seq.cast_signed(), status.as_str(), activity, usage, error, reason, completed_at);
        execute(connection, statement, parameters).map(drop)
    }
}

/// Counts a task of a session that went on, or ended.
fn count(connection: &Connection, session: i64, unfinished: i64, running: i64) -> Result<(), Error> {
    if (unfinished, running) == (0, 0) {
        return Ok(());
    }
    let statement = "UPDATE sessions SET unfinished = unfinished + ?2, running = running + ?3 WHERE id = ?1";
    execute(connection, statement, (session, unfinished, running)).map(drop)
}
