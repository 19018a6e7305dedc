//! The two shapes in which model servers speak, as far as a conversation of three turns needs them: two that call the
//! tool `note`, and one that answers.

use locum::models::Access;
use serde_json::{Value, json};

use super::server::Act;

/// Turns of the conversation.
pub(crate) const TURNS: usize = 3;

/// What the last turn says.
pub(crate) const ANSWER: &str = "All is noted. 🦀";

/// How a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    OpenAiChat,
    Anthropic,
}

/// Why a model stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    End,
    Tools,
    Length,
    Filter,
}

/// What an error inside a stream is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamError {
    Overloaded,
    RateLimit,
    Server,
    Invalid,
}

/// A tool call in pieces.
pub(crate) struct Call<'a> {
    pub(crate) index: usize,
    pub(crate) id: &'a str,
    pub(crate) name: &'a str,
    pub(crate) arguments: &'a [&'a str],
}

impl Shape {
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::OpenAiChat => "/chat/completions",
            Self::Anthropic => "/messages",
        }
    }

    /// The model that a desk asks, and how it is reached.
    pub(crate) fn access(self, base_url: &str) -> (&'static str, Access) {
        let (provider, model) = match self {
            Self::OpenAiChat => ("openai", "openai:chaos"),
            Self::Anthropic => ("anthropic", "anthropic:chaos"),
        };
        (model, Access::default().key(provider, "sk-chaos-key").base_url(provider, base_url))
    }

    /// How a stream begins.
    pub(crate) fn begin(self) -> String {
        match self {
            Self::OpenAiChat => {
                data(&json!({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}))
            }
            Self::Anthropic => {
                let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "chaos",
                                     "content": [], "stop_reason": null, "stop_sequence": null,
                                     "usage": {"input_tokens": 30, "output_tokens": 1}});
                event("message_start", json!({"message": message}))
            }
        }
    }

    /// A text in pieces.
    pub(crate) fn text(self, pieces: &[&str]) -> String {
        match self {
            Self::OpenAiChat => {
                let piece = |text: &&str| data(&json!({"choices": [{"index": 0, "delta": {"content": text}}]}));
                pieces.iter().map(piece).collect()
            }
            Self::Anthropic => {
                let begin =
                    event("content_block_start", json!({"index": 0, "content_block": {"type": "text", "text": ""}}));
                let piece = |text: &&str| {
                    event("content_block_delta", json!({"index": 0, "delta": {"type": "text_delta", "text": text}}))
                };
                let end = event("content_block_stop", json!({"index": 0}));
                [begin, pieces.iter().map(piece).collect(), end].concat()
            }
        }
    }

    /// Tool calls; the pieces of their arguments take turns.
    pub(crate) fn calls(self, calls: &[Call<'_>]) -> String {
        match self {
            Self::OpenAiChat => {
                let delta = |call: Value| data(&json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}));
                let begins = calls.iter().map(|Call { index, id, name, .. }| {
                    delta(json!({"index": index, "id": id, "type": "function",
                                 "function": {"name": name, "arguments": ""}}))
                });
                let rounds = calls.iter().map(|call| call.arguments.len()).max().unwrap_or_default();
                let pieces = (0..rounds).flat_map(|round| {
                    calls.iter().filter_map(move |call| {
                        let arguments = call.arguments.get(round)?;
                        Some(json!({"index": call.index, "function": {"arguments": arguments}}))
                    })
                });
                begins.chain(pieces.map(delta)).collect()
            }
            Self::Anthropic => {
                // Block 0 may be a text.
                let block = |index: usize| index + 1;
                let begins = calls.iter().map(|Call { index, id, name, .. }| {
                    let content = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
                    event("content_block_start", json!({"index": block(*index), "content_block": content}))
                });
                let rounds = calls.iter().map(|call| call.arguments.len()).max().unwrap_or_default();
                let pieces = (0..rounds).flat_map(|round| {
                    calls.iter().filter_map(move |call| {
                        let delta = json!({"type": "input_json_delta", "partial_json": call.arguments.get(round)?});
                        Some(event("content_block_delta", json!({"index": block(call.index), "delta": delta})))
                    })
                });
                let ends = calls.iter().map(|call| event("content_block_stop", json!({"index": block(call.index)})));
                begins.chain(pieces).chain(ends).collect()
            }
        }
    }

    /// The end of a stream.
    pub(crate) fn finish(self, stop: Stop) -> String {
        [self.stop(stop), self.usage(), self.done()].concat()
    }

    /// Why the model stopped.
    pub(crate) fn stop(self, stop: Stop) -> String {
        match self {
            Self::OpenAiChat => {
                let reason = match stop {
                    Stop::End => "stop",
                    Stop::Tools => "tool_calls",
                    Stop::Length => "length",
                    Stop::Filter => "content_filter",
                };
                data(&json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}))
            }
            Self::Anthropic => {
                let reason = match stop {
                    Stop::End => "end_turn",
                    Stop::Tools => "tool_use",
                    Stop::Length => "max_tokens",
                    Stop::Filter => "refusal",
                };
                let delta = json!({"stop_reason": reason, "stop_sequence": null});
                event("message_delta", json!({"delta": delta, "usage": {"output_tokens": 7}}))
            }
        }
    }

    /// What it used, where that is an event of its own.
    pub(crate) fn usage(self) -> String {
        match self {
            Self::OpenAiChat => data(&json!({"choices": [], "usage": {"prompt_tokens": 30, "completion_tokens": 7}})),
            Self::Anthropic => String::new(),
        }
    }

    /// That nothing follows.
    pub(crate) fn done(self) -> String {
        match self {
            Self::OpenAiChat => "data: [DONE]\n\n".to_owned(),
            Self::Anthropic => event("message_stop", json!({})),
        }
    }

    /// A sign of life.
    pub(crate) fn ping(self) -> String {
        match self {
            Self::OpenAiChat => ": ping\n\n".to_owned(),
            Self::Anthropic => event("ping", json!({})),
        }
    }

    /// Events that nobody knows yet.
    pub(crate) fn unknown(self) -> String {
        let future = json!({"type": "future.event", "object": "future", "novelty": {"deep": [1, 2]}});
        let named = format!("event: future_event\nid: 7\nretry: 10\n{}", data(&future));
        [named, self.ping()].concat()
    }

    /// An error inside a stream that began well.
    pub(crate) fn error(self, error: StreamError) -> String {
        match self {
            Self::OpenAiChat => {
                let (kind, code) = match error {
                    StreamError::Overloaded => ("overloaded_error", Value::Null),
                    StreamError::RateLimit => ("requests", json!("rate_limit_exceeded")),
                    StreamError::Server => ("server_error", Value::Null),
                    StreamError::Invalid => ("invalid_request_error", Value::Null),
                };
                data(&json!({"error": {"message": "It broke.", "type": kind, "code": code}}))
            }
            Self::Anthropic => {
                let kind = match error {
                    StreamError::Overloaded => "overloaded_error",
                    StreamError::RateLimit => "rate_limit_error",
                    StreamError::Server => "api_error",
                    StreamError::Invalid => "invalid_request_error",
                };
                event("error", json!({"error": {"type": kind, "message": "It broke."}}))
            }
        }
    }

    /// A refusal in the model's own words.
    pub(crate) fn refusal(self) -> String {
        match self {
            Self::OpenAiChat => {
                let refusal = data(&json!({"choices": [{"index": 0, "delta": {"refusal": "I will not."}}]}));
                [refusal, self.finish(Stop::End)].concat()
            }
            Self::Anthropic => [self.text(&["I will not."]), self.finish(Stop::Filter)].concat(),
        }
    }

    /// A body that explains a status.
    pub(crate) fn explanation(self, message: &str) -> String {
        match self {
            Self::OpenAiChat => json!({"error": {"message": message}}).to_string(),
            Self::Anthropic => json!({"type": "error", "error": {"message": message}}).to_string(),
        }
    }

    /// What a turn says, before it ends.
    pub(crate) fn speech(self, turn: usize) -> String {
        if turn >= TURNS {
            let (head, tail) = ANSWER.split_at(7);
            return [self.begin(), self.text(&[head, tail])].concat();
        }
        let number = format!("{turn}}}");
        let call = Call { index: 0, id: &format!("call_{turn}"), name: "note", arguments: &["{\"n\":", &number] };
        [self.begin(), self.calls(&[call])].concat()
    }

    /// Why a turn ends.
    pub(crate) fn reason(self, turn: usize) -> Stop {
        if turn >= TURNS { Stop::End } else { Stop::Tools }
    }

    /// A turn as it should be.
    pub(crate) fn whole(self, turn: usize) -> Vec<Act> {
        stream(&[self.speech(turn), self.finish(self.reason(turn))].concat())
    }
}

/// A stream of these events, from its head to its end.
pub(crate) fn stream(events: &str) -> Vec<Act> {
    vec![Act::Head, Act::Piece(events.as_bytes().to_vec()), Act::End]
}

/// An event that names its type twice.
fn event(kind: &str, mut value: Value) -> String {
    value["type"] = json!(kind);
    format!("event: {kind}\n{}", data(&value))
}

fn data(value: &Value) -> String {
    format!("data: {value}\n\n")
}
