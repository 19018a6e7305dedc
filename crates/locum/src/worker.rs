//! The tasks that this process works on: claimed, driven, stopped and given back here. Everything that is started is
//! kept and ended here too.

mod claiming;
mod minding;
mod stopping;

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use futures_util::FutureExt;
use locum_core::ids::{Seq, Uid};
use locum_core::task::event::StopCause;
use locum_core::task::{Status, Step, Task, TaskEvent};
use tokio::task::JoinError;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::attached::{self, Post};
use crate::desk::Desk;
use crate::driver::{Driver, Finish, StopSignals};
use crate::engine::Engine;
use crate::journal::{Journal, JournalError};
use crate::progress::News;
use crate::store::{Error, Lease, Owner, TaskQuery};
use crate::workspace;

pub(crate) use claiming::{claim, claim_all};
use claiming::{give_back, reclaim};
pub(crate) use minding::be_known;
use minding::watch;
pub(crate) use stopping::{cancel, cancel_all, hand_over};

/// Records read at once when a task is replayed: the whole log, which the turn and output limits bound.
const WHOLE_LOG: usize = usize::MAX;

/// The first entry of every log.
const ACCEPTED_SEQ: Seq = 1;

/// A store that fails is tried this often before a task is given up as it is.
const STORE_ATTEMPTS: u32 = 5;

/// What a drive may take while it waits. A thousand of them wait at once, and each is moved when it starts and ends: what
/// is large and rare is kept elsewhere.
const DRIVE_BYTES_MAX: usize = 4096;

/// Told about tasks that may start because of what was recorded.
pub(crate) type Moved<'a> = dyn Fn(Vec<Uid>) + Send + Sync + 'a;

/// The tasks of this process.
pub(crate) struct Worker {
    pub(crate) owner: Owner,
    held: Mutex<HashMap<Uid, Held>>,
    /// The tasks that were held when, or since, this process began to close.
    left: Mutex<BTreeSet<Uid>>,
    tracker: TaskTracker,
    started: std::sync::Once,
    /// When this process last showed that it lives. Nothing awaits under this lock.
    shown: Mutex<Option<Instant>>,
}

/// A task that this process holds.
#[derive(Clone)]
struct Held {
    lease: Lease,
    signals: StopSignals,
    /// Set when the task has ended or was given up.
    done: CancellationToken,
    /// The task, once it has ended.
    ended: Arc<OnceLock<Box<Task>>>,
    state: HeldState,
}

/// The end of a task that this process holds.
pub(crate) struct Ending {
    done: CancellationToken,
    ended: Arc<OnceLock<Box<Task>>>,
}

