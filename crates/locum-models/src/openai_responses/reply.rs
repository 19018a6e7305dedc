//! A reply put together from the events of a stream, or from one whole response.

use std::borrow::Cow;
use std::collections::BTreeMap;

use locum_core::transcript::{Reply, Stop};
use serde_json::Value;
use serde_json::value::RawValue;

use super::FORMAT;
use super::event::{Event, Item, Response, Usage};
use crate::api::{Draft, Progress};
use crate::calls::{Keep, Piece};
use crate::encoding;
use crate::failure;
use crate::json_text::{is_string, optional_text, read, string_of};
use crate::model::{Delta, Deltas, ModelError};
use crate::said::{Said, no_reply, unexpected};

/// A reply under way.
pub(super) struct Partial {
    model: String,
    said: Said,
    refusal: String,
    /// Items that have ended, by the index that the server gives them.
    items: BTreeMap<u64, Ended>,
    end: Option<End>,
    usage: Option<Usage>,
}

/// An item that has ended. Most are never looked at again, so they stay as they were written.
struct Ended {
    kind: Kind,
    has_content: bool,
    /// Whether a model wants to have the item back as it is.
    has_phase: bool,
    json: String,
}

/// What an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Message,
    Call,
    /// Reasoning that can be sent back.
    Reasoning,
    /// Reasoning without its encrypted content: the API looks for it in a store that it was asked not to use.
    LostReasoning,
    Other,
}

impl Ended {
    fn new(item: &Item<'_>, json: &str) -> Self {
        let kind = match string_of(item.kind).as_ref() {
            "message" => Kind::Message,
            "function_call" => Kind::Call,
            "reasoning" if is_string(item.encrypted_content) => Kind::Reasoning,
            "reasoning" => Kind::LostReasoning,
            _ => Kind::Other,
        };
        let (has_content, has_phase) = (item.content.is_some(), is_string(item.phase));
        Self { kind, has_content, has_phase, json: json.to_owned() }
    }

    /// The item as it was sent.
    fn value(&self) -> Value {
        serde_json::from_str(&self.json).unwrap_or_default()
    }
}

/// How a response ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Completed,
    Length,
    Filter,
}

impl Partial {
    /// A reply of which nothing has come.
    pub(super) fn new(model: &str) -> Self {
        let (said, refusal, items) = (Said::default(), String::new(), BTreeMap::new());
        Self { model: model.to_owned(), said, refusal, items, end: None, usage: None }
    }

    fn take_event(&mut self, event: &Event<'_>, data: &[u8], deltas: &mut Deltas<'_>) -> Result<(), ModelError> {
        let Event { kind, output_index, delta, item, response, .. } = *event;
        let index = output_index.unwrap_or(self.items.len() as u64);
        let mut spoke = false;
        match optional_text(kind).as_ref() {
            "response.output_text.delta" => spoke = self.said.say(&optional_text(delta), deltas),
            "response.refusal.delta" => {
                let text = optional_text(delta);
                self.said.count(text.len());
                self.refusal.push_str(&text);
            }
            "response.output_item.added" => {
                let item = item.map(read_item).transpose()?;
                spoke = item.and_then(|item| call_of(index, &item)).is_some_and(|piece| self.said.call(piece, deltas));
            }
            "response.function_call_arguments.delta" => {
                let piece = Piece { index: Some(index), arguments: optional_text(delta), ..Piece::default() };
                spoke = self.said.call(piece, deltas);
            }
            "response.output_item.done" => {
                if let Some(item) = item {
                    self.take_item(index, item, deltas)?;
                }
            }
            "response.completed" | "response.incomplete" => {
                let response = response.ok_or_else(|| no_reply(data))?;
                self.take_response(response, deltas)?;
            }
            "response.failed" | "response.cancelled" => {
                return Err(failure::from_event(response.map_or(data, |response| response.get().as_bytes())));
            }
            "error" => return Err(failure::from_event(data)),
            // Parts that begin and end, summaries of hidden reasoning, and what is not known yet.
            _ => {}
        }
        if !spoke {
            deltas(Delta::Alive);
        }
        self.said.check_size()
    }

    /// Takes an item that has ended.
    fn take_item(&mut self, index: u64, json: &RawValue, deltas: &mut Deltas<'_>) -> Result<(), ModelError> {
        let item = read_item(json)?;
        if let Some(piece) = call_of(index, &item) {
            self.said.settle_call(Piece { arguments: string_of(item.arguments), ..piece }, deltas);
        } else {
            // Calls are counted where they are gathered.
            self.said.count(json.get().len());
        }
        self.items.insert(index, Ended::new(&item, json.get()));
        Ok(())
    }

