//! Keeping a request for several tasks with the first that it starts, so that its answer can be had later.

use std::sync::Arc;

use crate::admission::{Admitted, Order};
use crate::protocol::Refusal;
use crate::protocol::response::RefusedEntry;
use crate::task::errand::{Errand, ErrandEntry, Form};

/// Writes what was decided about orders into the plan of the first new task. Where there is none, nothing is kept.
pub fn keep(form: Form, orders: &[Order], verdicts: &mut [Result<Admitted, Refusal>]) {
    let entry = |(order, verdict): (&Order, &Result<Admitted, Refusal>)| match verdict {
        Ok(Admitted::New(acceptance)) => ErrandEntry::Task(acceptance.plan.task_id),
        Ok(Admitted::Same(same)) => ErrandEntry::Task(same.task_id),
        Err(refusal) => ErrandEntry::Refused(RefusedEntry {
            refusal: refusal.clone(),
            agent: order.entry.agent.clone(),
            task: order.entry.task.clone(),
        }),
    };
    let entries = orders.iter().zip(verdicts.iter()).map(entry).collect();
    let first = verdicts.iter_mut().find_map(|verdict| match verdict {
        Ok(Admitted::New(acceptance)) => Some(acceptance),
        Ok(Admitted::Same(_)) | Err(_) => None,
    });
    if let Some(first) = first {
        Arc::make_mut(&mut first.plan).errand = Some(Errand { form, entries });
    }
}
