//! How a log begins.

use super::event::TaskEvent;
use super::{Misfit, Record, Step, Task};
use crate::session::Acceptance;

impl Acceptance {
    /// Announces the first turn together with the acceptance, where whoever accepts the task asks its model at once: the
    /// task then asks one write sooner. What must be covered by a purse is announced when it is drawn.
    pub fn announce_first_turn(&mut self) {
        self.first_turn = self.begin().ok().and_then(|(task, _)| match task.next_step() {
            Step::Record(event @ TaskEvent::TurnStarted { .. }) if task.draw().is_none() => Some(event),
            _ => None,
        });
    }

    /// The task as it is accepted, and the records that begin its log.
    pub fn begin(&self) -> Result<(Task, Vec<Record>), Misfit> {
        let Self { plan, parked, first_turn, .. } = self;
        let event = TaskEvent::Accepted { plan: plan.clone(), parked: *parked };
        let mut records = vec![Record { seq: 1, at: plan.created_at, event }];
        let mut task = Task::accepted(records[0].clone())?;
        if let Some(event) = first_turn.clone() {
            let record = Record { seq: 2, at: plan.created_at, event };
            task.apply(record.clone())?;
            records.push(record);
        }
        Ok((task, records))
    }
}
