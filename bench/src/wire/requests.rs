//! What the floor sends: a body that only grows.

use locum::models::providers::Protocol;

use crate::shape::{Shape, TOOL};

/// An append-only request body and what closes it.
pub(crate) struct Body {
    /// Everything so far.
    pub(crate) open: String,
    /// What makes it valid JSON.
    pub(crate) close: &'static str,
}

/// The request of the first turn.
pub(crate) fn first(protocol: Protocol, shape: Shape) -> Body {
    let (open, close) = match protocol {
        Protocol::OpenaiChat => (
            format!(
                r#"{{"model":"{shape}","stream":true,"messages":[{{"role":"system","content":"You fetch."}},{{"role":"user","content":"Fetch everything."}}"#
            ),
            "]}",
        ),
        Protocol::OpenaiResponses => (
            format!(
                r#"{{"model":"{shape}","stream":true,"store":false,"instructions":"You fetch.","input":[{{"type":"message","role":"user","content":"Fetch everything."}}"#
            ),
            "]}",
        ),
        Protocol::AnthropicMessages => (
            format!(
                r#"{{"model":"{shape}","stream":true,"max_tokens":1000,"system":"You fetch.","messages":[{{"role":"user","content":"Fetch everything."}}"#
            ),
            "]}",
        ),
        Protocol::GoogleGemini => (
            r#"{"systemInstruction":{"parts":[{"text":"You fetch."}]},"contents":[{"role":"user","parts":[{"text":"Fetch everything."}]}"#.to_owned(),
            "]}",
        ),
    };
    Body { open, close }
}

/// What a turn adds: the model's call and its result.
pub(crate) fn turn(protocol: Protocol, turn: u32, result: &str) -> String {
    match protocol {
        Protocol::OpenaiChat => format!(
            r#",{{"role":"assistant","tool_calls":[{{"id":"call_{turn}","type":"function","function":{{"name":"{TOOL}","arguments":"{{}}"}}}}]}},{{"role":"tool","tool_call_id":"call_{turn}","content":"{result}"}}"#
        ),
        Protocol::OpenaiResponses => format!(
            r#",{{"call_id":"call_{turn}","name":"{TOOL}","arguments":"{{}}","type":"function_call"}},{{"type":"function_call_output","call_id":"call_{turn}","output":"{result}"}}"#
        ),
        Protocol::AnthropicMessages => format!(
            r#",{{"role":"assistant","content":[{{"type":"tool_use","id":"call_{turn}","name":"{TOOL}","input":{{}}}}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"call_{turn}","content":"{result}"}}]}}"#
        ),
        Protocol::GoogleGemini => format!(
            r#",{{"role":"model","parts":[{{"functionCall":{{"name":"{TOOL}","args":{{}}}}}}]}},{{"role":"user","parts":[{{"functionResponse":{{"name":"{TOOL}","response":{{"output":"{result}"}}}}}}]}}"#
        ),
    }
}
