//! Stopping a task and everything below it, with proof.

use std::collections::BTreeSet;
use std::time::Duration;

use locum_core::ids::Uid;
use locum_core::limits;
use locum_core::protocol::request::WaitMode;
use locum_core::protocol::response::{CancelReceipt, Cancelled, CancelledTask};
use locum_core::protocol::{FaceDefaults, Refusal, Response};
use locum_core::task::TaskEvent;
use locum_core::task::event::ProcessEnd;
use tokio::time::Instant;

use super::Desk;
use super::collect::bounded;
use super::spawn::is_open;
use crate::engine::{Finished, store_refusal};
use crate::store::{Command, OwnerRow, TaskQuery, TaskRow};
use crate::{process, worker};

/// How often a process that should end is looked at.
const LOOK_MS: u64 = 20;

/// Entries at the end of a log among which those about processes are: all that follow a stop.
const LAST_RECORDS: u64 = 8;

impl Desk {
    pub(super) async fn cancel(&self, task_id: &str, face: &FaceDefaults) -> Result<Response, Refusal> {
        let deadline = Instant::now() + Duration::from_millis(limits::CANCEL_MS_MAX);
        let uid = self.uncollected(task_id).await?.summary.uid;
        let mut tree = self.tree(&uid).await?;
        let (mut owners, mut stopped) = (Vec::new(), BTreeSet::new());
        // A task may delegate once more while it is being stopped: look again until nothing new is there.
        while tree.iter().any(is_open) && Instant::now() < deadline {
            let open: Vec<TaskRow> = tree.into_iter().filter(is_open).collect();
            owners.extend(self.stop(&open, deadline).await?);
            stopped.extend(open.into_iter().map(|row| row.summary.uid));
            tree = self.tree(&uid).await?;
        }
        let mut processes: Vec<ProcessEnd> = owners.iter().map(end_of).collect();
        for row in tree.iter().filter(|row| stopped.contains(&row.summary.uid)) {
            processes.extend(self.processes_of(row).await?);
        }
        observe(&mut processes, grace(deadline)).await;
        if processes.iter().any(|process| !process.ended) {
            owners.iter().for_each(|row| process::kill(&row.owner));
            observe(&mut processes, deadline).await;
        }
        Ok(Response::Cancelled(Box::new(self.receipt(tree, processes, face).await?)))
    }

    /// What is left of a task that was told to end by somebody else, and of all below it: what `cancel` would answer.
    pub(super) async fn receipt_of(&self, uid: &Uid, face: &FaceDefaults) -> Result<Cancelled, Refusal> {
        let tree = self.tree(uid).await?;
        let mut processes = Vec::new();
        for row in &tree {
            processes.extend(self.processes_of(row).await?);
        }
        // Their ends were seen to before the log said so.
        observe(&mut processes, Instant::now()).await;
        self.receipt(tree, processes, face).await
    }

    /// Stops tasks, and returns the processes that must end with them: those that do not listen are killed. Time that
    /// runs out is an answer too: the receipt says what is still alive.
    async fn stop(&self, open: &[TaskRow], deadline: Instant) -> Result<Vec<OwnerRow>, Refusal> {
        let owners = self.dedicated_owners(open).await?;
        let grace = grace(deadline);
        // A worker that was stopped while it wrote keeps everybody else from writing until it is gone.
        if let Ok(told) = tokio::time::timeout_at(grace, self.tell(open)).await {
            told?;
        }
        if !self.until_all_ended(open, grace).await? {
            owners.iter().for_each(|row| process::kill(&row.owner));
            observe(&mut owners.iter().map(end_of).collect::<Vec<_>>(), deadline).await;
            self.take_over_orphans(open).await?;
            self.until_all_ended(open, deadline).await?;
        }
        Ok(owners)
    }

    /// The processes that worked for a task when it ended, as its log tells.
    async fn processes_of(&self, row: &TaskRow) -> Result<Vec<ProcessEnd>, Refusal> {
        let before = row.summary.seq.saturating_sub(LAST_RECORDS);
        let records = self.engine.hands.store.records(&row.summary.uid, before, usize::MAX).await;
        let records = records.map_err(|error| store_refusal(&error))?;
        let told = records.into_iter().filter_map(|record| match record.event {
            TaskEvent::ProcessesEnded { processes } => Some(processes),
            _ => None,
        });
        Ok(told.flatten().collect())
    }

    /// Tells whoever holds these tasks to end them.
    async fn tell(&self, open: &[TaskRow]) -> Result<(), Refusal> {
        for row in open {
            let sent = self.engine.hands.store.send(&row.summary.uid, Command::Cancel).await;
            sent.map_err(|error| store_refusal(&error))?;
        }
        self.take_over_orphans(open).await
    }

