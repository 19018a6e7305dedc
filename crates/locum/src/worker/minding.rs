//! Minding the store for the tasks of this process: commands to them, releases by others, signs of life.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use locum_core::ids::Uid;
use tokio::time::Instant;

use super::{HeldState, cancel, look_again};
use crate::engine::Engine;
use crate::process;
use crate::store::{Command, Error};

/// Starts, once, what minds the store while this process lives.
pub(super) fn watch(engine: &Arc<Engine>) {
    let weak = Arc::downgrade(engine);
    let mut changes = engine.hands.store.changes();
    engine.worker.started.call_once(|| {
        // It holds the engine only for a moment at a time, and ends with it.
        tokio::spawn(async move {
            loop {
                let beat = Duration::from_millis(process::BEAT_MS);
                let changed = tokio::time::timeout(beat, changes.changed()).await;
                let Some(engine) = weak.upgrade() else { return };
                if matches!(changed, Ok(Err(_))) || engine.closed.is_cancelled() {
                    return;
                }
                mind(&engine).await;
                let servers = Arc::clone(&engine.hands.servers);
                if servers.has_open() {
                    // Ending takes its time, and others need to know that this process lives.
                    engine.worker.tracker.spawn(async move { servers.end_idle().await });
                }
            }
        });
    });
}

async fn mind(engine: &Arc<Engine>) {
    let worker = &engine.worker;
    if worker.held_count() == 0 {
        return;
    }
    // A missed sign of life is made up for by the next one.
    be_known(engine).await.ok();
    obey(engine).await;
    let parked: Vec<Uid> = {
        let held = worker.held();
        held.iter().filter(|(_, held)| held.state == HeldState::Parked).map(|(uid, _)| uid.clone()).collect()
    };
    if !parked.is_empty() {
        look_again(engine, parked).await;
    }
}

/// Carries out what was said to the tasks of this process.
pub(super) async fn obey(engine: &Arc<Engine>) {
    let Ok(commands) = engine.hands.store.drain(engine.worker.owner.id).await else { return };
    for (uid, command) in commands {
        match command {
            Command::Cancel => cancel(engine, &uid).await,
        }
    }
}

/// Shows that this process lives, unless it has done so a moment ago. Whoever holds a task must be known before it
/// holds it: an owner that nobody knows can never be found dead.
pub(crate) async fn be_known(engine: &Engine) -> Result<(), Error> {
    // A little early rather than a little late: who waits for a beat comes back just after it is due.
    let fresh = Duration::from_millis(process::BEAT_MS / 5 * 4);
    let shown = *engine.worker.shown.lock().unwrap_or_else(PoisonError::into_inner);
    if shown.is_some_and(|shown| shown.elapsed() < fresh) {
        return Ok(());
    }
    let now = Instant::now();
    engine.hands.store.beat(&engine.worker.owner, engine.hands.clock.now()).await?;
    *engine.worker.shown.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
    Ok(())
}
