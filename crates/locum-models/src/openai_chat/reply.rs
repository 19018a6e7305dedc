//! A reply put together from the events of a stream, or from one whole completion.

use locum_core::task::event::FailureKind;
use locum_core::transcript::{Reply, Stop};
use serde_json::json;

use super::FORMAT;
use super::chunk::{CallDelta, Choice, Chunk, Delta as WireDelta, FunctionDelta, Usage};
use crate::api::{Draft, Progress};
use crate::calls::{Keep, Piece};
use crate::encoding;
use crate::failure;
use crate::json_text::{arguments_of, optional_text, read, text_of};
use crate::model::{Delta, Deltas, ModelError};
use crate::said::{Said, no_reply, unexpected};

/// The event after which nothing comes.
const DONE: &[u8] = b"[DONE]";

/// A reply under way.
#[derive(Default)]
pub(super) struct Partial {
    said: Said,
    refusal: String,
    /// What the model thought, and which one it was, where it wants that back.
    reasoning: String,
    reasoning_of: Option<String>,
    finish: Option<Finish>,
    usage: Option<Usage>,
    has_begun: bool,
    is_done: bool,
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

impl Draft for Partial {
    fn take(&mut self, data: &[u8], deltas: &mut Deltas<'_>) -> Result<(), ModelError> {
        let data = data.trim_ascii();
        if data.is_empty() {
            return Ok(());
        }
        if data == DONE {
            // A server between us and the model says this also where the model's own stream broke.
            if self.finish.is_none() {
                let message = "the stream ended without a word about why the model stopped";
                return Err(ModelError::new(FailureKind::CutStream, message));
            }
            self.is_done = true;
            return Ok(());
        }
        let chunk: Chunk<'_> = read(data).map_err(|error| unexpected(&error, data))?;
        if chunk.error.is_some() {
            return Err(failure::from_event(data));
        }
        if chunk.usage.is_some() {
            self.usage = chunk.usage;
        }
        match chunk.choices.and_then(|choices| choices.0) {
            Some(choice) => self.take_choice(choice, deltas),
            None => {
                deltas(Delta::Alive);
                Ok(())
            }
        }
    }

    fn take_whole(&mut self, json: &[u8], deltas: &mut Deltas<'_>) -> Result<(), ModelError> {
        self.take(json, deltas)?;
        if !self.has_begun {
            return Err(no_reply(json));
        }
        self.is_done = true;
        Ok(())
    }

    fn progress(&self) -> Progress {
        match (self.is_done, self.finish) {
            (true, _) => Progress::Done,
            (false, Some(_)) => Progress::Whole,
            (false, None) => Progress::Speaking,
        }
    }

    fn said(&mut self) -> String {
        self.said.take_text()
    }

    fn finish(self: Box<Self>, sent_bytes: u64, _deltas: &mut Deltas<'_>) -> Result<Reply, ModelError> {
        let tokens = self.usage.and_then(Usage::count).unwrap_or_else(|| self.said.estimate(sent_bytes));
        let Self { said, refusal, finish, reasoning, reasoning_of, .. } = *self;
        let (keep, stop) = match finish {
            // What was cut off by a filter is not acted on.
            Some(Finish::Filter) => (Keep::None, Stop::Refused("content filter".to_owned())),
            _ if !refusal.is_empty() => (Keep::None, Stop::Refused(refusal)),
            Some(Finish::Length) => (Keep::Complete, Stop::Length),
            Some(Finish::Stop) | None if said.has_calls() => (Keep::All, Stop::ToolUse),
            Some(Finish::Stop) | None => (Keep::All, Stop::End),
        };
        let (text, tool_calls) = said.finish(keep)?;
        let is_wanted = stop == Stop::ToolUse && !reasoning.is_empty();
        let opaque = reasoning_of
            .filter(|_| is_wanted)
            .map(|model| encoding::opaque(FORMAT, &model, vec![json!({ "reasoning_content": reasoning })]));
        Ok(Reply { text, tool_calls, stop, tokens, opaque })
    }
}

impl Partial {
    /// A reply of a model that wants back what it thought.
    pub(super) fn keeping_reasoning(model: &str) -> Self {
        Self { reasoning_of: Some(model.to_owned()), ..Self::default() }
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
        self.said.check_size()
    }

    /// Takes a piece of a message. Returns whether it said something that is shown.
    fn take_delta(&mut self, delta: WireDelta<'_>, deltas: &mut Deltas<'_>) -> bool {
        let mut spoke = self.said.say(&optional_text(delta.content), deltas);
        if self.reasoning_of.is_some() {
            let thought = optional_text(delta.reasoning_content);
            self.said.count(thought.len());
            self.reasoning.push_str(&thought);
        }
        if let Some(refusal) = delta.refusal {
            let text = text_of(refusal);
            self.said.count(text.len());
            self.refusal.push_str(&text);
        }
        let legacy =
            delta.function_call.map(|function| CallDelta { index: Some(0), id: None, function: Some(function) });
        for call in delta.tool_calls.into_iter().flatten().chain(legacy) {
            let CallDelta { index, id, function } = call;
            let FunctionDelta { name, arguments } = function.unwrap_or(FunctionDelta { name: None, arguments: None });
            let arguments = arguments.map(arguments_of).unwrap_or_default();
            let piece = Piece { index, id: id.unwrap_or_default(), name: name.unwrap_or_default(), arguments };
            spoke |= self.said.call(piece, deltas);
        }
        spoke
    }
}
