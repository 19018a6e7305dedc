//! What the memory store holds under its lock, and how tasks are found in it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use locum_core::agent::AgentSpec;
use locum_core::budget::{Drawn, PurseKey, PurseState};
use locum_core::ids::{AgentName, BoardTaskId, Seq, SessionId, SessionKey, TaskId, Uid};
use locum_core::protocol::response::{BoardTask, Entry};
use locum_core::release::Unsettled;
use locum_core::session::Snapshot;
use locum_core::task::Record;
use locum_core::task::outcome::{Outcome, Status};
use locum_core::task::summary::{Standing, TaskSummary};

use super::unfinished::Unfinished;
use crate::store::settling::{Shelf, outcome_of};
use crate::store::{
    Command, Error, Lease, OwnerId, OwnerRow, PlacedRecord, Position, SessionRow, Tail, TaskQuery, TaskRow,
};

/// Everything.
#[derive(Debug, Default)]
pub(super) struct Tables {
    pub(super) sessions: BTreeMap<SessionKey, SessionTable>,
    pub(super) tasks: BTreeMap<Uid, TaskEntry>,
    pub(super) owners: BTreeMap<OwnerId, OwnerRow>,
    pub(super) inbox: Vec<(Uid, Command)>,
    /// How many tasks were ever accepted, in all sessions.
    pub(super) accepted: usize,
    /// Every record by its task and number, in the order in which they came.
    pub(super) order: Vec<(Uid, Seq)>,
}

/// A session.
#[derive(Debug)]
pub(super) struct SessionTable {
    pub(super) archived: bool,
    pub(super) next_task: u32,
    pub(super) spawned: u32,
    /// Of those, the ones that models started outside of a person's command.
    pub(super) delegated: u32,
    pub(super) purses: BTreeMap<PurseKey, PurseState>,
    pub(super) agents: BTreeMap<AgentName, AgentSpec>,
    pub(super) tasks: BTreeMap<TaskId, Uid>,
    pub(super) unfinished: Unfinished,
    pub(super) idempotency: BTreeMap<String, (u64, TaskId)>,
    pub(super) context: BTreeMap<String, ContextSlot>,
    pub(super) snapshots: BTreeMap<String, Snapshot>,
    pub(super) board: BTreeMap<BoardTaskId, BoardTask>,
}

impl Default for SessionTable {
    fn default() -> Self {
        Self {
            archived: false,
            next_task: 1,
            spawned: 0,
            delegated: 0,
            purses: BTreeMap::new(),
            agents: BTreeMap::new(),
            tasks: BTreeMap::new(),
            unfinished: Unfinished::default(),
            idempotency: BTreeMap::new(),
            context: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            board: BTreeMap::new(),
        }
    }
}

impl SessionTable {
    /// The session on one line.
    pub(super) fn row(&self, id: &SessionId) -> SessionRow {
        let unfinished = self.unfinished.running() + self.unfinished.parked();
        SessionRow {
            id: id.clone(),
            archived: self.archived,
            tasks: self.spawned,
            unfinished: u32::try_from(unfinished).unwrap_or(u32::MAX),
            keys: u32::try_from(self.keys_count()).unwrap_or(u32::MAX),
        }
    }
}

/// A key of the shared context that had a value.
#[derive(Debug)]
pub(super) struct ContextSlot {
    pub(super) live: bool,
    /// Its last versions, oldest first; never empty.
    pub(super) history: VecDeque<Entry>,
}

/// A task and its log.
#[derive(Debug)]
pub(super) struct TaskEntry {
    /// How many tasks were accepted before it, in all sessions.
    pub(super) age: usize,
    pub(super) row: TaskRow,
    pub(super) epoch: u64,
    /// What it holds of its purses.
    pub(super) drawn: Drawn,
    /// Its log, as it was appended.
    pub(super) records: Vec<Arc<[Record]>>,
}

impl TaskEntry {
    /// Everything that happened to it.
    pub(super) fn log(&self) -> impl DoubleEndedIterator<Item = &Record> {
        self.records.iter().flat_map(|records| records.iter())
    }
}

impl Tables {
    /// The tasks that a query asks for, oldest first.
    pub(super) fn query(&self, query: &TaskQuery) -> Vec<TaskRow> {
        let ended = |entry: &TaskEntry| entry.row.summary.standing.status.is_final();
        match query {
            TaskQuery::Uncollected(session) => {
                self.select(|entry| entry.row.session == *session && !entry.row.collected)
            }
            TaskQuery::Ids(session, ids) => {
                let tasks = self.sessions.get(session).map(|session| &session.tasks);
                in_order(ids.iter().filter_map(|id| self.tasks.get(tasks?.get(id)?)).collect())
            }
            TaskQuery::Uids(uids) => in_order(uids.iter().filter_map(|uid| self.tasks.get(uid)).collect()),
            TaskQuery::Unparked(uids) => {
                let parked =
                    |entry: &TaskEntry| matches!(entry.row.summary.standing.status, Status::Queued | Status::Waiting);
                in_order(uids.iter().filter_map(|uid| self.tasks.get(uid)).filter(|entry| !parked(entry)).collect())
            }
            TaskQuery::Children(parent) => self.select(|entry| entry.row.summary.parent.as_ref() == Some(parent)),
            TaskQuery::Unfinished(None) => self.select(|entry| !ended(entry)),
            TaskQuery::Unfinished(Some(session)) => self.select(|entry| entry.row.session == *session && !ended(entry)),
            TaskQuery::Page { project, session, before, most } => {
                // What is not known is before nothing.
                let before = match before {
                    Some(uid) => self.tasks.get(uid).map_or(0, |entry| entry.age),
                    None => usize::MAX,
                };
                let mut page = self.select(|entry| {
                    let key = &entry.row.session;
                    *key.project == **project && session.as_ref().is_none_or(|id| key.id == *id) && entry.age < before
                });
                page.reverse();
                page.truncate(*most);
                page
            }
        }
    }

