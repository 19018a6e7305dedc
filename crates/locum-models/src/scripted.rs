//! A model that says what a script tells it to: for tests of agents, tools and everything that drives them, without
//! a key, a network or chance.
//!
//! A script is a JSON object with one list of replies per agent, by its name, or `*` for every agent without a list:
//!
//! ```
//! use locum_models::scripted::Scripted;
//!
//! let script = r#"{
//!   "agents": {
//!     "explore": [
//!       {"tool_calls": [{"name": "grep", "input": {"pattern": "retry"}}]},
//!       {"error": {"kind": "rate_limit", "retry_after_ms": 20}},
//!       {"text": "Found it in src/retry.rs:12.", "usage": {"input_tokens": 900, "output_tokens": 12}}
//!     ],
//!     "*": [{"text": "Done: {{task}}", "delay_ms": 50}]
//!   }
//! }"#;
//! assert!(Scripted::parse(script).is_ok());
//! ```
//!
//! # How a list is read
//!
//! Every task starts at the beginning of its agent's list, and each model call takes the next entry. A call that
//! fails takes its entry too, so the attempt after it is answered by the entry after it: the example above is a
//! rate limit that passes. A call past the end fails with `script ended`, and is not tried again.
//!
//! # What a reply may be
//!
//! | fields | what happens |
//! |---|---|
//! | `text` | The answer. `{{task}}` in it becomes the task as it was given. |
//! | `tool_calls`: `[{"name", "input"?}]`, `text`? | The model calls tools, perhaps saying something before. An `input` that is a string stands for input that is not JSON. |
//! | `error`: `{"kind", "message"?, "retry_after_ms"?}` | The call fails, as a real one would. |
//!
//! Every reply may also have
//!
//! - `delay_ms`: how long it takes before anything is said;
//! - `usage`: `{"input_tokens"?, "output_tokens"?, "cache_read_tokens"?, "cache_write_tokens"?}`, what it reports to
//!   have used. Without it, tokens are estimated at four characters each. A failed call reports nothing;
//! - `stop`, not with an error: `end`, `length` (the answer was cut at the output limit) or `refused` (the text says
//!   why).
//!
//! # Kinds of errors
//!
//! `rate_limit`, `overloaded`, `server`, `network` and `malformed` pass: the call is tried again. `cut_stream` passes
//! too, and half of its `text`, or of its `message`, is said before the stream breaks. `auth`, `bad_request`,
//! `not_found` and `context_overflow` do not pass. `hang` says its `text`, if it has one, and never ends; only a timeout
//! or a cancel ends it.

mod file;
mod say;

use std::collections::BTreeMap;
use std::time::Duration;

use locum_core::task::event::FailureKind;
use locum_core::transcript::{Prompt, Reply, Stop, ToolCall};
use locum_core::usage::TokenCount;

pub use self::file::ScriptProblem;
pub use self::say::Say;

use self::say::Turn;
use crate::model::{BoxFuture, Delta, Deltas, Model, ModelError, Prefix};
use crate::offline::speech;

/// The list of every agent that has none of its own.
const ANY_AGENT: &str = "*";

/// A model that replays a script. See the [module](self) for the format.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scripted {
    agents: BTreeMap<String, Vec<Say>>,
}

impl Scripted {
    /// A script without replies, to which [`Scripted::agent`] adds them.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same script with what this agent, or every other one for `*`, says.
    ///
    /// ```
    /// use locum_models::scripted::{Say, Scripted};
    /// use serde_json::json;
    ///
    /// let model = Scripted::new()
    ///     .agent("explore", [Say::calls([("grep", json!({"pattern": "retry"}))]), Say::text("src/retry.rs:12")])
    ///     .agent("*", [Say::text("Done: {{task}}")]);
    /// # drop(model);
    /// ```
    #[must_use]
    pub fn agent(mut self, name: &str, replies: impl IntoIterator<Item = Say>) -> Self {
        self.agents.insert(name.to_owned(), replies.into_iter().collect());
        self
    }

