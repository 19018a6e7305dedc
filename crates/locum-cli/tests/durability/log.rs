//! What must be true of every finished task's log, whatever happened to the processes that wrote it.

use std::collections::BTreeMap;

use locum::task::{Outcome, Record, TaskEvent};
use locum::transcript::{Repeat, ToolEnd};

/// A finished log, reduced to what is asserted about it.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// The turns that were answered, in order.
    pub(crate) answered: Vec<u32>,
    /// Unrepeatable calls whose outcome nobody knows.
    pub(crate) unknown: usize,
    /// Processes that ended while they worked on it.
    pub(crate) lost: u32,
    pub(crate) outcome: Option<Outcome>,
}

/// Reads a finished log; panics, naming `context`, where anything is missing or there twice.
pub(crate) fn read(records: &[Record], context: &str) -> Told {
    let mut told = Told::default();
    let mut started: BTreeMap<(u32, &str), u32> = BTreeMap::new();
    let mut ended: BTreeMap<(u32, &str), u32> = BTreeMap::new();
    for (place, record) in (1..).zip(records) {
        assert_eq!(record.seq, place, "{context}: the numbers have no gap");
        assert!(told.outcome.is_none(), "{context}: nothing follows the end");
        match &record.event {
            TaskEvent::Accepted { .. } => assert_eq!(place, 1, "{context}: accepted once, at the beginning"),
            TaskEvent::Replied { turn, .. } => told.answered.push(*turn),
            TaskEvent::ToolStarted { turn, call_id, repeat: Repeat::Unsafe, .. } => {
                *started.entry((*turn, call_id)).or_default() += 1;
            }
            TaskEvent::ToolEnded { turn, call_id, output, .. } => {
                *ended.entry((*turn, call_id)).or_default() += 1;
                told.unknown += usize::from(output.end == ToolEnd::Unknown);
            }
            TaskEvent::WorkerLost { .. } => told.lost += 1,
            TaskEvent::Ended { outcome } => told.outcome = Some(outcome.clone()),
            TaskEvent::ToolStarted { repeat: Repeat::Safe | Repeat::Guarded, .. }
            | TaskEvent::Released { .. }
            | TaskEvent::TurnStarted { .. }
            | TaskEvent::ModelFailed { .. }
            | TaskEvent::ModelReplaced { .. }
            | TaskEvent::TurnDeclined { .. }
            | TaskEvent::BudgetNearing { .. }
            | TaskEvent::WorkspaceReady { .. }
            | TaskEvent::WorkspaceClosed { .. }
            | TaskEvent::ProcessesEnded { .. }
            | TaskEvent::Stopped { .. } => {}
        }
    }
    assert!(told.outcome.is_some(), "{context}: the log ends with its end");
    assert!(started.values().all(|times| *times == 1), "{context}: unrepeatable calls start once: {started:?}");
    assert!(ended.values().all(|times| *times == 1), "{context}: calls end once: {ended:?}");
    told
}
