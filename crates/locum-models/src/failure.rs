//! What went wrong, in words and as a kind. Statuses and words are tables: each server has its own dialect.

use std::time::{Duration, SystemTime};

use hyper::{HeaderMap, StatusCode};
use locum_core::task::event::FailureKind;
use serde_json::Value;

use crate::http;
use crate::model::ModelError;

/// Characters of an API's own message that are shown.
const MESSAGE_CHARS_MAX: usize = 300;

/// What a status means by itself.
const STATUSES: [(u16, FailureKind); 13] = [
    (401, FailureKind::Auth),
    // The account has no money; another attempt does not help.
    (402, FailureKind::Auth),
    (403, FailureKind::Auth),
    (404, FailureKind::NotFound),
    (405, FailureKind::NotFound),
    (408, FailureKind::Timeout),
    (413, FailureKind::ContextOverflow),
    (429, FailureKind::RateLimit),
    (500, FailureKind::Server),
    (502, FailureKind::Server),
    (503, FailureKind::Overloaded),
    (504, FailureKind::Server),
    (529, FailureKind::Overloaded),
];

/// What the words in `code` and `type` mean; the first that fits counts.
const WORDS: [(&str, FailureKind); 17] = [
    ("insufficient_quota", FailureKind::Auth),
    ("billing", FailureKind::Auth),
    ("context_length_exceeded", FailureKind::ContextOverflow),
    ("exceed_context_size", FailureKind::ContextOverflow),
    ("invalid_api_key", FailureKind::Auth),
    ("authentication", FailureKind::Auth),
    ("permission", FailureKind::Auth),
    ("rate_limit", FailureKind::RateLimit),
    ("resource_exhausted", FailureKind::RateLimit),
    ("overloaded", FailureKind::Overloaded),
    ("unavailable", FailureKind::Overloaded),
    ("timeout", FailureKind::Timeout),
    ("not_found", FailureKind::NotFound),
    ("server_error", FailureKind::Server),
    ("internal", FailureKind::Server),
    ("invalid_request", FailureKind::BadRequest),
    ("invalid_argument", FailureKind::BadRequest),
];

/// How servers say in prose that a conversation is too long.
const OVERFLOW_PHRASES: [&str; 9] = [
    "context length",
    "context window",
    "context size",
    "maximum context",
    "too many tokens",
    "prompt is too long",
    "input is too long",
    "exceeds the maximum number of tokens",
    "exceed context limit",
];

/// How servers say in prose, and with the status of a wrong request, that the key or the account is at fault.
const AUTH_PHRASES: [&str; 3] = ["api key not valid", "api key expired", "credit balance is too low"];

/// What a failure's message needs to know about the request.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) host: &'a str,
    pub(crate) model: &'a str,
    pub(crate) key_name: &'a str,
    pub(crate) has_key: bool,
}

/// A failure that a server reports by its status.
pub(crate) fn from_status(
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
    now: SystemTime,
    asked: &Asked<'_>,
) -> ModelError {
    let details = Details::parse(body);
    let kind = details.refine(status.as_u16());
    let mut message = format!("HTTP {} from {}", status.as_u16(), asked.host);
    if !details.message.is_empty() {
        message.push_str(": ");
        message.push_str(&details.message);
    }
    if let Some(advice) = advice(status, headers, &details, asked) {
        message.push_str("; ");
        message.push_str(&advice);
    }
    let mut error = ModelError::new(kind, message);
    let wait = http::retry_after(headers, now).or(details.wait);
    error.retry_after = wait.filter(|_| kind.is_transient());
    error
}

/// A failure that a server reports inside an answer that began well.
pub(crate) fn from_event(data: &[u8]) -> ModelError {
    let details = Details::parse(data);
    let kind = match details.status {
        Some(status) => details.refine(status),
        None => details.kind().unwrap_or(FailureKind::Server),
    };
    let message = if details.message.is_empty() { "no reason given" } else { details.message.as_str() };
    ModelError::new(kind, format!("the API reports an error: {message}"))
}

