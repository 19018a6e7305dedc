//! What pi's callers read beside the text.

use locum_core::transcript::Message;
use serde::Serialize;
use serde_json::{Value, json};

use super::super::FaceAnswer;
use super::super::answer::{TextBlock, line};
use super::super::cut::first_chars;
use super::super::transcript::Transcript;
use super::super::usage::UsageLine;
use super::cleaning::Cleaner;
use locum_core::limits;

/// What a call failed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ErrorCode {
    InvalidInput,
    SubagentsDisabled,
    UnknownAgent,
    DepthExceeded,
    Timeout,
    Failed,
    OutputTruncated,
    SubagentDisabled,
}

impl ErrorCode {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::InvalidInput => "INVALID_INPUT",
            Self::SubagentsDisabled => "SUBAGENTS_DISABLED",
            Self::UnknownAgent => "UNKNOWN_AGENT",
            Self::DepthExceeded => "SUBAGENT_DEPTH_EXCEEDED",
            Self::Timeout => "SUBAGENT_TIMEOUT",
            Self::Failed => "SUBAGENT_FAILED",
            Self::OutputTruncated => "SUBAGENT_OUTPUT_TRUNCATED",
            Self::SubagentDisabled => "SUBAGENT_DISABLED",
        }
    }
}

impl Serialize for ErrorCode {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A code with what happened.
#[derive(Debug, Serialize)]
pub(super) struct ErrorLine {
    pub(super) code: ErrorCode,
    pub(super) message: String,
}

/// The details of an answer.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Details {
    pub(super) mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) run_id: Option<String>,
    pub(super) results: Vec<SingleResult>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<ErrorLine>,
}

#[derive(Serialize)]
struct ToolResult<'a> {
    content: [TextBlock<'a>; 1],
    details: &'a Details,
}

impl Details {
    /// The answer with this text. An output that was cut is no failure.
    pub(super) fn answer(&self, text: String) -> FaceAnswer {
        let is_error = self.error.as_ref().is_some_and(|error| error.code != ErrorCode::OutputTruncated);
        let json = line(&ToolResult { content: [TextBlock::new(&text)], details: self });
        FaceAnswer { json, text, structured: serde_json::to_value(self).ok(), is_error }
    }
}

/// How the run went.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SingleResult {
    pub(super) agent: String,
    pub(super) task: String,
    pub(super) exit_code: i32,
    pub(super) usage: UsageLine,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) session_file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) output: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) display_items: Vec<Value>,
}

/// What the agent said and which tools it called, the last of it.
pub(super) fn display_items(transcript: &Transcript, cleaner: &Cleaner) -> Vec<Value> {
    let mut items = Vec::new();
    for message in &transcript.messages {
        let Message::Assistant(reply) = message else { continue };
        if !reply.text.is_empty() {
            let text = cleaner.text(first_chars(&reply.text, limits::FACE_MESSAGE_CHARS_MAX));
            items.push(json!({"type": "text", "text": text}));
        }
        for call in &reply.tool_calls {
            items.push(json!({"type": "toolCall", "name": call.name, "args": cleaner.tree(&call.input)}));
        }
    }
    let skipped = items.len().saturating_sub(limits::PI_DISPLAY_ITEMS_MAX);
    items.split_off(skipped)
}
