//! What a server says, in the words of each protocol: the suite tells it what, these know how.

use locum_core::usage::TokenCount;
use locum_models::api::Api;
use locum_models::providers::Protocol;
use serde_json::{Value, json};

use crate::asking::model;
use crate::server::Server;

/// One thing that a model says.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Say {
    Text(&'static str),
    /// A tool call: id, name, pieces of its arguments.
    Call(&'static str, &'static str, &'static [&'static str]),
    /// Something that nobody knows, or that only shows life.
    Noise,
}

/// How a reply ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Stop,
    Length,
    Filter,
}

/// A protocol from the server's side.
pub(crate) struct Speaker {
    pub(crate) protocol: Protocol,
    /// The path of a base address.
    pub(crate) base: &'static str,
    /// The first line of its requests.
    pub(crate) request_line: &'static str,
    /// The header that carries the key, and its value.
    pub(crate) key_header: (&'static str, &'static str),
    /// What its counts of tokens mean.
    pub(crate) tokens: TokenCount,
    /// Whether its tool calls arrive in one piece.
    pub(crate) has_whole_calls: bool,
    begin: fn() -> Vec<Value>,
    say: fn(&mut u64, Say) -> Vec<Value>,
    end: fn(Ending, bool) -> Vec<Value>,
    /// An error inside a stream: the provider is overloaded.
    pub(crate) overloaded: fn() -> Value,
    /// The last event without which a reply is not whole.
    last: &'static str,
}

impl Speaker {
    /// A model that asks this server in this protocol.
    pub(crate) fn model(&self, server: &Server) -> Api {
        model(self.protocol, format!("http://{}{}", server.address, self.base))
    }

    /// The events of a reply, in order.
    pub(crate) fn events(&self, says: &[Say], ending: Ending, counts: bool) -> Vec<String> {
        let mut index = 0;
        let said = says.iter().flat_map(|say| (self.say)(&mut index, *say));
        let all = (self.begin)().into_iter().chain(said).chain((self.end)(ending, counts));
        let mut events: Vec<String> = all.map(|value| event(&value)).collect();
        if self.protocol == Protocol::OpenaiChat {
            events.push("data: [DONE]\n\n".to_owned());
        }
        events
    }

    /// A whole reply as bytes.
    pub(crate) fn reply(&self, says: &[Say], ending: Ending) -> String {
        self.events(says, ending, true).concat()
    }

    /// How much of a stream there must be before the reply is whole.
    pub(crate) fn whole_from(&self, stream: &str) -> usize {
        let last = stream.find(self.last).unwrap();
        last + stream[last..].find("\n\n").unwrap()
    }
}

/// One event of a stream.
pub(crate) fn event(value: &Value) -> String {
    match value.get("type").and_then(Value::as_str) {
        Some(kind) => format!("event: {kind}\ndata: {value}\n\n"),
        None => format!("data: {value}\n\n"),
    }
}

/// Every protocol.
pub(crate) const ALL: [Speaker; 4] = [CHAT, RESPONSES, MESSAGES, GEMINI];

const CHAT: Speaker = Speaker {
    protocol: Protocol::OpenaiChat,
    base: "/v1",
    request_line: "POST /v1/chat/completions HTTP/1.1\r\n",
    key_header: ("authorization", "Bearer sk-secret-key"),
    tokens: TokenCount { input: 6, output: 5, cache_read: 4, cache_write: 0 },
    has_whole_calls: false,
    begin: || vec![chat_delta(&json!({"role": "assistant", "content": ""}))],
    say: |index, say| match say {
        Say::Text(text) => vec![chat_delta(&json!({ "content": text }))],
        Say::Noise => vec![json!({"object": "something.new", "payload": [1]})],
        Say::Call(id, name, pieces) => {
            let place = *index;
            *index += 1;
            let call = |call: Value| chat_delta(&json!({ "tool_calls": [call] }));
            let first = json!({"index": place, "id": id, "function": {"name": name, "arguments": ""}});
            let piece = |piece: &&str| call(json!({"index": place, "function": {"arguments": piece}}));
            std::iter::once(call(first)).chain(pieces.iter().map(piece)).collect()
        }
    },
    end: |ending, counts| {
        let reason = match ending {
            Ending::Stop => "stop",
            Ending::Length => "length",
            Ending::Filter => "content_filter",
        };
        let usage = json!({"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 4}});
        let finish = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]});
        if counts { vec![finish, json!({"choices": [], "usage": usage})] } else { vec![finish] }
    },
    overloaded: || json!({"error": {"message": "Busy.", "code": 503}}),
    last: "\"finish_reason\":\"",
};

fn chat_delta(delta: &Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta}]})
}

