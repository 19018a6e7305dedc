//! Whose a task is: claimed where nobody works on it, claimed again after a refused append, and given back.

use std::sync::Arc;

use locum_core::ids::Uid;
use locum_core::task::{Status, Task, TaskEvent};

use super::minding::{be_known, obey};
use super::{Held, load, owned, take_up};
use crate::engine::Engine;
use crate::journal::{Journal, JournalError};
use crate::store::{Error, Lease, OwnerId, TaskQuery, TaskRow};

/// Claims a task that nobody works on, and takes it up. It goes on by itself, also if nobody waits for it any more: a
/// task that is held and not driven would be lost.
pub(crate) async fn claim(engine: &Arc<Engine>, uid: &Uid, dead: Vec<OwnerId>) -> Result<bool, Error> {
    let (own, uid) = (Arc::clone(engine), uid.clone());
    let claimed = async move {
        if own.worker.holds(&uid) {
            return Ok(true);
        }
        // Who holds a task must be known before it holds it: an owner that nobody knows can never be found dead.
        be_known(&own).await?;
        let before = own.hands.store.tasks(TaskQuery::Uids(vec![uid.clone()])).await?.pop().and_then(|row| row.owner);
        let is_lost = before.is_some_and(|owner| dead.contains(&owner));
        let Some(lease) = own.hands.store.claim(&uid, own.worker.owner.id, dead).await? else { return Ok(false) };
        match resumed(&own, &lease, is_lost).await {
            Ok(task) => take_up(&own, lease, task),
            Err(error) => {
                give_back(&own, &lease).await;
                return Err(error);
            }
        }
        // What was said to the task before anybody held it will not be announced again.
        obey(&own).await;
        Ok(true)
    };
    owned(engine, claimed).await.map_err(|error| Error::Failed(Box::new(error)))?
}

/// A task that was claimed, as its log tells it. That whoever worked on it before was lost is part of that: a task that
/// ends one process after the other is not tried for ever.
async fn resumed(engine: &Engine, lease: &Lease, is_lost: bool) -> Result<Task, Error> {
    let mut task = load(engine, &lease.uid).await?;
    if !is_lost || task.status() != Status::Running {
        return Ok(task);
    }
    let mut journal = Journal::new(&engine.hands, lease.clone());
    let noted = async {
        journal.push(&mut task, TaskEvent::WorkerLost { why: "the process that worked on it ended".to_owned() })?;
        journal.flush(&task).await
    };
    match noted.await {
        // Nothing ends and nothing is spent with it.
        Ok(_) => Ok(task),
        Err(JournalError::Store(error)) => Err(error),
        Err(error @ (JournalError::Misfit(_) | JournalError::Redaction(_))) => Err(Error::Corrupt(error.to_string())),
    }
}

/// Claims these tasks, as far as nobody works on them, and takes them up. A log that makes no sense keeps no other from
/// its work; the first failure of the store is told when all were tried.
pub(crate) async fn claim_all(engine: &Arc<Engine>, rows: &[TaskRow], dead: &[OwnerId]) -> Result<(), Error> {
    let mut failed = Ok(());
    for row in rows {
        match claim(engine, &row.summary.uid, dead.to_vec()).await {
            Ok(_) => {}
            Err(error @ (Error::Corrupt(_) | Error::NotFound)) => {
                engine.note_about(&row.session, &row.summary, "adopt", &error.to_string());
            }
            Err(error @ (Error::Conflict | Error::Failed(_) | Error::Overdrawn(_))) => failed = failed.and(Err(error)),
        }
    }
    failed
}

/// Whether the task is still, or again, this process's own after a refused append. Somebody may have taken it and given
/// it back meanwhile: then the new lease is what counts.
pub(super) async fn reclaim(engine: &Engine, held: &mut Held) -> bool {
    let uid = &held.lease.uid;
    match engine.hands.store.claim(uid, engine.worker.owner.id, Vec::new()).await {
        Ok(Some(lease)) => {
            if let Some(kept) = engine.worker.held().get_mut(uid) {
                kept.lease = lease.clone();
            }
            held.lease = lease;
            true
        }
        Ok(None) => false,
        // Nobody said that it is lost; the next append tells.
        Err(_) => true,
    }
}

pub(super) async fn give_back(engine: &Engine, lease: &Lease) {
    // A lease that cannot be given back ends with this process.
    engine.hands.store.release(lease).await.ok();
}
