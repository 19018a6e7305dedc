//! A prompt as a Chat Completions request. What is constant stands at the front and is encoded once, messages are
//! appended as the conversation grows, and what belongs to one call only stands in a small tail after them.

use std::borrow::Cow;

use bytes::Bytes;
use locum_core::transcript::{Message, Prompt, Reply, ToolCall, ToolSpec, ToolUse};
use serde::Serialize;
use serde_json::{Value, json};

use super::{FORMAT, schema_tools};
use crate::encoding::{self, TAIL_BYTES, write, write_field};
use crate::http::Segments;
use crate::model::Prefix;
use crate::providers::Dialect;

/// The same, with tools as a schema.
const SCHEMA_FORMAT: &str = "openai_chat_schema";

/// What the field of the output limit is called where nobody says otherwise.
const OUTPUT_LIMIT_FIELD: &str = "max_tokens";

/// The body of a request. Only what `prefix` does not hold yet is encoded.
pub(super) fn body(prompt: &Prompt<'_>, prefix: &mut Prefix, dialect: &Dialect) -> Segments {
    extend(prompt, prefix, dialect);
    Segments::following(prefix.segments(), tail(prompt, dialect))
}

/// Whether tools are asked for as a schema.
pub(super) fn has_schema(prompt: &Prompt<'_>, dialect: &Dialect) -> bool {
    dialect.tools_as_schema && !prompt.tools.is_empty()
}

/// Encodes what is new since the last call.
fn extend(prompt: &Prompt<'_>, prefix: &mut Prefix, dialect: &Dialect) {
    let has_schema = has_schema(prompt, dialect);
    let format = if has_schema { SCHEMA_FORMAT } else { FORMAT };
    let has_system = has_schema || !prompt.system.is_empty();
    let head = |json: &mut Vec<u8>| write_head(json, prompt, dialect);
    encoding::extend(format, prompt, prefix, head, |json, encoded| {
        let mut separator = encoded > 0 || has_system;
        for message in &prompt.messages[encoded..] {
            if separator {
                json.push(b',');
            }
            separator = true;
            if has_schema {
                let (role, content) = schema_tools::said(message);
                write(json, &json!({ "role": role, "content": content }));
            } else {
                write(json, &WireMessage::of(message, prompt.model));
            }
        }
    });
}

fn write_head(json: &mut Vec<u8>, prompt: &Prompt<'_>, dialect: &Dialect) {
    json.extend_from_slice(b"{\"model\":");
    write(json, prompt.model);
    json.extend_from_slice(b",\"stream\":true,\"stream_options\":{\"include_usage\":true}");
    if dialect.reasons(prompt.model) {
        if let Some(effort) = prompt.effort {
            write_field(json, "reasoning_effort", &effort.to_ascii_lowercase());
        }
    } else if let Some(temperature) = prompt.temperature {
        // Models that reason take no temperature.
        write_field(json, "temperature", &temperature);
    }
    let has_schema = has_schema(prompt, dialect);
    if !prompt.tools.is_empty() && !has_schema {
        let tools: Vec<WireTool<'_>> = prompt.tools.iter().map(WireTool::from).collect();
        write_field(json, "tools", &tools);
    }
    json.extend_from_slice(b",\"messages\":[");
    if has_schema {
        write(json, &WireMessage::System { content: &schema_tools::system(prompt) });
    } else if !prompt.system.is_empty() {
        write(json, &WireMessage::System { content: prompt.system });
    }
}

