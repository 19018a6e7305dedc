//! Whether, and after how long, a failed model call is made again. The loop itself is the driver's, so that every
//! attempt is in the task's log and survives a crash.

use std::time::Duration;

use locum_core::limits;

use crate::model::ModelError;

/// The first wait; each further one may be twice as long.
const BASE: Duration = Duration::from_millis(500);
/// No single wait is longer, whatever an API asks for: the total stays bounded.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(120);
/// The longest wait that nobody asked for.
const BACKOFF_MAX: Duration = Duration::from_secs(30);

/// How long to wait before the attempt after `failures` failed ones; none if there is to be no other. `random` is
/// drawn from 0 to 1: full jitter, so that many tasks do not come back at once.
pub fn wait_before_retry(error: &ModelError, failures: u32, random: f64) -> Option<Duration> {
    if !error.kind.is_transient() || failures > limits::MODEL_RETRIES_MAX {
        return None;
    }
    if let Some(held) = error.held_for {
        return Some(held);
    }
    if let Some(asked) = error.retry_after {
        // A limit that lasts longer than anybody waits is not a passing failure.
        return (asked <= WAIT_MAX).then_some(asked);
    }
    Some(backoff(failures, random))
}

/// A wait that nobody asked for, before the attempt after so many failed ones.
pub(crate) fn backoff(failures: u32, random: f64) -> Duration {
    let exponent = failures.saturating_sub(1).min(16);
    let most = BASE.saturating_mul(1 << exponent).min(BACKOFF_MAX);
    most.mul_f64(random.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use locum_core::task::event::FailureKind;

    #[test]
    fn five_retries_then_no_more() {
        let error = ModelError::new(FailureKind::Server, "x");
        for failures in 1..=5 {
            assert!(wait_before_retry(&error, failures, 0.5).is_some(), "{failures}");
        }
        assert_eq!(wait_before_retry(&error, 6, 0.5), None);
    }

    #[test]
    fn waits_grow_are_jittered_and_bounded_and_an_asked_wait_is_kept() {
        let mut error = ModelError::new(FailureKind::RateLimit, "x");
        assert_eq!(wait_before_retry(&error, 1, 1.0), Some(BASE));
        assert_eq!(wait_before_retry(&error, 3, 1.0), Some(BASE * 4));
        assert_eq!(wait_before_retry(&error, 3, 0.0), Some(Duration::ZERO));
        error.retry_after = Some(Duration::from_secs(7));
        assert_eq!(wait_before_retry(&error, 1, 0.0), Some(Duration::from_secs(7)));
        error.retry_after = Some(Duration::from_secs(3600));
        assert_eq!(wait_before_retry(&error, 1, 0.0), None);
    }

    #[test]
    fn what_cannot_succeed_is_not_tried_again() {
        for kind in [FailureKind::Auth, FailureKind::BadRequest, FailureKind::NotFound, FailureKind::ContextOverflow] {
            assert_eq!(wait_before_retry(&ModelError::new(kind, "x"), 1, 0.5), None);
        }
    }
}
