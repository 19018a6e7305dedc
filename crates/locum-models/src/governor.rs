//! One governor for each provider and model, shared by all tasks of a process: who may ask now, and who waits.
//!
//! A provider that asks to wait is left alone by everybody, not only by the task that it told. Whoever failed most
//! often goes first, then whoever came first, so that a crowd does not use up one task's attempts. A model that
//! nobody throttles costs one short lock for each call.

mod flow;
mod pace;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use locum_core::task::event::FailureKind;
use locum_core::transcript::{Message, Prompt, Reply};
use tokio::sync::Notify;
use tokio::time::Instant;

pub use self::flow::Hold;
use self::flow::{Flow, Throttle, TurnedAway, Way};
use crate::model::{BoxFuture, Delta, Deltas, Model, ModelError, Prefix};
use crate::retry;

/// Lets calls to one model of one provider through.
#[derive(Debug)]
pub(crate) struct Governor {
    // Nothing awaits under this lock.
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    flow: Flow,
    /// Who waits, in the order in which they go.
    queue: BTreeMap<Place, Arc<Notify>>,
    tickets: u64,
}

/// A place in the queue: those who failed more often before those who failed less, then in the order of arrival.
type Place = (Reverse<u32>, u64);

impl Governor {
    pub(crate) fn new() -> Self {
        let state = State { flow: Flow::default(), queue: BTreeMap::new(), tickets: 0 };
        Self { state: Mutex::new(state) }
    }

    /// Waits until a call may be made. `failures` are the calls of this task that failed before. Dropping the future
    /// leaves the queue.
    async fn enter(&self, failures: u32, mut on_hold: impl FnMut(Hold)) -> Permit<'_> {
        if let Some(permit) = self.enter_at_once() {
            return permit;
        }
        let waiter = self.queue_up(failures);
        loop {
            let (until, hold) = match self.try_enter(&waiter) {
                Ok(permit) => return permit,
                Err(wait) => wait,
            };
            on_hold(hold);
            match until {
                // Woken or overdue: both mean that it is time to look again.
                Some(at) => drop(tokio::time::timeout_at(at, waiter.notify.notified()).await),
                None => waiter.notify.notified().await,
            }
        }
    }

    /// The way of every call to a model that nobody throttles.
    fn enter_at_once(&self) -> Option<Permit<'_>> {
        let mut state = self.locked();
        if !state.queue.is_empty() {
            return None;
        }
        let now = Instant::now();
        match state.flow.way(now) {
            Way::Free => {
                state.flow.enter(now);
                Some(Permit { governor: self, entered: now })
            }
            Way::Closed { .. } => None,
        }
    }

    fn queue_up(&self, failures: u32) -> Waiter<'_> {
        let mut state = self.locked();
        state.tickets += 1;
        let place = (Reverse(failures), state.tickets);
        let notify = Arc::new(Notify::new());
        state.queue.insert(place, Arc::clone(&notify));
        Waiter { governor: self, place, notify }
    }

    /// Enters if it is this waiter's turn; else until when nothing changes by itself, and why it waits.
    fn try_enter(&self, waiter: &Waiter<'_>) -> Result<Permit<'_>, (Option<Instant>, Hold)> {
        let mut state = self.locked();
        let now = Instant::now();
        let is_first = state.queue.first_key_value().is_some_and(|(place, _)| *place == waiter.place);
        match state.flow.way(now) {
            Way::Free if is_first => {
                state.flow.enter(now);
                Ok(Permit { governor: self, entered: now })
            }
            // Whoever is before it wakes it.
            Way::Free => Err((None, Hold::Queue)),
            Way::Closed { until, hold } => Err((until.filter(|_| is_first), hold)),
        }
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Wakes whoever is first: something has changed that it waits for.
    fn wake_first(&self) {
        if let Some((_, first)) = self.queue.first_key_value() {
            first.notify_one();
        }
    }
}

/// A place in the queue, left when it is dropped.
struct Waiter<'a> {
    governor: &'a Governor,
    place: Place,
    notify: Arc<Notify>,
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let mut state = self.governor.locked();
        state.queue.remove(&self.place);
        state.wake_first();
    }
}

/// A call that is under way, until it is dropped.
struct Permit<'a> {
    governor: &'a Governor,
    entered: Instant,
}

impl Permit<'_> {
    fn answered(&self) {
        self.governor.locked().flow.answered(self.entered);
    }

    /// Notes that the provider turned the call away; how long nobody asks now.
    fn turned_away(&self, why: Throttle, asked: Option<Duration>) -> Duration {
        let mut state = self.governor.locked();
        let call = TurnedAway { entered: self.entered, why, asked };
        let held = state.flow.turned_away(call, Instant::now(), fastrand::f64());
        state.wake_first();
        held
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        let mut state = self.governor.locked();
        state.flow.leave();
        state.wake_first();
    }
}

/// A model behind its governor.
pub(crate) struct Governed {
    provider: String,
    governor: Governor,
    model: Arc<dyn Model>,
}

impl Governed {
    pub(crate) fn new(provider: &str, model: Arc<dyn Model>) -> Self {
        Self { provider: provider.to_owned(), governor: Governor::new(), model }
    }
}

impl Model for Governed {
    fn respond<'a>(
        &'a self,
        prompt: &'a Prompt<'a>,
        prefix: &'a mut Prefix,
        deltas: &'a mut Deltas<'a>,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            let mut held = false;
            let on_hold = |hold| {
                held = true;
                deltas(Delta::Held { provider: &self.provider, hold });
            };
            let permit = self.governor.enter(failures(prompt), on_hold).await;
            if held {
                deltas(Delta::Alive);
            }
            match self.model.respond(prompt, prefix, deltas).await {
                Ok(reply) => {
                    permit.answered();
                    Ok(reply)
                }
                Err(error) => Err(turned_away(&permit, error)),
            }
        })
    }
}

/// Lets the governor know of a failure that concerns everybody.
fn turned_away(permit: &Permit<'_>, mut error: ModelError) -> ModelError {
    let throttle = match error.kind {
        FailureKind::RateLimit => Throttle::Rate,
        FailureKind::Overloaded => Throttle::Load,
        FailureKind::Server
        | FailureKind::Network
        | FailureKind::Timeout
        | FailureKind::CutStream
        | FailureKind::Malformed
        | FailureKind::TooLarge
        | FailureKind::Auth
        | FailureKind::BadRequest
        | FailureKind::NotFound
        | FailureKind::ContextOverflow => return error,
    };
    // A limit that lasts longer than anybody waits ends the task that hears of it, and holds nobody else.
    if error.retry_after.is_none_or(|asked| asked <= retry::WAIT_MAX) {
        error.held_for = Some(permit.turned_away(throttle, error.retry_after));
    }
    error
}

/// The calls of a task that failed so far: those that left no reply in the conversation.
fn failures(prompt: &Prompt<'_>) -> u32 {
    let replies = prompt.messages.iter().filter(|message| matches!(message, Message::Assistant(_))).count();
    prompt.call.saturating_sub(u32::try_from(replies).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests;
