//! The one trait behind which every model stands, and its typed failures.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use locum_core::task::event::FailureKind;
use locum_core::transcript::{Prompt, Reply};

use crate::governor::Hold;

/// A future that a trait object returns.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Something that answers prompts. Streaming is the only path: what arrives is shown as it arrives.
pub trait Model: Send + Sync {
    /// Asks for one reply. Dropping the future ends the request; nothing goes on behind it.
    ///
    /// `prefix` belongs to the conversation and is handed in again with its next prompt, so that what was encoded
    /// once is not encoded again. A model that needs no such thing leaves it alone.
    fn respond<'a>(
        &'a self,
        prompt: &'a Prompt<'a>,
        prefix: &'a mut Prefix,
        deltas: &'a mut Deltas<'a>,
    ) -> BoxFuture<'a, Result<Reply, ModelError>>;
}

/// Receives what a model says while it says it.
pub type Deltas<'a> = dyn FnMut(Delta<'_>) + Send + 'a;

/// A piece of a reply under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delta<'a> {
    /// More text.
    Text(&'a str),
    /// A tool call begins.
    ToolCall {
        /// The tool's name.
        name: &'a str,
    },
    /// A sign of life that says nothing: a ping, or hidden thinking.
    Alive,
    /// The call is not made yet. It will be, without being asked again; any other piece tells that it was.
    Held {
        /// Who is waited for.
        provider: &'a str,
        /// Why, and until when.
        hold: Hold,
    },
}

/// A model call that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// What kind of failure; it decides about another attempt.
    pub kind: FailureKind,
    /// What the API or the network said, fit to be shown.
    pub message: String,
    /// How long the API asks to wait.
    pub retry_after: Option<Duration>,
    /// How long calls to this model are held back anyway: another attempt can be made at once, and will wait.
    pub held_for: Option<Duration>,
    /// What the model had said before.
    pub partial: Option<String>,
}

impl ModelError {
    /// A failure without further particulars.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after: None, held_for: None, partial: None }
    }
}

/// Segments of a prefix are joined up to this size; larger ones are sent as they are.
const JOINED_BYTES_MAX: usize = 16 * 1024;

/// A conversation as a provider has encoded it so far. Segments are only ever added, never rewritten, so a turn
/// costs what it adds.
#[derive(Debug, Default)]
pub struct Prefix {
    /// Whose encoding it is, and for which model; another one starts anew.
    format: &'static str,
    model: String,
    /// How many messages are encoded.
    messages: usize,
    segments: Vec<Bytes>,
}

impl Prefix {
    /// The number of messages of this prompt that are encoded in this format already. It is 0, and the prefix is
    /// empty, if another format, model or conversation was encoded before.
    pub fn encoded(&mut self, format: &'static str, prompt: &Prompt<'_>) -> usize {
        // Conversations only grow: a longer one is another one.
        let is_other = self.messages > prompt.messages.len();
        if self.format != format || self.model != prompt.model || is_other {
            *self = Self { format, model: prompt.model.to_owned(), ..Self::default() };
        }
        self.messages
    }

    /// Adds the encoding of everything up to `messages` messages.
    pub fn push(&mut self, segment: Bytes, messages: usize) {
        self.segments.push(segment);
        self.messages = messages;
        while let Some(joined) = self.joined_end() {
            self.segments.truncate(self.segments.len() - 2);
            self.segments.push(joined);
        }
    }

    /// The last two segments in one, if they are small and about the same size: a long conversation is sent in few
    /// pieces, and none of its bytes is copied more than a few times.
    fn joined_end(&self) -> Option<Bytes> {
        let [.., before, last] = self.segments.as_slice() else { return None };
        let joined = before.len() < 2 * last.len() && before.len() + last.len() <= JOINED_BYTES_MAX;
        joined.then(|| Bytes::from([before.as_ref(), last.as_ref()].concat()))
    }

    /// The encoding so far.
    pub fn segments(&self) -> &[Bytes] {
        &self.segments
    }
}