fn advice(status: StatusCode, headers: &HeaderMap, details: &Details, asked: &Asked<'_>) -> Option<String> {
    let Asked { model, key_name, has_key, .. } = asked;
    match status.as_u16() {
        401 | 403 if !has_key => Some(format!("no key is set: set {key_name}")),
        401 => Some(format!("check the key in {key_name}")),
        403 => Some(format!("check what the key in {key_name} may do")),
        404 => Some(format!("check the model's name, `{model}`, and the base URL")),
        429 if details.kind() == Some(FailureKind::Auth) => Some("check the account's plan and billing".to_owned()),
        300..=399 => {
            // Following it would hand the key to whoever answers there.
            let place = headers.get("location").and_then(|place| place.to_str().ok()).unwrap_or("elsewhere");
            Some(format!("it points to {}: set the base URL to where the API is", shorten(place.as_bytes())))
        }
        _ => None,
    }
}

/// What an error body says.
#[derive(Debug, Default)]
struct Details {
    message: String,
    /// Its `code`, `type` and `status`, in lower case.
    words: String,
    /// A status inside the body.
    status: Option<u16>,
    /// How long it asks to wait.
    wait: Option<Duration>,
}

impl Details {
    fn parse(body: &[u8]) -> Self {
        let Ok(value) = serde_json::from_slice::<Value>(body) else {
            let message = if is_html(body) { "an HTML page instead of an answer".to_owned() } else { shorten(body) };
            return Self { message, ..Self::default() };
        };
        // Some servers wrap the error in a list.
        let outer = value.get(0).unwrap_or(&value);
        let error = outer.get("error").filter(|error| !error.is_null()).unwrap_or(outer);
        let said = ["message", "detail", "error"].iter().find_map(|field| error.get(field));
        let message = match said.unwrap_or(error) {
            Value::String(text) => shorten(text.as_bytes()),
            other => shorten(other.to_string().as_bytes()),
        };
        let wait = error.get("details").and_then(wait_of);
        let word = |field| error.get(field).and_then(Value::as_str).unwrap_or_default().to_lowercase();
        let number = |field| error.get(field).and_then(Value::as_u64).and_then(|number| u16::try_from(number).ok());
        let status = number("code").or_else(|| number("status")).filter(|status| (400..600).contains(status));
        Self { message, words: format!("{} {} {}", word("code"), word("type"), word("status")), status, wait }
    }

    /// What the words mean, whatever the status.
    fn kind(&self) -> Option<FailureKind> {
        let named = WORDS.iter().find(|(word, _)| self.words.contains(word)).map(|(_, kind)| *kind);
        let is_general = named.is_none_or(|kind| matches!(kind, FailureKind::BadRequest | FailureKind::Server));
        if is_general && self.says_any(&OVERFLOW_PHRASES) {
            Some(FailureKind::ContextOverflow)
        } else if is_general && self.says_any(&AUTH_PHRASES) {
            Some(FailureKind::Auth)
        } else {
            named
        }
    }

    fn says_any(&self, phrases: &[&str]) -> bool {
        let message = self.message.to_lowercase();
        phrases.iter().any(|phrase| message.contains(phrase))
    }

    /// What a status means together with the words. A status that is exact by itself is believed, except that an
    /// empty account is not a rate limit.
    fn refine(&self, status: u16) -> FailureKind {
        match (status, self.kind()) {
            (400 | 422, Some(kind @ (FailureKind::ContextOverflow | FailureKind::NotFound | FailureKind::Auth))) => {
                kind
            }
            (500, Some(kind @ FailureKind::ContextOverflow)) => kind,
            (429, Some(kind @ FailureKind::Auth)) => kind,
            _ => {
                let general = if status >= 500 { FailureKind::Server } else { FailureKind::BadRequest };
                STATUSES.iter().find(|(known, _)| *known == status).map_or(general, |(_, kind)| *kind)
            }
        }
    }
}

/// The wait in a list of details, as in `{"retryDelay": "34.5s"}`.
fn wait_of(details: &Value) -> Option<Duration> {
    let seconds = details.as_array()?.iter().find_map(|detail| detail.get("retryDelay")?.as_str()?.strip_suffix('s'));
    Duration::try_from_secs_f64(seconds?.parse().ok()?).ok()
}

/// Whether an answer is a page for people.
pub(crate) fn is_html(body: &[u8]) -> bool {
    body.trim_ascii_start().starts_with(b"<")
}

/// A text on one line, as much of it as is worth showing.
pub(crate) fn shorten(text: &[u8]) -> String {
    // More bytes than are ever shown: what follows need not be looked at.
    let text = String::from_utf8_lossy(&text[..text.len().min(MESSAGE_CHARS_MAX * 8)]);
    let visible = text.replace(char::is_control, " ");
    let line = visible.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MESSAGE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
