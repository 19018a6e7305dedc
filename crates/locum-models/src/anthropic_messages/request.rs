//! A prompt as a Messages request.
//!
//! The cache is told by marks on blocks where a beginning ends that will be sent again. The first mark stands after
//! tools and system prompt. The second one moves: it is on the last block of the conversation. So that nothing is
//! encoded again when it moves on, the last block is kept open in the prefix, and closed in the tail: with the mark
//! in this call, without it when the conversation has grown.

use std::borrow::Cow;

use bytes::Bytes;
use locum_core::transcript::{Message, Prompt, Reply, ToolSpec, ToolUse};
use serde::Serialize;
use serde_json::{Value, json};

use super::FORMAT;
use crate::encoding::{self, NO_TEXT, TAIL_BYTES, write, write_field};
use crate::http::Segments;
use crate::model::Prefix;
use crate::providers::Dialect;

/// The output limit where nobody names one: the API wants a number, and every model takes this one.
const OUTPUT_TOKENS: u64 = 16_384;

/// The mark after which the cache keeps everything.
const MARK: &[u8] = b",\"cache_control\":{\"type\":\"ephemeral\"}";

/// Closes a block and the message that holds it.
const CLOSE: &[u8] = b"}]}";

/// The least that a model may be given to think.
const THINKING_TOKENS_MIN: u64 = 1024;

/// What the words for effort mean to models that are given a number of tokens to think.
const THINKING_TOKENS: [(&str, u64); 5] =
    [("low", 2_048), ("medium", 6_144), ("high", 12_288), ("xhigh", 12_288), ("max", 12_288)];

/// The body of a request. Only what `prefix` does not hold yet is encoded.
pub(super) fn body(prompt: &Prompt<'_>, prefix: &mut Prefix, dialect: &Dialect) -> Segments {
    let head = |json: &mut Vec<u8>| write_head(json, prompt, dialect);
    encoding::extend(FORMAT, prompt, prefix, head, |json, encoded| write_messages(json, prompt, encoded));
    Segments::following(prefix.segments(), tail(prompt, dialect))
}

fn write_head(json: &mut Vec<u8>, prompt: &Prompt<'_>, dialect: &Dialect) {
    json.extend_from_slice(b"{\"model\":");
    write(json, prompt.model);
    json.extend_from_slice(b",\"stream\":true");
    let thinks = write_thinking(json, prompt, dialect);
    // A model that thinks takes no other temperature than its own.
    if let Some(temperature) = prompt.temperature.filter(|_| !thinks) {
        write_field(json, "temperature", &temperature.clamp(0.0, 1.0));
    }
    if !prompt.tools.is_empty() {
        let tools: Vec<WireTool<'_>> = prompt.tools.iter().map(WireTool::from).collect();
        write_field(json, "tools", &tools);
    }
    if !prompt.system.trim().is_empty() {
        json.extend_from_slice(b",\"system\":[{\"type\":\"text\",\"text\":");
        write(json, prompt.system);
        json.extend_from_slice(MARK);
        json.extend_from_slice(b"}]");
    }
    json.extend_from_slice(b",\"messages\":[");
}

/// Says how hard the model should think, if that was said. Returns whether it thinks.
fn write_thinking(json: &mut Vec<u8>, prompt: &Prompt<'_>, dialect: &Dialect) -> bool {
    let Some(effort) = prompt.effort.map(str::to_ascii_lowercase) else { return false };
    if dialect.thinks_by_budget(prompt.model) {
        let tokens = THINKING_TOKENS.iter().find(|(word, _)| *word == effort).map(|(_, tokens)| *tokens);
        let room = output_limit(prompt, dialect).saturating_sub(THINKING_TOKENS_MIN);
        let Some(tokens) = tokens.map(|tokens| tokens.min(room)).filter(|tokens| *tokens >= THINKING_TOKENS_MIN) else {
            return false;
        };
        write_field(json, "thinking", &json!({ "type": "enabled", "budget_tokens": tokens }));
        return true;
    }
    if !THINKING_TOKENS.iter().any(|(word, _)| *word == effort) {
        return false;
    }
    write_field(json, "thinking", &json!({ "type": "adaptive" }));
    write_field(json, "output_config", &json!({ "effort": effort }));
    true
}

fn output_limit(prompt: &Prompt<'_>, dialect: &Dialect) -> u64 {
    let most = dialect.output_tokens_max.unwrap_or(u64::MAX);
    prompt.max_output_tokens.unwrap_or(OUTPUT_TOKENS).clamp(1, most)
}

/// Writes messages from a place on. The last block of all stays open.
fn write_messages(json: &mut Vec<u8>, prompt: &Prompt<'_>, encoded: usize) {
    let mut previous = None;
    for (place, message) in prompt.messages.iter().enumerate().skip(encoded) {
        let role = if matches!(message, Message::Assistant(_)) { "assistant" } else { "user" };
        if previous.replace(role) == Some(role) {
            // What the user and the tools say in a row is one message.
            json.extend_from_slice(b"},");
        } else {
            if place > 0 {
                json.extend_from_slice(CLOSE);
                json.push(b',');
            }
            json.extend_from_slice(b"{\"role\":\"");
            json.extend_from_slice(role.as_bytes());
            json.extend_from_slice(b"\",\"content\":[");
        }
        write_open(json, &blocks_of(prompt, place, message));
    }
}

