//! How long an API asks to wait: the header `Retry-After`, as seconds or as a date.

use std::time::{Duration, SystemTime};

use hyper::HeaderMap;
use hyper::header::RETRY_AFTER;

/// Some APIs are more exact than the standard allows.
const RETRY_AFTER_MS: &str = "retry-after-ms";

/// No header is believed beyond this: it only has to be longer than anybody waits.
const SECONDS_MAX: f64 = 1e9;

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// How long these headers ask to wait, if they do.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    if let Some(wait) = text(RETRY_AFTER_MS).and_then(|text| seconds(text, 0.001)) {
        return Some(wait);
    }
    let text = text(RETRY_AFTER.as_str())?;
    seconds(text, 1.0).or_else(|| {
        let moment = SystemTime::UNIX_EPOCH + Duration::from_secs(parse_date(text)?);
        // A date that has passed means now.
        Some(moment.duration_since(now).unwrap_or_default())
    })
}

fn seconds(text: &str, unit: f64) -> Option<Duration> {
    let number: f64 = text.parse().ok()?;
    (number >= 0.0).then(|| Duration::from_secs_f64((number * unit).min(SECONDS_MAX)))
}

/// Seconds since 1970 of a date in the one form that servers still send: `Fri, 15 May 2015 15:34:21 GMT`.
fn parse_date(text: &str) -> Option<u64> {
    let (_, date) = text.split_once(", ")?;
    let mut parts = date.split(' ');
    let mut next = || parts.next();
    let day: u64 = next()?.parse().ok()?;
    let month = next()?;
    let month = MONTHS.iter().position(|name| *name == month)? as u64 + 1;
    let year: u64 = next()?.parse().ok()?;
    let mut clock = next()?.split(':').map(|part| part.parse::<u64>().ok());
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    let is_plausible = (1970..10_000).contains(&year) && (1..=31).contains(&day) && hour < 24 && minute < 60;
    if next()? != "GMT" || !is_plausible || second > 60 {
        return None;
    }
    Some(((days_since_1970(year, month, day)? * 24 + hour) * 60 + minute) * 60 + second)
}

/// Days from 1970 to a date of the Gregorian calendar; years are counted from March, so that a leap day is the last.
fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days_of_years = year * 365 + year / 4 - year / 100 + year / 400;
    let days_of_months = (month * 153 + 2) / 5;
    /// The days before 1 January 1970, counted in the same way.
    const EPOCH: u64 = 719_468;
    (days_of_years + days_of_months + day - 1).checked_sub(EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fri, 15 May 2015 15:34:21 GMT.
    const NOW: u64 = 1_431_704_061;

    fn wait(name: &'static str, value: &str) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        retry_after(&headers, SystemTime::UNIX_EPOCH + Duration::from_secs(NOW))
    }

    #[test]
    fn seconds_milliseconds_and_dates_are_understood_and_nonsense_is_not() {
        let cases = [
            ("retry-after", "7", Some(7_000)),
            ("retry-after", "0.5", Some(500)),
            ("retry-after-ms", "1500", Some(1_500)),
            ("retry-after", "Fri, 15 May 2015 15:34:31 GMT", Some(10_000)),
            ("retry-after", "Fri, 15 May 2015 15:34:11 GMT", Some(0)),
            ("retry-after", "Tue, 01 Mar 2016 00:00:00 GMT", Some(25_086_339_000)),
            ("retry-after", "1e300", Some(1_000_000_000_000)),
            ("retry-after", "-1", None),
            ("retry-after", "NaN", None),
            ("retry-after", "soon", None),
            ("retry-after", "Fri, 15 Mai 2015 15:34:31 GMT", None),
            ("retry-after", "Fri, 99 May 2015 15:34:31 GMT", None),
            ("retry-after", "Fri, 15 May 99999999999999999999 15:34:31 GMT", None),
            ("retry-after", "Fri, 15 May 2015 15:34:31 CET", None),
            ("retry-after", "", None),
        ];
        for (name, value, expected_ms) in cases {
            assert_eq!(wait(name, value), expected_ms.map(Duration::from_millis), "{name}: {value}");
        }
    }
}
