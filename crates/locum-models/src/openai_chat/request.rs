//! A prompt as a Chat Completions request. What is constant stands at the front and is encoded once, messages are
//! appended as the conversation grows, and what belongs to one call only stands in a small tail after them.

use std::borrow::Cow;

use bytes::Bytes;
use locum_core::transcript::{Message, Prompt, Reply, ToolCall, ToolSpec, ToolUse};
use serde::Serialize;
use serde_json::Value;

use crate::http::Segments;
use crate::model::Prefix;

/// The name of this encoding in a [`Prefix`].
const FORMAT: &str = "openai_chat";

/// What the field of the output limit is called at these hosts; elsewhere it has its older name.
const OUTPUT_LIMIT_FIELDS: [(&str, &str); 1] = [("api.openai.com", "max_completion_tokens")];
const OUTPUT_LIMIT_FIELD: &str = "max_tokens";

/// Characters of a tool's name that the API takes.
const TOOL_NAME_CHARS_MAX: usize = 64;

/// The name of the output limit's field at a host.
pub(super) fn output_limit_field(host: &str) -> &'static str {
    OUTPUT_LIMIT_FIELDS.iter().find(|(at, _)| *at == host).map_or(OUTPUT_LIMIT_FIELD, |(_, field)| field)
}

/// The body of a request. Only what `prefix` does not hold yet is encoded.
pub(super) fn body(prompt: &Prompt<'_>, prefix: &mut Prefix, output_limit_field: &str) -> Segments {
    extend(prompt, prefix);
    let mut pieces = prefix.segments().to_vec();
    pieces.push(tail(prompt, output_limit_field));
    Segments::new(pieces)
}

/// Encodes what is new since the last call.
fn extend(prompt: &Prompt<'_>, prefix: &mut Prefix) {
    let encoded = prefix.encoded(FORMAT, prompt);
    let mut json = Vec::new();
    let mut separator = encoded > 0 || !prompt.system.is_empty();
    if prefix.segments().is_empty() {
        write_head(&mut json, prompt);
    }
    for message in &prompt.messages[encoded..] {
        if separator {
            json.push(b',');
        }
        separator = true;
        write(&mut json, &WireMessage::from(message));
    }
    if !json.is_empty() {
        prefix.push(Bytes::from(json), prompt.messages.len());
    }
}

fn write_head(json: &mut Vec<u8>, prompt: &Prompt<'_>) {
    json.extend_from_slice(b"{\"model\":");
    write(json, prompt.model);
    json.extend_from_slice(b",\"stream\":true,\"stream_options\":{\"include_usage\":true}");
    if let Some(temperature) = prompt.temperature {
        json.extend_from_slice(b",\"temperature\":");
        write(json, &temperature);
    }
    if !prompt.tools.is_empty() {
        json.extend_from_slice(b",\"tools\":");
        let tools: Vec<WireTool<'_>> = prompt.tools.iter().map(WireTool::from).collect();
        write(json, &tools);
    }
    json.extend_from_slice(b",\"messages\":[");
    if !prompt.system.is_empty() {
        write(json, &WireMessage::System { content: prompt.system });
    }
}

/// What this call alone says, after the messages.
fn tail(prompt: &Prompt<'_>, output_limit_field: &str) -> Bytes {
    let mut json = Vec::new();
    if let Some(notice) = prompt.notice {
        if !prompt.messages.is_empty() || !prompt.system.is_empty() {
            json.push(b',');
        }
        write(&mut json, &WireMessage::User { content: notice });
    }
    json.push(b']');
    // Without tools, the API refuses to be told not to use them.
    if prompt.tool_use == ToolUse::Forbidden && !prompt.tools.is_empty() {
        json.extend_from_slice(b",\"tool_choice\":\"none\"");
    }
    if let Some(limit) = prompt.max_output_tokens {
        json.extend_from_slice(format!(",\"{output_limit_field}\":{limit}").as_bytes());
    }
    json.push(b'}');
    Bytes::from(json)
}

fn write<T: Serialize + ?Sized>(json: &mut Vec<u8>, value: &T) {
    serde_json::to_writer(json, value).expect("plain values can be written as JSON to memory");
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum WireMessage<'a> {
    System {
        content: &'a str,
    },
    User {
        content: &'a str,
    },
    Assistant {
        content: Option<&'a str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<WireCall<'a>>,
    },
    Tool {
        tool_call_id: &'a str,
        content: &'a str,
    },
}

#[derive(Serialize)]
struct WireCall<'a> {
    id: &'a str,
    r#type: &'static str,
    function: WireFunction<'a>,
}

