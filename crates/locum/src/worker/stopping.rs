//! Ending tasks, and giving them up for another process to go on with.

use std::sync::Arc;

use locum_core::ids::Uid;
use tokio_util::sync::CancellationToken;

use super::{Held, HeldState, begin, give_back, unpark};
use crate::engine::Engine;

/// Ends a task that this process holds.
pub(crate) async fn cancel(engine: &Arc<Engine>, uid: &Uid) {
    let held = engine.worker.held().get(uid).cloned();
    let Some(held) = held else { return };
    held.signals.cancel.cancel();
    if held.state == HeldState::Parked {
        // A log that cannot be read now is looked at again with the next change of the store.
        unpark(engine, uid).await.ok();
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
    engine.worker.tracker.close();
    // What is being accepted at this moment is held only afterwards: look again until nothing is left.
    while engine.worker.held_count() > 0 || !engine.worker.tracker.is_empty() {
        let all: Vec<Held> = engine.worker.held().values().cloned().collect();
        for held in all {
            held.signals.hand_over.cancel();
            engine.worker.left().insert(held.lease.uid.clone());
            if begin(engine, &held.lease.uid).is_some() {
                give_back(engine, &held.lease).await;
                engine.worker.held().remove(&held.lease.uid);
                held.done.cancel();
            }
        }
        engine.worker.tracker.wait().await;
    }
    engine.worker.left().iter().cloned().collect()
}
