//! Callers that poll in a tight loop are slowed down, not refused: beyond so many status calls a second for one task,
//! each is held until something changes.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use locum_core::ids::Uid;
use locum_core::limits;
use locum_core::protocol::Refusal;
use tokio::time::Instant;

use super::Desk;
use super::spawn::is_open;
use crate::store::{TaskQuery, TaskRow};

/// Tasks whose calls are counted before old counts are thrown away.
const COUNTED_MAX: usize = 1024;

/// How often each task was asked about within the current second.
#[derive(Debug, Default)]
pub(crate) struct StatusCalls {
    // Nothing awaits under this lock.
    counts: Mutex<HashMap<Uid, (Instant, u32)>>,
}

impl StatusCalls {
    /// Counts a call; whether there were too many within a second.
    fn is_storm(&self, uid: &Uid) -> bool {
        let now = Instant::now();
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = |since: &Instant| now.saturating_duration_since(*since) < Duration::from_secs(1);
        if counts.len() >= COUNTED_MAX {
            counts.retain(|_, (since, _)| fresh(since));
        }
        let (since, count) = counts.entry(uid.clone()).or_insert((now, 0));
        if !fresh(since) {
            (*since, *count) = (now, 0);
        }
        *count += 1;
        *count > limits::STATUS_CALLS_PER_SECOND
    }
}

impl Desk {
    /// Holds a call that is one too many until the task has changed, at most a second.
    pub(super) async fn hold_in_storm(&self, row: TaskRow) -> Result<TaskRow, Refusal> {
        let uid = row.summary.uid.clone();
        if !is_open(&row) || !self.engine.storm.is_storm(&uid) {
            return Ok(row);
        }
        let held = Duration::from_millis(limits::STATUS_HOLD_MS);
        let mut changes = self.engine.hands.store.changes();
        // Either something changed or the time is over: both end the hold.
        tokio::time::timeout(held, changes.changed()).await.ok();
        let again = self.engine.rows(TaskQuery::Uids(vec![uid])).await?.pop();
        Ok(again.unwrap_or(row))
    }
}