    /// Reads a script; see the [module](self) for the format.
    ///
    /// # Errors
    ///
    /// What is wrong with the script, and where. A field that no script has is refused by its name.
    pub fn parse(text: &str) -> Result<Self, ScriptProblem> {
        Ok(Self { agents: file::parse(text)? })
    }

    fn find(&self, prompt: &Prompt<'_>) -> Result<&Say, ModelError> {
        let Some(replies) = self.agents.get(prompt.agent.as_str()).or_else(|| self.agents.get(ANY_AGENT)) else {
            let message = format!("the script has no replies for agent {}; it has {}", prompt.agent, self.names());
            return Err(ModelError::new(FailureKind::BadRequest, message));
        };
        let entry = usize::try_from(prompt.call).ok().and_then(|call| replies.get(call));
        entry.ok_or_else(|| ModelError::new(FailureKind::BadRequest, "script ended"))
    }

    fn names(&self) -> String {
        if self.agents.is_empty() {
            return "none at all".to_owned();
        }
        let names: Vec<&str> = self.agents.keys().map(String::as_str).collect();
        format!("some for: {}", names.join(", "))
    }
}

impl Model for Scripted {
    fn respond<'a>(
        &'a self,
        prompt: &'a Prompt<'a>,
        _prefix: &'a mut Prefix,
        deltas: &'a mut Deltas<'a>,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            let say = self.find(prompt)?;
            if !say.delay.is_zero() {
                tokio::time::sleep(say.delay).await;
            }
            match &say.turn {
                Turn::Reply { text, calls, stop } => {
                    let text = text.replace("{{task}}", prompt.task);
                    let reply = reply(prompt, text, calls, stop.as_ref());
                    speech::show(&reply.text, &reply.tool_calls, deltas);
                    let tokens = say.usage.unwrap_or_else(|| speech::estimate(prompt, &reply));
                    Ok(Reply { tokens, ..reply })
                }
                Turn::Failure { kind, message, retry_after } => {
                    Err(ModelError { retry_after: *retry_after, ..ModelError::new(*kind, message.clone()) })
                }
                Turn::CutStream { text, message, retry_after } => {
                    Err(cut_stream(&text.replace("{{task}}", prompt.task), message, *retry_after, deltas))
                }
                Turn::Hang { text } => {
                    speech::show(&text.replace("{{task}}", prompt.task), &[], deltas);
                    std::future::pending().await
                }
            }
        })
    }
}

fn reply(prompt: &Prompt<'_>, text: String, calls: &[(String, serde_json::Value)], stop: Option<&Stop>) -> Reply {
    let numbered = calls.iter().enumerate().map(|(index, (name, input))| ToolCall {
        // The number of the call makes the id unique within the task, as the protocols of real models demand.
        id: format!("call_{}_{index}", prompt.call),
        name: name.clone(),
        input: input.clone(),
    });
    let tool_calls: Vec<ToolCall> = numbered.collect();
    let stop = match stop {
        Some(Stop::Refused(_)) => Stop::Refused(text.clone()),
        Some(stop) => stop.clone(),
        None if tool_calls.is_empty() => Stop::End,
        None => Stop::ToolUse,
    };
    Reply { text, tool_calls, stop, tokens: TokenCount::default(), opaque: None }
}

fn cut_stream(text: &str, message: &str, retry_after: Option<Duration>, deltas: &mut Deltas<'_>) -> ModelError {
    let half = &text[..speech::chars_end(text, text.chars().count() / 2)];
    if !half.is_empty() {
        deltas(Delta::Text(half));
    }
    ModelError {
        retry_after,
        partial: (!half.is_empty()).then(|| half.to_owned()),
        ..ModelError::new(FailureKind::CutStream, message)
    }
}

#[cfg(test)]
mod tests;
