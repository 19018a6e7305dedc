//! A call of a tool as a client writes it: `{"tool", "input"}`, one JSON object.

use locum::protocol::Refusal;
use serde::Deserialize;
use serde_json::Value;

/// What is called, and with what.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolCall {
    pub(crate) tool: String,
    pub(crate) input: Value,
}

impl ToolCall {
    /// Reads a call. `place` is what the bytes are to whoever sent them, such as a line.
    pub(crate) fn read(bytes: &[u8], place: &str) -> Result<Self, Refusal> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            Refusal::invalid(format!("the {place} is not UTF-8 from byte {} on", error.valid_up_to()))
        })?;
        // A list would be read as the fields in their order.
        if !text.trim_start().starts_with('{') {
            let message = format!("the {place} is not {{\"tool\", \"input\"}}: it must be a JSON object");
            return Err(Refusal::invalid(message));
        }
        serde_json::from_str(text)
            .map_err(|error| Refusal::invalid(format!("the {place} is not {{\"tool\", \"input\"}}: {error}")))
    }
}
