//! Waiting for tasks to end, in this process or in others.

use std::time::Duration;

use futures_util::future::{select_all, try_join_all};
use locum_core::ids::Uid;
use locum_core::limits;
use locum_core::protocol::request::{Wait, WaitMode};
use locum_core::protocol::response::Waited;
use locum_core::protocol::{Refusal, Response};

use super::Desk;
use super::spawn::is_open;
use crate::engine::Finished;
use crate::store::{TaskQuery, TaskRow};

/// A task that has ended, as far as that is known without reading its log.
pub(super) struct Ended {
    pub(super) row: TaskRow,
    /// Where it has ended in this process.
    pub(super) known: Option<Finished>,
}

impl Desk {
    pub(super) async fn wait(&self, request: Wait) -> Result<Response, Refusal> {
        let rows = match request.task_ids {
            None => {
                let rows = self.engine.rows(TaskQuery::Uncollected(self.session.clone())).await?;
                rows.into_iter().filter(is_open).collect()
            }
            Some(ids) => {
                if ids.len() > limits::TASKS_PER_REQUEST_MAX {
                    return Err(Refusal::invalid(format!("more than {} task_ids", limits::TASKS_PER_REQUEST_MAX)));
                }
                try_join_all(ids.iter().map(|id| self.uncollected(id))).await?
            }
        };
        let uids: Vec<Uid> = rows.iter().map(|row| row.summary.uid.clone()).collect();
        let most = request.timeout_ms.unwrap_or(limits::WAIT_MS_DEFAULT).min(limits::WAIT_MS_MAX);
        let ended = self.until_ended(&rows, request.mode.unwrap_or_default());
        let timed_out = tokio::time::timeout(Duration::from_millis(most), ended).await;
        let timed_out = match timed_out {
            Ok(waited) => waited.map(|()| false)?,
            Err(_) => true,
        };
        let rows = self.engine.rows(TaskQuery::Uids(uids)).await?;
        Ok(Response::Waited(Waited { tasks: self.present_all(&rows).await?, timed_out }))
    }

    /// Waits until any or all of these tasks have ended.
    pub(super) async fn until_ended(&self, rows: &[TaskRow], mode: WaitMode) -> Result<(), Refusal> {
        let waits: Vec<_> = rows.iter().filter(|row| is_open(row)).map(|row| self.until_one_ended(row)).collect();
        if waits.is_empty() || (mode == WaitMode::Any && waits.len() < rows.len()) {
            return Ok(());
        }
        match mode {
            WaitMode::All => try_join_all(waits).await.map(drop),
            WaitMode::Any => select_all(waits.into_iter().map(Box::pin)).await.0.map(drop),
        }
    }

    /// A task of this process announces its end; one of another is looked at whenever the store changes.
    pub(super) async fn until_one_ended(&self, row: &TaskRow) -> Result<Ended, Refusal> {
        let uid = &row.summary.uid;
        self.follow([uid]);
        let mut changes = self.engine.hands.store.changes();
        loop {
            if let Some(ending) = self.engine.worker.ending(uid)
                && let Some(task) = ending.reached().await
            {
                let summary = task.summary();
                let row = TaskRow { summary, owner: None, ..row.clone() };
                return Ok(Ended { row, known: Finished::of(task) });
            }
            changes.borrow_and_update();
            let row = self.engine.rows(TaskQuery::Uids(vec![uid.clone()])).await?.pop();
            let row = row.ok_or_else(|| Refusal::internal("the task is missing"))?;
            if !is_open(&row) {
                return Ok(Ended { row, known: None });
            }
            changes.changed().await.map_err(|_| Refusal::internal("the store was closed"))?;
        }
    }

    /// The same tasks once all of them have ended, one for one and in the same order.
    pub(super) async fn ended(&self, rows: Vec<TaskRow>) -> Result<Vec<Ended>, Refusal> {
        let ended = rows.into_iter().map(|row| async move {
            if is_open(&row) { self.until_one_ended(&row).await } else { Ok(Ended { row, known: None }) }
        });
        try_join_all(ended).await
    }
}
