//! Tool calls that a model wrote into its text, as small local models do: in `<tool_call>` tags, in a fenced block at
//! the end, or as the whole text. Only what names a tool that the agent has, and fits that tool's schema, is a call;
//! everything else stays text. All of what is written so must be calls, or none of it is.

mod fit;

use std::sync::Arc;

use locum_core::transcript::{Reply, Stop, ToolCall, ToolSpec};
use serde_json::{Map, Value};

use self::fit::fits;
use crate::api::{Draft, Progress};
use crate::model::{Deltas, ModelError};

/// Longer texts are not searched: a call is short.
const TEXT_BYTES_MAX: usize = 256 * 1024;

/// Tags in which calls are written.
const TAGS: [(&str, &str); 2] = [("<tool_call>", "</tool_call>"), ("<function_call>", "</function_call>")];

const FENCE: &str = "```";

/// A reply in whose text calls are looked for, at its end.
pub(crate) struct Recovering {
    pub(crate) inner: Box<dyn Draft>,
    pub(crate) tools: Arc<[ToolSpec]>,
}

impl Draft for Recovering {
    fn take(&mut self, data: &[u8], deltas: &mut Deltas<'_>) -> Result<(), ModelError> {
        self.inner.take(data, deltas)
    }

    fn take_whole(&mut self, json: &[u8], deltas: &mut Deltas<'_>) -> Result<(), ModelError> {
        self.inner.take_whole(json, deltas)
    }

    fn progress(&self) -> Progress {
        self.inner.progress()
    }

    fn said(&mut self) -> String {
        self.inner.said()
    }

    fn finish(self: Box<Self>, sent_bytes: u64, deltas: &mut Deltas<'_>) -> Result<Reply, ModelError> {
        let mut reply = self.inner.finish(sent_bytes, deltas)?;
        recover(&mut reply, &self.tools);
        Ok(reply)
    }
}

/// Takes the calls out of a reply's text, if there are any.
pub(crate) fn recover(reply: &mut Reply, tools: &[ToolSpec]) {
    if reply.stop != Stop::End || !reply.tool_calls.is_empty() || tools.is_empty() {
        return;
    }
    if let Some((text, calls)) = calls_in(&reply.text, tools) {
        reply.text = text;
        reply.stop = Stop::ToolUse;
        reply.tool_calls = calls
            .into_iter()
            .enumerate()
            .map(|(place, (name, input))| ToolCall { id: format!("call_{}", place + 1), name, input })
            .collect();
    }
}

/// A call: the tool's name and the input.
type Call = (String, Value);

/// The calls in a text, and what is left of it.
fn calls_in(text: &str, tools: &[ToolSpec]) -> Option<(String, Vec<Call>)> {
    if text.len() > TEXT_BYTES_MAX {
        return None;
    }
    let (left, written) = tagged(text).or_else(|| fenced(text)).or_else(|| bare(text))?;
    let mut calls = Vec::new();
    for json in written {
        calls.extend(read_calls(json, tools)?);
    }
    (!calls.is_empty()).then(|| (left.trim().to_owned(), calls))
}

/// What stands in tags, and the text without it.
fn tagged(text: &str) -> Option<(String, Vec<&str>)> {
    let (open, close) = TAGS.iter().find(|(open, _)| text.contains(open))?;
    let (mut left, mut written, mut rest) = (String::new(), Vec::new(), text);
    while let Some((before, after)) = rest.split_once(open) {
        left.push_str(before);
        // The last closing tag is often what makes the model stop, and is not sent.
        let (inside, further) = after.split_once(close).unwrap_or((after, ""));
        written.push(without_fence(inside.trim()));
        rest = further;
    }
    left.push_str(rest);
    Some((left, written))
}

/// The fenced block with which a text ends, and the text before it. A block in the middle is an example, not a call.
fn fenced(text: &str) -> Option<(String, Vec<&str>)> {
    let trimmed = text.trim_end();
    let body = trimmed.strip_suffix(FENCE).unwrap_or(trimmed);
    let start = body.rfind(FENCE)?;
    let inside = without_language(&body[start + FENCE.len()..]);
    Some((body[..start].to_owned(), vec![inside.trim()]))
}

/// A text that is nothing but JSON.
fn bare(text: &str) -> Option<(String, Vec<&str>)> {
    let trimmed = text.trim();
    trimmed.starts_with(['{', '[']).then(|| (String::new(), vec![trimmed]))
}

fn without_fence(text: &str) -> &str {
    match text.strip_prefix(FENCE) {
        Some(rest) => without_language(rest).trim().trim_end_matches(FENCE).trim(),
        None => text,
    }
}

/// What follows the word after an opening fence.
fn without_language(text: &str) -> &str {
    text.trim_start_matches(|char: char| char.is_alphanumeric() || char == '_')
}

