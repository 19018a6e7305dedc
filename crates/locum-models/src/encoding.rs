//! What the encodings of all protocols share: appending to a prefix, names and inputs of past calls as an API takes
//! them back, and blocks that only the model which made them understands.

use std::borrow::Cow;

use bytes::Bytes;
use locum_core::transcript::{Message, Prompt, Reply};
use serde::Serialize;
use serde_json::{Value, json};

use crate::model::Prefix;

/// Characters of a tool's name that every API takes.
const TOOL_NAME_CHARS_MAX: usize = 64;

/// Room for what an ordinary turn adds, so that writing it moves nothing.
const ADDED_BYTES: usize = 512;

/// Room for what one call alone says, after its messages.
pub(crate) const TAIL_BYTES: usize = 64;

/// Stands for a text that must not be empty.
pub(crate) const NO_TEXT: &str = "(nothing)";

/// Writes a value as JSON.
pub(crate) fn write<T: Serialize + ?Sized>(json: &mut Vec<u8>, value: &T) {
    serde_json::to_writer(json, value).expect("plain values can be written as JSON to memory");
}

/// Writes a field after others.
pub(crate) fn write_field<T: Serialize + ?Sized>(json: &mut Vec<u8>, name: &str, value: &T) {
    json.extend_from_slice(b",\"");
    json.extend_from_slice(name.as_bytes());
    json.extend_from_slice(b"\":");
    write(json, value);
}

/// Encodes what is new since the last call: the head once, then messages. `write_messages` is told how many messages
/// stand before.
pub(crate) fn extend(
    format: &'static str,
    prompt: &Prompt<'_>,
    prefix: &mut Prefix,
    write_head: impl FnOnce(&mut Vec<u8>),
    write_messages: impl FnOnce(&mut Vec<u8>, usize),
) {
    let encoded = prefix.encoded(format, prompt);
    let mut json = Vec::with_capacity(ADDED_BYTES);
    if prefix.segments().is_empty() {
        write_head(&mut json);
    }
    if encoded < prompt.messages.len() {
        write_messages(&mut json, encoded);
    }
    if !json.is_empty() {
        prefix.push(Bytes::from(json), prompt.messages.len());
    }
}

/// A name of a past call as an API takes it back. Models invent names that the API then refuses to hear again, which
/// would end the task instead of correcting the model.
pub(crate) fn accepted_name(name: &str) -> Cow<'_, str> {
    let is_accepted = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
    if name.is_empty() {
        return Cow::Borrowed("unnamed");
    }
    if name.len() <= TOOL_NAME_CHARS_MAX && name.chars().all(is_accepted) {
        return Cow::Borrowed(name);
    }
    let replaced = name.chars().map(|char| if is_accepted(char) { char } else { '_' });
    Cow::Owned(replaced.take(TOOL_NAME_CHARS_MAX).collect())
}

/// The input of a past call as an object, which is all that APIs take back; the model has been told what was wrong
/// with it.
pub(crate) fn object_input(input: &Value) -> Cow<'_, Value> {
    match input {
        Value::Object(_) => Cow::Borrowed(input),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Cow::Owned(json!({ "unparsed": input }))
        }
    }
}

/// Blocks that must be sent back unchanged, marked with who made them.
pub(crate) fn opaque(format: &str, model: &str, blocks: Vec<Value>) -> Value {
    let mut opaque = json!({ "format": format, "model": model });
    opaque["blocks"] = Value::Array(blocks);
    opaque
}

/// The blocks of a reply, if this very model made them: nobody else understands or accepts them.
pub(crate) fn own_blocks<'a>(format: &str, model: &str, reply: &'a Reply) -> Option<&'a Vec<Value>> {
    let opaque = reply.opaque.as_ref()?;
    let is_own = opaque["format"] == format && opaque["model"] == model;
    opaque["blocks"].as_array().filter(|blocks| is_own && !blocks.is_empty())
}

/// The place of the reply that a tool's output answers, and of the call within it.
pub(crate) fn answered(messages: &[Message], place: usize, call_id: &str) -> Option<(usize, usize)> {
    let before = messages.get(..place)?.iter().enumerate().rev();
    let (reply_place, reply) = before.into_iter().find_map(|(place, message)| match message {
        Message::Assistant(reply) => Some((place, reply)),
        Message::User(_) | Message::Tool { .. } => None,
    })?;
    let call_place = reply.tool_calls.iter().position(|call| call.id == call_id)?;
    Some((reply_place, call_place))
}