#[derive(Serialize)]
struct WireFunction<'a> {
    name: Cow<'a, str>,
    arguments: String,
}

#[derive(Serialize)]
struct WireTool<'a> {
    r#type: &'static str,
    function: WireToolFunction<'a>,
}

#[derive(Serialize)]
struct WireToolFunction<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

impl<'a> From<&'a Message> for WireMessage<'a> {
    fn from(message: &'a Message) -> Self {
        match message {
            Message::User(content) => Self::User { content },
            Message::Assistant(Reply { text, tool_calls, .. }) => Self::Assistant {
                // Beside tool calls the API itself says null for no text; alone, it wants a string.
                content: (!text.is_empty() || tool_calls.is_empty()).then_some(text),
                tool_calls: tool_calls.iter().map(WireCall::from).collect(),
            },
            Message::Tool { call_id, output, .. } => Self::Tool { tool_call_id: call_id, content: &output.text },
        }
    }
}

impl<'a> From<&'a ToolCall> for WireCall<'a> {
    fn from(call: &'a ToolCall) -> Self {
        let arguments = match &call.input {
            Value::Object(_) => call.input.to_string(),
            // Many servers read the arguments of past calls as an object and fail on anything else; the model has
            // been told what was wrong with them.
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                serde_json::json!({ "unparsed": call.input }).to_string()
            }
        };
        let function = WireFunction { name: accepted_name(&call.name), arguments };
        Self { id: &call.id, r#type: "function", function }
    }
}

impl<'a> From<&'a ToolSpec> for WireTool<'a> {
    fn from(spec: &'a ToolSpec) -> Self {
        let ToolSpec { name, description, input_schema: parameters, repeat: _ } = spec;
        Self { r#type: "function", function: WireToolFunction { name, description, parameters } }
    }
}

