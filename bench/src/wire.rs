//! The four protocols as far as a benchmark needs them: just enough of each to be spoken by a server and by the floor.

mod answers;
mod requests;

use locum::models::providers::Protocol;

pub(crate) use answers::{final_answer, tool_call};
pub(crate) use requests::{first, turn};

/// The provider that locum is told to be speaking to.
pub(crate) fn provider(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::OpenaiChat | Protocol::OpenaiResponses => "openai",
        Protocol::AnthropicMessages => "anthropic",
        Protocol::GoogleGemini => "gemini",
    }
}

/// What stands before every path of the protocol.
pub(crate) fn base(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::OpenaiChat | Protocol::OpenaiResponses => "/v1",
        Protocol::AnthropicMessages | Protocol::GoogleGemini => "",
    }
}

/// Where a model is asked.
pub(crate) fn path(protocol: Protocol, model: &str) -> String {
    match protocol {
        Protocol::OpenaiChat => "/v1/chat/completions".to_owned(),
        Protocol::OpenaiResponses => "/v1/responses".to_owned(),
        Protocol::AnthropicMessages => "/v1/messages".to_owned(),
        Protocol::GoogleGemini => format!("/v1beta/models/{model}:streamGenerateContent"),
    }
}

/// The protocol that is spoken at a path.
pub(crate) fn spoken_at(path: &str) -> Option<Protocol> {
    let end = path.rsplit(['/', ':']).next()?;
    match end {
        "completions" => Some(Protocol::OpenaiChat),
        "responses" => Some(Protocol::OpenaiResponses),
        "messages" => Some(Protocol::AnthropicMessages),
        "streamGenerateContent" => Some(Protocol::GoogleGemini),
        _ => None,
    }
}

/// What every earlier turn of the model leaves once in a request.
pub(crate) fn mark(protocol: Protocol) -> &'static [u8] {
    match protocol {
        Protocol::OpenaiChat | Protocol::AnthropicMessages => b"\"role\":\"assistant\"",
        Protocol::OpenaiResponses => b"\"type\":\"function_call\"",
        Protocol::GoogleGemini => b"\"role\":\"model\"",
    }
}
