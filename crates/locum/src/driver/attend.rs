//! Waiting for something under way while minding everything that may end it: the one `select!`.

use std::future::Future;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use locum_core::liveness::{self, Patience, Pulse, Silence, Verdict};
use locum_core::task::event::{Activity, StopCause};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How a drive is told to stop.
#[derive(Debug, Clone, Default)]
pub(crate) struct StopSignals {
    /// The task is no longer wanted.
    pub(crate) cancel: CancellationToken,
    /// This process ends, the task does not.
    pub(crate) hand_over: CancellationToken,
}

/// Why something under way was not waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Interrupt {
    Stop(StopCause),
    HandOver,
}

/// The end of a task's wall clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    pub(crate) at: Instant,
    pub(crate) after_s: u64,
}

/// What ends a wait, besides what is waited for.
#[derive(Debug, Clone)]
pub(crate) struct Attention {
    pub(crate) signals: StopSignals,
    pub(crate) deadline: Option<Deadline>,
    pub(crate) patience: Patience,
}

impl Attention {
    /// Waits for `work` until it ends, is stopped, or shows no sign of life for too long. An interrupted work is
    /// dropped.
    pub(crate) async fn attend<T>(
        &self,
        work: impl Future<Output = T>,
        activity: Activity,
        heard: &Heard,
    ) -> Result<T, Interrupt> {
        let mut work = std::pin::pin!(work);
        loop {
            let look_again = match self.look(activity, heard) {
                Ok(at) => at,
                Err(interrupt) => return Err(interrupt),
            };
            tokio::select! {
                biased;
                // A cancel or a hand-over wins over an answer that arrives in the same moment.
                () = self.signals.cancel.cancelled() => return Err(Interrupt::Stop(StopCause::Cancelled)),
                () = self.signals.hand_over.cancelled() => return Err(Interrupt::HandOver),
                ended = &mut work => return Ok(ended),
                () = tokio::time::sleep_until(look_again) => {}
            }
        }
    }

    /// Judges deadline and pulse; when to look again, or what has run out.
    fn look(&self, activity: Activity, heard: &Heard) -> Result<Instant, Interrupt> {
        let now = Instant::now();
        if let Some(deadline) = self.deadline.filter(|deadline| deadline.at <= now) {
            return Err(Interrupt::Stop(StopCause::TimedOut { after_s: deadline.after_s }));
        }
        let pulse = Pulse { activity, silent_ms: heard.silent_ms(now) };
        let left = match liveness::judge(pulse, &self.patience) {
            Verdict::Alive { left_ms } => Duration::from_millis(left_ms.min(liveness::LOOK_MS_MAX)),
            Verdict::Stalled { limit_ms } => {
                return Err(Interrupt::Stop(StopCause::Stalled { after_s: limit_ms / 1000, during: activity }));
            }
        };
        let again = now + left;
        Ok(self.deadline.map_or(again, |deadline| again.min(deadline.at)))
    }
}

/// What was heard of something under way: its text so far and its last sign of life. Shared with the callback that
/// hears it, hence the lock, which nothing awaits under.
#[derive(Debug)]
pub(crate) struct Heard {
    since: Instant,
    inner: Mutex<HeardSoFar>,
}

#[derive(Debug, Default)]
struct HeardSoFar {
    text: String,
    silence: Silence,
    /// An answer has begun.
    begun: bool,
    /// It is not under way yet, and that is not its own fault.
    held: bool,
}

impl Heard {
    pub(crate) fn new() -> Self {
        Self { since: Instant::now(), inner: Mutex::default() }
    }

    /// Notes a sign of life.
    pub(crate) fn beat(&self) {
        let now_ms = self.ms_at(Instant::now());
        let mut inner = self.locked();
        inner.silence.broken(now_ms);
        inner.held = false;
    }

    /// Notes that it is held back: its silence does not count until it is heard again.
    pub(crate) fn hold(&self) {
        self.locked().held = true;
    }

    /// Notes more text.
    pub(crate) fn push(&self, text: &str) {
        self.begin();
        self.locked().text.push_str(text);
    }

    /// Notes that an answer has begun, with text or with something else.
    pub(crate) fn begin(&self) {
        self.beat();
        self.locked().begun = true;
    }

    /// Whether an answer has begun.
    pub(crate) fn has_begun(&self) -> bool {
        self.locked().begun
    }

    /// The text so far, if there is any.
    pub(crate) fn into_text(self) -> Option<String> {
        let inner = self.inner.into_inner().unwrap_or_else(PoisonError::into_inner);
        Some(inner.text).filter(|text| !text.trim().is_empty())
    }

    /// For how long nothing was heard that should have been.
    fn silent_ms(&self, now: Instant) -> u64 {
        let now_ms = self.ms_at(now);
        let mut inner = self.locked();
        if inner.held {
            inner.silence.broken(now_ms);
        }
        inner.silence.look(now_ms)
    }

    fn ms_at(&self, moment: Instant) -> u64 {
        u64::try_from(moment.saturating_duration_since(self.since).as_millis()).unwrap_or(u64::MAX)
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, HeardSoFar> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