/// A name of a past call as the API takes it back. Models invent names that the API then refuses to hear again,
/// which would end the task instead of correcting the model.
fn accepted_name(name: &str) -> Cow<'_, str> {
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use locum_core::ids::AgentName;
    use locum_core::transcript::{Repeat, Stop, ToolOutput};
    use locum_core::usage::TokenCount;
    use serde_json::json;

    use super::*;

    fn tools() -> Arc<[ToolSpec]> {
        let input_schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
        let (name, description) = ("read_file".to_owned(), "Reads a file.".to_owned());
        Arc::new([ToolSpec { name, description, input_schema, repeat: Repeat::Safe }])
    }

    fn prompt<'a>(agent: &'a AgentName, tools: &'a Arc<[ToolSpec]>, messages: &'a [Message]) -> Prompt<'a> {
        Prompt {
            agent,
            task: "",
            model: "m",
            system: "Be brief.",
            messages,
            notice: None,
            tools,
            tool_use: ToolUse::Allowed,
            max_output_tokens: None,
            temperature: None,
            effort: None,
            call: 0,
        }
    }

    fn turn(number: usize) -> [Message; 2] {
        let id = format!("call_{number}");
        let call = ToolCall { id: id.clone(), name: "read_file".to_owned(), input: json!({"path": "ä\n\"🦀\""}) };
        let (stop, tokens) = (Stop::ToolUse, TokenCount::default());
        let reply = Reply { text: String::new(), tool_calls: vec![call], stop, tokens, opaque: None };
        let output = ToolOutput::ok(format!("line {number}\n").repeat(50));
        [Message::Assistant(reply), Message::Tool { call_id: id, name: "read_file".to_owned(), output }]
    }

    fn joined(prompt: &Prompt<'_>, prefix: &mut Prefix) -> Vec<u8> {
        extend(prompt, prefix);
        let tail = tail(prompt, OUTPUT_LIMIT_FIELD);
        [prefix.segments().concat(), tail.to_vec()].concat()
    }

    #[test]
    fn a_turn_encodes_what_it_adds_and_leaves_the_rest_where_it_is() {
        let (agent, tools) = (AgentName::parse("a").unwrap(), tools());
        let mut messages = vec![Message::User("Do it.".to_owned())];
        let mut prefix = Prefix::default();
        let mut previous: Vec<(*const u8, usize)> = Vec::new();
        let mut previous_text = Vec::new();
        for number in 10..60 {
            let body = joined(&prompt(&agent, &tools, &messages), &mut prefix);
            let fresh = joined(&prompt(&agent, &tools, &messages), &mut Prefix::default());
            assert_eq!(body, fresh, "the same as if it were encoded in one go");
            serde_json::from_slice::<Value>(&body).unwrap();
            assert!(body.starts_with(&previous_text), "what was sent before is sent again, byte for byte");
            previous_text = prefix.segments().concat();

            let places: Vec<_> = prefix.segments().iter().map(|segment| (segment.as_ptr(), segment.len())).collect();
            assert_eq!(places[..previous.len()], previous, "no segment moved or grew");
            assert_eq!(places.len(), previous.len() + 1, "one segment for each turn");
            if previous.len() > 1 {
                assert_eq!(places.last().unwrap().1, previous.last().unwrap().1, "turns of equal size cost the same");
            }
            previous = places;
            messages.extend(turn(number));
        }
    }

    #[test]
    fn a_call_that_is_made_again_encodes_nothing() {
        let (agent, tools) = (AgentName::parse("a").unwrap(), tools());
        let messages = [Message::User("Do it.".to_owned())];
        let mut prefix = Prefix::default();
        let first = joined(&prompt(&agent, &tools, &messages), &mut prefix);
        assert_eq!(joined(&prompt(&agent, &tools, &messages), &mut prefix), first);
        assert_eq!(prefix.segments().len(), 1);
    }

    #[test]
    fn the_prefix_of_another_conversation_or_model_is_not_used() {
        let (agent, tools) = (AgentName::parse("a").unwrap(), tools());
        let long = [Message::User("one".to_owned()), Message::User("two".to_owned())];
        let mut prefix = Prefix::default();
        extend(&prompt(&agent, &tools, &long), &mut prefix);
        let body = joined(&prompt(&agent, &tools, &long[1..]), &mut prefix);
        assert!(!String::from_utf8(body).unwrap().contains("one"));
        let other = Prompt { model: "other", ..prompt(&agent, &tools, &long) };
        assert_eq!(joined(&other, &mut prefix), joined(&other, &mut Prefix::default()));
    }

    #[test]
    fn the_whole_body() {
        let (agent, tools) = (AgentName::parse("a").unwrap(), tools());
        let mut messages = vec![Message::User("Do it.".to_owned())];
        let [mut reply, mut output] = turn(1);
        if let Message::Assistant(reply) = &mut reply {
            let odd = [("functions.read file", json!("{oops")), ("", json!([1]))];
            for (name, input) in odd {
                reply.tool_calls.push(ToolCall { id: "x".to_owned(), name: name.to_owned(), input });
            }
        }
        if let Message::Tool { output, .. } = &mut output {
            *output = ToolOutput::failed("It is gone.");
        }
        messages.extend([reply, output]);
        let mut prompt = prompt(&agent, &tools, &messages);
        prompt.temperature = Some(0.5);
        prompt.notice = Some("Answer now.");
        prompt.tool_use = ToolUse::Forbidden;
        prompt.max_output_tokens = Some(99);
        let body = String::from_utf8(joined(&prompt, &mut Prefix::default())).unwrap();
        let lines = body.replace(r#"{"role""#, "\n{\"role\"").replace("],", "\n],");
        insta::assert_snapshot!(lines, @r##"
        {"model":"m","stream":true,"stream_options":{"include_usage":true},"temperature":0.5,"tools":[{"type":"function","function":{"name":"read_file","description":"Reads a file.","parameters":{"properties":{"path":{"type":"string"}},"type":"object"}}}
        ],"messages":[
        {"role":"system","content":"Be brief."},
        {"role":"user","content":"Do it."},
        {"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"ä\\n\\\"🦀\\\"\"}"}},{"id":"x","type":"function","function":{"name":"functions_read_file","arguments":"{\"unparsed\":\"{oops\"}"}},{"id":"x","type":"function","function":{"name":"unnamed","arguments":"{\"unparsed\":[1]}"}}]},
        {"role":"tool","tool_call_id":"call_1","content":"It is gone."},
        {"role":"user","content":"Answer now."}
        ],"tool_choice":"none","max_tokens":99}
        "##);
    }

    #[test]
    fn what_is_absent_is_left_out() {
        let (agent, none) = (AgentName::parse("a").unwrap(), Arc::from([]));
        let mut prompt = prompt(&agent, &none, &[]);
        prompt.system = "";
        prompt.tool_use = ToolUse::Forbidden;
        let head = r#"{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":["#;
        let body = |prompt: &Prompt<'_>| String::from_utf8(joined(prompt, &mut Prefix::default())).unwrap();
        assert_eq!(body(&prompt), format!("{head}]}}"));
        prompt.notice = Some("now");
        assert_eq!(body(&prompt), format!(r#"{head}{{"role":"user","content":"now"}}]}}"#));
    }

    #[test]
    fn the_output_limit_has_the_name_that_the_host_knows() {
        assert_eq!(output_limit_field("api.openai.com"), "max_completion_tokens");
        assert_eq!(output_limit_field("localhost"), "max_tokens");
    }
}
