//! Where the facts come from: the desk is asked now and again, never more than one question at a time and never for
//! more than can be shown.

use std::collections::BTreeMap;
use std::time::Duration;

use locum::clock::{Clock, SystemClock};
use locum::protocol::Refusal;
use locum::protocol::response::TaskStatus;
use locum::task::Status;
use locum::{Desk, SessionId, TaskId};
use tokio::sync::{mpsc, watch};

use super::scene::Facts;
use super::transcript::{self, Job, Transcript};

/// How often the desk is asked. A key that wants something else to be shown does not wait for it.
const LOOK: Duration = Duration::from_millis(400);

/// How many logs are read for one look: beyond that, background commands show up a look later.
const LOGS_MAX: usize = 8;

/// After how many looks tasks without a worker are looked after.
const CARE_EVERY: u64 = 12;

/// What the person wants to see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) session: SessionId,
    pub(super) selected: Option<TaskId>,
}

/// What has been read of a task's log, and how the task stood then.
struct Read {
    status: TaskStatus,
    transcript: Option<Transcript>,
    jobs: Vec<Job>,
}

/// The questions to the desk.
pub(super) struct Feed {
    desk: Desk,
    logs: BTreeMap<TaskId, Read>,
}

impl Feed {
    pub(super) fn new(desk: Desk) -> Self {
        Self { desk, logs: BTreeMap::new() }
    }

    /// Tells facts until nobody wants them any more. Dropping it loses nothing: it only reads.
    pub(super) async fn tell(mut self, mut wanted: watch::Receiver<Wanted>, facts: mpsc::Sender<Facts>) {
        for looks in 1_u64.. {
            if looks.is_multiple_of(CARE_EVERY) {
                // A worker may be lost while somebody looks on; what hinders us now may not the next time.
                self.desk.look_after_orphans().await.ok();
            }
            let wants = wanted.borrow_and_update().clone();
            let looked = self.look(&wants).await;
            if facts.send(looked).await.is_err() {
                return;
            }
            // A change is looked at once, and otherwise the time is over.
            if let Ok(Err(_)) = tokio::time::timeout(LOOK, wanted.changed()).await {
                return;
            }
        }
    }

    /// What is known now.
    pub(super) async fn look(&mut self, wanted: &Wanted) -> Facts {
        if self.desk.session().id != wanted.session {
            self.desk = self.desk.in_session(wanted.session.clone());
            self.logs.clear();
        }
        let mut facts = Facts { session: wanted.session.to_string(), now: SystemClock.now(), ..Facts::default() };
        if let Err(refusal) = self.fill(&mut facts, wanted).await {
            facts.trouble = Some(refusal.message);
        }
        facts
    }

    async fn fill(&mut self, facts: &mut Facts, wanted: &Wanted) -> Result<(), Refusal> {
        let ids = sessions(&self.desk).await?;
        let place = ids.iter().position(|id| *id == wanted.session).unwrap_or(0);
        facts.place = (place + 1, ids.len().max(1));
        let glance = self.desk.glance().await?;
        (facts.tasks, facts.board) = (glance.tasks, glance.board);
        self.read_logs(&facts.tasks, wanted.selected).await?;
        facts.jobs = self.logs.values().flat_map(|read| read.jobs.iter().cloned()).collect();
        let selected = wanted.selected.and_then(|id| self.logs.get(&id));
        facts.transcript = selected.and_then(|read| read.transcript.clone());
        Ok(())
    }

    /// Reads the logs of tasks that have gone on since they were last read: of the selected one for what was said in
    /// it, of those that run for what they have in the background.
    async fn read_logs(&mut self, tasks: &[TaskStatus], selected: Option<TaskId>) -> Result<(), Refusal> {
        let concerns = |task: &TaskStatus| task.status == Status::Running || Some(task.task_id) == selected;
        let ids: BTreeMap<TaskId, &TaskStatus> =
            tasks.iter().filter(|task| concerns(task)).map(|task| (task.task_id, task)).collect();
        self.logs.retain(|id, _| ids.contains_key(id));
        let mut stale: Vec<&TaskStatus> =
            ids.into_values().filter(|task| self.is_stale(task, Some(task.task_id) == selected)).collect();
        stale.sort_by_key(|task| Some(task.task_id) != selected);
        for task in stale.into_iter().take(LOGS_MAX) {
            let records = self.desk.log_of(&task.task_id.to_string()).await?;
            let (id, agent) = (task.task_id, task.agent.as_str());
            let is_selected = Some(id) == selected;
            let runs = task.status == Status::Running;
            let read = Read {
                status: task.clone(),
                transcript: is_selected.then(|| transcript::of_log(id, &records)),
                jobs: if runs { transcript::jobs_of(id, agent, &records) } else { Vec::new() },
            };
            self.logs.insert(id, read);
        }
        Ok(())
    }

    fn is_stale(&self, task: &TaskStatus, is_selected: bool) -> bool {
        self.logs.get(&task.task_id).is_none_or(|read| {
            let stands = (&read.status.activity, &read.status.usage, read.status.status);
            let lacks = is_selected && read.transcript.is_none();
            lacks || stands != (&task.activity, &task.usage, task.status)
        })
    }
}

/// The sessions of the project, and the one that the desk is in, by id.
pub(super) async fn sessions(desk: &Desk) -> Result<Vec<SessionId>, Refusal> {
    let mut ids: Vec<SessionId> = desk.sessions().await?.into_iter().map(|row| row.id).collect();
    if !ids.contains(&desk.session().id) {
        ids.push(desk.session().id.clone());
    }
    ids.sort();
    Ok(ids)
}
