//! What a decision sees of a session in memory, and how its changes are made: all of them, or none.

use locum_core::budget::{self, Drawn};
use locum_core::ids::{SessionKey, TaskId};
use locum_core::session::{Acceptance, IdempotentTask, KnownTask, Lookup, SessionChange, SessionView};

use super::tables::{SessionTable, Tables, TaskEntry};
use crate::store::{Decided, Error, OwnerId, TaskRow, settling};

impl Tables {
    /// What a decision asked to see.
    pub(super) fn view(&self, key: &SessionKey, lookup: &Lookup) -> SessionView {
        let empty = SessionTable::default();
        let session = self.sessions.get(key).unwrap_or(&empty);
        let known = |id: &TaskId| Some((*id, self.known(session, *id)?));
        let idempotent = |key: &String| {
            let (fingerprint, task_id) = *session.idempotency.get(key)?;
            Some((key.clone(), IdempotentTask { fingerprint, task_id, known: self.known(session, task_id)? }))
        };
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let (running, parked) = (session.unfinished.running(), session.unfinished.parked());
        SessionView {
            exists: self.sessions.contains_key(key),
            archived: session.archived,
            next_task: session.next_task,
            running: count(running),
            unfinished: count(running + parked),
            spawned: session.delegated,
            purses: lookup.purses.iter().filter_map(|key| Some((key.clone(), *session.purses.get(key)?))).collect(),
            defined: if lookup.agents { session.agents.values().cloned().collect() } else { Vec::new() },
            tasks: lookup.tasks.iter().filter_map(known).collect(),
            idempotent: lookup.idempotency_keys.iter().filter_map(idempotent).collect(),
            context: session.context_view(&lookup.context),
            board: self.board_view(session, lookup.board),
        }
    }

    fn known(&self, session: &SessionTable, id: TaskId) -> Option<KnownTask> {
        let row = &self.tasks.get(session.tasks.get(&id)?)?.row;
        Some(KnownTask {
            uid: row.summary.uid.clone(),
            agent: row.summary.agent.clone(),
            status: row.summary.standing.status,
            collected: row.collected,
        })
    }

    /// Makes the changes of a decision and settles what they accepted.
    pub(super) fn change(
        &mut self,
        key: &SessionKey,
        changes: Vec<SessionChange>,
        holder: Option<OwnerId>,
    ) -> Result<Decided, Error> {
        self.check(key, &changes)?;
        let mut accepted = Vec::new();
        let mut at = None;
        for change in changes {
            match change {
                SessionChange::Accept(acceptance) => {
                    accepted.push(acceptance.plan.uid.clone());
                    at = Some(acceptance.plan.created_at);
                    self.accept(*acceptance, holder)?;
                }
                SessionChange::Collect { task_id, at: _ } => self.collect(key, task_id),
                SessionChange::Define(agent) => {
                    self.session(key).agents.insert(agent.name.clone(), *agent);
                }
                SessionChange::PutContext(entry) => self.session(key).put_context(entry),
                SessionChange::RemoveContext { key: name, .. } => self.session(key).remove_context(&name),
                SessionChange::PutSnapshot(snapshot) => {
                    self.session(key).snapshots.insert(snapshot.line.label.clone(), *snapshot);
                }
                SessionChange::PutBoardTask(task) => self.session(key).put_board_task(*task),
                SessionChange::Create => {
                    self.session(key);
                }
                SessionChange::Archive => self.session(key).archived = true,
                SessionChange::Delete => self.delete(key),
            }
        }
        let moved = match at {
            Some(at) => settling::settle(&mut self.shelf(key), at, None)?,
            None => Vec::new(),
        };
        let accepted = accepted.iter().filter_map(|uid| self.tasks.get(uid)).map(|entry| entry.row.clone()).collect();
        Ok(Decided { accepted, moved })
    }

    /// Looks at everything that can be wrong with changes before the first of them is made.
    fn check(&self, key: &SessionKey, changes: &[SessionChange]) -> Result<(), Error> {
        let session = self.sessions.get(key);
        let mut next_task = session.map_or(1, |session| session.next_task);
        for change in changes {
            match change {
                SessionChange::Accept(acceptance) => {
                    let plan = &acceptance.plan;
                    let taken = self.tasks.contains_key(&plan.uid) || plan.task_id.number() < next_task;
                    if taken || plan.session != *key {
                        return Err(Error::Corrupt(format!("{} was accepted under an id that is taken", plan.task_id)));
                    }
                    next_task = plan.task_id.number() + 1;
                }
                SessionChange::Collect { task_id, .. } => {
                    session.and_then(|session| session.tasks.get(task_id)).ok_or(Error::NotFound)?;
                }
                SessionChange::Define(_)
                | SessionChange::PutContext(_)
                | SessionChange::RemoveContext { .. }
                | SessionChange::PutSnapshot(_)
                | SessionChange::PutBoardTask(_)
                | SessionChange::Create
                | SessionChange::Archive
                | SessionChange::Delete => {}
            }
        }
        Ok(())
    }

    fn session(&mut self, key: &SessionKey) -> &mut SessionTable {
        self.sessions.entry(key.clone()).or_default()
    }

    fn accept(&mut self, acceptance: Acceptance, holder: Option<OwnerId>) -> Result<(), Error> {
        let (task, records) = acceptance.begin()?;
        let Acceptance { plan, idempotency, .. } = acceptance;
        let (uid, task_id, key) = (plan.uid.clone(), plan.task_id, plan.session.clone());
        let counted_in = budget::counted_in(&plan);
        let mut summary = task.summary();
        summary.standing.draw = None;
        let session = self.session(&key);
        session.count_spawn(counted_in);
        session.next_task = task_id.number() + 1;
        session.spawned += 1;
        session.tasks.insert(task_id, uid.clone());
        session.unfinished.note(&summary, summary.standing.status);
        if let Some((key, fingerprint)) = idempotency {
            session.idempotency.entry(key).or_insert((fingerprint, task_id));
        }
        let row = TaskRow { session: key, summary, collected: false, owner: holder };
        self.accepted += 1;
        self.order.extend(records.iter().map(|record| (uid.clone(), record.seq)));
        let entry = TaskEntry {
            age: self.accepted,
            row,
            epoch: u64::from(holder.is_some()),
            drawn: Drawn::default(),
            records: vec![records.into()],
        };
        self.tasks.insert(uid, entry);
        Ok(())
    }

    fn collect(&mut self, key: &SessionKey, task_id: TaskId) {
        let uid = self.sessions.get(key).and_then(|session| session.tasks.get(&task_id));
        if let Some(entry) = uid.and_then(|uid| self.tasks.get_mut(uid)) {
            entry.row.collected = true;
        }
    }

    fn delete(&mut self, key: &SessionKey) {
        self.sessions.remove(key);
        self.tasks.retain(|_, entry| entry.row.session != *key);
        self.inbox.retain(|(uid, _)| self.tasks.contains_key(uid));
    }
}
