//! A prompt as a Gemini request. What is constant stands at the front and is encoded once, contents are appended as
//! the conversation grows, and what belongs to one call only stands in a small tail after them.

use std::borrow::Cow;

use bytes::Bytes;
use locum_core::transcript::{Message, Prompt, Reply, ToolCall, ToolSpec, ToolUse};
use serde::Serialize;
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
        json.extend_from_slice(b"\"systemInstruction\":{\"parts\":[{\"text\":");
        write(json, prompt.system);
        json.extend_from_slice(b"}]},");
    }
    if !prompt.tools.is_empty() {
        let functions: Vec<Function<'_>> = prompt.tools.iter().map(Function::from).collect();
        json.extend_from_slice(b"\"tools\":[{\"functionDeclarations\":");
        write(json, &functions);
        json.extend_from_slice(b"}],");
    }
    json.extend_from_slice(b"\"contents\":[");
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
            json.extend_from_slice(b"{\"role\":\"");
            json.extend_from_slice(role.as_bytes());
            json.extend_from_slice(b"\",\"parts\":[");
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
fn parts_of<'a>(prompt: &Prompt<'_>, message: &'a Message, dialect: &Dialect) -> Vec<Part<'a>> {
    match message {
        Message::User(text) => vec![text_part(text)],
        Message::Assistant(reply) => match encoding::own_blocks(FORMAT, prompt.model, reply) {
            Some(parts) => parts.iter().map(Part::Own).collect(),
            None => reply_parts(reply, dialect.thinks_by_budget(prompt.model)),
        },
        Message::Tool { call_id, name, output } => {
            let response = match output.end.is_ok() {
                true => Response::Output { output: &output.text },
                false => Response::Error { error: &output.text },
            };
            let answer = FunctionResponse { id: given_id(call_id), name: encoding::accepted_name(name), response };
            vec![Part::Response { function_response: answer }]
        }
    }
}

/// The parts of a reply that another model gave, or this one without a signature.
fn reply_parts(reply: &Reply, takes_unsigned: bool) -> Vec<Part<'_>> {
    let mut parts = Vec::with_capacity(reply.tool_calls.len() + 1);
    if !reply.text.is_empty() || reply.tool_calls.is_empty() {
        parts.push(text_part(&reply.text));
    }
    parts.extend(reply.tool_calls.iter().enumerate().map(|(number, call)| Part::Call {
        function_call: FunctionCall::from(call),
        thought_signature: (number == 0 && !takes_unsigned).then_some(FOREIGN_SIGNATURE),
    }));
    parts
}

/// The id of a call, unless it was made up here because the API gave none.
fn given_id(id: &str) -> Option<&str> {
    (!id.starts_with("call_")).then_some(id)
}

fn text_part(text: &str) -> Part<'_> {
    Part::Text { text: if text.is_empty() { NO_TEXT } else { text } }
}

/// A part of a content. It is written as it stands here, without a tree in between.
#[derive(Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
enum Part<'a> {
    /// What this model sent, as it was.
    Own(&'a Value),
    Text {
        text: &'a str,
    },
    Call {
        function_call: FunctionCall<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        thought_signature: Option<&'static str>,
    },
    Response {
        function_response: FunctionResponse<'a>,
    },
}

#[derive(Serialize)]
struct FunctionCall<'a> {
    args: Cow<'a, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: Cow<'a, str>,
}

impl<'a> From<&'a ToolCall> for FunctionCall<'a> {
    fn from(call: &'a ToolCall) -> Self {
        let (name, args) = (encoding::accepted_name(&call.name), encoding::object_input(&call.input));
        Self { args, id: given_id(&call.id), name }
    }
}

#[derive(Serialize)]
struct FunctionResponse<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: Cow<'a, str>,
    response: Response<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Response<'a> {
    Output { output: &'a str },
    Error { error: &'a str },
}

/// A tool as the API is told of it.
#[derive(Serialize)]
struct Function<'a> {
    description: &'a str,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<Value>,
}

impl<'a> From<&'a ToolSpec> for Function<'a> {
    fn from(tool: &'a ToolSpec) -> Self {
        let parameters = schema::parameters(&tool.input_schema);
        Self { description: &tool.description, name: &tool.name, parameters }
    }
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
