//! Where the facts come from: the desk is asked now and again, never more than one question at a time and never for
//! more than can be shown. Between two questions, what is said in the selected task is heard as it is said.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};
use locum::clock::{Clock, SystemClock};
use locum::desk::{Heard, ShownTask, TaskTail};
use locum::ids::Seq;
use locum::protocol::Refusal;
use locum::task::{Status, TaskEvent};
use locum::{Desk, SessionId, TaskId, Uid};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::scene::Facts;
use super::transcript::{Job, Jobs, Transcript};
use super::words;

/// How often the desk is asked. A key that wants something else to be shown does not wait for it.
const LOOK: Duration = Duration::from_millis(400);

/// For how long what is heard is gathered before it is shown.
const GATHER: Duration = Duration::from_millis(60);

/// How many logs are read for one look: beyond that, background commands show up a look later.
const LOGS_MAX: usize = 8;

/// How many entries of a log are read for one look.
const RECORDS_MAX: usize = 500;

/// How many tasks are asked for what they are about in one look.
const ABOUTS_MAX: usize = 32;

/// How many characters of what a task was asked are kept.
const ABOUT_CHARS_MAX: usize = 200;

/// After how many looks tasks without a worker are looked after.
const CARE_EVERY: u64 = 12;

/// What the person wants to see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) session: SessionId,
    pub(super) selected: Option<TaskId>,
}

/// What the screen is told.
pub(super) enum Learnt {
    /// How everything stands.
    Facts(Facts),
    /// What was said in the selected task.
    Said(Transcript),
}

/// The selected task, as it is listened to.
struct Selected {
    uid: Uid,
    tail: TaskTail,
    transcript: Transcript,
}

/// The background commands of a task, as far as its log was read.
struct Read {
    until: Seq,
    jobs: Jobs,
}

/// The questions to the desk.
pub(super) struct Feed {
    desk: Desk,
    selected: Option<Selected>,
    logs: BTreeMap<Uid, Read>,
    abouts: BTreeMap<Uid, String>,
}

/// Why listening ended.
enum Ended {
    /// Something was heard.
    Heard,
    /// It is time to look again, or something else is wanted.
    Look,
    /// Nobody wants anything any more.
    Left,
}

impl Feed {
    pub(super) fn new(desk: Desk) -> Self {
        Self { desk, selected: None, logs: BTreeMap::new(), abouts: BTreeMap::new() }
    }

    /// Tells what is known until nobody wants it any more. Dropping it loses nothing: it only reads.
    pub(super) async fn tell(mut self, mut wanted: watch::Receiver<Wanted>, screen: mpsc::Sender<Learnt>) {
        for looks in 1_u64.. {
            if looks.is_multiple_of(CARE_EVERY) {
                // A worker may be lost while somebody looks on; what hinders us now may not the next time.
                self.desk.look_after_orphans().await.ok();
            }
            let wants = wanted.borrow_and_update().clone();
            let facts = self.look(&wants).await;
            if screen.send(Learnt::Facts(facts)).await.is_err() {
                return;
            }
            let until = Instant::now() + LOOK;
            loop {
                match self.listen(&mut wanted, until).await {
                    Ended::Look => break,
                    Ended::Left => return,
                    Ended::Heard => {}
                }
                let said = self.selected.as_ref().map(|selected| selected.transcript.clone());
                if let Some(said) = said
                    && screen.send(Learnt::Said(said)).await.is_err()
                {
                    return;
                }
            }
        }
    }

