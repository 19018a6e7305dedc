//! What a face answers, ready for every door.

use locum_core::protocol::{Refusal, Response};
use serde::Serialize;
use serde_json::Value;

/// The answer of a face.
#[derive(Debug, Clone, PartialEq)]
pub struct FaceAnswer {
    /// The whole answer, as one line of JSON.
    pub json: String,
    /// What a model reads.
    pub text: String,
    /// What a program reads beside the text.
    pub structured: Option<Value>,
    /// Whether it tells of a failure.
    pub is_error: bool,
}

/// A text among the contents of an answer.
#[derive(Debug, Serialize)]
pub(super) struct TextBlock<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    text: &'a str,
}

impl<'a> TextBlock<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { kind: "text", text }
    }
}

#[derive(Serialize)]
struct ToolResult<'a, D> {
    content: [TextBlock<'a>; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'a D>,
    #[serde(rename = "isError")]
    is_error: bool,
}

impl FaceAnswer {
    /// The answer of the native tools: JSON, and nothing else.
    pub fn native(answer: &Result<Response, Refusal>) -> Self {
        match answer {
            Ok(response) => Self::plain(response, false),
            Err(refusal) => Self::plain(refusal, true),
        }
    }

    /// A request that no face has its own words for.
    pub(super) fn refused(refusal: &Refusal) -> Self {
        Self::plain(refusal, true)
    }

    fn plain(answer: &impl Serialize, is_error: bool) -> Self {
        let json = line(answer);
        Self { text: json.clone(), json, structured: serde_json::to_value(answer).ok(), is_error }
    }

    /// A tool result: one text, and what a program reads beside it.
    pub(super) fn content<D: Serialize>(text: String, details: Option<&D>, is_error: bool) -> Self {
        let json = line(&ToolResult { content: [TextBlock::new(&text)], details, is_error });
        Self { json, text, structured: details.and_then(|details| serde_json::to_value(details).ok()), is_error }
    }
}

/// A value as one line of JSON. Nothing that is answered has a key that is not text, the one thing that JSON lacks.
pub(super) fn line(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| format!("{{\"error\":\"INTERNAL\",\"message\":\"{error}\"}}"))
}
