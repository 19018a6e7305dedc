//! What a Chat Completions server sends, as far as anything is made of it. One type stands for a piece of a stream
//! and for a whole completion. Everything unknown is ignored, everything may be missing.

use std::borrow::Cow;

use locum_core::usage::TokenCount;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::chosen::{Chosen, Indexed};

/// A `chat.completion.chunk`, a `chat.completion`, or an error.
#[derive(Deserialize)]
pub(super) struct Chunk<'a> {
    #[serde(borrow)]
    pub(super) choices: Option<Chosen<Choice<'a>>>,
    pub(super) usage: Option<Usage>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct Choice<'a> {
    pub(super) index: Option<u64>,
    /// In a stream.
    #[serde(borrow)]
    pub(super) delta: Option<Delta<'a>>,
    /// In a whole completion.
    #[serde(borrow)]
    pub(super) message: Option<Delta<'a>>,
    #[serde(borrow)]
    pub(super) finish_reason: Option<Cow<'a, str>>,
}

impl Indexed for Choice<'_> {
    fn index(&self) -> Option<u64> {
        self.index
    }
}

#[derive(Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
    /// What the model thinks before it answers.
    #[serde(borrow)]
    pub(super) reasoning_content: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) refusal: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) tool_calls: Option<Vec<CallDelta<'a>>>,
    /// The older form of a tool call; there is only ever one.
    #[serde(borrow)]
    pub(super) function_call: Option<FunctionDelta<'a>>,
}

#[derive(Deserialize)]
pub(super) struct CallDelta<'a> {
    pub(super) index: Option<u64>,
    #[serde(borrow)]
    pub(super) id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) function: Option<FunctionDelta<'a>>,
}

#[derive(Deserialize)]
pub(super) struct FunctionDelta<'a> {
    #[serde(borrow)]
    pub(super) name: Option<Cow<'a, str>>,
    /// A string by the book; an object from some servers.
    #[serde(borrow)]
    pub(super) arguments: Option<&'a RawValue>,
}

#[derive(Clone, Copy, Deserialize)]
pub(super) struct Usage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<PromptDetails>,
}

#[derive(Clone, Copy, Deserialize)]
struct PromptDetails {
    cached_tokens: Option<u64>,
}

impl Usage {
    /// The tokens; none if the server only fills in zeros, since no prompt has no tokens.
    pub(super) fn count(self) -> Option<TokenCount> {
        let prompt = self.prompt_tokens.filter(|tokens| *tokens > 0)?;
        let cached = self.prompt_tokens_details.and_then(|details| details.cached_tokens).unwrap_or_default();
        let cache_read = cached.min(prompt);
        let output = self.completion_tokens.unwrap_or_default();
        Some(TokenCount { input: prompt - cache_read, output, cache_read, cache_write: 0 })
    }
}