    /// Waits for the end of these tasks; whether it came in time.
    async fn until_all_ended(&self, open: &[TaskRow], deadline: Instant) -> Result<bool, Refusal> {
        let ended = tokio::time::timeout_at(deadline, self.until_ended(open, WaitMode::All)).await;
        ended.map_or(Ok(false), |ended| ended.map(|()| true))
    }

    /// A task and everything below it, itself first.
    async fn tree(&self, uid: &Uid) -> Result<Vec<TaskRow>, Refusal> {
        let mut tree = self.engine.rows(TaskQuery::Uids(vec![uid.clone()])).await?;
        let mut next = 0;
        while let Some(row) = tree.get(next) {
            let children = self.engine.rows(TaskQuery::Children(row.summary.uid.clone())).await?;
            tree.extend(children);
            next += 1;
        }
        Ok(tree)
    }

    /// Tasks whose worker is gone are ended here: nobody else would hear the command.
    async fn take_over_orphans(&self, open: &[TaskRow]) -> Result<(), Refusal> {
        let dead = self.engine.dead_owners().await.map_err(|error| store_refusal(&error))?;
        for row in open.iter().filter(|row| row.owner.is_none_or(|owner| dead.contains(&owner))) {
            let uid = &row.summary.uid;
            let claimed =
                worker::claim(&self.engine, uid, dead.clone()).await.map_err(|error| store_refusal(&error))?;
            if claimed {
                worker::cancel(&self.engine, uid).await;
            }
        }
        Ok(())
    }

    /// The processes that live for these tasks alone: they must end with them.
    async fn dedicated_owners(&self, open: &[TaskRow]) -> Result<Vec<OwnerRow>, Refusal> {
        let all = self.engine.rows(TaskQuery::Unfinished(None)).await?;
        let others = |row: &OwnerRow| {
            all.iter().any(|task| {
                task.owner == Some(row.owner.id) && !open.iter().any(|ours| ours.summary.uid == task.summary.uid)
            })
        };
        let ours = |row: &OwnerRow| open.iter().any(|task| task.owner == Some(row.owner.id));
        let owners = self.engine.hands.store.owners().await.map_err(|error| store_refusal(&error))?;
        Ok(owners.into_iter().filter(|row| row.owner.detached && ours(row) && !others(row)).collect())
    }

    async fn receipt(
        &self,
        tree: Vec<TaskRow>,
        processes: Vec<ProcessEnd>,
        face: &FaceDefaults,
    ) -> Result<Cancelled, Refusal> {
        let line = |row: &TaskRow| CancelledTask { task_id: row.summary.task_id, status: row.summary.standing.status };
        let tasks: Vec<CancelledTask> = tree.iter().map(line).collect();
        let row = tree.first().ok_or_else(|| Refusal::internal("the task is missing"))?;
        let (partial_result, worktree) = if is_open(row) {
            (None, None)
        } else {
            let Finished { outcome, worktree, .. } = self.engine.finished(row).await?;
            let unfinished = !matches!(outcome, locum_core::task::Outcome::Completed { .. });
            let text = bounded(outcome.text(), face.result_chars_max).0;
            (Some(text).filter(|text| unfinished && !text.is_empty()), worktree)
        };
        let confirmed =
            tasks.iter().all(|task| task.status.is_final()) && processes.iter().all(|process| process.ended);
        let usage = row.summary.standing.usage.clone();
        Ok(Cancelled {
            task_id: row.summary.task_id,
            status: row.summary.standing.status,
            partial_result,
            receipt: CancelReceipt { confirmed, tasks, processes, worktree, usage },
        })
    }
}

/// Until when whoever should end may do so by itself.
fn grace(deadline: Instant) -> Instant {
    deadline.min(Instant::now() + Duration::from_millis(limits::CANCEL_GRACE_MS))
}

fn end_of(row: &OwnerRow) -> ProcessEnd {
    ProcessEnd { pid: row.owner.pid, started: row.owner.started.clone(), ended: false }
}

/// Looks at processes until they are gone or the time is over.
async fn observe(processes: &mut [ProcessEnd], deadline: Instant) {
    loop {
        for process in processes.iter_mut() {
            process.ended = process.ended || !process::is_running(process.pid, &process.started);
        }
        if processes.iter().all(|process| process.ended) || Instant::now() >= deadline {
            return;
        }
        tokio::time::sleep(Duration::from_millis(LOOK_MS)).await;
    }
}
