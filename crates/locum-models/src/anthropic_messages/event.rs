//! What a Messages server sends, as far as anything is made of it. One flat type stands for all events: the word in
//! `type` says which fields there are. Everything unknown is ignored, everything may be missing.

use locum_core::usage::TokenCount;
use serde::Deserialize;
use serde_json::value::RawValue;

/// An event of a stream, or a whole message.
#[derive(Deserialize)]
pub(super) struct Event<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<&'a RawValue>,
    pub(super) index: Option<u64>,
    #[serde(borrow)]
    pub(super) delta: Option<Delta<'a>>,
    #[serde(borrow)]
    pub(super) content_block: Option<&'a RawValue>,
    /// In `message_start`.
    pub(super) message: Option<Start>,
    pub(super) usage: Option<Usage>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
}

/// A piece of a block, or of the message itself.
#[derive(Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(borrow)]
    pub(super) text: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) partial_json: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) thinking: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) signature: Option<&'a RawValue>,
    pub(super) stop_reason: Option<String>,
    pub(super) stop_details: Option<StopDetails>,
}

#[derive(Deserialize)]
pub(super) struct StopDetails {
    pub(super) explanation: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Start {
    pub(super) usage: Option<Usage>,
}

/// The beginning of a block, or a whole one, as far as it is looked into.
#[derive(Default, Deserialize)]
pub(super) struct Content<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) text: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) name: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) input: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) thinking: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) signature: Option<&'a RawValue>,
}

/// A whole message, from a server that does not stream.
#[derive(Deserialize)]
pub(super) struct Whole<'a> {
    #[serde(borrow)]
    pub(super) content: Option<Vec<&'a RawValue>>,
    pub(super) stop_reason: Option<String>,
    pub(super) stop_details: Option<StopDetails>,
    pub(super) usage: Option<Usage>,
}

/// Counts of tokens; later ones complete earlier ones.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(super) struct Usage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
}

impl Usage {
    /// Takes what a later count says.
    pub(super) fn update(&mut self, later: Self) {
        // The beginning of a stream counts what was read; some servers fill in zeros at its end.
        let counted = |later: Option<u64>, earlier: Option<u64>| later.filter(|tokens| *tokens > 0).or(earlier);
        self.input_tokens = counted(later.input_tokens, self.input_tokens);
        self.cache_read_input_tokens = counted(later.cache_read_input_tokens, self.cache_read_input_tokens);
        self.cache_creation_input_tokens = counted(later.cache_creation_input_tokens, self.cache_creation_input_tokens);
        self.output_tokens = later.output_tokens.or(self.output_tokens);
    }

    /// The tokens; none if nothing was counted, since no prompt has no tokens.
    pub(super) fn count(self) -> Option<TokenCount> {
        let count = TokenCount {
            input: self.input_tokens.unwrap_or_default(),
            output: self.output_tokens.unwrap_or_default(),
            cache_read: self.cache_read_input_tokens.unwrap_or_default(),
            cache_write: self.cache_creation_input_tokens.unwrap_or_default(),
        };
        (count.input_total() > 0).then_some(count)
    }
}
