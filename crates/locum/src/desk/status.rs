//! How tasks stand.

use std::collections::{HashMap, HashSet};

use locum_core::ids::TaskId;
use locum_core::limits;
use locum_core::protocol::request;
use locum_core::protocol::response::{TaskStatus, Tasks};
use locum_core::protocol::{Code, Refusal, Response};
use locum_core::task::Status;

use super::spawn::is_open;
use super::{Desk, Stay};
use crate::engine::store_refusal;
use crate::store::{Error, TaskQuery, TaskRow};

impl Desk {
    pub(super) async fn status(&self, request: request::Status) -> Result<Response, Refusal> {
        let Some(task_id) = request.task_id else {
            let rows = self.engine.rows(TaskQuery::Uncollected(self.session.clone())).await?;
            let tasks = self.present_all(&rows).await?;
            return Ok(Response::Tasks(Tasks { tasks }));
        };
        let row = self.uncollected(&task_id).await?;
        let row = self.hold_in_storm(row).await?;
        let mut status = self.present(&row).await?;
        if !status.status.is_final() {
            status.poll_after_ms = Some(limits::POLL_AFTER_MS);
            status.hint = Some("use wait instead of polling".to_owned());
        }
        Ok(Response::Status(Box::new(status)))
    }

    /// A task of this session, collected or not.
    pub(crate) async fn row(&self, task_id: &str) -> Result<TaskRow, Refusal> {
        let row = match TaskId::parse(task_id) {
            Ok(id) => self.engine.rows(TaskQuery::Ids(self.session.clone(), vec![id])).await?.pop(),
            Err(_) => None,
        };
        row.ok_or_else(|| {
            let shown: String = task_id.chars().take(80).collect();
            Refusal::new(Code::TaskNotFound, format!("this session has no task `{shown}`"))
                .hint("status without task_id lists the tasks")
        })
    }

    /// A task of this session that was not collected yet.
    pub(super) async fn uncollected(&self, task_id: &str) -> Result<TaskRow, Refusal> {
        let row = self.row(task_id).await?;
        if !row.collected {
            return Ok(row);
        }
        let id = row.summary.task_id;
        let message = format!("task {id} was collected already; `result` with task_id {id} still has its text");
        Err(Refusal::new(Code::TaskNotFound, message).hint("use the action result"))
    }

    /// One task as callers see it.
    pub(super) async fn present(&self, row: &TaskRow) -> Result<TaskStatus, Refusal> {
        let mut presented = self.present_all(std::slice::from_ref(row)).await?;
        presented.pop().ok_or_else(|| Refusal::internal("the task is missing"))
    }

    /// Tasks as callers see them, with their place in the queue and what they wait for.
    pub(super) async fn present_all(&self, rows: &[TaskRow]) -> Result<Vec<TaskStatus>, Refusal> {
        let parked = |row: &&TaskRow| matches!(row.summary.standing.status, Status::Queued | Status::Waiting);
        let surroundings = match rows.iter().filter(parked).count() {
            0 => Surroundings::default(),
            // Whoever asks for one is not told of the whole queue.
            1 => match rows.iter().find(parked) {
                Some(row) => self.surroundings_of(row).await?,
                None => Surroundings::default(),
            },
            _ => Surroundings::of(&self.engine.rows(TaskQuery::Unfinished(Some(self.session.clone()))).await?),
        };
        let mut tasks: Vec<TaskStatus> = rows.iter().map(|row| present(row, &surroundings)).collect();
        self.say_who_is_waited_for(rows, &mut tasks);
        self.say_what_is_missing(rows, &mut tasks).await?;
        Ok(tasks)
    }

    /// What one parked task waits for, and its place in the queue.
    async fn surroundings_of(&self, row: &TaskRow) -> Result<Surroundings, Refusal> {
        let depends_on = &row.summary.start.depends_on;
        let mut surroundings = Surroundings::default();
        if !depends_on.is_empty() {
            let waited_for = self.engine.rows(TaskQuery::Ids(self.session.clone(), depends_on.clone())).await?;
            surroundings.open = waited_for.iter().filter(|row| is_open(row)).map(|row| row.summary.task_id).collect();
        }
        let task_id = row.summary.task_id;
        let before = self.engine.hands.store.queued_before(&self.session, task_id).await;
        surroundings.positions.insert(task_id, position_after(before.map_err(|error| store_refusal(&error))?));
        Ok(surroundings)
    }