const RESPONSES: Speaker = Speaker {
    protocol: Protocol::OpenaiResponses,
    base: "/v1",
    request_line: "POST /v1/responses HTTP/1.1\r\n",
    key_header: ("authorization", "Bearer sk-secret-key"),
    tokens: TokenCount { input: 6, output: 5, cache_read: 4, cache_write: 0 },
    has_whole_calls: false,
    begin: || vec![json!({"type": "response.created", "response": {"status": "in_progress", "output": []}})],
    say: |index, say| {
        let place = *index;
        *index += 1;
        match say {
            Say::Noise => vec![json!({"type": "response.something.new", "payload": [1]})],
            Say::Text(text) => {
                let part = json!({"type": "output_text", "text": text});
                vec![
                    json!({"type": "response.output_text.delta", "output_index": place, "delta": text}),
                    json!({"type": "response.output_item.done", "output_index": place,
                           "item": {"type": "message", "role": "assistant", "content": [part]}}),
                ]
            }
            Say::Call(id, name, pieces) => {
                let item = |arguments: &str| json!({"type": "function_call", "id": "fc", "call_id": id, "name": name, "arguments": arguments});
                let added = json!({"type": "response.output_item.added", "output_index": place, "item": item("")});
                let piece = |piece: &&str| json!({"type": "response.function_call_arguments.delta", "output_index": place, "delta": piece});
                let done = json!({"type": "response.output_item.done", "output_index": place,
                                  "item": item(&pieces.concat())});
                let pieces = pieces.iter().map(piece);
                std::iter::once(added).chain(pieces).chain([done]).collect()
            }
        }
    },
    end: |ending, counts| {
        let (kind, status, details) = match ending {
            Ending::Stop => ("response.completed", "completed", Value::Null),
            Ending::Length => ("response.incomplete", "incomplete", json!({"reason": "max_output_tokens"})),
            Ending::Filter => ("response.incomplete", "incomplete", json!({"reason": "content_filter"})),
        };
        let usage = json!({"input_tokens": 10, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 4}});
        let usage = if counts { usage } else { Value::Null };
        vec![json!({"type": kind, "response":
                    {"status": status, "incomplete_details": details, "usage": usage, "error": null}})]
    },
    overloaded: || {
        json!({"type": "response.failed", "response":
               {"status": "failed", "error": {"code": "server_overloaded", "message": "Busy."}}})
    },
    last: "event: response.completed",
};

const MESSAGES: Speaker = Speaker {
    protocol: Protocol::AnthropicMessages,
    base: "/v1",
    request_line: "POST /v1/messages HTTP/1.1\r\n",
    key_header: ("x-api-key", "sk-secret-key"),
    tokens: TokenCount { input: 6, output: 5, cache_read: 4, cache_write: 2 },
    has_whole_calls: false,
    begin: || {
        let usage = json!({"input_tokens": 6, "output_tokens": 1, "cache_read_input_tokens": 4,
                           "cache_creation_input_tokens": 2});
        vec![json!({"type": "message_start", "message": {"role": "assistant", "content": [], "usage": usage}})]
    },
    say: |index, say| {
        if let Say::Noise = say {
            return vec![json!({"type": "ping"}), json!({"type": "something_new", "payload": [1]})];
        }
        let place = *index;
        *index += 1;
        let start = |block: Value| json!({"type": "content_block_start", "index": place, "content_block": block});
        let delta = |delta: Value| json!({"type": "content_block_delta", "index": place, "delta": delta});
        let mut events = match say {
            Say::Text(text) => {
                vec![start(json!({"type": "text", "text": ""})), delta(json!({"type": "text_delta", "text": text}))]
            }
            Say::Call(id, name, pieces) => {
                let piece = |piece: &&str| delta(json!({"type": "input_json_delta", "partial_json": piece}));
                let begin = start(json!({"type": "tool_use", "id": id, "name": name, "input": {}}));
                std::iter::once(begin).chain(pieces.iter().map(piece)).collect()
            }
            Say::Noise => Vec::new(),
        };
        events.push(json!({"type": "content_block_stop", "index": place}));
        events
    },
    end: |ending, counts| {
        let reason = match ending {
            Ending::Stop => "end_turn",
            Ending::Length => "max_tokens",
            Ending::Filter => "refusal",
        };
        let delta = json!({"stop_reason": reason, "stop_sequence": null});
        let mut last = json!({"type": "message_delta", "delta": delta});
        if counts {
            last["usage"] = json!({"output_tokens": 5});
        }
        vec![last, json!({"type": "message_stop"})]
    },
    overloaded: || json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
    last: "event: message_delta",
};

const GEMINI: Speaker = Speaker {
    protocol: Protocol::GoogleGemini,
    base: "",
    request_line: "POST /v1beta/models/some-model:streamGenerateContent?alt=sse HTTP/1.1\r\n",
    key_header: ("x-goog-api-key", "sk-secret-key"),
    tokens: TokenCount { input: 6, output: 5, cache_read: 4, cache_write: 0 },
    has_whole_calls: true,
    begin: Vec::new,
    say: |_, say| {
        let part = match say {
            Say::Noise => return vec![json!({"something": "new"})],
            Say::Text(text) => json!({ "text": text }),
            Say::Call(id, name, pieces) => {
                let args: Value = serde_json::from_str(&pieces.concat()).unwrap_or(Value::Null);
                json!({"functionCall": {"id": id, "name": name, "args": args}})
            }
        };
        vec![json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}}]})]
    },
    end: |ending, counts| {
        let reason = match ending {
            Ending::Stop => "STOP",
            Ending::Length => "MAX_TOKENS",
            Ending::Filter => "SAFETY",
        };
        let mut last = json!({"candidates": [{"index": 0, "finishReason": reason}]});
        if counts {
            last["usageMetadata"] = json!({"promptTokenCount": 10, "cachedContentTokenCount": 4,
                                           "candidatesTokenCount": 3, "thoughtsTokenCount": 2});
        }
        vec![last]
    },
    overloaded: || json!({"error": {"code": 503, "message": "Busy.", "status": "UNAVAILABLE"}}),
    last: "\"finishReason\":\"",
};
