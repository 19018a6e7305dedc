//! A reply put together from the events of a stream, or from one whole response.

use std::borrow::Cow;
use std::collections::BTreeMap;

use locum_core::transcript::{Reply, Stop};
use serde_json::Value;
use serde_json::value::RawValue;

use super::FORMAT;
use super::event::{Event, Response, Usage};
use crate::api::{Draft, Progress};
use crate::calls::{Keep, Piece};
use crate::encoding;
use crate::failure;
use crate::json_text::optional_text;
use crate::model::{Delta, Deltas, ModelError};
use crate::said::{Said, no_reply, unexpected};

/// A reply under way.
pub(super) struct Partial {
    model: String,
    said: Said,
    refusal: String,
    /// Items that have ended, by the index that the server gives them.
    items: BTreeMap<u64, Value>,
    end: Option<End>,
    usage: Option<Usage>,
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

    fn take_event(&mut self, event: Event<'_>, data: &[u8], deltas: &mut Deltas<'_>) -> Result<(), ModelError> {
        let Event { kind, output_index, delta, item, response, .. } = event;
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
                spoke = item.and_then(|item| call_of(index, &item)).is_some_and(|piece| self.said.call(piece, deltas));
            }
            "response.function_call_arguments.delta" => {
                let piece = Piece { index: Some(index), arguments: optional_text(delta), ..Piece::default() };
                spoke = self.said.call(piece, deltas);
            }
            "response.output_item.done" => {
                if let Some(item) = item {
                    self.take_item(index, item, deltas);
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
    fn take_item(&mut self, index: u64, item: Value, deltas: &mut Deltas<'_>) {
        if let Some(piece) = call_of(index, &item) {
            let arguments = Cow::Owned(item["arguments"].as_str().unwrap_or_default().to_owned());
            self.said.settle_call(Piece { arguments, ..piece }, deltas);
        } else {
            // Calls are counted where they are gathered.
            self.said.count(item.to_string().len());
        }
        self.items.insert(index, item);
    }

    /// Takes the whole response, with which a stream ends. What came before in pieces is not taken twice.
    fn take_response(&mut self, json: &RawValue, deltas: &mut Deltas<'_>) -> Result<(), ModelError> {
        let data = json.get().as_bytes();
        let response: Response = serde_json::from_slice(data).map_err(|error| unexpected(&error, data))?;
        let output = response.output.unwrap_or_default();
        if self.items.is_empty() {
            for (index, item) in output.into_iter().enumerate() {
                self.take_item(index as u64, item, deltas);
            }
        }
        if self.said.text().is_empty() {
            let texts: Vec<String> = self.items.values().flat_map(|item| parts(item, "output_text", "text")).collect();
            self.said.say(&texts.concat(), deltas);
        }
        if self.refusal.is_empty() {
            self.refusal = self.items.values().flat_map(|item| parts(item, "refusal", "refusal")).collect();
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
        let is_reasoning = |item: &Value| item["type"] == "reasoning";
        // Without its encrypted content, the API looks for reasoning in a store that it was asked not to use.
        self.items.retain(|_, item| !is_reasoning(item) || item["encrypted_content"].is_string());
        let is_plain = |item: &Value| matches!(item["type"].as_str(), Some("message" | "function_call"));
        if !self.items.values().any(|item| is_reasoning(item) || item["phase"].is_string())
            || !self.items.values().any(is_plain)
        {
            return None;
        }
        let items = std::mem::take(&mut self.items).into_values().collect();
        Some(encoding::opaque(FORMAT, &self.model, items))
    }
}

/// The beginning of a call that an item is, without its arguments.
fn call_of(index: u64, item: &Value) -> Option<Piece<'static>> {
    if item["type"] != "function_call" {
        return None;
    }
    let text = |field: &str| item[field].as_str().unwrap_or_default().to_owned();
    Some(Piece { index: Some(index), id: text("call_id"), name: text("name"), arguments: Cow::Borrowed("") })
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
        let event: Event<'_> = serde_json::from_slice(data).map_err(|error| unexpected(&error, data))?;
        if event.kind.is_none() && event.error.is_some_and(|error| error.get() != "null") {
            return Err(failure::from_event(data));
        }
        self.take_event(event, data, deltas)
    }

    fn take_whole(&mut self, json: &[u8], deltas: &mut Deltas<'_>) -> Result<(), ModelError> {
        let response: &RawValue = serde_json::from_slice(json).map_err(|error| unexpected(&error, json))?;
        let event: Event<'_> = serde_json::from_slice(json).map_err(|error| unexpected(&error, json))?;
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
