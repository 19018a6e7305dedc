//! `race`: several start, the first that completes wins. That the others are cancelled is decided by the store when it
//! completes, so it happens whether or not anybody waits for the answer.

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use locum_core::ids::{TaskId, Uid};
use locum_core::limits;
use locum_core::protocol::request::Many;
use locum_core::protocol::response::{Collected, Race, TaskIds};
use locum_core::protocol::{FaceDefaults, Refusal, Response};
use locum_core::task::Status;
use locum_core::task::errand::Form;

use super::Desk;
use super::modes::check_not_empty;
use super::spawn::{Together, is_open};
use super::wait::Ended;
use crate::store::TaskRow;

impl Desk {
    pub(super) async fn race(&self, many: Many, face: &FaceDefaults) -> Result<Response, Refusal> {
        check_not_empty(&many)?;
        // Who waits for a place is in no race: a person's has one for everybody.
        let concurrency = face.concurrency.or(u32::try_from(many.tasks.len()).ok());
        let face = &FaceDefaults { concurrency, ..face.clone() };
        let mut orders = self.orders(many.tasks, face, |_| None);
        let first = orders.first().map(|order| order.uid.clone());
        orders.iter_mut().for_each(|order| order.race.clone_from(&first));
        let started = self.start_errand(orders, face, Together::AllOrNone, Some(Form::Race)).await?;
        let rows: Vec<TaskRow> = started.into_iter().flatten().map(|started| started.row).collect();
        if many.background == Some(true) {
            let task_ids = rows.iter().map(|row| row.summary.task_id).collect();
            return Ok(Response::Background(TaskIds { task_ids, refused: Vec::new() }));
        }
        let runners: Vec<(TaskId, Uid)> =
            rows.iter().map(|row| (row.summary.task_id, row.summary.uid.clone())).collect();
        let ended = self.until_decided(rows).await?;
        self.raced(&runners, ended, face).await
    }

    /// The answer for the tasks of a race, of which these have ended, in the order in which they did.
    pub(super) async fn raced(
        &self,
        runners: &[(TaskId, Uid)],
        ended: Vec<Ended>,
        face: &FaceDefaults,
    ) -> Result<Response, Refusal> {
        let still_alive = runners.len() - ended.len();
        let mut finished: Vec<Collected> = Vec::with_capacity(ended.len());
        for ended in ended {
            finished.push(self.deliver(ended, face).await?);
        }
        let mut cancelled: Vec<_> =
            finished.iter().filter(|task| task.status == Status::Cancelled).map(|task| task.task_id).collect();
        cancelled.sort_unstable();
        let won = finished.iter().position(|task| task.status == Status::Completed);
        // Where nobody completed, the first entry stands for all.
        let shown = won.or_else(|| (0..finished.len()).min_by_key(|place| finished[*place].task_id));
        let shown = shown.ok_or_else(|| Refusal::internal("the tasks are missing"))?;
        let mut collected = finished.swap_remove(shown);
        if still_alive > 0 {
            collected.warnings.push(format!("{still_alive} of the others were told to end and have not yet"));
        }
        // Who failed by itself before somebody won was not cancelled.
        let failed: Vec<TaskId> =
            finished.iter().filter(|task| task.status != Status::Cancelled).map(|task| task.task_id).collect();
        let mut receipts = Vec::new();
        let told = |id: &TaskId| won.is_some() && *id != collected.task_id && !failed.contains(id);
        for (_, uid) in runners.iter().filter(|(id, _)| told(id)) {
            receipts.push(self.receipt_of(uid, face).await?);
        }
        Ok(Response::Race(Box::new(Race { collected, cancelled, receipts })))
    }

    /// The tasks that have ended, in the order in which they did, once one has completed and the others were given the
    /// time to end.
    async fn until_decided(&self, rows: Vec<TaskRow>) -> Result<Vec<Ended>, Refusal> {
        let mut open: FuturesUnordered<_> = rows
            .into_iter()
            .map(|row| async move {
                if is_open(&row) { self.until_one_ended(&row).await } else { Ok(Ended { row, known: None }) }
            })
            .collect();
        let mut ended = Vec::new();
        while let Some(next) = open.next().await {
            ended.push(next?);
            if ended.last().is_some_and(|ended: &Ended| ended.row.summary.standing.status == Status::Completed) {
                break;
            }
        }
        let grace = Duration::from_millis(limits::CANCEL_MS_MAX);
        let rest = async {
            while let Some(next) = open.next().await {
                ended.push(next?);
            }
            Ok(())
        };
        match tokio::time::timeout(grace, rest).await {
            Ok(waited) => waited.map(|()| ended),
            Err(_) => Ok(ended),
        }
    }
}