    /// What is known now.
    pub(super) async fn look(&mut self, wanted: &Wanted) -> Facts {
        if self.desk.session().id != wanted.session {
            *self = Self::new(self.desk.in_session(wanted.session.clone()));
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
        let jobs = self.read_jobs(&glance.tasks).await?;
        self.select(&glance.tasks, wanted.selected).await?;
        (facts.jobs, facts.board) = (jobs, glance.board);
        facts.about = self.read_abouts(&glance.tasks).await?;
        facts.tasks = glance.tasks.into_iter().map(|task| task.status).collect();
        facts.transcript = self.selected.as_ref().map(|selected| selected.transcript.clone());
        Ok(())
    }

    /// Begins to listen to the task that is selected, if it is another one, and reads what its log has.
    async fn select(&mut self, tasks: &[ShownTask], id: Option<TaskId>) -> Result<(), Refusal> {
        let task = tasks.iter().find(|task| Some(task.status.task_id) == id);
        let (Some(task), Some(id)) = (task, id) else {
            self.selected = None;
            return Ok(());
        };
        if self.selected.as_ref().is_some_and(|selected| selected.uid == task.uid) {
            return Ok(());
        }
        let after = Transcript::begins_after(task.seq);
        let mut transcript = Transcript::new(id, after);
        let records = self.desk.records_of(&task.uid, after, RECORDS_MAX).await?;
        transcript.take_up(&records);
        let until = records.last().map_or(after, |record| record.seq);
        let tail = self.desk.tail_task(task.uid.clone(), until);
        self.selected = Some(Selected { uid: task.uid.clone(), tail, transcript });
        Ok(())
    }

    /// Listens to the selected task until something was heard, something else is wanted, or it is time to look again.
    async fn listen(&mut self, wanted: &mut watch::Receiver<Wanted>, until: Instant) -> Ended {
        let selected = &mut self.selected;
        let heard = async {
            match selected {
                None => std::future::pending().await,
                Some(selected) => selected.listen().await,
            }
        };
        let is_there = match tokio::time::timeout_at(until, select(pin!(wanted.changed()), pin!(heard))).await {
            Err(_) | Ok(Either::Left((Ok(()), _))) => return Ended::Look,
            Ok(Either::Left((Err(_), _))) => return Ended::Left,
            Ok(Either::Right((is_there, _))) => is_there,
        };
        if is_there {
            return Ended::Heard;
        }
        // A store that cannot be read is asked again by the next look, which says why.
        self.selected = None;
        Ended::Look
    }

    /// What tasks were asked. It is in the first entry of a log and never changes, so it is read once; what has not
    /// ended is read first.
    async fn read_abouts(&mut self, tasks: &[ShownTask]) -> Result<BTreeMap<TaskId, String>, Refusal> {
        let present: BTreeSet<&Uid> = tasks.iter().map(|task| &task.uid).collect();
        self.abouts.retain(|uid, _| present.contains(uid));
        let mut unread: Vec<&ShownTask> = tasks.iter().filter(|task| !self.abouts.contains_key(&task.uid)).collect();
        unread.sort_by_key(|task| task.status.status.is_final());
        for task in unread.into_iter().take(ABOUTS_MAX) {
            let records = self.desk.records_of(&task.uid, 0, 1).await?;
            let about = records.first().map(|record| about(&record.event)).unwrap_or_default();
            self.abouts.insert(task.uid.clone(), about);
        }
        let known = |task: &ShownTask| Some((task.status.task_id, self.abouts.get(&task.uid)?.clone()));
        Ok(tasks.iter().filter_map(known).collect())
    }

    /// The commands in the background of tasks that run: their logs are read as far as they have grown.
    async fn read_jobs(&mut self, tasks: &[ShownTask]) -> Result<Vec<Job>, Refusal> {
        let running: Vec<&ShownTask> = tasks.iter().filter(|task| task.status.status == Status::Running).collect();
        self.logs.retain(|uid, _| running.iter().any(|task| task.uid == *uid));
        let until = |logs: &BTreeMap<Uid, Read>, uid: &Uid| logs.get(uid).map_or(0, |read| read.until);
        let grown = running.iter().filter(|task| until(&self.logs, &task.uid) < task.seq);
        let grown: Vec<&&ShownTask> = grown.take(LOGS_MAX).collect();
        for task in grown {
            let records = self.desk.records_of(&task.uid, until(&self.logs, &task.uid), RECORDS_MAX).await?;
            let read = self.logs.entry(task.uid.clone()).or_insert_with(|| Read { until: 0, jobs: Jobs::default() });
            read.jobs.take_up(task.status.task_id, task.status.agent.as_str(), &records);
            read.until = records.last().map_or(task.seq, |record| record.seq);
        }
        Ok(self.logs.values().flat_map(|read| read.jobs.running.iter().cloned()).collect())
    }
}

impl Selected {
    /// Waits for what is said next, and for a moment for what follows it; whether the task can be listened to.
    async fn listen(&mut self) -> bool {
        let Ok(heard) = self.tail.hear().await else { return false };
        self.take_up(heard);
        let gathering = async {
            while let Ok(heard) = self.tail.hear().await {
                self.take_up(heard);
            }
        };
        // What is not heard now is heard the next time.
        tokio::time::timeout(GATHER, gathering).await.ok();
        true
    }

    fn take_up(&mut self, heard: Heard) {
        match heard {
            Heard::Records(records) => self.transcript.take_up(&records),
            Heard::Text { offset, text, .. } => self.transcript.overhear(offset, &text),
        }
    }
}

/// The beginning of what a task was asked, as its first entry has it.
fn about(event: &TaskEvent) -> String {
    match event {
        TaskEvent::Accepted { plan, .. } => words::fit(plan.assignment.task.trim(), ABOUT_CHARS_MAX),
        _ => String::new(),
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
