//! What Gemini sends, as far as anything is made of it. Each event is a small response of its own. Everything unknown
//! is ignored, everything may be missing.

use std::borrow::Cow;

use locum_core::usage::TokenCount;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::chosen::{Chosen, Indexed};

/// A `GenerateContentResponse`, or an error.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Chunk<'a> {
    #[serde(borrow)]
    pub(super) candidates: Option<Chosen<Candidate<'a>>>,
    pub(super) prompt_feedback: Option<Feedback>,
    pub(super) usage_metadata: Option<Usage>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Candidate<'a> {
    pub(super) index: Option<u64>,
    #[serde(borrow)]
    pub(super) content: Option<Content<'a>>,
    pub(super) finish_reason: Option<String>,
    pub(super) finish_message: Option<String>,
}

impl Indexed for Candidate<'_> {
    fn index(&self) -> Option<u64> {
        self.index
    }
}

#[derive(Deserialize)]
pub(super) struct Content<'a> {
    #[serde(borrow)]
    pub(super) parts: Option<Vec<Part<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Part<'a> {
    #[serde(borrow)]
    pub(super) text: Option<&'a RawValue>,
    /// Whether the text is a thought, which is not said.
    pub(super) thought: Option<bool>,
    pub(super) thought_signature: Option<Value>,
    #[serde(borrow)]
    pub(super) function_call: Option<FunctionCall<'a>>,
}

#[derive(Deserialize)]
pub(super) struct FunctionCall<'a> {
    #[serde(borrow)]
    pub(super) id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) args: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Feedback {
    pub(super) block_reason: Option<String>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Usage {
    prompt_token_count: Option<u64>,
    cached_content_token_count: Option<u64>,
    candidates_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
    tool_use_prompt_token_count: Option<u64>,
}

impl Usage {
    /// The tokens; none if nothing was counted, since no prompt has no tokens.
    pub(super) fn count(self) -> Option<TokenCount> {
        let prompt = self.prompt_token_count.filter(|tokens| *tokens > 0)?;
        let prompt = prompt + self.tool_use_prompt_token_count.unwrap_or_default();
        let cache_read = self.cached_content_token_count.unwrap_or_default().min(prompt);
        // Thoughts are paid for as output.
        let output = self.candidates_token_count.unwrap_or_default() + self.thoughts_token_count.unwrap_or_default();
        Some(TokenCount { input: prompt - cache_read, output, cache_read, cache_write: 0 })
    }
}
