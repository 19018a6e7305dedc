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
}

impl Default for Patience {
    fn default() -> Self {
        Self { startup_ms: 60_000, inactivity_ms: 180_000, tool_ms: 600_000 }
    }
}

impl Patience {
    /// How long this may be silent.
    pub fn limit_ms(&self, activity: Activity) -> u64 {
        match activity {
            Activity::Startup => self.startup_ms,
            Activity::Model => self.inactivity_ms,
            Activity::Tool => self.tool_ms,
        }
    }
}

/// What a task is doing and when it last showed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pulse {
    /// What it is doing.
    pub activity: Activity,
    /// When it was last heard of.
    pub last_ms: u64,
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
pub fn judge(pulse: Pulse, now_ms: u64, patience: &Patience) -> Verdict {
    let limit_ms = patience.limit_ms(pulse.activity);
    let silent_ms = now_ms.saturating_sub(pulse.last_ms);
    match limit_ms.checked_sub(silent_ms) {
        None | Some(0) => Verdict::Stalled { limit_ms },
        Some(left_ms) => Verdict::Alive { left_ms },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_activity_has_its_own_limit_and_the_edge_belongs_to_the_stall() {
        let patience = Patience { startup_ms: 10, inactivity_ms: 20, tool_ms: 30 };
        for (activity, limit_ms) in [(Activity::Startup, 10), (Activity::Model, 20), (Activity::Tool, 30)] {
            let pulse = Pulse { activity, last_ms: 100 };
            assert_eq!(judge(pulse, 100, &patience), Verdict::Alive { left_ms: limit_ms });
            assert_eq!(judge(pulse, 100 + limit_ms - 1, &patience), Verdict::Alive { left_ms: 1 });
            assert_eq!(judge(pulse, 100 + limit_ms, &patience), Verdict::Stalled { limit_ms });
            assert_eq!(judge(pulse, 50, &patience), Verdict::Alive { left_ms: limit_ms });
        }
    }
}
