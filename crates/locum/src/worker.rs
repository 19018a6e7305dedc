//! The tasks that this process works on: claimed, driven, stopped and given back here. Everything that is started is
//! kept and ended here too.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures_util::FutureExt;
use locum_core::ids::Uid;
use locum_core::task::event::StopCause;
use locum_core::task::{Status, Task, TaskEvent};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::desk::Desk;
use crate::driver::{Driver, Finish, StopSignals};
use crate::engine::Engine;
use crate::journal::{Journal, JournalError};
use crate::process;
use crate::store::{Command, Error, Lease, Owner, OwnerId, TaskQuery};

/// Records read at once when a task is replayed: the whole log, which the turn and output limits bound.
const WHOLE_LOG: usize = usize::MAX;

/// A store that fails is tried this often before a task is given up as it is.
const STORE_ATTEMPTS: u32 = 5;

/// The tasks of this process.
pub(crate) struct Worker {
    pub(crate) owner: Owner,
    held: Mutex<HashMap<Uid, Held>>,
    tracker: TaskTracker,
    started: std::sync::Once,
}

/// A task that this process holds.
#[derive(Clone)]
struct Held {
    lease: Lease,
    signals: StopSignals,
    /// Set when the task has ended or was given up.
    done: CancellationToken,
    state: HeldState,
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
        Self { owner, held: Mutex::default(), tracker: TaskTracker::new(), started: std::sync::Once::new() }
    }

    fn held(&self) -> MutexGuard<'_, HashMap<Uid, Held>> {
        // Nothing panics or awaits under this lock.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Set when a task that this process holds has ended; none for tasks of other processes.
    pub(crate) fn done(&self, uid: &Uid) -> Option<CancellationToken> {
        self.held().get(uid).map(|held| held.done.clone())
    }

    /// The number of tasks that this process holds.
    pub(crate) fn held_count(&self) -> usize {
        self.held().len()
    }
}

/// Takes a task up. The lease must be this process's own; `task` is as its log tells it.
pub(crate) fn take_up(engine: &Arc<Engine>, lease: Lease, task: Task) {
    watch(engine);
    let held =
        Held { lease, signals: StopSignals::default(), done: CancellationToken::new(), state: HeldState::Parked };
    let uid = task.plan().uid.clone();
    let parked = matches!(task.status(), Status::Queued | Status::Waiting);
    engine.worker.held().insert(uid.clone(), held);
    if !parked {
        start(engine, &uid, task);
    }
}

/// Claims a task that nobody works on, and takes it up.
pub(crate) async fn claim(engine: &Arc<Engine>, uid: &Uid, dead: Vec<OwnerId>) -> Result<bool, Error> {
    if engine.worker.done(uid).is_some() {
        return Ok(true);
    }
    // Who holds a task must be known before it holds it: an owner that nobody knows can never be found dead.
    engine.hands.store.beat(&engine.worker.owner, engine.hands.clock.now()).await?;
    let Some(lease) = engine.hands.store.claim(uid, engine.worker.owner.id, dead).await? else { return Ok(false) };
    let task = load(engine, uid).await?;
    take_up(engine, lease, task);
    Ok(true)
}

/// Replays a task from its log.
pub(crate) async fn load(engine: &Engine, uid: &Uid) -> Result<Task, Error> {
    let records = engine.hands.store.records(uid, 0, WHOLE_LOG).await?;
    Task::replay(records).map_err(|misfit| Error::Corrupt(format!("task {uid}: {misfit}")))
}

fn start(engine: &Arc<Engine>, uid: &Uid, task: Task) {
    let Some(held) = ({
        let mut all = engine.worker.held();
        all.get_mut(uid).map(|held| {
            held.state = HeldState::Driven;
            held.clone()
        })
    }) else {
        return;
    };
    let engine = Arc::clone(engine);
    let tracker = engine.worker.tracker.clone();
    tracker.spawn(async move {
        let uid = held.lease.uid.clone();
        work(&engine, task, held).await;
        let held = engine.worker.held().remove(&uid);
        if let Some(held) = held {
            held.done.cancel();
        }
    });
}

/// Drives a task to its end, or gives it up as it is.
async fn work(engine: &Arc<Engine>, mut task: Task, held: Held) {
    let uid = task.plan().uid.clone();
    for attempt in 1..=STORE_ATTEMPTS {
        let driven = AssertUnwindSafe(drive(engine, &mut task, &held)).catch_unwind().await;
        let error = match driven {
            Ok(Ok(Finish::Ended)) => return,
            Ok(Ok(Finish::Parked | Finish::HandedOver)) => return give_back(engine, &held.lease).await,
            Ok(Err(JournalError::Store(Error::Conflict))) => match reclaim(engine, &held).await {
                // Somebody appended to the log, a release for example, and the task is still ours: go on from there.
                true => "the log has grown meanwhile".to_owned(),
                false => return,
            },
            Ok(Err(JournalError::Store(error @ (Error::Failed(_) | Error::Corrupt(_) | Error::NotFound)))) => {
                error.to_string()
            }
            Ok(Err(error @ (JournalError::Misfit(_) | JournalError::Redaction(_)))) => {
                return end_internally(engine, &uid, &held, error.to_string()).await;
            }
            Err(_) => return end_internally(engine, &uid, &held, "the driver panicked".to_owned()).await,
        };
        engine.note(&task, "store", &error);
        // What was not written is forgotten: the log decides where to go on.
        tokio::time::sleep(Duration::from_millis(200 * u64::from(attempt))).await;
        match load(engine, &uid).await {
            Ok(reloaded) => task = reloaded,
            Err(error) => engine.note(&task, "store", &error.to_string()),
        }
    }
    give_back(engine, &held.lease).await;
}

