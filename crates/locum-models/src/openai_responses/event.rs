//! What a Responses server sends, as far as anything is made of it. One flat type stands for all events: the word in
//! `type` says which fields there are. Everything unknown is ignored, everything may be missing.

use std::borrow::Cow;

use locum_core::usage::TokenCount;
use serde::Deserialize;
use serde_json::value::RawValue;

/// An event of a stream.
#[derive(Deserialize)]
pub(super) struct Event<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<&'a RawValue>,
    pub(super) output_index: Option<u64>,
    #[serde(borrow)]
    pub(super) delta: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) item: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) response: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
}

/// A response, at the end of a stream or alone.
#[derive(Deserialize)]
pub(super) struct Response<'a> {
    #[serde(borrow)]
    pub(super) status: Option<Cow<'a, str>>,
    /// All items, which a stream has brought before.
    #[serde(borrow)]
    pub(super) output: Option<&'a RawValue>,
    pub(super) usage: Option<Usage>,
    #[serde(borrow)]
    pub(super) incomplete_details: Option<Incomplete<'a>>,
}

#[derive(Deserialize)]
pub(super) struct Incomplete<'a> {
    #[serde(borrow)]
    pub(super) reason: Option<Cow<'a, str>>,
}

/// An item of a response, as far as it is looked into.
#[derive(Default, Deserialize)]
pub(super) struct Item<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) call_id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) name: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) encrypted_content: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) phase: Option<&'a RawValue>,
}

#[derive(Clone, Copy, Deserialize)]
pub(super) struct Usage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    input_tokens_details: Option<InputDetails>,
}

#[derive(Clone, Copy, Deserialize)]
struct InputDetails {
    cached_tokens: Option<u64>,
}

impl Usage {
    /// The tokens; none if the server only fills in zeros, since no prompt has no tokens.
    pub(super) fn count(self) -> Option<TokenCount> {
        let input = self.input_tokens.filter(|tokens| *tokens > 0)?;
        let cached = self.input_tokens_details.and_then(|details| details.cached_tokens).unwrap_or_default();
        let cache_read = cached.min(input);
        let output = self.output_tokens.unwrap_or_default();
        Some(TokenCount { input: input - cache_read, output, cache_read, cache_write: 0 })
    }
}