/// Writes blocks, the last one without its end.
fn write_open(json: &mut Vec<u8>, blocks: &[Block<'_>]) {
    for (place, block) in blocks.iter().enumerate() {
        if place > 0 {
            json.extend_from_slice(b"},");
        }
        write(json, block);
        // Every block is an object: what is taken away is its closing brace.
        json.pop();
    }
}

fn blocks_of<'a>(prompt: &Prompt<'a>, place: usize, message: &'a Message) -> Vec<Block<'a>> {
    match message {
        Message::User(text) => vec![text_block(text)],
        Message::Assistant(reply) => reply_blocks(prompt, place, reply),
        Message::Tool { call_id, output, .. } => {
            let (reply, call) = encoding::answered(prompt.messages, place, call_id).unwrap_or((place, 0));
            vec![Block::Result {
                content: &output.text,
                is_error: !output.end.is_ok(),
                tool_use_id: wire_id(prompt, call_id, reply, call),
                r#type: "tool_result",
            }]
        }
    }
}

fn reply_blocks<'a>(prompt: &Prompt<'a>, place: usize, reply: &'a Reply) -> Vec<Block<'a>> {
    if let Some(blocks) = encoding::own_blocks(FORMAT, prompt.model, reply) {
        return blocks.iter().map(Block::Own).collect();
    }
    let mut blocks = Vec::with_capacity(reply.tool_calls.len() + 1);
    if !reply.text.trim().is_empty() || reply.tool_calls.is_empty() {
        blocks.push(text_block(&reply.text));
    }
    blocks.extend(reply.tool_calls.iter().enumerate().map(|(number, call)| Block::Call {
        id: wire_id(prompt, &call.id, place, number),
        input: encoding::object_input(&call.input),
        name: encoding::accepted_name(&call.name),
        r#type: "tool_use",
    }));
    blocks
}

/// A text; the API refuses one without letters.
fn text_block(text: &str) -> Block<'_> {
    Block::Text { text: if text.trim().is_empty() { NO_TEXT } else { text }, r#type: "text" }
}

/// A block of a message. It is written as it stands here, without a tree in between.
#[derive(Serialize)]
#[serde(untagged)]
enum Block<'a> {
    /// What this model sent, as it was.
    Own(&'a Value),
    Text {
        text: &'a str,
        r#type: &'static str,
    },
    Call {
        id: Cow<'a, str>,
        input: Cow<'a, Value>,
        name: Cow<'a, str>,
        r#type: &'static str,
    },
    Result {
        content: &'a str,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
        tool_use_id: Cow<'a, str>,
        r#type: &'static str,
    },
}

#[derive(Serialize)]
struct WireTool<'a> {
    description: &'a str,
    input_schema: &'a Value,
    name: &'a str,
}

impl<'a> From<&'a ToolSpec> for WireTool<'a> {
    fn from(spec: &'a ToolSpec) -> Self {
        let ToolSpec { name, description, input_schema, repeat: _ } = spec;
        Self { description, input_schema, name }
    }
}

/// A call's id as the API takes it: its own as they are; those of other models may be odd, or the same in two replies.
fn wire_id<'a>(prompt: &Prompt<'_>, id: &'a str, reply: usize, call: usize) -> Cow<'a, str> {
    let is_kept = match &prompt.messages[reply] {
        Message::Assistant(reply) => encoding::own_blocks(FORMAT, prompt.model, reply).is_some(),
        Message::User(_) | Message::Tool { .. } => false,
    };
    let is_plain = id.starts_with("toolu_") && id.chars().all(|char| char.is_ascii_alphanumeric() || char == '_');
    if is_kept || is_plain { Cow::Borrowed(id) } else { Cow::Owned(format!("call_{reply}_{call}")) }
}

/// What this call alone says, after the messages.
fn tail(prompt: &Prompt<'_>, dialect: &Dialect) -> Bytes {
    let mut json = Vec::with_capacity(TAIL_BYTES);
    if !prompt.messages.is_empty() {
        json.extend_from_slice(MARK);
        json.extend_from_slice(CLOSE);
    }
    if let Some(notice) = prompt.notice {
        if !prompt.messages.is_empty() {
            json.push(b',');
        }
        write(&mut json, &json!({ "role": "user", "content": [text_block(notice)] }));
    }
    json.push(b']');
    if prompt.tool_use == ToolUse::Forbidden && !prompt.tools.is_empty() {
        json.extend_from_slice(b",\"tool_choice\":{\"type\":\"none\"}");
    }
    write_field(&mut json, "max_tokens", &output_limit(prompt, dialect));
    json.push(b'}');
    Bytes::from(json)
}