    /// Takes the whole response, with which a stream ends. What came before in pieces is not taken twice.
    fn take_response(&mut self, json: &RawValue, deltas: &mut Deltas<'_>) -> Result<(), ModelError> {
        let data = json.get().as_bytes();
        let response: Response<'_> = serde_json::from_str(json.get()).map_err(|error| unexpected(&error, data))?;
        if let Some(output) = response.output.filter(|_| self.items.is_empty()) {
            let output: Vec<&RawValue> =
                serde_json::from_str(output.get()).map_err(|error| unexpected(&error, data))?;
            for (index, item) in output.into_iter().enumerate() {
                self.take_item(index as u64, item, deltas)?;
            }
        }
        if self.said.text().is_empty() || self.refusal.is_empty() {
            let items: Vec<Value> = self.items.values().filter(|item| item.has_content).map(Ended::value).collect();
            if self.said.text().is_empty() {
                let texts: Vec<String> = items.iter().flat_map(|item| parts(item, "output_text", "text")).collect();
                self.said.say(&texts.concat(), deltas);
            }
            if self.refusal.is_empty() {
                self.refusal = items.iter().flat_map(|item| parts(item, "refusal", "refusal")).collect();
            }
        }
        self.usage = response.usage.or(self.usage);
        self.end = Some(match (response.status.as_deref(), response.incomplete_details) {
            (Some("failed" | "cancelled"), _) => return Err(failure::from_event(data)),
            (Some("incomplete"), details) => match details.and_then(|details| details.reason).as_deref() {
                Some("content_filter") => End::Filter,
                _ => End::Length,
            },
            _ => End::Completed,
        });
        Ok(())
    }

    /// The items that must be sent back as they are: all of them if the model's reasoning is among them.
    fn opaque(&mut self) -> Option<Value> {
        self.items.retain(|_, item| item.kind != Kind::LostReasoning);
        let is_plain = |item: &Ended| matches!(item.kind, Kind::Message | Kind::Call);
        if !self.items.values().any(|item| item.kind == Kind::Reasoning || item.has_phase)
            || !self.items.values().any(is_plain)
        {
            return None;
        }
        let items = self.items.values().map(Ended::value).collect();
        Some(encoding::opaque(FORMAT, &self.model, items))
    }
}

/// What is known of an item; nothing of one that is no object.
fn read_item(json: &RawValue) -> Result<Item<'_>, ModelError> {
    if !json.get().starts_with('{') {
        return Ok(Item::default());
    }
    serde_json::from_str(json.get()).map_err(|error| unexpected(&error, json.get().as_bytes()))
}

/// The beginning of a call that an item is, without its arguments.
fn call_of<'a>(index: u64, item: &Item<'a>) -> Option<Piece<'a>> {
    if string_of(item.kind) != "function_call" {
        return None;
    }
    let (id, name) = (string_of(item.call_id), string_of(item.name));
    Some(Piece { index: Some(index), id, name, arguments: Cow::Borrowed("") })
}

/// The texts of an item's parts of one kind.
fn parts(item: &Value, kind: &str, field: &str) -> Vec<String> {
    let parts = item["content"].as_array().into_iter().flatten();
    let parts = parts.filter(|part| part["type"] == kind);
    parts.filter_map(|part| Some(part[field].as_str()?.to_owned())).collect()
}

impl Draft for Partial {
    fn take(&mut self, data: &[u8], deltas: &mut Deltas<'_>) -> Result<(), ModelError> {
        let data = data.trim_ascii();
        // Servers that speak several protocols forget to leave another one's end out.
        if data.is_empty() || data == b"[DONE]" {
            return Ok(());
        }
        let event: Event<'_> = read(data).map_err(|error| unexpected(&error, data))?;
        if event.kind.is_none() && event.error.is_some_and(|error| error.get() != "null") {
            return Err(failure::from_event(data));
        }
        self.take_event(&event, data, deltas)
    }

    fn take_whole(&mut self, json: &[u8], deltas: &mut Deltas<'_>) -> Result<(), ModelError> {
        let response: &RawValue = read(json).map_err(|error| unexpected(&error, json))?;
        let event: Event<'_> = read(json).map_err(|error| unexpected(&error, json))?;
        if event.error.is_some_and(|error| error.get() != "null") {
            return Err(failure::from_event(json));
        }
        self.take_response(response, deltas)?;
        if self.items.is_empty() {
            self.end = None;
            return Err(no_reply(json));
        }
        self.said.check_size()
    }

    fn progress(&self) -> Progress {
        if self.end.is_some() { Progress::Done } else { Progress::Speaking }
    }

    fn said(&mut self) -> String {
        self.said.take_text()
    }

    fn finish(mut self: Box<Self>, sent_bytes: u64, _deltas: &mut Deltas<'_>) -> Result<Reply, ModelError> {
        let tokens = self.usage.and_then(Usage::count).unwrap_or_else(|| self.said.estimate(sent_bytes));
        let said = std::mem::take(&mut self.said);
        let has_calls = said.has_calls();
        let (keep, stop) = match self.end {
            // What was cut off by a filter is not acted on.
            Some(End::Filter) => (Keep::None, Stop::Refused("content filter".to_owned())),
            _ if !self.refusal.is_empty() => (Keep::None, Stop::Refused(std::mem::take(&mut self.refusal))),
            Some(End::Length) => (Keep::Complete, Stop::Length),
            Some(End::Completed) | None if has_calls => (Keep::All, Stop::ToolUse),
            Some(End::Completed) | None => (Keep::All, Stop::End),
        };
        let (text, tool_calls) = said.finish(keep)?;
        // A reply that was cut has items that were never ended.
        let opaque = if matches!(stop, Stop::End | Stop::ToolUse) { self.opaque() } else { None };
        Ok(Reply { text, tool_calls, stop, tokens, opaque })
    }
}
