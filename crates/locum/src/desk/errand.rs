//! Requests for several tasks whose answers are had later: kept with the first task, and answered from the log, in this
//! process or in another.

use locum_core::ids::{TaskId, Uid};
use locum_core::protocol::{Code, FaceDefaults, Refusal, Response};
use locum_core::task::errand::{Errand, ErrandEntry, Form};
use locum_core::task::{Status, TaskEvent};

use super::Desk;
use super::browse::ShownTask;
use super::collect::check_ended;
use super::modes::count;
use super::spawn::is_open;
use super::wait::Ended;
use crate::engine::store_refusal;
use crate::store::{TaskQuery, TaskRow};

/// What was asked for together, as it is shown outside its session.
#[derive(Debug, Clone, PartialEq)]
pub struct ShownErrand {
    /// The task that keeps it, by which it is known.
    pub first: ShownTask,
    /// Its tasks, in the order of the request; one for what was asked for alone.
    pub tasks: Vec<ShownTask>,
    /// How the whole stands: `running` until all have ended.
    pub status: Status,
}

impl Desk {
    /// A desk whose `parallel`, `map`, `chain` and `race` with `background: true` are kept with the first task that
    /// they start: [`Desk::errand_of`] shows how the whole stands, and [`Desk::outcome_of`] answers what the request
    /// would have been answered if its caller had waited.
    #[must_use]
    pub fn keeping_errands(&self) -> Self {
        Self { keeps_errands: true, ..self.clone() }
    }

    /// What was asked for together with a task that is the first of it, and the task alone if it is not.
    ///
    /// # Errors
    ///
    /// There is no such task in the project, or the store failed.
    ///
    /// # Cancel safety
    ///
    /// It only reads: it may be dropped at any time.
    pub async fn errand_of(&self, name: &str) -> Result<ShownErrand, Refusal> {
        let task = self.task(name).await?;
        let Some(errand) = self.errand(&task.uid).await? else {
            let status = if task.status.status.is_final() { task.status.status } else { Status::Running };
            return Ok(ShownErrand { tasks: vec![task.clone()], first: task, status });
        };
        let desk = self.in_session(task.session.clone());
        let rows = desk.rows_of(&errand).await?;
        let status = status_of(errand.form, &rows);
        Ok(ShownErrand { first: task, tasks: desk.show(rows).await?, status })
    }

    /// What was asked for together, if this task is the first of it.
    pub(super) async fn errand(&self, uid: &Uid) -> Result<Option<Errand>, Refusal> {
        let records = self.engine.hands.store.records(uid, 0, 1).await.map_err(|error| store_refusal(&error))?;
        Ok(records.into_iter().next().and_then(|record| match record.event {
            TaskEvent::Accepted { plan, .. } => plan.errand.clone(),
            _ => None,
        }))
    }

    /// What the request would have been answered, once all of its tasks have ended.
    pub(super) async fn outcome_of_errand(&self, errand: &Errand, face: &FaceDefaults) -> Result<Response, Refusal> {
        let rows = self.rows_of(errand).await?;
        rows.iter().try_for_each(check_ended)?;
        let runners: Vec<(TaskId, Uid)> =
            rows.iter().map(|row| (row.summary.task_id, row.summary.uid.clone())).collect();
        let ended = rows.into_iter().map(|row| Ended { row, known: None }).collect();
        match errand.form {
            Form::Parallel => {
                let refusals = errand.entries.iter().map(|entry| match entry {
                    ErrandEntry::Task(_) => None,
                    ErrandEntry::Refused(refused) => Some(refused.clone()),
                });
                Ok(Response::Parallel(count(self.gathered(ended, refusals, face).await?)))
            }
            Form::Chain => self.chained(ended, face).await,
            Form::Race => self.raced(&runners, ended, face).await,
        }
    }

    async fn rows_of(&self, errand: &Errand) -> Result<Vec<TaskRow>, Refusal> {
        let ids: Vec<TaskId> = errand.tasks().collect();
        let rows = self.engine.rows(TaskQuery::Ids(self.session.clone(), ids.clone())).await?;
        let row = |id: &TaskId| rows.iter().find(|row| row.summary.task_id == *id).cloned();
        let gone = || Refusal::new(Code::TaskNotFound, "a task of this request was removed with its session");
        ids.iter().map(|id| row(id).ok_or_else(gone)).collect()
    }
}

/// How the whole stands.
fn status_of(form: Form, rows: &[TaskRow]) -> Status {
    let any = |wanted: Status| rows.iter().any(|row| row.summary.standing.status == wanted);
    if rows.iter().any(is_open) {
        return Status::Running;
    }
    let is_cancelled = match form {
        Form::Parallel => last_was_cancelled(rows),
        Form::Chain => any(Status::Cancelled),
        // Those that lost are cancelled, too.
        Form::Race => any(Status::Cancelled) && !any(Status::Completed),
    };
    match is_cancelled {
        true => Status::Cancelled,
        false if any(Status::Completed) => Status::Completed,
        false => Status::Failed,
    }
}

/// Whether the last end was a cancellation: who ends the whole ends all that are still at work, and who ends one leaves
/// the others to their own ends.
fn last_was_cancelled(rows: &[TaskRow]) -> bool {
    let ends = rows.iter().map(|row| &row.summary.standing);
    let last = ends.map(|standing| (standing.completed_at, standing.status == Status::Cancelled)).max();
    last.is_some_and(|(_, is_cancelled)| is_cancelled)
}
