//! The time of day, as something that can be handed in. Waiting uses tokio's clock, which tests can pause.

use std::time::SystemTime;

use locum_core::ids::Timestamp;

/// Tells the time of day.
///
/// ```
/// use std::sync::Arc;
///
/// use locum::clock::Clock;
/// use locum::{Desk, Timestamp};
///
/// /// A clock that stands still.
/// struct Noon;
///
/// impl Clock for Noon {
///     fn now(&self) -> Timestamp {
///         Timestamp::from_millis(43_200_000)
///     }
/// }
///
/// let desk = Desk::builder().clock(Arc::new(Noon)).build();
/// assert!(desk.is_ok());
/// ```
pub trait Clock: Send + Sync {
    /// The time now. It may go back: durations are measured with another clock.
    fn now(&self) -> Timestamp;
}

/// The system's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}
