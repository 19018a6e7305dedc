//! A store that does as it is told to: it fails, is slow, or shows nonsense, and is a memory store otherwise.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use locum::store::memory::MemoryStore;
use locum::store::{
    Appended, Command, DecideError, Decided, Decision, Error, Inbox, Lease, Leases, Logs, Owner, OwnerId, OwnerRow,
    Position, SessionRow, Sessions, Store, Sweep, Swept, Tail, TaskQuery, TaskRow,
};
use locum::task::Record;
use locum::{SessionKey, Timestamp, Uid};
use locum_core::ids::{Seq, TaskId};
use locum_core::session::Lookup;
use locum_core::task::summary::Standing;
use tokio::sync::watch;

/// What is wrong with the store.
#[derive(Debug, Clone, Default)]
pub(crate) struct Faults {
    /// Appends that fail from now on, after so many that do not.
    pub(crate) appends: Option<FailingAppends>,
    /// How long a decision or a claim takes; it takes effect also if nobody waits for it.
    pub(crate) delay: Duration,
    /// A task whose log makes no sense.
    pub(crate) nonsense: Option<Uid>,
}

/// Appends that fail.
#[derive(Debug, Clone)]
pub(crate) struct FailingAppends {
    /// So many succeed before.
    pub(crate) after: usize,
    /// So many fail then.
    pub(crate) times: usize,
    /// Whether they are written all the same.
    pub(crate) written: bool,
}

/// A memory store with faults. A clone is the same store.
#[derive(Clone, Default)]
pub(crate) struct FaultyStore {
    inner: Arc<MemoryStore>,
    faults: Arc<Mutex<Faults>>,
    looks: Arc<AtomicUsize>,
}

impl FaultyStore {
    /// How often somebody looked at what a session wrote.
    pub(crate) fn looks(&self) -> usize {
        self.looks.load(Ordering::SeqCst)
    }

    /// Sets what is wrong from now on.
    pub(crate) fn set(&self, faults: Faults) {
        *self.faults.lock().unwrap() = faults;
    }

    fn delay(&self) -> Duration {
        self.faults.lock().unwrap().delay
    }

    /// What becomes of the next append: none if it is written and said to be.
    fn next_append(&self) -> Option<FailingAppends> {
        let mut faults = self.faults.lock().unwrap();
        let appends = faults.appends.as_mut()?;
        if appends.after > 0 {
            appends.after -= 1;
            return None;
        }
        appends.times = appends.times.checked_sub(1)?;
        Some(appends.clone())
    }
}

/// Does something that takes effect though its caller leaves.
async fn own<T: Send + 'static>(delay: Duration, work: impl Future<Output = T> + Send + 'static) -> T {
    if delay.is_zero() {
        return work.await;
    }
    let work = tokio::spawn(async move {
        tokio::time::sleep(delay).await;
        work.await
    });
    work.await.unwrap()
}

impl Store for FaultyStore {
    fn changes(&self) -> watch::Receiver<u64> {
        self.inner.changes()
    }
}

impl Sessions for FaultyStore {
    fn decide(
        &self,
        session: &SessionKey,
        lookup: Lookup,
        holder: Option<OwnerId>,
        decision: Decision,
    ) -> BoxFuture<'_, Result<Decided, DecideError>> {
        let (inner, session, delay) = (Arc::clone(&self.inner), session.clone(), self.delay());
        Box::pin(own(delay, async move { inner.decide(&session, lookup, holder, decision).await }))
    }

    fn tasks(&self, query: TaskQuery) -> BoxFuture<'_, Result<Vec<TaskRow>, Error>> {
        self.inner.tasks(query)
    }

    fn queued_before(&self, session: &SessionKey, task_id: TaskId) -> BoxFuture<'_, Result<usize, Error>> {
        self.inner.queued_before(session, task_id)
    }

    fn sessions(&self, project: &str) -> BoxFuture<'_, Result<Vec<SessionRow>, Error>> {
        self.inner.sessions(project)
    }
}

impl Logs for FaultyStore {
    fn append(
        &self,
        lease: &Lease,
        records: Arc<[Record]>,
        standing: Standing,
    ) -> BoxFuture<'_, Result<Appended, Error>> {
        let fault = self.next_append();
        let lease = lease.clone();
        Box::pin(async move {
            match fault {
                None => self.inner.append(&lease, records, standing).await,
                Some(fault) => {
                    if fault.written {
                        self.inner.append(&lease, records, standing).await?;
                    }
                    Err(Error::Failed("the disk is full".into()))
                }
            }
        })
    }

    fn records(&self, uid: &Uid, after: Seq, most: usize) -> BoxFuture<'_, Result<Vec<Record>, Error>> {
        // The first record alone is asked for where only the plan matters.
        if most > 1 && self.faults.lock().unwrap().nonsense.as_ref() == Some(uid) {
            return Box::pin(async { Err(Error::Corrupt("nonsense".to_owned())) });
        }
        self.inner.records(uid, after, most)
    }

    fn tail(&self, session: &SessionKey, after: Position, most: usize) -> BoxFuture<'_, Result<Tail, Error>> {
        self.looks.fetch_add(1, Ordering::SeqCst);
        self.inner.tail(session, after, most)
    }

    fn sweep(&self, sweep: Sweep) -> BoxFuture<'_, Result<Swept, Error>> {
        self.inner.sweep(sweep)
    }
}

impl Leases for FaultyStore {
    fn beat(&self, owner: &Owner, now: Timestamp) -> BoxFuture<'_, Result<(), Error>> {
        self.inner.beat(owner, now)
    }

    fn owners(&self) -> BoxFuture<'_, Result<Vec<OwnerRow>, Error>> {
        self.inner.owners()
    }

    fn claim(&self, uid: &Uid, owner: OwnerId, dead: Vec<OwnerId>) -> BoxFuture<'_, Result<Option<Lease>, Error>> {
        let (inner, uid, delay) = (Arc::clone(&self.inner), uid.clone(), self.delay());
        Box::pin(own(delay, async move { inner.claim(&uid, owner, dead).await }))
    }

    fn release(&self, lease: &Lease) -> BoxFuture<'_, Result<(), Error>> {
        self.inner.release(lease)
    }
}

impl Inbox for FaultyStore {
    fn send(&self, uid: &Uid, command: Command) -> BoxFuture<'_, Result<(), Error>> {
        self.inner.send(uid, command)
    }

    fn drain(&self, owner: OwnerId) -> BoxFuture<'_, Result<Vec<(Uid, Command)>, Error>> {
        self.inner.drain(owner)
    }
}
