//! A script as it is written in a file. What can be said wrongly is refused here, with its place.

use std::collections::BTreeMap;
use std::time::Duration;

use locum_core::task::event::FailureKind;
use locum_core::transcript::Stop;
use locum_core::usage::TokenCount;
use serde::Deserialize;
use serde_json::Value;

use super::say::{Say, Turn};

/// What is wrong with a script, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub struct ScriptProblem {
    /// The entry, as in `agents.explore[2]`, or `script` for the file as a whole. Entries count from 0.
    pub place: String,
    /// What is wrong there.
    pub message: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptFile {
    agents: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplyEntry {
    text: Option<String>,
    tool_calls: Option<Vec<CallEntry>>,
    error: Option<ErrorEntry>,
    #[serde(default)]
    delay_ms: u64,
    usage: Option<UsageEntry>,
    stop: Option<StopEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallEntry {
    name: String,
    #[serde(default = "no_input")]
    input: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ErrorEntry {
    kind: KindEntry,
    message: Option<String>,
    retry_after_ms: Option<u64>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum KindEntry {
    RateLimit,
    Overloaded,
    Server,
    Network,
    Auth,
    BadRequest,
    NotFound,
    ContextOverflow,
    CutStream,
    Malformed,
    Hang,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(default, deny_unknown_fields)]
struct UsageEntry {
    input_tokens: u64,
    output_tokens: u64,
    cache_read_tokens: u64,
    cache_write_tokens: u64,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum StopEntry {
    End,
    Length,
    Refused,
}

fn no_input() -> Value {
    Value::Object(serde_json::Map::new())
}

/// Reads a script into one list of replies per agent.
pub(super) fn parse(text: &str) -> Result<BTreeMap<String, Vec<Say>>, ScriptProblem> {
    let file: ScriptFile = serde_json::from_str(text).map_err(|error| problem("script", &error))?;
    file.agents.into_iter().map(|(name, list)| Ok((name.clone(), replies(&name, list)?))).collect()
}

fn replies(agent: &str, list: Value) -> Result<Vec<Say>, ScriptProblem> {
    let place = format!("agents.{agent}");
    let Value::Array(entries) = list else {
        return Err(problem(&place, &"an agent has a list of replies: [{\"text\": …}, …]"));
    };
    let numbered = entries.into_iter().enumerate();
    numbered
        .map(|(index, entry)| {
            let place = format!("{place}[{index}]");
            let entry = serde_json::from_value(entry).map_err(|error| problem(&place, &error))?;
            say(entry).map_err(|message| problem(&place, &message))
        })
        .collect()
}

fn problem(place: &str, message: &dyn std::fmt::Display) -> ScriptProblem {
    ScriptProblem { place: place.to_owned(), message: message.to_string() }
}

fn say(entry: ReplyEntry) -> Result<Say, &'static str> {
    let ReplyEntry { text, tool_calls, error, delay_ms, usage, stop } = entry;
    let turn = match (error, tool_calls) {
        (Some(_), Some(_)) => return Err("a reply is an error or calls tools, not both"),
        (Some(error), None) if stop.is_none() => failure(error, text)?,
        (Some(_), None) => return Err("an error has no `stop`"),
        (None, Some(calls)) if calls.is_empty() => return Err("`tool_calls` is empty; leave it out"),
        (None, None) if text.is_none() => return Err("a reply has `text`, `tool_calls` or `error`"),
        (None, calls) => Turn::Reply {
            text: text.unwrap_or_default(),
            calls: calls.unwrap_or_default().into_iter().map(|call| (call.name, call.input)).collect(),
            stop: stop.map(reason),
        },
    };
    Ok(Say { turn, delay: Duration::from_millis(delay_ms), usage: usage.map(tokens) })
}

fn failure(error: ErrorEntry, text: Option<String>) -> Result<Turn, &'static str> {
    let ErrorEntry { kind, message, retry_after_ms } = error;
    let retry_after = retry_after_ms.map(Duration::from_millis);
    let (failure, usual) = match kind {
        KindEntry::RateLimit => (FailureKind::RateLimit, "too many requests"),
        KindEntry::Overloaded => (FailureKind::Overloaded, "overloaded"),
        KindEntry::Server => (FailureKind::Server, "internal server error"),
        KindEntry::Network => (FailureKind::Network, "connection refused"),
        KindEntry::Auth => (FailureKind::Auth, "invalid API key"),
        KindEntry::BadRequest => (FailureKind::BadRequest, "bad request"),
        KindEntry::NotFound => (FailureKind::NotFound, "model not found"),
        KindEntry::ContextOverflow => (FailureKind::ContextOverflow, "the conversation is too long for the model"),
        KindEntry::CutStream => (FailureKind::CutStream, "the stream ended before the answer did"),
        KindEntry::Malformed => (FailureKind::Malformed, "the answer makes no sense"),
        KindEntry::Hang => return Ok(Turn::Hang { text: text.unwrap_or_default() }),
    };
    let message = message.unwrap_or_else(|| usual.to_owned());
    match (failure, text) {
        (FailureKind::CutStream, text) => {
            Ok(Turn::CutStream { text: text.unwrap_or_else(|| message.clone()), message, retry_after })
        }
        (kind, None) => Ok(Turn::Failure { kind, message, retry_after }),
        (_, Some(_)) => Err("of all errors only `cut_stream` and `hang` have `text`; use `message`"),
    }
}

fn reason(stop: StopEntry) -> Stop {
    match stop {
        StopEntry::End => Stop::End,
        StopEntry::Length => Stop::Length,
        // The text says why; it is known only once the task is filled in.
        StopEntry::Refused => Stop::Refused(String::new()),
    }
}

fn tokens(usage: UsageEntry) -> TokenCount {
    TokenCount {
        input: usage.input_tokens,
        output: usage.output_tokens,
        cache_read: usage.cache_read_tokens,
        cache_write: usage.cache_write_tokens,
    }
}
