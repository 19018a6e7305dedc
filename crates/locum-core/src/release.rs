//! Which parked tasks may start: decided whenever a task is admitted or ends, inside the transaction that records it.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::ids::{AgentName, TaskId, Uid};
use crate::limits;
use crate::task::event::{HandedOn, TaskEvent};
use crate::task::outcome::{Failure, Outcome, Status};
use crate::task::plan::{Among, StartRule};
use crate::task::summary::TaskSummary;

/// What becomes of a parked task.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// It starts. The store fills in the results of these tasks.
    Start {
        /// The tasks whose results are handed on.
        inputs: Vec<TaskId>,
    },
    /// It ends: one of the tasks that it depends on did not complete, or it runs in a race that another one won.
    End(TaskEvent),
    /// It runs, and whoever works on it is told to end it: another one won the race.
    Cancel,
}

/// What a decision looks at: as few of a session's tasks as it takes, so that a long queue costs no more than a short one.
#[derive(Debug, Clone, Default)]
pub struct Unsettled {
    /// Every task that runs, every one that waits for others with what it waits for, and the oldest of those that are
    /// queued: of those that are queued for the same [`Places`], as many as there are places, or all if they are fewer.
    /// Where a race was won, every task that has not ended. By id.
    pub tasks: Vec<TaskSummary>,
    /// Every task that has delegated something that has not ended.
    pub delegating: HashSet<Uid>,
}

impl Unsettled {
    /// Looks at these tasks, which are all that have not ended, and what they wait for.
    pub fn of(tasks: Vec<TaskSummary>) -> Self {
        let unfinished = tasks.iter().filter(|task| !task.standing.status.is_final());
        let delegating = unfinished.filter_map(|task| task.parent.clone()).collect();
        Self { tasks, delegating }
    }
}

/// The places that a queued task waits for. Who is queued for the same ones starts in the order of age, so that nobody
/// behind as many as there are places can start.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Places {
    /// The command whose tasks are counted, known by its first; the whole session if left out.
    pub group: Option<Uid>,
    /// How many there are.
    pub count: u32,
}

impl Places {
    /// The places of a task.
    pub fn of(start: &StartRule) -> Self {
        let group = match &start.among {
            Among::Session => None,
            Among::Group(first) => Some(first.clone()),
        };
        Self { group, count: start.running_max }
    }
}

/// Decides about the parked tasks of a session, oldest first, and about all that lost a race that was `won` just now. A
/// task can only wait for older ones, and is younger than the one that delegated it, so one pass settles a whole cascade.
pub fn settle(unsettled: &Unsettled, won: Option<&Uid>) -> Vec<(TaskId, Verdict)> {
    let tasks = &unsettled.tasks;
    let mut standing: Standings =
        tasks.iter().map(|task| (task.task_id, (task.standing.status, task.standing.error.clone()))).collect();
    let mut running = RunningCounts::of(unsettled);
    let mut verdicts = Vec::new();
    let mut lost: HashSet<&Uid> = HashSet::new();
    for task in tasks.iter().filter(|task| !task.standing.status.is_final()) {
        let is_parked = matches!(task.standing.status, Status::Queued | Status::Waiting);
        if loses(task, won, &lost) {
            lost.insert(&task.uid);
            verdicts.push((task.task_id, if is_parked { ended_unstarted() } else { Verdict::Cancel }));
            if is_parked {
                standing.insert(task.task_id, (Status::Cancelled, None));
            }
            continue;
        }
        if !is_parked {
            continue;
        }
        let verdict = match failed_dependency(task, &standing) {
            Some(failure) => {
                let outcome = Outcome::failed(&failure, None);
                standing.insert(task.task_id, (Status::Failed, Some(failure.error())));
                Verdict::End(TaskEvent::Ended { outcome })
            }
            None if !dependencies_completed(task, &standing) => continue,
            None if running.among(&task.start.among) < task.start.running_max => {
                standing.insert(task.task_id, (Status::Running, None));
                running.add(&task.start.among);
                Verdict::Start { inputs: task.start.depends_on.clone() }
            }
            None => continue,
        };
        verdicts.push((task.task_id, verdict));
    }
    verdicts
}

/// Whether another one won the race that a task, or one above it, runs in.
fn loses(task: &TaskSummary, won: Option<&Uid>, lost: &HashSet<&Uid>) -> bool {
    (won.is_some() && task.start.race.as_ref() == won)
        || task.parent.as_ref().is_some_and(|parent| lost.contains(parent))
}

fn ended_unstarted() -> Verdict {
    Verdict::End(TaskEvent::Ended { outcome: Outcome::Cancelled { partial: None } })
}

type Standings = BTreeMap<TaskId, (Status, Option<String>)>;

fn failed_dependency(task: &TaskSummary, standing: &Standings) -> Option<Failure> {
    task.start.depends_on.iter().find_map(|dependency| {
        let (status, error) = standing.get(dependency)?;
        let error = match status {
            Status::Failed => error.clone().unwrap_or_default(),
            Status::Cancelled => "it was cancelled".to_owned(),
            Status::Queued | Status::Waiting | Status::Running | Status::Completed => return None,
        };
        Some(Failure::Dependency { task_id: *dependency, error })
    })
}

fn dependencies_completed(task: &TaskSummary, standing: &Standings) -> bool {
    let completed = |dependency| standing.get(dependency).is_some_and(|(status, _)| *status == Status::Completed);
    task.start.depends_on.iter().all(completed)
}

/// How many tasks run, over the session and in each group; counted once, then kept up. One that has delegated what is
/// not finished does not count: its place is that of those below it, or they could wait for it for ever.
struct RunningCounts<'a> {
    session: u32,
    groups: HashMap<&'a Uid, u32>,
}

impl<'a> RunningCounts<'a> {
    fn of(unsettled: &'a Unsettled) -> Self {
        let mut counts = Self { session: 0, groups: HashMap::new() };
        let delegates = |task: &TaskSummary| unsettled.delegating.contains(&task.uid);
        let runs = |task: &&TaskSummary| task.standing.status == Status::Running && !delegates(task);
        for task in unsettled.tasks.iter().filter(runs) {
            counts.add(&task.start.among);
        }
        counts
    }

    fn add(&mut self, among: &'a Among) {
        self.session += 1;
        if let Among::Group(first) = among {
            *self.groups.entry(first).or_default() += 1;
        }
    }

    fn among(&self, among: &Among) -> u32 {
        match among {
            Among::Session => self.session,
            Among::Group(first) => self.groups.get(first).copied().unwrap_or(0),
        }
    }
}

/// A result as it is handed on: whole, or its head where it is too long for a prompt.
pub fn hand_on(task_id: TaskId, agent: AgentName, text: &str) -> HandedOn {
    let text = match text.char_indices().nth(limits::HANDED_ON_CHARS_MAX) {
        None => text.to_owned(),
        Some((end, _)) => {
            format!("{}\n[cut after {} characters]", &text[..end], limits::HANDED_ON_CHARS_MAX)
        }
    };
    HandedOn { task_id, agent, text }
}
