//! How often a client is told of progress: soon after something happened, not too often, and now and then although
//! nothing did, because clients give up on a call that is silent. Time is an argument.

use std::time::Duration;

use tokio::time::Instant;

/// The least time between two notifications: more often than this nobody reads.
const SPACING: Duration = Duration::from_millis(200);

/// The longest silence: far below the 60 s after which most clients give up.
const SILENCE: Duration = Duration::from_secs(10);

/// What one call has told, and what it tells next.
pub(super) struct Pace {
    begun: Instant,
    told: Option<Instant>,
    last: String,
    waiting: Option<String>,
    count: u32,
}

/// One notification.
#[derive(Debug, PartialEq)]
pub(super) struct Notice {
    /// Greater than that of every notice before it.
    pub(super) progress: f64,
    pub(super) message: String,
}

impl Pace {
    pub(super) fn new(begun: Instant) -> Self {
        Self { begun, told: None, last: "waiting".to_owned(), waiting: None, count: 0 }
    }

    /// Takes a message to tell. A newer one replaces one that was not told yet.
    pub(super) fn take(&mut self, message: String) {
        self.waiting = (message != self.last).then_some(message);
    }

    /// When the next notice is due.
    pub(super) fn due(&self) -> Instant {
        match (&self.waiting, self.told) {
            (Some(_), None) => self.begun,
            (Some(_), Some(told)) => told + SPACING,
            (None, told) => told.unwrap_or(self.begun) + SILENCE,
        }
    }

    /// The notice that is due.
    pub(super) fn tell(&mut self, now: Instant) -> Notice {
        if let Some(message) = self.waiting.take() {
            self.last = message;
        }
        self.told = Some(now);
        self.count += 1;
        Notice { progress: f64::from(self.count), message: self.last.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a pace over messages at their milliseconds until `end_ms`; what it told, and when.
    fn told(messages: &[(u64, &str)], end_ms: u64) -> Vec<(u64, f64, String)> {
        let begun = Instant::now();
        let at = |ms| begun + Duration::from_millis(ms);
        let mut pace = Pace::new(begun);
        let mut told = Vec::new();
        let mut messages = messages.iter().peekable();
        for ms in 0..=end_ms {
            while let Some((_, message)) = messages.next_if(|(when, _)| *when == ms) {
                pace.take((*message).to_owned());
            }
            if pace.due() <= at(ms) {
                let Notice { progress, message } = pace.tell(at(ms));
                told.push((ms, progress, message));
            }
        }
        told
    }

    #[test]
    fn the_first_message_is_told_at_once_and_later_ones_at_intervals() {
        let messages = [(5, "a"), (10, "b"), (20, "c"), (300, "d"), (301, "d"), (900, "e")];
        let expected = [(5, 1.0, "a"), (205, 2.0, "c"), (405, 3.0, "d"), (900, 4.0, "e")]
            .map(|(ms, n, text)| (ms, n, text.to_owned()));
        assert_eq!(told(&messages, 5000), expected);
    }

    #[test]
    fn silence_is_broken_every_ten_seconds() {
        let expected = [(10_000, 1.0, "waiting"), (12_000, 2.0, "a"), (22_000, 3.0, "a")]
            .map(|(ms, n, text)| (ms, n, text.to_owned()));
        assert_eq!(told(&[(12_000, "a")], 30_000), expected);
    }

    #[test]
    fn a_flood_is_told_five_times_a_second() {
        let names: Vec<String> = (0..10_000).map(|ms| format!("m{ms}")).collect();
        let messages: Vec<(u64, &str)> = (0..).zip(names.iter().map(String::as_str)).collect();
        assert_eq!(told(&messages, 9_999).len(), 50);
    }
}
