//! A store that forgets everything with its process: for tests, and for applications that keep nothing.

mod attic;
mod board;
mod context;
mod sessions;
mod spending;
mod tables;
mod unfinished;

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use locum_core::ids::{Seq, SessionKey, TaskId, Timestamp, Uid};
use locum_core::session::Lookup;
use locum_core::task::Record;
use locum_core::task::summary::Standing;
use tokio::sync::watch;

use self::tables::Tables;
use super::notice::Notice;
use super::settling::{self, check_records};
use super::{
    Appended, Command, DecideError, Decided, Decision, Error, Inbox, Lease, Leases, Logs, Owner, OwnerId, OwnerRow,
    Position, SessionRow, Sessions, Store, Sweep, Swept, Tail, TaskQuery, TaskRow,
};

/// Keeps tasks and sessions in memory.
#[derive(Debug)]
pub struct MemoryStore {
    // A mutex of the standard library: nothing awaits under it, and what is done under it is short.
    tables: Mutex<Tables>,
    changes: watch::Sender<u64>,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self { tables: Mutex::default(), changes: watch::Sender::new(0) }
    }

    /// Works on the tables when the future is polled, and tells watchers if the work says so.
    fn work<'a, T: Send + 'a, E: Send + 'a>(
        &'a self,
        work: impl FnOnce(&mut Tables) -> Result<(T, Notice), E> + Send + 'a,
    ) -> BoxFuture<'a, Result<T, E>> {
        Box::pin(async move {
            // Who panicked under the lock was a decision, and a decision is made before anything is changed.
            let answer = work(&mut self.tables.lock().unwrap_or_else(PoisonError::into_inner));
            let (answer, notice) = answer?;
            match notice {
                Notice::None => {}
                Notice::Changed => self.changes.send_modify(|count| *count += 1),
            }
            Ok(answer)
        })
    }
}

impl Store for MemoryStore {
    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

impl Sessions for MemoryStore {
    fn decide(
        &self,
        session: &SessionKey,
        lookup: Lookup,
        holder: Option<OwnerId>,
        decision: Decision,
    ) -> BoxFuture<'_, Result<Decided, DecideError>> {
        let session = session.clone();
        self.work(move |tables| {
            let changes = decision(&tables.view(&session, &lookup))?;
            let decided = tables.change(&session, changes, holder)?;
            let notice = Notice::when(!decided.accepted.is_empty());
            Ok((decided, notice))
        })
    }

    fn tasks(&self, query: TaskQuery) -> BoxFuture<'_, Result<Vec<TaskRow>, Error>> {
        self.work(move |tables| Ok((tables.query(&query), Notice::None)))
    }

    fn sessions(&self, project: &str) -> BoxFuture<'_, Result<Vec<SessionRow>, Error>> {
        let project = project.to_owned();
        self.work(move |tables| {
            let ours = tables.sessions.iter().filter(|(key, _)| *key.project == *project);
            Ok((ours.map(|(key, session)| session.row(&key.id)).collect(), Notice::None))
        })
    }

    fn queued_before(&self, session: &SessionKey, task_id: TaskId) -> BoxFuture<'_, Result<usize, Error>> {
        let session = session.clone();
        self.work(move |tables| {
            let session = tables.sessions.get(&session);
            Ok((session.map_or(0, |session| session.unfinished.queued_before(task_id)), Notice::None))
        })
    }
}

