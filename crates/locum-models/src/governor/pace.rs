//! A pace that is looked for: calls a second, raised while nothing happens and lowered when it was too much.

use std::time::Duration;

use tokio::time::Instant;

/// No provider's limit is lower than one call in a minute; one that is answers so.
const RATE_MIN: f64 = 1.0 / 60.0;
/// How much is given up when the pace was too high, at least.
const STEP_DOWN: f64 = 0.96;
/// How much faster it gets in a second right after a limit was met. It accelerates: what was long no limit may be
/// gone.
const GROWTH: f64 = 0.003;
/// After this long without a limit, growth is four times what it was.
const BOLDER_AFTER: Duration = Duration::from_secs(30);
/// A limit that was met this long ago is forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);
/// Time that a pace may have fallen behind and make up for: timers are not exact.
const CREDIT: Duration = Duration::from_millis(20);

/// Calls a second.
#[derive(Debug, Clone)]
pub(super) struct Pace {
    rate: f64,
    /// Whether a pace was ever too high: before, it doubles every second.
    met_limit: bool,
    since: Instant,
    changed: Instant,
    next: Instant,
}

impl Pace {
    /// A first guess.
    pub(super) fn new(rate: f64, now: Instant) -> Self {
        Self { rate: rate.max(RATE_MIN), met_limit: false, since: now, changed: now, next: now }
    }

    /// The pace after one that was too high. `measured` calls a second were answered since the limit was last met, so
    /// the limit is between that and this pace.
    pub(super) fn slower(&self, measured: f64, now: Instant) -> Self {
        let between = (measured.max(RATE_MIN) * self.rate).sqrt();
        let rate = between.max(measured).min(self.rate * STEP_DOWN).max(RATE_MIN);
        Self { rate, met_limit: true, since: now, changed: now, next: now }
    }

    /// When the next call may be made, if not now.
    pub(super) fn next_after(&self, now: Instant) -> Option<Instant> {
        (now < self.next).then_some(self.next)
    }

    /// A call is made.
    pub(super) fn spend(&mut self, now: Instant) {
        self.grow(now);
        let earliest = now.checked_sub(CREDIT).unwrap_or(now);
        self.next = self.next.max(earliest) + Duration::from_secs_f64(1.0 / self.rate);
    }

    fn grow(&mut self, now: Instant) {
        // Nobody asked for longer than this: it says nothing about the limit.
        let passed = now.saturating_duration_since(self.changed).as_secs_f64().min(1.0);
        self.changed = now;
        let quiet = now.saturating_duration_since(self.since);
        self.rate *= if self.met_limit && quiet < FORGOTTEN_AFTER {
            let boldness = 1.0 + quiet.as_secs_f64() / BOLDER_AFTER.as_secs_f64();
            1.0 + GROWTH * boldness * boldness * passed
        } else {
            passed.exp2()
        };
        // Faster than any clock here can tell apart.
        self.rate = self.rate.min(1e6);
    }
}