    /// A task of this process may wait for a provider, which its log does not tell.
    fn say_who_is_waited_for(&self, rows: &[TaskRow], tasks: &mut [TaskStatus]) {
        for (row, task) in rows.iter().zip(tasks).filter(|(_, task)| task.status == Status::Running) {
            if let Some(wait) = self.engine.hands.waits.describe(&row.summary.uid) {
                task.activity = Some(format!("turn {}: {wait}", task.turns_used));
            }
        }
    }

    /// An unfinished task that nobody works on may wait for a key: its status says for which.
    async fn say_what_is_missing(&self, rows: &[TaskRow], tasks: &mut [TaskStatus]) -> Result<(), Refusal> {
        let mine = Some(self.engine.worker.owner.id);
        let elsewhere = |row: &TaskRow| !row.summary.standing.status.is_final() && row.owner != mine;
        if !rows.iter().any(elsewhere) {
            return Ok(());
        }
        let dead = self.engine.dead_owners().await.map_err(|error| store_refusal(&error))?;
        for (row, task) in rows.iter().zip(tasks) {
            if !elsewhere(row) || !row.owner.is_none_or(|owner| dead.contains(&owner)) {
                continue;
            }
            match self.engine.missing_key(&row.summary.uid).await {
                Ok(None) => {}
                Ok(Some(key)) => task.activity = Some(format!("waiting: {key} is not set here")),
                Err(Error::Corrupt(_)) => task.activity = Some("waiting: its log cannot be read".to_owned()),
                Err(error) => return Err(store_refusal(&error)),
            }
        }
        Ok(())
    }

    /// Looks after tasks that lost their worker, before a process that does not stay answers and ends: as
    /// [`Desk::adopt_orphans`] with [`Stay::Short`].
    ///
    /// # Errors
    ///
    /// The store failed, or a process could not be started.
    ///
    /// # Cancel safety
    ///
    /// As [`Desk::adopt_orphans`].
    pub async fn look_after_orphans(&self) -> Result<usize, Refusal> {
        self.adopt_orphans(Stay::Short).await.map_err(|error| store_refusal(&error))
    }
}

/// What is around parked tasks in their session.
#[derive(Debug, Default)]
struct Surroundings {
    /// Tasks that have not ended.
    open: HashSet<TaskId>,
    /// The place in the queue of every task that is, or may be, queued: from 1.
    positions: HashMap<TaskId, u32>,
}

impl Surroundings {
    /// These are all that have not ended, oldest first.
    fn of(unfinished: &[TaskRow]) -> Self {
        let mut surroundings = Self::default();
        let mut queued = 0;
        for row in unfinished {
            let summary = &row.summary;
            surroundings.open.insert(summary.task_id);
            surroundings.positions.insert(summary.task_id, position_after(queued));
            queued += usize::from(summary.standing.status == Status::Queued);
        }
        surroundings
    }
}

/// The place in the queue of a task with so many before it.
fn position_after(before: usize) -> u32 {
    u32::try_from(before).unwrap_or(u32::MAX).saturating_add(1)
}

fn present(row: &TaskRow, surroundings: &Surroundings) -> TaskStatus {
    let summary = &row.summary;
    let standing = &summary.standing;
    let open = |id: &TaskId| surroundings.open.contains(id);
    let waiting_for: Vec<TaskId> = summary.start.depends_on.iter().copied().filter(open).collect();
    let status = match standing.status {
        Status::Waiting if waiting_for.is_empty() => Status::Queued,
        status => status,
    };
    let position = surroundings.positions.get(&summary.task_id).copied().unwrap_or(1);
    TaskStatus {
        task_id: summary.task_id,
        agent: summary.agent.clone(),
        status,
        turns_used: standing.usage.turns,
        label: summary.label.clone(),
        error: standing.error.clone(),
        reason: standing.reason,
        position: (status == Status::Queued).then_some(position),
        waiting_for: (status == Status::Waiting).then_some(waiting_for),
        activity: standing.activity.clone(),
        usage: standing.usage.clone(),
        poll_after_ms: None,
        hint: None,
        created_at: summary.created_at,
        completed_at: standing.completed_at,
    }
}
