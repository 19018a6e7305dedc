//! What a model has said so far, whatever the protocol: text and tool calls, shown as they come and bounded in size.

use locum_core::limits;
use locum_core::task::event::FailureKind;
use locum_core::transcript::ToolCall;
use locum_core::usage::{TokenCount, tokens_of_chars};

use crate::calls::{Calls, Keep, Piece};
use crate::failure;
use crate::model::{Delta, Deltas, ModelError};

/// The text and the calls of a reply under way.
#[derive(Debug, Default)]
pub(crate) struct Said {
    text: String,
    calls: Calls,
    /// Of everything that is kept, hidden thinking included.
    bytes: usize,
}

impl Said {
    /// Adds text and shows it. Returns whether there was any.
    pub(crate) fn say(&mut self, text: &str, deltas: &mut Deltas<'_>) -> bool {
        if text.is_empty() {
            return false;
        }
        self.keep(text);
        deltas(Delta::Text(text));
        true
    }

    /// Adds text that is not shown now.
    pub(crate) fn keep(&mut self, text: &str) {
        self.text.push_str(text);
        self.bytes += text.len();
    }

    /// Adds a piece of a tool call, and shows a call that has just begun. Returns whether it was shown.
    pub(crate) fn call(&mut self, piece: Piece<'_>, deltas: &mut Deltas<'_>) -> bool {
        let (bytes, begun) = self.calls.add(piece);
        self.bytes += bytes;
        if let Some(name) = begun {
            deltas(Delta::ToolCall { name });
        }
        begun.is_some()
    }

    /// Replaces what has come of a call's arguments by all of them, at its end.
    pub(crate) fn settle_call(&mut self, piece: Piece<'_>, deltas: &mut Deltas<'_>) {
        let (index, arguments) = (piece.index, piece.arguments.into_owned());
        self.call(Piece { arguments: "".into(), ..piece }, deltas);
        self.bytes += self.calls.settle(index, arguments);
    }

    /// Counts what is kept elsewhere.
    pub(crate) fn count(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    /// A failure if the reply has become larger than any should be.
    pub(crate) fn check_size(&self) -> Result<(), ModelError> {
        if self.bytes <= limits::REPLY_BYTES_MAX {
            return Ok(());
        }
        let message = format!("the reply is longer than {} bytes", limits::REPLY_BYTES_MAX);
        Err(ModelError::new(FailureKind::TooLarge, message))
    }

    /// The text so far.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Takes the text away.
    pub(crate) fn take_text(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    /// Whether the model has called a tool.
    pub(crate) fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    /// The text alone, at the end of a reply whose calls do not count.
    pub(crate) fn into_text(self) -> String {
        self.text
    }

    /// The text and the calls, at the end. Fails for a call without a name: it cannot even be answered, because no
    /// server takes it back.
    pub(crate) fn finish(self, keep: Keep) -> Result<(String, Vec<ToolCall>), ModelError> {
        let calls = self.calls.finish(keep);
        if calls.iter().any(|call| call.name.is_empty()) {
            let error = ModelError::new(FailureKind::Malformed, "the answer calls a tool without a name");
            return Err(ModelError { partial: Some(self.text).filter(|text| !text.is_empty()), ..error });
        }
        Ok((self.text, calls))
    }

    /// An estimate of the tokens, where a server does not count them.
    pub(crate) fn estimate(&self, sent_bytes: u64) -> TokenCount {
        // Bytes, not characters: too many rather than too few, and the request need not be walked.
        let input = tokens_of_chars(usize::try_from(sent_bytes).unwrap_or(usize::MAX)) as u64;
        TokenCount { input, output: tokens_of_chars(self.bytes) as u64, ..TokenCount::default() }
    }
}

/// A failure for an event that is not what the protocol says.
pub(crate) fn unexpected(error: &serde_json::Error, data: &[u8]) -> ModelError {
    let message = format!("the answer is not what was expected: {error}: {}", failure::shorten(data));
    ModelError::new(FailureKind::Malformed, message)
}

/// A failure for a whole answer in which there is no reply.
pub(crate) fn no_reply(json: &[u8]) -> ModelError {
    ModelError::new(FailureKind::Malformed, format!("the answer holds no reply: {}", failure::shorten(json)))
}
