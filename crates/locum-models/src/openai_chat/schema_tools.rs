//! Tools for models whose own tool calls cannot be relied on: instead of offering tools, the request asks for one JSON
//! object, either a call or the answer, and lets the server hold the model to its schema. What the model must know
//! about the tools is told in the system prompt.

use locum_core::transcript::{Message, Prompt, Reply, Stop, ToolCall, ToolSpec, ToolUse};
use serde_json::{Value, json};

use crate::api::{Draft, Progress};
use crate::model::{Delta, Deltas, ModelError};
use crate::recovery;

/// What the model is told before the list of its tools.
const INSTRUCTIONS: &str = "Reply with one JSON object and nothing else. To use a tool, reply \
    {\"tool\": NAME, \"input\": {…}} and wait for its result. When you are done, reply {\"answer\": TEXT}. \
    Your tools, each with the schema of its input:";

/// The system prompt with what must be known about the tools.
pub(super) fn system(prompt: &Prompt<'_>) -> String {
    let mut system = prompt.system.to_owned();
    if !system.is_empty() {
        system.push_str("\n\n");
    }
    system.push_str(INSTRUCTIONS);
    for tool in prompt.tools.iter() {
        system.push_str(&format!("\n\n{}: {}\n{}", tool.name, tool.description, tool.input_schema));
    }
    system
}

/// What is said in the place of a message's calls and results.
pub(super) fn said(message: &Message) -> (&'static str, String) {
    match message {
        Message::User(text) => ("user", text.clone()),
        Message::Assistant(reply) if reply.tool_calls.is_empty() => {
            ("assistant", json!({ "answer": reply.text }).to_string())
        }
        Message::Assistant(reply) => {
            let call = |call: &ToolCall| json!({ "tool": call.name, "input": call.input }).to_string();
            ("assistant", reply.tool_calls.iter().map(call).collect::<Vec<_>>().join("\n"))
        }
        Message::Tool { name, output, .. } => {
            let how = if output.end.is_ok() { "Result" } else { "Failure" };
            ("user", format!("{how} of {name}:\n{}", output.text))
        }
    }
}

/// The schema that the reply must fit.
pub(super) fn response_format(prompt: &Prompt<'_>) -> Value {
    let answer = json!({
        "type": "object", "properties": { "answer": { "type": "string" } },
        "required": ["answer"], "additionalProperties": false,
    });
    let call = |tool: &ToolSpec| {
        json!({
            "type": "object",
            "properties": { "tool": { "const": tool.name }, "input": tool.input_schema },
            "required": ["tool", "input"], "additionalProperties": false,
        })
    };
    let mut choices = vec![answer];
    if prompt.tool_use == ToolUse::Allowed {
        choices.extend(prompt.tools.iter().map(call));
    }
    json!({ "type": "json_schema", "json_schema": { "name": "reply", "schema": { "anyOf": choices } } })
}

/// A reply that is a JSON object: what it means is known, and shown, at its end.
pub(super) struct Decoding {
    pub(super) inner: Box<dyn Draft>,
    pub(super) tools: std::sync::Arc<[ToolSpec]>,
}

impl Draft for Decoding {
    fn take(&mut self, data: &[u8], deltas: &mut Deltas<'_>) -> Result<(), ModelError> {
        self.inner.take(data, &mut |_| deltas(Delta::Alive))
    }

    fn take_whole(&mut self, json: &[u8], deltas: &mut Deltas<'_>) -> Result<(), ModelError> {
        self.inner.take_whole(json, &mut |_| deltas(Delta::Alive))
    }

    fn progress(&self) -> Progress {
        self.inner.progress()
    }

    fn said(&mut self) -> String {
        self.inner.said()
    }

    fn finish(self: Box<Self>, sent_bytes: u64, deltas: &mut Deltas<'_>) -> Result<Reply, ModelError> {
        let mut reply = self.inner.finish(sent_bytes, deltas)?;
        decode(&mut reply, &self.tools);
        if !reply.text.is_empty() {
            deltas(Delta::Text(&reply.text));
        }
        for call in &reply.tool_calls {
            deltas(Delta::ToolCall { name: &call.name });
        }
        Ok(reply)
    }
}

fn decode(reply: &mut Reply, tools: &[ToolSpec]) {
    let object: Value = serde_json::from_str(reply.text.trim()).unwrap_or_default();
    if let Some(answer) = object["answer"].as_str() {
        answer.clone_into(&mut reply.text);
    } else if let Some(name) = object["tool"].as_str().filter(|_| reply.stop == Stop::End) {
        let call = ToolCall { id: "call_1".to_owned(), name: name.to_owned(), input: object["input"].clone() };
        reply.text.clear();
        reply.tool_calls = vec![call];
        reply.stop = Stop::ToolUse;
    } else {
        // A server that does not hold the model to the schema lets it write calls in its own way.
        recovery::recover(reply, tools);
    }
}