/// What this call alone says, after the messages.
fn tail(prompt: &Prompt<'_>, dialect: &Dialect) -> Bytes {
    let mut json = Vec::with_capacity(TAIL_BYTES);
    let has_schema = has_schema(prompt, dialect);
    if let Some(notice) = prompt.notice {
        if !prompt.messages.is_empty() || !prompt.system.is_empty() || has_schema {
            json.push(b',');
        }
        write(&mut json, &WireMessage::User { content: notice });
    }
    json.push(b']');
    if has_schema {
        write_field(&mut json, "response_format", &schema_tools::response_format(prompt));
    } else if prompt.tool_use == ToolUse::Forbidden && !prompt.tools.is_empty() {
        // Without tools, the API refuses to be told not to use them.
        json.extend_from_slice(b",\"tool_choice\":\"none\"");
    }
    if let Some(limit) = prompt.max_output_tokens {
        write_field(&mut json, dialect.output_limit_field.as_deref().unwrap_or(OUTPUT_LIMIT_FIELD), &limit);
    }
    json.push(b'}');
    Bytes::from(json)
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
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<&'a str>,
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

impl<'a> WireMessage<'a> {
    /// A message as this model is sent it: what it thought itself, and nobody else, is part of it.
    fn of(message: &'a Message, model: &str) -> Self {
        match message {
            Message::User(content) => Self::User { content },
            Message::Assistant(reply) => {
                let Reply { text, tool_calls, .. } = reply;
                let thought = encoding::own_blocks(FORMAT, model, reply).and_then(|blocks| blocks.first());
                Self::Assistant {
                    // Beside tool calls the API itself says null for no text; alone, it wants a string.
                    content: (!text.is_empty() || tool_calls.is_empty()).then_some(text),
                    reasoning_content: thought.and_then(|block| block["reasoning_content"].as_str()),
                    tool_calls: tool_calls.iter().map(WireCall::from).collect(),
                }
            }
            Message::Tool { call_id, output, .. } => Self::Tool { tool_call_id: call_id, content: &output.text },
        }
    }
}

impl<'a> From<&'a ToolCall> for WireCall<'a> {
    fn from(call: &'a ToolCall) -> Self {
        let arguments = encoding::object_input(&call.input).to_string();
        let function = WireFunction { name: encoding::accepted_name(&call.name), arguments };
        Self { id: &call.id, r#type: "function", function }
    }
}

impl<'a> From<&'a ToolSpec> for WireTool<'a> {
    fn from(spec: &'a ToolSpec) -> Self {
        let ToolSpec { name, description, input_schema: parameters, repeat: _ } = spec;
        Self { r#type: "function", function: WireToolFunction { name, description, parameters } }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use locum_core::ids::AgentName;
    use locum_core::transcript::{Repeat, Stop, ToolOutput};
    use locum_core::usage::TokenCount;

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
        let dialect = Dialect::default();
        extend(prompt, prefix, &dialect);
        let tail = tail(prompt, &dialect);
        [prefix.segments().concat(), tail.to_vec()].concat()
    }

    #[test]
    fn a_turn_encodes_what_it_adds_and_leaves_most_of_the_rest_where_it_is() {
        let (agent, tools) = (AgentName::parse("a").unwrap(), tools());
        let mut messages = vec![Message::User("Do it.".to_owned())];
        let mut prefix = Prefix::default();
        let mut previous: Vec<*const u8> = Vec::new();
        let mut previous_text = Vec::new();
        let (mut written, mut most_pieces) = (0, 0);
        for number in 100..300 {
            let body = joined(&prompt(&agent, &tools, &messages), &mut prefix);
            let fresh = joined(&prompt(&agent, &tools, &messages), &mut Prefix::default());
            assert_eq!(body, fresh, "the same as if it were encoded in one go");
            serde_json::from_slice::<Value>(&body).unwrap();
            assert!(body.starts_with(&previous_text), "what was sent before is sent again, byte for byte");
            previous_text = prefix.segments().concat();

            let moved = |segment: &&Bytes| !previous.contains(&segment.as_ptr());
            written += prefix.segments().iter().filter(moved).map(Bytes::len).sum::<usize>();
            most_pieces = most_pieces.max(prefix.segments().len());
            previous = prefix.segments().iter().map(|segment| segment.as_ptr()).collect();
            messages.extend(turn(number));
        }
        assert!(previous_text.len() > 100_000);
        assert!(written < 8 * previous_text.len(), "{written} bytes were written for {}", previous_text.len());
        assert!(most_pieces < 40, "a long conversation is sent in {most_pieces} pieces");
    }

    #[test]
    fn large_segments_are_left_alone() {
        let mut prefix = Prefix::default();
        for messages in 1..=3 {
            prefix.push(Bytes::from(vec![b'x'; 100_000]), messages);
            prefix.push(Bytes::from_static(b"small"), messages);
        }
        let sizes: Vec<usize> = prefix.segments().iter().map(Bytes::len).collect();
        assert_eq!(sizes, [100_000, 5, 100_000, 5, 100_000, 5]);
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
        extend(&prompt(&agent, &tools, &long), &mut prefix, &Dialect::default());
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
}
