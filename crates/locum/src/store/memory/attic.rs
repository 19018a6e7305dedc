//! Forgetting what has ended long ago.

use std::collections::BTreeSet;

use locum_core::budget::PurseKey;
use locum_core::ids::{SessionKey, TaskId, Uid};

use super::tables::{Tables, TaskEntry};
use crate::store::{OwnerId, Sweep, Sweeping, Swept};

impl Tables {
    /// Looks for what is old, and removes it if that is asked for.
    pub(super) fn sweep(&mut self, sweep: &Sweep) -> Swept {
        let old = self.old(sweep);
        let entries = old.iter().filter_map(|uid| self.tasks.get(uid)).map(|entry| entry.records.len()).sum();
        let holders: BTreeSet<OwnerId> = self.tasks.values().filter_map(|entry| entry.row.owner).collect();
        let silent = |row: &&OwnerId| !holders.contains(row);
        let silent: Vec<OwnerId> = self
            .owners
            .iter()
            .filter(|(_, row)| row.beat_at < sweep.before)
            .map(|(id, _)| id)
            .filter(silent)
            .copied()
            .collect();
        let swept = Swept { tasks: old.len(), entries, owners: silent.len() };
        if sweep.sweeping == Sweeping::Remove {
            old.iter().for_each(|uid| self.forget(uid));
            silent.iter().for_each(|id| _ = self.owners.remove(id));
        }
        swept
    }

    /// Tasks that may go, oldest first: none that something unfinished came from or waits for.
    fn old(&self, sweep: &Sweep) -> Vec<Uid> {
        let unfinished = || self.tasks.values().filter(|entry| !entry.row.summary.standing.status.is_final());
        let mut needed: BTreeSet<&Uid> = sweep.kept.iter().collect();
        let mut waited_for: BTreeSet<(&SessionKey, TaskId)> = BTreeSet::new();
        for entry in unfinished() {
            let mut above = entry.row.summary.parent.as_ref();
            while let Some(parent) = above {
                needed.insert(parent);
                above = self.tasks.get(parent).and_then(|entry| entry.row.summary.parent.as_ref());
            }
            waited_for.extend(entry.row.summary.start.depends_on.iter().map(|id| (&entry.row.session, *id)));
        }
        let is_old = |entry: &&TaskEntry| {
            let summary = &entry.row.summary;
            summary.standing.completed_at.is_some_and(|at| at < sweep.before)
                && !needed.contains(&summary.uid)
                && !waited_for.contains(&(&entry.row.session, summary.task_id))
                && self.order.last().is_none_or(|(last, _)| *last != summary.uid)
        };
        let mut old: Vec<&TaskEntry> = self.tasks.values().filter(is_old).collect();
        old.sort_by_key(|entry| entry.age);
        old.into_iter().take(sweep.most).map(|entry| entry.row.summary.uid.clone()).collect()
    }

    fn forget(&mut self, uid: &Uid) {
        let Some(entry) = self.tasks.remove(uid) else { return };
        let Some(session) = self.sessions.get_mut(&entry.row.session) else { return };
        let task_id = entry.row.summary.task_id;
        session.tasks.remove(&task_id);
        session.idempotency.retain(|_, (_, known)| *known != task_id);
        if session.unfinished.running() + session.unfinished.parked() == 0 {
            session.purses.remove(&PurseKey::Task(uid.clone()));
            session.purses.remove(&PurseKey::Command(uid.clone()));
        }
    }
}
