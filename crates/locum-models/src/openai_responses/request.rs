//! A prompt as a Responses request. What is constant stands at the front and is encoded once, items are appended as
//! the conversation grows, and what belongs to one call only stands in a small tail after them.

use std::borrow::Cow;

use bytes::Bytes;
use locum_core::transcript::{Message, Prompt, Reply, ToolSpec, ToolUse};
use serde::Serialize;
use serde_json::{Value, json};

use super::FORMAT;
use crate::encoding::{self, TAIL_BYTES, write, write_field};
use crate::http::Segments;
use crate::model::Prefix;
use crate::providers::Dialect;

/// The words for effort that the API knows.
const EFFORTS: [&str; 6] = ["none", "minimal", "low", "medium", "high", "xhigh"];

/// The least output limit that the API takes.
const OUTPUT_TOKENS_MIN: u64 = 16;

/// The body of a request. Only what `prefix` does not hold yet is encoded.
pub(super) fn body(prompt: &Prompt<'_>, prefix: &mut Prefix, dialect: &Dialect) -> Segments {
    let head = |json: &mut Vec<u8>| write_head(json, prompt, dialect);
    encoding::extend(FORMAT, prompt, prefix, head, |json, encoded| write_items(json, prompt, encoded));
    Segments::following(prefix.segments(), tail(prompt))
}

fn write_head(json: &mut Vec<u8>, prompt: &Prompt<'_>, dialect: &Dialect) {
    json.extend_from_slice(b"{\"model\":");
    write(json, prompt.model);
    json.extend_from_slice(b",\"stream\":true,\"store\":false");
    if dialect.reasons(prompt.model) {
        json.extend_from_slice(b",\"include\":[\"reasoning.encrypted_content\"]");
        let effort = prompt.effort.map(str::to_ascii_lowercase);
        if let Some(effort) = effort.filter(|effort| EFFORTS.contains(&effort.as_str())) {
            write_field(json, "reasoning", &json!({ "effort": effort }));
        }
    } else if let Some(temperature) = prompt.temperature {
        // Models that reason take no temperature.
        write_field(json, "temperature", &temperature);
    }
    if !prompt.tools.is_empty() {
        let tools: Vec<WireTool<'_>> = prompt.tools.iter().map(WireTool::from).collect();
        write_field(json, "tools", &tools);
    }
    if !prompt.system.is_empty() {
        write_field(json, "instructions", prompt.system);
    }
    json.extend_from_slice(b",\"input\":[");
}

fn write_items(json: &mut Vec<u8>, prompt: &Prompt<'_>, encoded: usize) {
    let mut separator = encoded > 0;
    for message in &prompt.messages[encoded..] {
        for item in items_of(prompt, message) {
            if separator {
                json.push(b',');
            }
            separator = true;
            write(json, &item);
        }
    }
}

/// The items that a message becomes: at least one.
fn items_of<'a>(prompt: &Prompt<'_>, message: &'a Message) -> Vec<Item<'a>> {
    match message {
        Message::User(text) => vec![said("user", text)],
        Message::Assistant(reply) => match encoding::own_blocks(FORMAT, prompt.model, reply) {
            Some(items) => items.iter().map(Item::Own).collect(),
            None => reply_items(reply),
        },
        Message::Tool { call_id, output, .. } => {
            vec![Item::Output { call_id, output: &output.text, r#type: "function_call_output" }]
        }
    }
}

fn reply_items(reply: &Reply) -> Vec<Item<'_>> {
    let mut items = Vec::with_capacity(reply.tool_calls.len() + 1);
    if !reply.text.is_empty() || reply.tool_calls.is_empty() {
        items.push(said("assistant", &reply.text));
    }
    items.extend(reply.tool_calls.iter().map(|call| Item::Call {
        arguments: encoding::object_input(&call.input).to_string(),
        call_id: &call.id,
        name: encoding::accepted_name(&call.name),
        r#type: "function_call",
    }));
    items
}

fn said<'a>(role: &'static str, content: &'a str) -> Item<'a> {
    Item::Message { content, role, r#type: "message" }
}

/// An item of a conversation. It is written as it stands here, without a tree in between.
#[derive(Serialize)]
#[serde(untagged)]
enum Item<'a> {
    /// What this model sent, as it was.
    Own(&'a Value),
    Message {
        content: &'a str,
        role: &'static str,
        r#type: &'static str,
    },
    Call {
        arguments: String,
        call_id: &'a str,
        name: Cow<'a, str>,
        r#type: &'static str,
    },
    Output {
        call_id: &'a str,
        output: &'a str,
        r#type: &'static str,
    },
}

#[derive(Serialize)]
struct WireTool<'a> {
    description: &'a str,
    name: &'a str,
    parameters: &'a Value,
    strict: bool,
    r#type: &'static str,
}

impl<'a> From<&'a ToolSpec> for WireTool<'a> {
    fn from(spec: &'a ToolSpec) -> Self {
        let ToolSpec { name, description, input_schema: parameters, repeat: _ } = spec;
        Self { description, name, parameters, strict: false, r#type: "function" }
    }
}

/// What this call alone says, after the items.
fn tail(prompt: &Prompt<'_>) -> Bytes {
    let mut json = Vec::with_capacity(TAIL_BYTES);
    if let Some(notice) = prompt.notice {
        if !prompt.messages.is_empty() {
            json.push(b',');
        }
        write(&mut json, &said("user", notice));
    }
    json.push(b']');
    if prompt.tool_use == ToolUse::Forbidden && !prompt.tools.is_empty() {
        json.extend_from_slice(b",\"tool_choice\":\"none\"");
    }
    if let Some(limit) = prompt.max_output_tokens {
        write_field(&mut json, "max_output_tokens", &limit.max(OUTPUT_TOKENS_MIN));
    }
    json.push(b'}');
    Bytes::from(json)
}
