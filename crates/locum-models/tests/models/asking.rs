//! Asking a model under test, and what it showed meanwhile.

use std::sync::Arc;

use locum_core::ids::AgentName;
use locum_core::transcript::{Message, Prompt, Repeat, Reply, ToolSpec, ToolUse};
use locum_models::api::Api;
use locum_models::http::{Endpoint, HttpClient, Proxy, Timeouts};
use locum_models::providers::{Dialect, Protocol};
use locum_models::{Delta, Model as _, ModelError, Prefix};
use serde_json::json;

pub(crate) fn endpoint(base_url: String) -> Endpoint {
    let key = Some("sk-secret-key".to_owned().into());
    Endpoint { base_url, key, key_name: "SOME_API_KEY".to_owned(), headers: Vec::new() }
}

pub(crate) fn client(timeouts: Timeouts) -> Arc<HttpClient> {
    Arc::new(HttpClient::new(timeouts, &Proxy::default()))
}

/// A model behind a protocol at an address.
pub(crate) fn model(protocol: Protocol, base_url: String) -> Api {
    Api::new(client(Timeouts::default()), endpoint(base_url), protocol).unwrap()
}

/// The same, in a dialect.
pub(crate) fn model_in(dialect: Dialect, protocol: Protocol, base_url: String) -> Api {
    Api::in_dialect(client(Timeouts::default()), endpoint(base_url), protocol, dialect).unwrap()
}

/// What is asked, beside the conversation.
#[derive(Clone)]
pub(crate) struct Question {
    pub(crate) model: &'static str,
    pub(crate) tools: Arc<[ToolSpec]>,
    pub(crate) tool_use: ToolUse,
    pub(crate) notice: Option<&'static str>,
    pub(crate) temperature: Option<f64>,
    pub(crate) effort: Option<&'static str>,
}

impl Default for Question {
    fn default() -> Self {
        Self {
            model: "some-model",
            tools: Arc::new([]),
            tool_use: ToolUse::Allowed,
            notice: None,
            temperature: None,
            effort: None,
        }
    }
}

/// A tool that takes a path.
pub(crate) fn tools() -> Arc<[ToolSpec]> {
    let input_schema = json!({
        "type": "object", "properties": {"path": {"type": "string"}, "limit": {"type": ["integer", "null"]}},
        "required": ["path"], "additionalProperties": false,
    });
    let (name, description) = ("read".to_owned(), "Reads a file.".to_owned());
    Arc::new([ToolSpec { name, description, input_schema, repeat: Repeat::Safe }])
}

/// What a model answered and what was shown meanwhile: text as it is, `[name]` for a tool call, `.` for a sign of life.
pub(crate) async fn ask_all(
    model: &Api,
    question: &Question,
    messages: &[Message],
    prefix: &mut Prefix,
) -> (Result<Reply, ModelError>, String) {
    let agent = AgentName::parse("tester").unwrap();
    let Question { model: id, tools, tool_use, notice, temperature, effort } = question;
    let prompt = Prompt {
        agent: &agent,
        task: "Do it.",
        model: id,
        system: "Be brief.",
        messages,
        notice: *notice,
        tools,
        tool_use: *tool_use,
        max_output_tokens: Some(100),
        temperature: *temperature,
        effort: *effort,
        call: 0,
    };
    let mut shown = String::new();
    let mut deltas = |delta: Delta<'_>| match delta {
        Delta::Text(text) => shown.push_str(text),
        Delta::ToolCall { name } => shown.push_str(&format!("[{name}]")),
        Delta::Alive | Delta::Held { .. } => shown.push('.'),
    };
    let reply = model.respond(&prompt, prefix, &mut deltas).await;
    (reply, shown)
}

/// The same, with nothing but a task.
pub(crate) async fn ask(model: &Api) -> (Result<Reply, ModelError>, String) {
    let messages = [Message::User("Do it.".to_owned())];
    ask_all(model, &Question::default(), &messages, &mut Prefix::default()).await
}
