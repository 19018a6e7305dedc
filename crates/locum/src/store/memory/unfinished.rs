//! The tasks of a session that have not ended, so that nobody has to look through those that have, nor through a long
//! queue for who is next.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use locum_core::ids::{TaskId, Uid};
use locum_core::release::Places;
use locum_core::task::outcome::Status;
use locum_core::task::summary::TaskSummary;

/// The unfinished tasks of a session, by what they do.
#[derive(Debug, Default)]
pub(super) struct Unfinished {
    running: BTreeSet<TaskId>,
    waiting: BTreeSet<TaskId>,
    queued: BTreeMap<Places, BTreeSet<TaskId>>,
    /// How many unfinished tasks each task has delegated.
    delegated: HashMap<Uid, BTreeSet<TaskId>>,
}

impl Unfinished {
    /// Notes how a task stands now.
    pub(super) fn note(&mut self, task: &TaskSummary, status: Status) {
        let (id, places) = (task.task_id, Places::of(&task.start));
        self.running.remove(&id);
        self.waiting.remove(&id);
        if let Some(queue) = self.queued.get_mut(&places) {
            queue.remove(&id);
            if queue.is_empty() {
                self.queued.remove(&places);
            }
        }
        match status {
            Status::Running => _ = self.running.insert(id),
            Status::Waiting => _ = self.waiting.insert(id),
            Status::Queued => _ = self.queued.entry(places).or_default().insert(id),
            Status::Completed | Status::Failed | Status::Cancelled => {}
        }
        let Some(parent) = &task.parent else { return };
        let siblings = self.delegated.entry(parent.clone()).or_default();
        if status.is_final() {
            siblings.remove(&id);
        } else {
            siblings.insert(id);
        }
        if siblings.is_empty() {
            self.delegated.remove(parent);
        }
    }

    pub(super) fn running(&self) -> usize {
        self.running.len()
    }

    pub(super) fn parked(&self) -> usize {
        self.waiting.len() + self.queued.values().map(BTreeSet::len).sum::<usize>()
    }

    /// All of them.
    pub(super) fn all(&self) -> impl Iterator<Item = TaskId> {
        self.running.iter().chain(&self.waiting).chain(self.queued.values().flatten()).copied()
    }

    /// Those that run or wait for others, and of each queue the oldest, as many as there are places.
    pub(super) fn heads(&self) -> impl Iterator<Item = TaskId> {
        let heads = |(places, queue): (&Places, &'_ BTreeSet<TaskId>)| {
            queue.iter().take(places.count as usize).copied().collect::<Vec<_>>()
        };
        self.running.iter().chain(&self.waiting).copied().chain(self.queued.iter().flat_map(heads))
    }

    /// The tasks that have delegated any of them.
    pub(super) fn delegating(&self) -> HashSet<Uid> {
        self.delegated.keys().cloned().collect()
    }

    /// How many are queued that are older.
    pub(super) fn queued_before(&self, id: TaskId) -> usize {
        self.queued.values().map(|queue| queue.range(..id).count()).sum()
    }
}
