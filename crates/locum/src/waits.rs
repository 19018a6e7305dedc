//! Which tasks of this process wait for a provider, and why: a task's log does not know, because nothing has happened.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use locum_core::ids::Uid;
use locum_models::Hold;
use tokio::time::Instant;

/// The waiting tasks.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    // Nothing awaits under this lock.
    waiting: Mutex<HashMap<Uid, Wait>>,
}

#[derive(Debug)]
struct Wait {
    provider: String,
    hold: Hold,
}

impl Waits {
    /// Notes that a task waits.
    pub(crate) fn begin(&self, uid: &Uid, provider: &str, hold: Hold) {
        self.locked().insert(uid.clone(), Wait { provider: provider.to_owned(), hold });
    }

    /// Notes that a task waits no longer.
    pub(crate) fn end(&self, uid: &Uid) {
        self.locked().remove(uid);
    }

    /// What a task waits for, in words.
    pub(crate) fn describe(&self, uid: &Uid) -> Option<String> {
        let waiting = self.locked();
        let Wait { provider, hold } = waiting.get(uid)?;
        let (why, until) = match hold {
            Hold::RateLimit(until) => ("rate limit", *until),
            Hold::Overload(until) => ("overloaded", *until),
            Hold::Queue => ("other calls are before it", None),
        };
        let left = until.map(|until| until.saturating_duration_since(Instant::now())).filter(|left| !left.is_zero());
        // Half a second left is a second to a reader.
        let left = left.map(|left| format!(", {} s", left.as_secs_f64().ceil())).unwrap_or_default();
        Some(format!("waiting for {provider}: {why}{left}"))
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<Uid, Wait>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
