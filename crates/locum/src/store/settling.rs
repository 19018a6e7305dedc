//! Carrying out what [`release::settle`] decides. Both stores do it inside the transaction that accepted or ended a
//! task, through [`Shelf`]; neither decides or computes anything about a task itself.

use locum_core::ids::{TaskId, Timestamp, Uid};
use locum_core::release::{self, Unsettled, Verdict};
use locum_core::task::event::HandedOn;
use locum_core::task::summary::Standing;
use locum_core::task::{Misfit, Outcome, Record, Task, TaskEvent, TaskSummary};

use super::{Command, Error};

/// One session's tasks inside a transaction.
pub(super) trait Shelf {
    /// Whether a task of the session is parked.
    fn is_anything_parked(&self) -> Result<bool, Error>;

    /// What a decision looks at where no race was won.
    fn unsettled(&self) -> Result<Unsettled, Error>;

    /// Every task that is parked, running or waited for by a parked one, by id.
    fn unfinished(&self) -> Result<Vec<TaskSummary>, Error>;

    /// The whole log of a task.
    fn log(&self, uid: &Uid) -> Result<Vec<Record>, Error>;

    /// How a task ended: its log's last record.
    fn outcome(&self, uid: &Uid) -> Result<Outcome, Error>;

    /// Appends to a task's log without a lease and notes how the task stands now.
    fn write(&mut self, uid: &Uid, record: Record, standing: Standing) -> Result<(), Error>;

    /// Leaves a command for whoever holds an unfinished task.
    fn send(&mut self, uid: &Uid, command: Command) -> Result<(), Error>;
}

/// Starts or ends the parked tasks that may or must, and says which; those that run and lost a race that was `won` are
/// told to end. `at` is when the cause of it happened.
pub(super) fn settle(shelf: &mut impl Shelf, at: Timestamp, won: Option<&Uid>) -> Result<Vec<Uid>, Error> {
    if won.is_none() && !shelf.is_anything_parked()? {
        return Ok(Vec::new());
    }
    let unsettled = match won {
        None => shelf.unsettled()?,
        Some(_) => Unsettled::of(shelf.unfinished()?),
    };
    let tasks = &unsettled.tasks;
    let mut moved = Vec::new();
    for (task_id, verdict) in release::settle(&unsettled, won) {
        let uid = &find(tasks, task_id)?.uid;
        let event = match verdict {
            Verdict::Start { inputs } => TaskEvent::Released { inputs: hand_on(shelf, tasks, &inputs)? },
            Verdict::End(event) => event,
            Verdict::Cancel => {
                shelf.send(uid, Command::Cancel)?;
                continue;
            }
        };
        let mut task = Task::replay(shelf.log(uid)?)?;
        let record = Record { seq: task.seq() + 1, at, event };
        task.apply(record.clone())?;
        shelf.write(uid, record, task.standing())?;
        moved.push(uid.clone());
    }
    Ok(moved)
}

fn hand_on(shelf: &impl Shelf, tasks: &[TaskSummary], inputs: &[TaskId]) -> Result<Vec<HandedOn>, Error> {
    let hand_on = |task_id: &TaskId| {
        let task = find(tasks, *task_id)?;
        let outcome = shelf.outcome(&task.uid)?;
        Ok(release::hand_on(*task_id, task.agent.clone(), outcome.text()))
    };
    inputs.iter().map(hand_on).collect()
}

fn find(tasks: &[TaskSummary], task_id: TaskId) -> Result<&TaskSummary, Error> {
    let place = tasks.binary_search_by_key(&task_id, |task| task.task_id).ok();
    place
        .and_then(|place| tasks.get(place))
        .ok_or_else(|| Error::Corrupt(format!("{task_id} is waited for and does not exist")))
}

/// The outcome in the last record of a task that has ended.
pub(super) fn outcome_of(last: Option<Record>) -> Result<Outcome, Error> {
    match last.map(|record| record.event) {
        Some(TaskEvent::Ended { outcome }) => Ok(outcome),
        _ => Err(Error::Corrupt("a task that has ended does not end its log".to_owned())),
    }
}

/// Refuses records that no log can have: out of order, or with a standing that contradicts them.
pub(super) fn check_records(records: &[Record], standing: &Standing) -> Result<(), Error> {
    let follows = |pair: &[Record]| pair[1].seq == pair[0].seq + 1;
    if !records.windows(2).all(follows) {
        return Err(Error::Corrupt("the numbers of appended records do not follow each other".to_owned()));
    }
    let ended = |record: &Record| matches!(record.event, TaskEvent::Ended { .. });
    let ends = records.last().is_some_and(ended);
    let ends_early = records.iter().rev().skip(1).any(ended);
    if ends_early || ends != standing.status.is_final() || ends != standing.completed_at.is_some() {
        return Err(Error::Corrupt("appended records and the task's standing contradict each other".to_owned()));
    }
    Ok(())
}

impl From<Misfit> for Error {
    fn from(misfit: Misfit) -> Self {
        Self::Corrupt(misfit.to_string())
    }
}