    /// What the tasks of a session wrote after a position.
    pub(super) fn tail(&self, session: &SessionKey, after: Position, most: usize) -> Tail {
        let after = if most > 0 { after } else { Position { append: self.order.len() as u64, seq: Seq::MAX } };
        let begin = usize::try_from(after.append).unwrap_or(usize::MAX);
        let mut tail = Tail { records: Vec::new(), until: after, has_more: false };
        for (place, (uid, seq)) in self.order.iter().enumerate().skip(begin) {
            if tail.records.len() >= most {
                tail.has_more = true;
                break;
            }
            let position = Position { append: place as u64 + 1, seq: *seq };
            tail.until = position;
            let Some(entry) = self.tasks.get(uid).filter(|entry| entry.row.session == *session) else { continue };
            let record = entry.log().find(|record| record.seq == *seq);
            let summary = &entry.row.summary;
            tail.records.extend(record.map(|record| PlacedRecord {
                position,
                uid: uid.clone(),
                task_id: summary.task_id,
                agent: summary.agent.clone(),
                record: record.clone(),
            }));
        }
        tail
    }

    fn select(&self, wanted: impl Fn(&TaskEntry) -> bool) -> Vec<TaskRow> {
        in_order(self.tasks.values().filter(|entry| wanted(entry)).collect())
    }

    /// The task of a lease that is still good.
    pub(super) fn held(&mut self, lease: &Lease) -> Result<&mut TaskEntry, Error> {
        let entry = self.tasks.get_mut(&lease.uid).ok_or(Error::NotFound)?;
        // The owner of a task that has ended is nobody.
        if entry.row.owner != Some(lease.owner) || entry.epoch != lease.epoch {
            return Err(Error::Conflict);
        }
        Ok(entry)
    }

    /// Adds to a log and notes how the task stands. A task that has ended has no holder and takes no commands.
    pub(super) fn write(&mut self, uid: &Uid, records: Arc<[Record]>, standing: Standing) -> Result<(), Error> {
        let entry = self.tasks.get_mut(uid).ok_or(Error::NotFound)?;
        entry.row.summary.seq += records.len() as u64;
        self.order.extend(records.iter().map(|record| (uid.clone(), record.seq)));
        entry.records.push(records);
        if standing.status.is_final() {
            entry.row.owner = None;
            self.inbox.retain(|(other, _)| other != uid);
        }
        if let Some(session) = self.sessions.get_mut(&entry.row.session) {
            session.unfinished.note(&entry.row.summary, standing.status);
        }
        entry.row.summary.standing = Standing { draw: None, won: None, ..standing };
        Ok(())
    }

    pub(super) fn shelf<'a>(&'a mut self, session: &'a SessionKey) -> SessionShelf<'a> {
        SessionShelf { tables: self, session }
    }
}

/// Rows, oldest first, each once.
fn in_order(mut entries: Vec<&TaskEntry>) -> Vec<TaskRow> {
    entries.sort_by_key(|entry| entry.age);
    entries.dedup_by_key(|entry| entry.age);
    entries.into_iter().map(|entry| entry.row.clone()).collect()
}

/// One session's tasks, to be settled.
pub(super) struct SessionShelf<'a> {
    tables: &'a mut Tables,
    session: &'a SessionKey,
}

impl SessionShelf<'_> {
    /// These tasks and those that they wait for, by id.
    fn with_what_they_wait_for(&self, session: &SessionTable, tasks: impl Iterator<Item = TaskId>) -> Vec<TaskSummary> {
        let summary = |id: &TaskId| Some(&self.tables.tasks.get(session.tasks.get(id)?)?.row.summary);
        let mut wanted: BTreeSet<TaskId> = tasks.collect();
        let waited_for: Vec<TaskId> =
            wanted.iter().filter_map(summary).flat_map(|task| task.start.depends_on.iter().copied()).collect();
        wanted.extend(waited_for);
        wanted.iter().filter_map(summary).cloned().collect()
    }
}

impl Shelf for SessionShelf<'_> {
    fn is_anything_parked(&self) -> Result<bool, Error> {
        let session = self.tables.sessions.get(self.session);
        Ok(session.is_some_and(|session| session.unfinished.parked() > 0))
    }

    fn unsettled(&self) -> Result<Unsettled, Error> {
        let Some(session) = self.tables.sessions.get(self.session) else { return Ok(Unsettled::default()) };
        let tasks = self.with_what_they_wait_for(session, session.unfinished.heads());
        Ok(Unsettled { tasks, delegating: session.unfinished.delegating() })
    }

    fn unfinished(&self) -> Result<Vec<TaskSummary>, Error> {
        let Some(session) = self.tables.sessions.get(self.session) else { return Ok(Vec::new()) };
        Ok(self.with_what_they_wait_for(session, session.unfinished.all()))
    }

    fn log(&self, uid: &Uid) -> Result<Vec<Record>, Error> {
        Ok(self.tables.tasks.get(uid).ok_or(Error::NotFound)?.log().cloned().collect())
    }

    fn outcome(&self, uid: &Uid) -> Result<Outcome, Error> {
        outcome_of(self.tables.tasks.get(uid).and_then(|entry| entry.log().next_back().cloned()))
    }

    fn write(&mut self, uid: &Uid, record: Record, standing: Standing) -> Result<(), Error> {
        self.tables.write(uid, [record].into(), standing)
    }

    fn send(&mut self, uid: &Uid, command: Command) -> Result<(), Error> {
        self.tables.inbox.push((uid.clone(), command));
        Ok(())
    }
}
