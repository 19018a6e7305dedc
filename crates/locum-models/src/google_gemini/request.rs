//! A prompt as a Gemini request. What is constant stands at the front and is encoded once, contents are appended as
//! the conversation grows, and what belongs to one call only stands in a small tail after them.

use bytes::Bytes;
use locum_core::transcript::{Message, Prompt, Reply, ToolCall, ToolSpec, ToolUse};
use serde_json::{Map, Value, json};

use super::{FORMAT, schema};
use crate::encoding::{self, NO_TEXT, TAIL_BYTES, write, write_field};
use crate::http::Segments;
use crate::model::Prefix;
use crate::providers::Dialect;

/// What the words for effort mean to models that are given a number of tokens to think.
const THINKING_TOKENS: [(&str, u64); 5] =
    [("none", 0), ("minimal", 512), ("low", 1_024), ("medium", 8_192), ("high", 24_576)];

/// Stands for the signature of a call that another model made, which the API otherwise refuses.
const FOREIGN_SIGNATURE: &str = "skip_thought_signature_validator";

/// The words for effort that the API knows.
const LEVELS: [&str; 4] = ["minimal", "low", "medium", "high"];

/// The body of a request. Only what `prefix` does not hold yet is encoded.
pub(super) fn body(prompt: &Prompt<'_>, prefix: &mut Prefix, dialect: &Dialect) -> Segments {
    let head = |json: &mut Vec<u8>| write_head(json, prompt);
    encoding::extend(FORMAT, prompt, prefix, head, |json, encoded| write_contents(json, prompt, dialect, encoded));
    Segments::following(prefix.segments(), tail(prompt, dialect))
}

fn write_head(json: &mut Vec<u8>, prompt: &Prompt<'_>) {
    json.push(b'{');
    if !prompt.system.is_empty() {
        json.extend_from_slice(b"\"systemInstruction\":");
        write(json, &json!({ "parts": [{ "text": prompt.system }] }));
        json.push(b',');
    }
    if !prompt.tools.is_empty() {
        let functions: Vec<Value> = prompt.tools.iter().map(function).collect();
        json.extend_from_slice(b"\"tools\":");
        write(json, &json!([{ "functionDeclarations": functions }]));
        json.push(b',');
    }
    json.extend_from_slice(b"\"contents\":[");
}

fn function(tool: &ToolSpec) -> Value {
    let mut function = json!({ "name": tool.name, "description": tool.description });
    if let Some(parameters) = schema::parameters(&tool.input_schema) {
        function["parameters"] = parameters;
    }
    function
}

/// Writes contents from a place on. What the user and the tools say in a row is one content: the API wants as many
/// answers in one as there were calls.
fn write_contents(json: &mut Vec<u8>, prompt: &Prompt<'_>, dialect: &Dialect, encoded: usize) {
    let mut previous = None;
    for (place, message) in prompt.messages.iter().enumerate().skip(encoded) {
        let role = if matches!(message, Message::Assistant(_)) { "model" } else { "user" };
        if previous.replace(role) == Some(role) {
            json.push(b',');
        } else {
            if place > encoded {
                json.extend_from_slice(b"]}");
            }
            if place > 0 {
                json.push(b',');
            }
            json.extend_from_slice(format!("{{\"role\":\"{role}\",\"parts\":[").as_bytes());
        }
        for (number, part) in parts_of(prompt, message, dialect).iter().enumerate() {
            if number > 0 {
                json.push(b',');
            }
            write(json, part);
        }
    }
    json.extend_from_slice(b"]}");
}

/// The parts that a message becomes: at least one.
fn parts_of(prompt: &Prompt<'_>, message: &Message, dialect: &Dialect) -> Vec<Value> {
    match message {
        Message::User(text) => vec![text_part(text)],
        Message::Assistant(reply) => match encoding::own_blocks(FORMAT, prompt.model, reply) {
            Some(parts) => parts.clone(),
            None => reply_parts(reply, dialect.thinks_by_budget(prompt.model)),
        },
        Message::Tool { call_id, name, output } => {
            let field = if output.end.is_ok() { "output" } else { "error" };
            let mut response = json!({ "name": encoding::accepted_name(name), "response": { field: output.text } });
            mark(&mut response, call_id);
            vec![json!({ "functionResponse": response })]
        }
    }
}

/// The parts of a reply that another model gave, or this one without a signature.
fn reply_parts(reply: &Reply, takes_unsigned: bool) -> Vec<Value> {
    let mut parts = Vec::new();
    if !reply.text.is_empty() || reply.tool_calls.is_empty() {
        parts.push(text_part(&reply.text));
    }
    let first = parts.len();
    parts.extend(reply.tool_calls.iter().map(call_part));
    if let Some(call) = parts.get_mut(first).filter(|_| !takes_unsigned) {
        call["thoughtSignature"] = json!(FOREIGN_SIGNATURE);
    }
    parts
}

/// A call as a part.
fn call_part(call: &ToolCall) -> Value {
    let (name, args) = (encoding::accepted_name(&call.name), encoding::object_input(&call.input));
    let mut function = json!({ "name": name, "args": args });
    mark(&mut function, &call.id);
    json!({ "functionCall": function })
}

/// Adds the id of a call, unless it was made up here because the API gave none.
fn mark(value: &mut Value, id: &str) {
    if !id.starts_with("call_") {
        value["id"] = json!(id);
    }
}

fn text_part(text: &str) -> Value {
    json!({ "text": if text.is_empty() { NO_TEXT } else { text } })
}

/// What this call alone says, after the contents.
fn tail(prompt: &Prompt<'_>, dialect: &Dialect) -> Bytes {
    let mut json = Vec::with_capacity(TAIL_BYTES);
    if let Some(notice) = prompt.notice {
        if !prompt.messages.is_empty() {
            json.push(b',');
        }
        write(&mut json, &json!({ "role": "user", "parts": [text_part(notice)] }));
    }
    json.push(b']');
    if prompt.tool_use == ToolUse::Forbidden && !prompt.tools.is_empty() {
        write_field(&mut json, "toolConfig", &json!({ "functionCallingConfig": { "mode": "NONE" } }));
    }
    let generation = generation(prompt, dialect);
    if !generation.is_empty() {
        write_field(&mut json, "generationConfig", &generation);
    }
    json.push(b'}');
    Bytes::from(json)
}

fn generation(prompt: &Prompt<'_>, dialect: &Dialect) -> Map<String, Value> {
    let mut generation = Map::new();
    if let Some(limit) = prompt.max_output_tokens {
        // The API counts in 32 bits.
        generation.insert("maxOutputTokens".to_owned(), json!(limit.clamp(1, i32::MAX as u64)));
    }
    if let Some(temperature) = prompt.temperature {
        generation.insert("temperature".to_owned(), json!(temperature));
    }
    if let Some(thinking) = prompt.effort.and_then(|effort| thinking(effort, prompt.model, dialect)) {
        generation.insert("thinkingConfig".to_owned(), thinking);
    }
    generation
}

fn thinking(effort: &str, model: &str, dialect: &Dialect) -> Option<Value> {
    let effort = effort.to_ascii_lowercase();
    if dialect.thinks_by_budget(model) {
        let (_, tokens) = THINKING_TOKENS.iter().find(|(word, _)| *word == effort)?;
        return Some(json!({ "thinkingBudget": tokens }));
    }
    LEVELS.contains(&effort.as_str()).then(|| json!({ "thinkingLevel": effort }))
}
