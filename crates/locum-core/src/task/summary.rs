//! A task on one line: what lists, waits and limits need to know without reading the log.

use crate::budget::Draw;
use crate::ids::{AgentName, Seq, TaskId, Timestamp, Uid};
use crate::task::event::Parked;
use crate::task::outcome::{Reason, Status};
use crate::task::plan::StartRule;
use crate::task::{Phase, Task};
use crate::usage::Usage;

/// A task on one line. Stores keep it beside the log and never compute it themselves.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskSummary {
    /// Its id everywhere.
    pub uid: Uid,
    /// Its id in the session.
    pub task_id: TaskId,
    /// The agent that works on it.
    pub agent: AgentName,
    /// The task that delegated it.
    pub parent: Option<Uid>,
    /// What its caller calls it.
    pub label: Option<String>,
    /// What must happen before it starts.
    pub start: StartRule,
    /// How far its log goes.
    pub seq: Seq,
    /// What changes from event to event.
    pub standing: Standing,
    /// When it was accepted.
    pub created_at: Timestamp,
}

/// The part of a summary that changes.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// Its state.
    pub status: Status,
    /// What it is doing.
    pub activity: Option<String>,
    /// What it used.
    pub usage: Usage,
    /// Why it failed, in words.
    pub error: Option<String>,
    /// Why it failed, as a word.
    pub reason: Option<Reason>,
    /// When it ended.
    pub completed_at: Option<Timestamp>,
    /// What it draws from purses, where it spends something that one of them bounds. Not part of what a store shows of
    /// a task: it is what an append must cover.
    pub draw: Option<Draw>,
    /// The race that it has won by completing. Like what it draws, it is for the append alone.
    pub won: Option<Uid>,
}

impl Task {
    /// The task on one line.
    pub fn summary(&self) -> TaskSummary {
        let plan = self.plan();
        TaskSummary {
            uid: plan.uid.clone(),
            task_id: plan.task_id,
            agent: plan.agent.name.clone(),
            parent: plan.lineage.parent.clone(),
            label: plan.assignment.label.clone(),
            start: plan.start.clone(),
            seq: self.seq,
            standing: self.standing(),
            created_at: self.clock.created,
        }
    }

    /// What of its summary has changed.
    pub fn standing(&self) -> Standing {
        let outcome = self.outcome();
        Standing {
            status: self.status(),
            activity: self.activity(),
            usage: self.usage().clone(),
            error: outcome.and_then(|outcome| outcome.error()).map(str::to_owned),
            reason: outcome.and_then(|outcome| outcome.reason()),
            completed_at: outcome.is_some().then_some(self.clock.last),
            draw: self.draw(),
            won: self.plan.start.race.clone().filter(|_| self.status() == Status::Completed),
        }
    }

    /// What the task is doing, for people.
    fn activity(&self) -> Option<String> {
        let turn = self.spent.usage.turns;
        match &self.phase {
            Phase::Parked(Parked::Queued) => Some("queued".to_owned()),
            Phase::Parked(Parked::Waiting) => Some("waiting for other tasks".to_owned()),
            Phase::Ready if turn == 0 => Some("starting".to_owned()),
            Phase::Ready | Phase::Answered => Some(format!("turn {turn}")),
            Phase::Asking { .. } if self.spent.failures > 0 => {
                Some(format!("turn {turn}: asking the model again after {} failed calls", self.spent.failures))
            }
            Phase::Asking { .. } => Some(format!("turn {turn}: asking the model")),
            Phase::Tooling(pending) => {
                let open = pending.iter().find(|pending| pending.is_open());
                open.map(|open| format!("turn {turn}: {}", open.call.name))
            }
            Phase::ModelGaveUp(_) | Phase::Stopped(_) => Some("ending".to_owned()),
            Phase::Ended(_) => None,
        }
    }
}
