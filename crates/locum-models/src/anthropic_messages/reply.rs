//! A reply put together from the events of a stream, or from one whole message.

use std::collections::BTreeMap;

use locum_core::transcript::{Reply, Stop, ToolCall};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::FORMAT;
use super::event::{Content, Delta as WireDelta, Event, StopDetails, Usage, Whole};
use crate::api::{Draft, Progress};
use crate::calls::{Keep, Piece};
use crate::encoding;
use crate::failure;
use crate::json_text::{optional_text, read, string_of, text_of};
use crate::model::{Delta, Deltas, ModelError};
use crate::said::{Said, no_reply, unexpected};

/// A reply under way.
pub(super) struct Partial {
    model: String,
    said: Said,
    /// By the index that the server gives them.
    blocks: BTreeMap<u64, Block>,
    stop: Option<(String, Option<StopDetails>)>,
    usage: Usage,
    has_begun: bool,
    is_done: bool,
}

/// A block of a reply under way. What is said and called is gathered elsewhere; here is its place among the others.
enum Block {
    Text(String),
    ToolUse {
        id: String,
    },
    Thinking {
        thinking: String,
        signature: String,
    },
    /// Whatever else the server wants to have back.
    Other(Value),
}

impl Partial {
    /// A reply of which nothing has come.
    pub(super) fn new(model: &str) -> Self {
        Self {
            model: model.to_owned(),
            said: Said::default(),
            blocks: BTreeMap::new(),
            stop: None,
            usage: Usage::default(),
            has_begun: false,
            is_done: false,
        }
    }

    /// Begins a block. Returns whether something was shown.
    fn begin(&mut self, index: u64, json: &RawValue, deltas: &mut Deltas<'_>) -> Result<bool, ModelError> {
        let content = read_content(json)?;
        let mut spoke = false;
        let block = match string_of(content.kind).as_ref() {
            "text" => {
                let text = string_of(content.text);
                spoke = self.said.say(&text, deltas);
                Block::Text(text.into_owned())
            }
            "tool_use" => {
                let (id, name) = (string_of(content.id), string_of(content.name));
                let arguments = content.input.filter(|input| is_filled(input)).map_or("", RawValue::get).into();
                spoke = self.said.call(Piece { index: Some(index), id: id.clone(), name, arguments }, deltas);
                Block::ToolUse { id: id.into_owned() }
            }
            "thinking" => {
                let (thinking, signature) = (string_of(content.thinking), string_of(content.signature));
                Block::Thinking { thinking: thinking.into_owned(), signature: signature.into_owned() }
            }
            _ => Block::Other(
                serde_json::from_str(json.get()).map_err(|error| unexpected(&error, json.get().as_bytes()))?,
            ),
        };
        // What is said and called is counted where it is gathered.
        match &block {
            Block::Thinking { thinking, signature } => self.said.count(thinking.len() + signature.len()),
            Block::Other(content) => self.said.count(content.to_string().len()),
            Block::Text(_) | Block::ToolUse { .. } => {}
        }
        self.said.count(BLOCK_BYTES);
        self.blocks.insert(index, block);
        Ok(spoke)
    }

    /// Adds a piece to a block. Returns whether something was shown.
    fn add(&mut self, index: u64, delta: &WireDelta<'_>, deltas: &mut Deltas<'_>) -> bool {
        if let Some(text) = delta.text.map(text_of) {
            if let Block::Text(whole) = self.blocks.entry(index).or_insert_with(|| Block::Text(String::new())) {
                whole.push_str(&text);
            }
            return self.said.say(&text, deltas);
        }
        if let Some(json) = delta.partial_json.map(text_of) {
            let piece = Piece { index: Some(index), arguments: json, ..Piece::default() };
            return self.said.call(piece, deltas);
        }
        if let Some(Block::Thinking { thinking, signature }) = self.blocks.get_mut(&index) {
            let (more, sign) = (optional_text(delta.thinking), optional_text(delta.signature));
            thinking.push_str(&more);
            signature.push_str(&sign);
            self.said.count(more.len() + sign.len());
        }
        false
    }

    fn take_event(&mut self, event: Event<'_>, deltas: &mut Deltas<'_>) -> Result<(), ModelError> {
        let Event { kind, index, delta, content_block, message, usage, .. } = event;
        let index = index.unwrap_or(self.blocks.len() as u64);
        let mut spoke = false;
        match optional_text(kind).as_ref() {
            "message_start" => {
                self.has_begun = true;
                self.usage.update(message.and_then(|message| message.usage).unwrap_or_default());
            }
            "content_block_start" => {
                spoke = match content_block {
                    Some(content) => self.begin(index, content, deltas)?,
                    None => false,
                };
            }
            "content_block_delta" => spoke = delta.is_some_and(|delta| self.add(index, &delta, deltas)),
            "message_delta" => {
                self.usage.update(usage.unwrap_or_default());
                if let Some((reason, details)) = delta.and_then(|delta| Some((delta.stop_reason?, delta.stop_details)))
                {
                    self.stop = Some((reason, details));
                }
            }
            "message_stop" => self.is_done = self.stop.is_some(),
            // Pings, ends of blocks, and what is not known yet.
            _ => {}
        }
        if !spoke {
            deltas(Delta::Alive);
        }
        self.said.check_size()
    }