async fn drive(engine: &Arc<Engine>, task: &mut Task, held: &Held) -> Result<Finish, JournalError> {
    let desk = Desk::of_engine(Arc::clone(engine), task.plan().session.clone());
    let weak = Arc::downgrade(engine);
    let moved = move |uids: Vec<Uid>| wake(&weak, uids);
    let driver = Driver {
        task,
        journal: Journal::new(&engine.hands, held.lease.clone()),
        hands: &engine.hands,
        desk: &desk,
        signals: held.signals.clone(),
        moved: &moved,
    };
    driver.drive().await
}

/// Whether the task is still this process's own after a refused append.
async fn reclaim(engine: &Engine, held: &Held) -> bool {
    let claimed = engine.hands.store.claim(&held.lease.uid, engine.worker.owner.id, Vec::new()).await;
    matches!(claimed, Ok(Some(lease)) if lease == held.lease)
}

async fn give_back(engine: &Engine, lease: &Lease) {
    // A lease that cannot be given back ends with this process.
    engine.hands.store.release(lease).await.ok();
}

/// Ends a task that cannot be driven on, with what it has.
async fn end_internally(engine: &Arc<Engine>, uid: &Uid, held: &Held, details: String) {
    let Ok(mut task) = load(engine, uid).await else { return give_back(engine, &held.lease).await };
    engine.note(&task, "internal", &details);
    let mut journal = Journal::new(&engine.hands, held.lease.clone());
    let stopped = TaskEvent::Stopped { cause: StopCause::Internal { details }, partial: None };
    let ended = async {
        journal.push(&mut task, stopped)?;
        if let locum_core::task::Step::Record(event) = task.next_step() {
            journal.push(&mut task, event)?;
        }
        journal.flush(&task).await
    };
    match ended.await {
        Ok(moved) => wake(&Arc::downgrade(engine), moved),
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
    let Ok(rows) = engine.hands.store.tasks(TaskQuery::Uids(uids)).await else { return };
    for row in rows {
        let uid = &row.summary.uid;
        match row.summary.standing.status {
            Status::Queued | Status::Waiting => {}
            Status::Running => {
                let Ok(task) = load(engine, uid).await else { continue };
                // Another look may have started it meanwhile.
                if engine.worker.held().get(uid).is_some_and(|held| held.state == HeldState::Parked) {
                    start(engine, uid, task);
                }
            }
            Status::Completed | Status::Failed | Status::Cancelled => {
                let held = engine.worker.held().remove(uid);
                if let Some(held) = held {
                    held.done.cancel();
                }
            }
        }
    }
}

/// Starts, once, what minds the store for this process: commands to its tasks, releases by others, signs of life.
fn watch(engine: &Arc<Engine>) {
    let weak = Arc::downgrade(engine);
    let mut changes = engine.hands.store.changes();
    engine.worker.started.call_once(|| {
        // It holds the engine only for a moment at a time, and ends with it.
        tokio::spawn(async move {
            let beat = Duration::from_millis(process::BEAT_MS);
            let mut next_beat = Instant::now() + beat;
            loop {
                let changed = tokio::time::timeout_at(next_beat, changes.changed()).await;
                let Some(engine) = weak.upgrade() else { return };
                if matches!(changed, Ok(Err(_))) || engine.closed.is_cancelled() {
                    return;
                }
                // A store that changes all the time must not keep this process from showing itself.
                let is_due = Instant::now() >= next_beat;
                if is_due {
                    next_beat = Instant::now() + beat;
                }
                mind(&engine, is_due).await;
            }
        });
    });
}

async fn mind(engine: &Arc<Engine>, beat: bool) {
    let worker = &engine.worker;
    if worker.held_count() == 0 {
        return;
    }
    if beat {
        // A missed sign of life is made up for by the next one.
        engine.hands.store.beat(&worker.owner, engine.hands.clock.now()).await.ok();
    }
    if let Ok(commands) = engine.hands.store.drain(worker.owner.id).await {
        for (uid, command) in commands {
            match command {
                Command::Cancel => cancel(engine, &uid).await,
            }
        }
    }
    let parked: Vec<Uid> = {
        let held = worker.held();
        held.iter().filter(|(_, held)| held.state == HeldState::Parked).map(|(uid, _)| uid.clone()).collect()
    };
    if !parked.is_empty() {
        look_again(engine, parked).await;
    }
}

/// Ends a task that this process holds.
pub(crate) async fn cancel(engine: &Arc<Engine>, uid: &Uid) {
    let held = engine.worker.held().get(uid).cloned();
    let Some(held) = held else { return };
    held.signals.cancel.cancel();
    if held.state == HeldState::Parked
        && let Ok(task) = load(engine, uid).await
    {
        start(engine, uid, task);
    }
}

/// Ends every task that this process holds, and waits until they have ended.
pub(crate) async fn cancel_all(engine: &Arc<Engine>) {
    let all: Vec<(Uid, CancellationToken)> =
        engine.worker.held().iter().map(|(uid, held)| (uid.clone(), held.done.clone())).collect();
    for (uid, _) in &all {
        cancel(engine, uid).await;
    }
    for (_, done) in all {
        done.cancelled().await;
    }
}

/// Gives every task back, for another process to go on with, and waits until no driver is left.
pub(crate) async fn hand_over(engine: &Arc<Engine>) -> Vec<Uid> {
    engine.closed.cancel();
    let all: Vec<Held> = engine.worker.held().values().cloned().collect();
    for held in &all {
        held.signals.hand_over.cancel();
        if held.state == HeldState::Parked {
            give_back(engine, &held.lease).await;
            engine.worker.held().remove(&held.lease.uid);
        }
    }
    engine.worker.tracker.close();
    engine.worker.tracker.wait().await;
    all.into_iter().map(|held| held.lease.uid).collect()
}