impl Logs for MemoryStore {
    fn append(
        &self,
        lease: &Lease,
        records: Arc<[Record]>,
        standing: Standing,
    ) -> BoxFuture<'_, Result<Appended, Error>> {
        let lease = lease.clone();
        self.work(move |tables| {
            check_records(&records, &standing)?;
            let (Some(first), Some(last)) = (records.first(), records.last()) else {
                return Ok((Appended::default(), Notice::None));
            };
            let at = last.at;
            let entry = tables.held(&lease)?;
            if entry.row.summary.seq + 1 != first.seq {
                return Err(Error::Conflict);
            }
            let session = entry.row.session.clone();
            let nearing = tables.spend(&session, &lease.uid, &records, standing.draw.as_ref())?;
            let (ended, won) = (standing.status.is_final(), standing.won.clone());
            tables.write(&lease.uid, records, standing)?;
            let shelf = &mut tables.shelf(&session);
            let moved = if ended { settling::settle(shelf, at, won.as_ref())? } else { Vec::new() };
            Ok((Appended { moved, nearing }, Notice::when(ended)))
        })
    }

    fn records(&self, uid: &Uid, after: Seq, most: usize) -> BoxFuture<'_, Result<Vec<Record>, Error>> {
        let uid = uid.clone();
        self.work(move |tables| {
            let log = tables.tasks.get(&uid).ok_or(Error::NotFound)?.log();
            Ok((log.filter(|record| record.seq > after).take(most).cloned().collect(), Notice::None))
        })
    }

    fn tail(&self, session: &SessionKey, after: Position, most: usize) -> BoxFuture<'_, Result<Tail, Error>> {
        let session = session.clone();
        self.work(move |tables| Ok((tables.tail(&session, after, most), Notice::None)))
    }

    fn sweep(&self, sweep: Sweep) -> BoxFuture<'_, Result<Swept, Error>> {
        self.work(move |tables| Ok((tables.sweep(&sweep), Notice::None)))
    }
}

impl Leases for MemoryStore {
    fn beat(&self, owner: &Owner, now: Timestamp) -> BoxFuture<'_, Result<(), Error>> {
        let row = OwnerRow { owner: owner.clone(), beat_at: now };
        self.work(move |tables| {
            tables.owners.insert(row.owner.id, row);
            Ok(((), Notice::None))
        })
    }

    fn owners(&self) -> BoxFuture<'_, Result<Vec<OwnerRow>, Error>> {
        self.work(move |tables| {
            let holds = |id: &OwnerId| tables.tasks.values().any(|entry| entry.row.owner == Some(*id));
            let owners = tables.owners.values().filter(|row| holds(&row.owner.id));
            Ok((owners.cloned().collect(), Notice::None))
        })
    }

    fn claim(&self, uid: &Uid, owner: OwnerId, dead: Vec<OwnerId>) -> BoxFuture<'_, Result<Option<Lease>, Error>> {
        let uid = uid.clone();
        self.work(move |tables| {
            let entry = tables.tasks.get_mut(&uid).ok_or(Error::NotFound)?;
            if entry.row.summary.standing.status.is_final() {
                return Ok((None, Notice::None));
            }
            match entry.row.owner {
                Some(holder) if holder == owner => {}
                Some(holder) if !dead.contains(&holder) => return Ok((None, Notice::None)),
                Some(_) | None => {
                    entry.row.owner = Some(owner);
                    entry.epoch += 1;
                }
            }
            Ok((Some(Lease { uid, owner, epoch: entry.epoch }), Notice::None))
        })
    }

    fn release(&self, lease: &Lease) -> BoxFuture<'_, Result<(), Error>> {
        let lease = lease.clone();
        self.work(move |tables| {
            let Ok(entry) = tables.held(&lease) else { return Ok(((), Notice::None)) };
            entry.row.owner = None;
            Ok(((), Notice::Changed))
        })
    }
}

impl Inbox for MemoryStore {
    fn send(&self, uid: &Uid, command: Command) -> BoxFuture<'_, Result<(), Error>> {
        let uid = uid.clone();
        self.work(move |tables| {
            let entry = tables.tasks.get(&uid).ok_or(Error::NotFound)?;
            if entry.row.summary.standing.status.is_final() {
                return Ok(((), Notice::None));
            }
            tables.inbox.push((uid, command));
            Ok(((), Notice::Changed))
        })
    }

    fn drain(&self, owner: OwnerId) -> BoxFuture<'_, Result<Vec<(Uid, Command)>, Error>> {
        self.work(move |tables| {
            let Tables { tasks, inbox, .. } = tables;
            let holds = |uid: &Uid| tasks.get(uid).is_some_and(|entry| entry.row.owner == Some(owner));
            let drained = inbox.extract_if(.., |(uid, _)| holds(uid)).collect();
            Ok((drained, Notice::None))
        })
    }
}
