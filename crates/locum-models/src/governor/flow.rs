//! How much may go to one model now. It has no clock and no queue of its own: times are handed in.
//!
//! A rate limit counts calls over time, so the answer to it is a pace. An overload counts what is under way, so the
//! answer is a smaller window. Both pause everybody first.

use std::time::Duration;

use tokio::time::Instant;

use super::pace::Pace;
use crate::retry;

/// Calls under way at once before anything is known: enough for every ordinary crowd, and what is turned away of it
/// costs one attempt each.
const WINDOW_FIRST: f64 = 512.0;
/// More calls than any process has under way.
const WINDOW_MAX: f64 = 100_000.0;
/// An asked wait is exceeded by up to this much, so that several processes do not come back at the same moment.
const JITTER_MAX: Duration = Duration::from_millis(50);

/// A time that is too short to measure anything in.
const SECONDS_MIN: f64 = 0.001;

/// Providers let calls of about this long be made at once.
const SAVED_SECONDS: f64 = 1.0;

/// Why a call waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// The provider limits how many calls it takes, until then if that is known.
    RateLimit(Option<Instant>),
    /// The provider is overloaded, until then if that is known.
    Overload(Option<Instant>),
    /// Other calls are before it.
    Queue,
}

/// How a provider turned a call away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Throttle {
    /// Too many calls in a time.
    Rate,
    /// Too many calls at once.
    Load,
}

/// A call that a provider turned away.
#[derive(Debug, Clone, Copy)]
pub(super) struct TurnedAway {
    /// When it began.
    pub(super) entered: Instant,
    pub(super) why: Throttle,
    /// How long the provider asks to wait.
    pub(super) asked: Option<Duration>,
}

/// Whether a call may be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Free,
    Closed {
        /// When to look again; none if somebody else's end is what is waited for.
        until: Option<Instant>,
        hold: Hold,
    },
}

/// What goes to one model.
#[derive(Debug)]
pub(super) struct Flow {
    under_way: u32,
    window: f64,
    /// Nothing was ever too much: the window doubles with every round of answers.
    is_starting: bool,
    pause: Option<Pause>,
    pace: Option<Pace>,
    /// Pauses since the last answer: each may be twice as long.
    streak: u32,
    /// The time since the last pause began, and the time before it.
    now: Epoch,
    before: Option<Before>,
}

/// A time and how many calls were made in it.
#[derive(Debug, Clone, Copy, Default)]
struct Epoch {
    /// None before the first call.
    began: Option<Instant>,
    calls: u32,
}

/// The time before the last pause, which is measured while the last of its calls come back.
#[derive(Debug, Clone)]
struct Before {
    seconds: f64,
    /// Calls that were not turned away.
    taken: u32,
    /// The pace that was too fast.
    pace: Option<Pace>,
}

#[derive(Debug, Clone, Copy)]
struct Pause {
    ends: Instant,
    why: Throttle,
}

impl Default for Flow {
    fn default() -> Self {
        Self {
            under_way: 0,
            window: WINDOW_FIRST,
            is_starting: true,
            pause: None,
            pace: None,
            streak: 0,
            now: Epoch::default(),
            before: None,
        }
    }
}

impl Flow {
    /// Whether a call may be made now.
    pub(super) fn way(&self, now: Instant) -> Way {
        if let Some(pause) = self.pause.filter(|pause| now < pause.ends) {
            let hold = match pause.why {
                Throttle::Rate => Hold::RateLimit(Some(pause.ends)),
                Throttle::Load => Hold::Overload(Some(pause.ends)),
            };
            return Way::Closed { until: Some(pause.ends), hold };
        }
        if f64::from(self.under_way) >= self.window {
            let hold = if self.is_starting { Hold::Queue } else { Hold::Overload(None) };
            return Way::Closed { until: None, hold };
        }
        match self.pace.as_ref().and_then(|pace| pace.next_after(now)) {
            Some(at) => Way::Closed { until: Some(at), hold: Hold::RateLimit(None) },
            None => Way::Free,
        }
    }

    /// A call begins.
    pub(super) fn enter(&mut self, now: Instant) {
        self.under_way += 1;
        self.now.calls = self.now.calls.saturating_add(1);
        self.now.began.get_or_insert(now);
        if let Some(pace) = &mut self.pace {
            pace.spend(now);
        }
    }

    /// A call has ended, however.
    pub(super) fn leave(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
    }

    /// A call that began then was answered.
    pub(super) fn answered(&mut self, entered: Instant) {
        if self.pause.is_none_or(|pause| entered >= pause.ends) {
            self.streak = 0;
        }
        let growth = if self.is_starting { 1.0 } else { 1.0 / self.window };
        self.window = (self.window + growth).min(WINDOW_MAX);
    }

    /// A call was turned away; how long nobody asks now.
    pub(super) fn turned_away(&mut self, call: TurnedAway, now: Instant, random: f64) -> Duration {
        let TurnedAway { entered, why, asked } = call;
        // What began before the last pause ended is news of that pause, not of another.
        let is_news = self.pause.is_none_or(|pause| entered >= pause.ends);
        if is_news {
            self.streak += 1;
        }
        let wait = match asked {
            Some(asked) => asked + JITTER_MAX.mul_f64(random),
            None if is_news => retry::backoff(self.streak, random),
            None => Duration::ZERO,
        };
        match why {
            Throttle::Rate => self.slow_down(is_news, now, wait),
            Throttle::Load if is_news => {
                self.window = (f64::from(self.under_way) / 2.0).max(1.0);
                self.is_starting = false;
            }
            Throttle::Load => {}
        }
        let ends = self.pause.map_or(now, |pause| pause.ends).max(now + wait);
        self.pause = Some(Pause { ends, why });
        ends.saturating_duration_since(now)
    }

    /// Sets the pace to what was taken before the limit was met.
    fn slow_down(&mut self, is_news: bool, now: Instant, wait: Duration) {
        if is_news {
            let Epoch { began, calls } = std::mem::replace(&mut self.now, Epoch { began: Some(now), calls: 0 });
            let mut seconds = began.map_or(0.0, |began| now.saturating_duration_since(began).as_secs_f64());
            if self.before.is_none() {
                // What a provider had saved up before the first call takes a while to come again.
                seconds = (seconds + wait.as_secs_f64()).max(SAVED_SECONDS);
            }
            self.before = Some(Before { seconds, taken: calls, pace: self.pace.take() });
        }
        let Some(before) = &mut self.before else { return };
        before.taken = before.taken.saturating_sub(1);
        // One call in that time is taken at least: a task that is alone must not become slower than it was told.
        let measured = f64::from(before.taken.max(1)) / before.seconds.max(SECONDS_MIN);
        self.pace = Some(match &before.pace {
            Some(pace) => pace.slower(measured, now),
            None => Pace::new(measured, now),
        });
    }
}

#[cfg(test)]
impl Flow {
    pub(super) fn with_window(window: f64) -> Self {
        Self { window, is_starting: false, ..Self::default() }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.under_way == 0
    }
}