impl Ending {
    /// Waits until the task is no longer held here; the task itself if it has ended, so that nobody need read it back.
    pub(crate) async fn reached(&self) -> Option<&Task> {
        self.done.cancelled().await;
        self.ended.get().map(Box::as_ref)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HeldState {
    /// It waits for a place or for other tasks.
    Parked,
    /// A driver is at work.
    Driven,
}

impl Worker {
    pub(crate) fn new(owner: Owner) -> Self {
        let started = std::sync::Once::new();
        Self {
            owner,
            held: Mutex::default(),
            left: Mutex::default(),
            tracker: TaskTracker::new(),
            started,
            shown: Mutex::default(),
        }
    }

    fn left(&self) -> MutexGuard<'_, BTreeSet<Uid>> {
        // Nothing panics or awaits under this lock.
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn held(&self) -> MutexGuard<'_, HashMap<Uid, Held>> {
        // Nothing panics or awaits under this lock.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The end of a task that this process holds; none for tasks of other processes.
    pub(crate) fn ending(&self, uid: &Uid) -> Option<Ending> {
        self.held().get(uid).map(|held| Ending { done: held.done.clone(), ended: Arc::clone(&held.ended) })
    }

    fn holds(&self, uid: &Uid) -> bool {
        self.held().contains_key(uid)
    }

    /// Whether a task that this process holds was told to end.
    pub(crate) fn is_cancelled(&self, uid: &Uid) -> bool {
        self.held().get(uid).is_some_and(|held| held.signals.cancel.is_cancelled())
    }

    /// The number of tasks that this process holds.
    pub(crate) fn held_count(&self) -> usize {
        self.held().len()
    }
}

/// Takes a task up. The lease must be this process's own; `task` is as its log tells it.
pub(crate) fn take_up(engine: &Arc<Engine>, lease: Lease, task: Task) {
    watch(engine);
    let signals = StopSignals::default();
    let closed = engine.closed.is_cancelled();
    if closed {
        // It came too late: its driver gives it back at once.
        signals.hand_over.cancel();
        engine.worker.left().insert(task.plan().uid.clone());
    }
    let uid = task.plan().uid.clone();
    let parked = matches!(task.status(), Status::Queued | Status::Waiting);
    match engine.worker.held().entry(uid.clone()) {
        // Two claims at once get the same lease; one driver is enough.
        Entry::Occupied(_) => return,
        Entry::Vacant(vacant) => {
            let (done, ended) = (CancellationToken::new(), Arc::default());
            vacant.insert(Held { lease, signals, done, ended, state: HeldState::Parked });
        }
    }
    if (!parked || closed)
        && let Some(held) = begin(engine, &uid)
    {
        spawn_driver(engine, held, task);
    }
}

/// Lets something run to its end, also if the caller no longer waits for it.
pub(crate) async fn owned<T: Send + 'static>(
    engine: &Engine,
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, JoinError> {
    engine.worker.tracker.spawn(work).await
}

/// Replays a task from its log.
pub(crate) async fn load(engine: &Engine, uid: &Uid) -> Result<Task, Error> {
    let records = engine.hands.store.records(uid, 0, WHOLE_LOG).await?;
    Task::replay(records).map_err(|misfit| Error::Corrupt(format!("task {uid}: {misfit}")))
}

/// Marks a parked task as driven; none if somebody else was faster.
fn begin(engine: &Engine, uid: &Uid) -> Option<Held> {
    let mut all = engine.worker.held();
    let held = all.get_mut(uid).filter(|held| held.state == HeldState::Parked)?;
    held.state = HeldState::Driven;
    Some(held.clone())
}

/// Goes on with a parked task as its log tells it now, unless somebody else was faster.
async fn unpark(engine: &Arc<Engine>, uid: &Uid) -> Result<(), Error> {
    let task = load(engine, uid).await?;
    if let Some(held) = begin(engine, uid) {
        // What the store recorded while the task was parked was told to nobody yet.
        tell(engine, uid, ACCEPTED_SEQ).await;
        spawn_driver(engine, held, task);
    }
    Ok(())
}

/// Tells what a task's log says after an entry that was told before.
pub(crate) async fn tell(engine: &Engine, uid: &Uid, after: Seq) {
    let hands = &engine.hands;
    if !hands.hub.is_heard() {
        return;
    }
    // Who wants more than news reads the log.
    let Ok(records) = hands.store.records(uid, 0, WHOLE_LOG).await else { return };
    let Some(TaskEvent::Accepted { plan, .. }) = records.first().map(|record| record.event.clone()) else { return };
    for record in records.into_iter().filter(|record| record.seq > after) {
        hands.hub.tell(&plan, News::Event(Arc::new(record)));
    }
}

fn spawn_driver(engine: &Arc<Engine>, held: Held, task: Task) {
    let engine = Arc::clone(engine);
    let tracker = engine.worker.tracker.clone();
    let task = Box::new(task);
    let driving = async move {
        let uid = held.lease.uid.clone();
        let ended = work(&engine, task, held).await;
        // Nothing that the task started outlives it.
        engine.hands.jobs.end(&uid, &engine.hands.pool).await;
        let held = engine.worker.held().remove(&uid);
        if let Some(held) = held {
            if let Some(task) = ended {
                // Only its one driver ever says how a task ended.
                held.ended.set(task).ok();
            }
            held.done.cancel();
        }
    };
    debug_assert!(size_of_val(&driving) <= DRIVE_BYTES_MAX, "{} bytes for each task", size_of_val(&driving));
    tracker.spawn(driving);
}

/// Drives a task to its end, or gives it up as it is; the task if it has ended here.
async fn work(engine: &Arc<Engine>, mut task: Box<Task>, mut held: Held) -> Option<Box<Task>> {
    let uid = task.plan().uid.clone();
    for attempt in 0..STORE_ATTEMPTS {
        if attempt > 0 {
            // What was not written is forgotten: the log decides where to go on.
            tokio::time::sleep(Duration::from_millis(200 * u64::from(attempt))).await;
            match load(engine, &uid).await {
                Ok(reloaded) => *task = reloaded,
                Err(error) => {
                    engine.note(&task, "store", &error.to_string());
                    continue;
                }
            }
        }
        let driven = AssertUnwindSafe(drive(engine, &mut task, &held)).catch_unwind().await;
        let error = match driven {
            Ok(Ok(Finish::Ended)) => return Some(task),
            Ok(Ok(Finish::Parked | Finish::HandedOver)) => break,
            Ok(Err(JournalError::Store(Error::Conflict))) => match reclaim(engine, &mut held).await {
                // Somebody appended to the log, a release for example, and the task is still ours: go on from there.
                true => "the log has grown meanwhile".to_owned(),
                false => return None,
            },
            // A request that is not covered is the driver's own business: none is told here.
            Ok(Err(JournalError::Store(
                error @ (Error::Failed(_) | Error::Corrupt(_) | Error::NotFound | Error::Overdrawn(_)),
            ))) => error.to_string(),
            Ok(Err(error @ (JournalError::Misfit(_) | JournalError::Redaction(_)))) => {
                Box::pin(end_internally(engine, &uid, &held, error.to_string())).await;
                return None;
            }
            Err(_) => {
                Box::pin(end_internally(engine, &uid, &held, "the driver panicked".to_owned())).await;
                return None;
            }
        };
        engine.note(&task, "store", &error);
    }
    give_back(engine, &held.lease).await;
    None
}

async fn drive(engine: &Arc<Engine>, task: &mut Task, held: &Held) -> Result<Finish, JournalError> {
    let desk = Desk::of_engine(Arc::clone(engine), task.plan().session.clone());
    let weak = Arc::downgrade(engine);
    let moved = move |uids: Vec<Uid>| wake(&weak, uids);
    let _at_work = engine.hands.writers.enter(task);
    if engine.is_apart(task.plan()) {
        let (lease, signals) = (held.lease.clone(), held.signals.clone());
        return Box::pin(attached::drive(Post { engine, lease, signals, moved: &moved }, task)).await;
    }
    let driver = Driver {
        task,
        journal: Journal::new(&engine.hands, held.lease.clone()),
        hands: &engine.hands,
        desk,
        signals: held.signals.clone(),
        moved: &moved,
    };
    driver.drive().await
}

/// Ends a task that cannot be driven on, with what it has.
async fn end_internally(engine: &Arc<Engine>, uid: &Uid, held: &Held, details: String) {
    let Ok(mut task) = load(engine, uid).await else { return give_back(engine, &held.lease).await };
    engine.note(&task, "internal", &details);
    let mut journal = Journal::new(&engine.hands, held.lease.clone());
    let stopped = TaskEvent::Stopped { cause: StopCause::Internal { details }, partial: None };
    let ended = async {
        journal.push(&mut task, stopped)?;
        if matches!(task.next_step(), Step::CloseWorkspace)
            && let Some(event) = workspace::closed(&engine.hands, &task, held.signals.hand_over.clone()).await
        {
            journal.push(&mut task, event)?;
        }
        if let Step::Record(event) = task.next_step() {
            journal.push(&mut task, event)?;
        }
        journal.flush(&task).await
    };
    match ended.await {
        Ok(appended) => wake(&Arc::downgrade(engine), appended.moved),
        Err(_) => give_back(engine, &held.lease).await,
    }
}

/// Looks again at tasks that may have been released or ended by somebody else's append.
pub(crate) fn wake(engine: &Weak<Engine>, uids: Vec<Uid>) {
    let Some(engine) = engine.upgrade() else { return };
    let ours: Vec<Uid> = {
        let held = engine.worker.held();
        let parked = |uid: &Uid| held.get(uid).is_some_and(|held| held.state == HeldState::Parked);
        uids.into_iter().filter(parked).collect()
    };
    if ours.is_empty() {
        return;
    }
    let tracker = engine.worker.tracker.clone();
    tracker.spawn(async move { look_again(&engine, ours).await });
}

async fn look_again(engine: &Arc<Engine>, uids: Vec<Uid>) {
    let Ok(rows) = engine.hands.store.tasks(TaskQuery::Unparked(uids)).await else { return };
    for row in rows {
        // One that has ended meanwhile is driven too: there is nothing to do, and whoever waits for it is told.
        if let Err(error) = unpark(engine, &row.summary.uid).await {
            engine.note_about(&row.session, &row.summary, "store", &error.to_string());
        }
    }
}
