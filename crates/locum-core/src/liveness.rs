//! Whether a task still shows signs of life: the watchdog's pure part. Times are milliseconds of any one monotonic
//! clock; the driver has the clock.

use crate::task::event::Activity;

/// How long a task may be silent, by what it is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Before anything was heard of it.
    pub startup_ms: u64,
    /// Between signs of life of the model.
    pub inactivity_ms: u64,
    /// While a tool runs.
    pub tool_ms: u64,
    /// How long a worker process may take to end when it is asked to, before it is killed.
    pub kill_grace_ms: u64,
}

impl Default for Patience {
    fn default() -> Self {
        Self { startup_ms: 60_000, inactivity_ms: 180_000, tool_ms: 600_000, kill_grace_ms: 5_000 }
    }
}

impl Patience {
    /// No longer than this, whatever it is doing.
    #[must_use]
    pub fn at_most(self, idle_ms: u64) -> Self {
        Self {
            startup_ms: self.startup_ms.min(idle_ms),
            inactivity_ms: self.inactivity_ms.min(idle_ms),
            tool_ms: self.tool_ms.min(idle_ms),
            ..self
        }
    }

    /// How long this may be silent.
    pub fn limit_ms(&self, activity: Activity) -> u64 {
        match activity {
            Activity::Startup => self.startup_ms,
            Activity::Model => self.inactivity_ms,
            Activity::Tool => self.tool_ms,
        }
    }
}

/// The longest time between two looks at something that may be silent. What passes between two looks beyond twice as
/// much is no silence: the machine slept, or the process that listens was stopped.
pub const LOOK_MS_MAX: u64 = 5_000;

/// For how long nothing was heard, as far as anybody listened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Silence {
    last_ms: u64,
    looked_ms: u64,
    /// What nobody listened to since.
    missed_ms: u64,
}

impl Silence {
    /// Something was heard.
    pub fn broken(&mut self, now_ms: u64) {
        *self = Self { last_ms: now_ms, looked_ms: now_ms, missed_ms: 0 };
    }

    /// Looks, and says how long it has been silent. Whoever waits for it looks at least every [`LOOK_MS_MAX`].
    pub fn look(&mut self, now_ms: u64) -> u64 {
        let passed_ms = now_ms.saturating_sub(self.looked_ms);
        if passed_ms > 2 * LOOK_MS_MAX {
            self.missed_ms += passed_ms - LOOK_MS_MAX;
        }
        self.looked_ms = now_ms;
        now_ms.saturating_sub(self.last_ms).saturating_sub(self.missed_ms)
    }
}

/// What a task is doing and for how long it was silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pulse {
    /// What it is doing.
    pub activity: Activity,
    /// For how long nothing was heard of it.
    pub silent_ms: u64,
}

/// Whether the task is to be waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Yes; look again when this many milliseconds have passed.
    Alive {
        /// Milliseconds until its patience ends.
        left_ms: u64,
    },
    /// No.
    Stalled {
        /// The limit that has passed.
        limit_ms: u64,
    },
}

/// Judges a pulse.
pub fn judge(pulse: Pulse, patience: &Patience) -> Verdict {
    let limit_ms = patience.limit_ms(pulse.activity);
    match limit_ms.checked_sub(pulse.silent_ms) {
        None | Some(0) => Verdict::Stalled { limit_ms },
        Some(left_ms) => Verdict::Alive { left_ms },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_activity_has_its_own_limit_and_the_edge_belongs_to_the_stall() {
        let patience = Patience { startup_ms: 10, inactivity_ms: 20, tool_ms: 30, kill_grace_ms: 1 };
        for (activity, limit_ms) in [(Activity::Startup, 10), (Activity::Model, 20), (Activity::Tool, 30)] {
            let judged = |silent_ms| judge(Pulse { activity, silent_ms }, &patience);
            assert_eq!(judged(0), Verdict::Alive { left_ms: limit_ms });
            assert_eq!(judged(limit_ms - 1), Verdict::Alive { left_ms: 1 });
            assert_eq!(judged(limit_ms), Verdict::Stalled { limit_ms });
        }
    }

    #[test]
    fn what_nobody_listened_to_is_no_silence() {
        let check = |events: &[(&str, u64)], silent_ms: u64| {
            let mut silence = Silence::default();
            let mut last = 0;
            for (what, now_ms) in events {
                match *what {
                    "heard" => silence.broken(*now_ms),
                    _ => last = silence.look(*now_ms),
                }
            }
            assert_eq!(last, silent_ms, "{events:?}");
        };
        check(&[("look", 4_000), ("look", 9_000)], 9_000);
        check(&[("look", 4_000), ("heard", 6_000), ("look", 9_000)], 3_000);
        // Late, as on a busy machine.
        check(&[("look", 5_000), ("look", 15_000)], 15_000);
        // Asleep for an hour: it counts as one look.
        check(&[("look", 5_000), ("look", 3_605_000)], 10_000);
        check(&[("look", 5_000), ("look", 3_605_000), ("look", 3_610_000)], 15_000);
        // Heard in the moment of waking up.
        check(&[("look", 5_000), ("heard", 3_605_000), ("look", 3_607_000)], 2_000);
    }
}