    /// The blocks that must be sent back as they are: all of them if any of them is more than text and calls.
    fn opaque(&self, calls: &[ToolCall]) -> Option<Value> {
        let is_special = |block: &Block| matches!(block, Block::Thinking { .. } | Block::Other(_));
        // Thinking alone is not taken back.
        let is_plain = |block: &Block| matches!(block, Block::Text(_) | Block::ToolUse { .. });
        if !self.blocks.values().any(is_special) || !self.blocks.values().any(is_plain) {
            return None;
        }
        let block = |block: &Block| match block {
            Block::Text(text) => (!text.trim().is_empty()).then(|| json!({ "type": "text", "text": text })),
            Block::ToolUse { id } => calls.iter().find(|call| call.id == *id).map(|call| {
                let (name, input) = (encoding::accepted_name(&call.name), encoding::object_input(&call.input));
                json!({ "type": "tool_use", "id": call.id, "name": name, "input": input })
            }),
            Block::Thinking { thinking, signature } => {
                // Without a signature the API does not take it back.
                (!signature.is_empty())
                    .then(|| json!({ "type": "thinking", "thinking": thinking, "signature": signature }))
            }
            Block::Other(content) => Some(content.clone()),
        };
        let blocks = self.blocks.values().filter_map(block).collect();
        Some(encoding::opaque(FORMAT, &self.model, blocks))
    }
}

/// What is known of a block; nothing of one that is no object.
fn read_content(json: &RawValue) -> Result<Content<'_>, ModelError> {
    if !json.get().starts_with('{') {
        return Ok(Content::default());
    }
    serde_json::from_str(json.get()).map_err(|error| unexpected(&error, json.get().as_bytes()))
}

/// Whether an input is an object with something in it: the beginning of a call that comes in pieces has an empty one.
fn is_filled(input: &RawValue) -> bool {
    let inside = input.get().strip_prefix('{').and_then(|input| input.strip_suffix('}'));
    inside.is_some_and(|inside| !inside.trim_ascii().is_empty())
}

/// What a block costs besides its text: a stream of empty blocks must not fill the memory either.
const BLOCK_BYTES: usize = 64;

impl Draft for Partial {
    fn take(&mut self, data: &[u8], deltas: &mut Deltas<'_>) -> Result<(), ModelError> {
        let data = data.trim_ascii();
        // Gateways that translate from another protocol forget to leave its end out.
        if data.is_empty() || data == b"[DONE]" {
            return Ok(());
        }
        let event: Event<'_> = read(data).map_err(|error| unexpected(&error, data))?;
        if event.error.is_some_and(|error| error.get() != "null") {
            return Err(failure::from_event(data));
        }
        self.take_event(event, deltas)
    }

    fn take_whole(&mut self, json: &[u8], deltas: &mut Deltas<'_>) -> Result<(), ModelError> {
        if read::<Event<'_>>(json).is_ok_and(|event| event.error.is_some()) {
            return Err(failure::from_event(json));
        }
        let whole: Whole<'_> = read(json).map_err(|error| unexpected(&error, json))?;
        let (Some(content), Some(reason)) = (whole.content, whole.stop_reason) else { return Err(no_reply(json)) };
        for (index, block) in content.into_iter().enumerate() {
            self.begin(index as u64, block, deltas)?;
        }
        self.usage.update(whole.usage.unwrap_or_default());
        self.stop = Some((reason, whole.stop_details));
        self.is_done = true;
        self.said.check_size()
    }

    fn progress(&self) -> Progress {
        match (self.is_done, &self.stop) {
            (true, _) => Progress::Done,
            (false, Some(_)) => Progress::Whole,
            (false, None) => Progress::Speaking,
        }
    }

    fn said(&mut self) -> String {
        self.said.take_text()
    }

    fn finish(mut self: Box<Self>, sent_bytes: u64, _deltas: &mut Deltas<'_>) -> Result<Reply, ModelError> {
        let tokens = self.usage.count().unwrap_or_else(|| self.said.estimate(sent_bytes));
        let (reason, details) = self.stop.take().unwrap_or_default();
        let said = std::mem::take(&mut self.said);
        let has_calls = said.has_calls();
        let (text, tool_calls, stop) = match reason.as_str() {
            "refusal" => {
                let why = details.and_then(|details| details.explanation).unwrap_or_else(|| "refused".to_owned());
                // What a refusal cut off is not acted on.
                (said.into_text(), Vec::new(), Stop::Refused(why))
            }
            "max_tokens" | "model_context_window_exceeded" => {
                let (text, calls) = said.finish(Keep::Complete)?;
                (text, calls, Stop::Length)
            }
            // `end_turn`, `tool_use`, `stop_sequence`, and words that servers invent: whether there are tool calls
            // says more than the word.
            _ => {
                let (text, calls) = said.finish(Keep::All)?;
                (text, calls, if has_calls { Stop::ToolUse } else { Stop::End })
            }
        };
        let opaque = if matches!(stop, Stop::Refused(_)) { None } else { self.opaque(&tool_calls) };
        Ok(Reply { text, tool_calls, stop, tokens, opaque })
    }
}
