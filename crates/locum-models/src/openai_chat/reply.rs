//! A reply put together from the events of a stream, or from one whole completion.

use locum_core::limits;
use locum_core::task::event::FailureKind;
use locum_core::transcript::{Reply, Stop};
use locum_core::usage::{TokenCount, tokens_of_chars};

use super::calls::{Calls, Keep};
use super::chunk::{CallDelta, Choice, Chunk, Delta as WireDelta, Usage, text_of};
use super::failure;
use crate::model::{Delta, Deltas, ModelError};

/// The event after which nothing comes.
const DONE: &[u8] = b"[DONE]";

/// A reply under way.
#[derive(Default)]
pub(super) struct Partial {
    text: String,
    refusal: String,
    calls: Calls,
    finish: Option<Finish>,
    usage: Option<Usage>,
    has_begun: bool,
    is_done: bool,
    bytes: usize,
}

/// Why a server says that the model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Finish {
    Stop,
    Length,
    Filter,
}

impl Finish {
    fn parse(word: &str) -> Self {
        match word {
            "length" | "max_tokens" => Self::Length,
            "content_filter" => Self::Filter,
            // `stop`, `tool_calls`, `function_call`, and words that servers invent: whether there are tool calls says
            // more than the word.
            _ => Self::Stop,
        }
    }
}

impl Partial {
    /// Takes one event, or one whole completion.
    pub(super) fn take(&mut self, data: &[u8], deltas: &mut Deltas<'_>) -> Result<(), ModelError> {
        let data = data.trim_ascii();
        if data.is_empty() {
            return Ok(());
        }
        if data == DONE {
            self.is_done = true;
            return Ok(());
        }
        let chunk: Chunk<'_> = serde_json::from_slice(data).map_err(|error| {
            let message = format!("the answer is not what was expected: {error}: {}", failure::shorten(data));
            ModelError::new(FailureKind::Malformed, message)
        })?;
        if chunk.error.is_some() {
            return Err(failure::from_event(data));
        }
        if chunk.usage.is_some() {
            self.usage = chunk.usage;
        }
        // More than one choice is never asked for.
        let choice = chunk.choices.into_iter().flatten().find(|choice| choice.index.unwrap_or_default() == 0);
        match choice {
            Some(choice) => self.take_choice(choice, deltas),
            None => {
                deltas(Delta::Alive);
                Ok(())
            }
        }
    }

    /// Takes a whole completion, after which nothing comes.
    pub(super) fn take_whole(&mut self, json: &[u8], deltas: &mut Deltas<'_>) -> Result<(), ModelError> {
        self.take(json, deltas)?;
        if !self.has_begun {
            let message = format!("the answer holds no reply: {}", failure::shorten(json));
            return Err(ModelError::new(FailureKind::Malformed, message));
        }
        self.is_done = true;
        Ok(())
    }

    fn take_choice(&mut self, choice: Choice<'_>, deltas: &mut Deltas<'_>) -> Result<(), ModelError> {
        self.has_begun = true;
        if let Some(word) = choice.finish_reason.as_deref().filter(|word| !word.is_empty()) {
            self.finish = Some(Finish::parse(word));
        }
        let mut spoke = false;
        if let Some(delta) = choice.delta.or(choice.message) {
            spoke = self.take_delta(delta, deltas);
        }
        if !spoke {
            deltas(Delta::Alive);
        }
        if self.bytes > limits::REPLY_BYTES_MAX {
            let message = format!("the reply is longer than {} bytes", limits::REPLY_BYTES_MAX);
            return Err(ModelError::new(FailureKind::TooLarge, message));
        }
        Ok(())
    }

    /// Takes a piece of a message. Returns whether it said something that is shown.
    fn take_delta(&mut self, delta: WireDelta<'_>, deltas: &mut Deltas<'_>) -> bool {
        let mut spoke = false;
        if let Some(content) = delta.content {
            let text = text_of(content);
            if !text.is_empty() {
                self.text.push_str(&text);
                self.bytes += text.len();
                deltas(Delta::Text(&text));
                spoke = true;
            }
        }
        if let Some(refusal) = delta.refusal {
            let text = text_of(refusal);
            self.refusal.push_str(&text);
            self.bytes += text.len();
        }
        let legacy =
            delta.function_call.map(|function| CallDelta { index: Some(0), id: None, function: Some(function) });
        for call in delta.tool_calls.into_iter().flatten().chain(legacy) {
            let (bytes, begun) = self.calls.add(call);
            self.bytes += bytes;
            if let Some(name) = begun {
                deltas(Delta::ToolCall { name });
                spoke = true;
            }
        }
        spoke
    }

    /// Whether nothing more is to come.
    pub(super) fn is_done(&self) -> bool {
        self.is_done
    }

    /// Whether the model has said why it stopped, so that the reply is whole even if the stream breaks now.
    pub(super) fn is_whole(&self) -> bool {
        self.is_done || self.finish.is_some()
    }

    /// Adds what the model had said to a failure.
    pub(super) fn attach_to(self, mut error: ModelError) -> ModelError {
        error.partial = (!self.text.is_empty()).then_some(self.text);
        error
    }

    /// The reply, at the end of what the server sent. `sent_bytes` is the size of the request, from which the tokens
    /// are estimated if the server does not count them.
    pub(super) fn finish(self, sent_bytes: u64) -> Result<Reply, ModelError> {
        if !self.is_whole() {
            let error = ModelError::new(FailureKind::CutStream, "the stream ended before the answer did");
            return Err(self.attach_to(error));
        }
        let tokens = self.usage.and_then(Usage::count).unwrap_or_else(|| self.estimate(sent_bytes));
        let Self { text, refusal, calls, finish, .. } = self;
        let (stop, tool_calls) = match finish {
            // What was cut off by a filter is not acted on.
            Some(Finish::Filter) => (Stop::Refused("content filter".to_owned()), Vec::new()),
            _ if !refusal.is_empty() => (Stop::Refused(refusal), Vec::new()),
            Some(Finish::Length) => (Stop::Length, calls.finish(Keep::Complete)),
            Some(Finish::Stop) | None if calls.is_empty() => (Stop::End, Vec::new()),
            Some(Finish::Stop) | None => (Stop::ToolUse, calls.finish(Keep::All)),
        };
        Ok(Reply { text, tool_calls, stop, tokens, opaque: None })
    }

    fn estimate(&self, sent_bytes: u64) -> TokenCount {
        // Bytes, not characters: too many rather than too few, and the request need not be walked.
        let input = tokens_of_chars(usize::try_from(sent_bytes).unwrap_or(usize::MAX)) as u64;
        TokenCount { input, output: tokens_of_chars(self.bytes) as u64, ..TokenCount::default() }
    }
}
