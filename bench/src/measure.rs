//! What a process used: CPU time, wall time, peak memory.

use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use serde::{Deserialize, Serialize};

/// What one case cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cost {
    /// Microseconds of CPU, user and system.
    pub(crate) cpu_us: f64,
    /// Microseconds that passed.
    pub(crate) wall_us: f64,
    /// Peak of the process's memory, in KiB.
    pub(crate) peak_kib: i64,
    /// Transactions that the store committed, where it has any.
    #[serde(default)]
    pub(crate) commits: u64,
}

/// A running measurement.
pub(crate) struct Meter {
    started: Instant,
    cpu: Duration,
}

impl Meter {
    pub(crate) fn start() -> Self {
        Self { started: Instant::now(), cpu: cpu() }
    }

    /// What was used since the start.
    pub(crate) fn stop(&self) -> Cost {
        Cost {
            cpu_us: (cpu().saturating_sub(self.cpu)).as_secs_f64() * 1e6,
            wall_us: self.started.elapsed().as_secs_f64() * 1e6,
            peak_kib: getrusage(UsageWho::RUSAGE_SELF).map_or(0, |usage| usage.max_rss()),
            commits: 0,
        }
    }
}

fn cpu() -> Duration {
    let time = |value: TimeVal| {
        Duration::from_micros(u64::try_from(value.tv_sec() * 1_000_000 + value.tv_usec()).unwrap_or(0))
    };
    getrusage(UsageWho::RUSAGE_SELF).map_or(Duration::ZERO, |usage| time(usage.user_time()) + time(usage.system_time()))
}