/// The calls that JSON values mean, one after the other; none if one of them is no call.
fn read_calls(json: &str, tools: &[ToolSpec]) -> Option<Vec<Call>> {
    let mut calls = Vec::new();
    for value in serde_json::Deserializer::from_str(json).into_iter::<Value>() {
        match value.ok()? {
            Value::Array(values) => {
                for value in &values {
                    calls.push(read_call(value, tools)?);
                }
            }
            value => calls.push(read_call(&value, tools)?),
        }
    }
    Some(calls)
}

fn read_call(value: &Value, tools: &[ToolSpec]) -> Option<Call> {
    let fields = value.as_object()?;
    // Some write the call as the API would have sent it.
    let fields = fields.get("function").and_then(Value::as_object).unwrap_or(fields);
    let name = ["name", "tool", "tool_name", "function"].iter().find_map(|field| fields.get(*field)?.as_str())?;
    let tool = tools.iter().find(|tool| tool.name == name)?;
    let input = ["arguments", "parameters", "input", "args"].iter().find_map(|field| fields.get(*field));
    let input = match input {
        Some(Value::String(json)) => serde_json::from_str(json).ok()?,
        Some(input) => input.clone(),
        None => Value::Object(Map::new()),
    };
    (input.is_object() && fits(&input, &tool.input_schema)).then(|| (name.to_owned(), input))
}

#[cfg(test)]
mod tests {
    use locum_core::transcript::Repeat;
    use locum_core::usage::TokenCount;
    use serde_json::json;

    use super::*;

    fn tools() -> Vec<ToolSpec> {
        let schema = json!({"type": "object", "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}},
                            "required": ["path"], "additionalProperties": false});
        ["read", "look"]
            .map(|name| ToolSpec {
                name: name.to_owned(),
                description: String::new(),
                input_schema: schema.clone(),
                repeat: Repeat::Safe,
            })
            .into()
    }

    /// The text that is left and the calls, as `name input`.
    fn recovered(text: &str) -> (String, Vec<String>) {
        let mut reply = Reply {
            text: text.to_owned(),
            tool_calls: Vec::new(),
            stop: Stop::End,
            tokens: TokenCount::default(),
            opaque: None,
        };
        recover(&mut reply, &tools());
        assert_eq!(reply.stop == Stop::ToolUse, !reply.tool_calls.is_empty());
        let calls = reply.tool_calls.iter().map(|call| format!("{} {}", call.name, call.input)).collect();
        (reply.text, calls)
    }

    #[test]
    fn calls_are_found_however_they_are_written() {
        let call = r#"{"name": "read", "arguments": {"path": "a"}}"#;
        let other = r#"{"name": "look", "parameters": {"path": "b", "limit": 3}}"#;
        let cases = [
            (format!("<tool_call>\n{call}\n</tool_call>"), "", 1),
            (format!("I look.\n<tool_call>{call}</tool_call>\n<tool_call>{other}"), "I look.", 2),
            (format!("<tool_call>\n```json\n{call}\n```\n</tool_call> Well."), "Well.", 1),
            (format!("<function_call>{call}</function_call>"), "", 1),
            (format!("Let me see:\n```json\n{call}\n```\n"), "Let me see:", 1),
            (format!("```\n[{call}, {other}]"), "", 2),
            (format!("{call}\n{other}"), "", 2),
            (r#"{"function": {"name": "read", "arguments": "{\"path\":\"a\"}"}}"#.to_owned(), "", 1),
            (r#"{"tool": "read", "input": {"path": "a"}}"#.to_owned(), "", 1),
        ];
        for (text, left, count) in cases {
            let (actual, calls) = recovered(&text);
            assert_eq!((actual.as_str(), calls.len()), (left, count), "{text}");
            assert_eq!(calls[0], r#"read {"path":"a"}"#, "{text}");
        }
    }

    #[test]
    fn what_is_no_call_stays_text() {
        let call = r#"{"name": "read", "arguments": {"path": "a"}}"#;
        for text in [
            "Nothing to call.".to_owned(),
            r#"<tool_call>{"name": "delete", "arguments": {}}</tool_call>"#.to_owned(),
            r#"<tool_call>{"name": "read", "arguments": {}}</tool_call>"#.to_owned(),
            r#"<tool_call>{"name": "read", "arguments": {"path": 3}}</tool_call>"#.to_owned(),
            r#"<tool_call>{"name": "read", "arguments": {"path": "a", "else": 1}}</tool_call>"#.to_owned(),
            r#"<tool_call>{"name": "read", "arguments": {"path": "a"</tool_call>"#.to_owned(),
            format!("<tool_call>{call}</tool_call><tool_call>{{oops</tool_call>"),
            format!("Call it like this:\n```json\n{call}\n```\nThen you know."),
            format!("It is {call}"),
            "{}".to_owned(),
            "[]".to_owned(),
            "```".to_owned(),
            "``````".to_owned(),
            String::new(),
            format!("{}{call}", " ".repeat(TEXT_BYTES_MAX)),
        ] {
            assert_eq!(recovered(&text), (text.clone(), Vec::new()), "{text:.80}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_is_too_strange(text in "(<tool_call>|</tool_call>|```|json|\\{|\\}|\"name\"|:|\"read\"|\\PC)*") {
            recovered(&text);
        }
    }
}
