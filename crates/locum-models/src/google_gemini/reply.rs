//! A reply put together from the events of a stream, or from one whole response.

use locum_core::task::event::FailureKind;
use locum_core::transcript::{Reply, Stop};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::FORMAT;
use super::event::{Candidate, Chunk, FunctionCall, Part, Usage};
use crate::api::{Draft, Progress};
use crate::calls::{Keep, Piece};
use crate::encoding;
use crate::failure;
use crate::json_text::{optional_text, read};
use crate::model::{Delta, Deltas, ModelError};
use crate::said::{Said, no_reply, unexpected};

/// Reasons to stop for which another attempt may help: the model wrote a call that is none.
const MISTAKES: [&str; 4] = ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "OTHER"];

/// What a part costs besides its text: a stream of empty parts must not fill the memory either.
const PART_BYTES: usize = 64;

/// A reply under way.
pub(super) struct Partial {
    model: String,
    said: Said,
    /// Calls that have come; each comes whole.
    calls: u64,
    /// What was said and called, in order, as it must be sent back.
    parts: Vec<Kept>,
    has_signature: bool,
    finish: Option<(String, Option<String>)>,
    blocked: Option<String>,
    usage: Option<Usage>,
}

/// A part of the reply. Most models do not want it back, so nothing is made of it before that is known.
struct Kept {
    what: What,
    signature: Option<Value>,
}

/// What a part holds.
enum What {
    Text(String),
    /// A call, with its arguments as they were written.
    Call {
        id: Option<String>,
        name: String,
        args: String,
    },
}

impl Kept {
    /// The part as it must be sent back.
    fn into_part(self) -> Value {
        let mut part = match self.what {
            What::Text(text) => json!({ "text": text }),
            What::Call { id, name, args } => {
                let args: Value = serde_json::from_str(&args).unwrap_or_else(|_| json!({}));
                let mut part = json!({ "functionCall": { "name": encoding::accepted_name(&name), "args": args } });
                if let Some(id) = id {
                    part["functionCall"]["id"] = Value::String(id);
                }
                part
            }
        };
        if let Some(signature) = self.signature {
            part["thoughtSignature"] = signature;
        }
        part
    }
}

impl Partial {
    /// A reply of which nothing has come.
    pub(super) fn new(model: &str) -> Self {
        Self {
            model: model.to_owned(),
            said: Said::default(),
            calls: 0,
            parts: Vec::new(),
            has_signature: false,
            finish: None,
            blocked: None,
            usage: None,
        }
    }

    fn take_chunk(&mut self, chunk: Chunk<'_>, deltas: &mut Deltas<'_>) -> Result<(), ModelError> {
        self.usage = chunk.usage_metadata.or(self.usage);
        if let Some(reason) = chunk.prompt_feedback.and_then(|feedback| feedback.block_reason) {
            self.blocked = Some(reason);
        }
        let candidate = chunk.candidates.and_then(|candidates| candidates.0);
        let spoke = candidate.is_some_and(|candidate| self.take_candidate(candidate, deltas));
        if !spoke {
            deltas(Delta::Alive);
        }
        self.said.check_size()
    }

    fn take_candidate(&mut self, candidate: Candidate<'_>, deltas: &mut Deltas<'_>) -> bool {
        let Candidate { content, finish_reason, finish_message, .. } = candidate;
        if let Some(reason) = finish_reason.filter(|reason| !reason.is_empty()) {
            self.finish = Some((reason, finish_message));
        }
        let mut spoke = false;
        for part in content.and_then(|content| content.parts).into_iter().flatten() {
            spoke |= self.take_part(part, deltas);
        }
        spoke
    }

    /// Takes a part. Returns whether something was shown.
    fn take_part(&mut self, part: Part<'_>, deltas: &mut Deltas<'_>) -> bool {
        let Part { text, thought, thought_signature: signature, function_call } = part;
        let (what, spoke) = if let Some(call) = function_call {
            self.take_call(call, deltas)
        } else if thought == Some(true) {
            // A thought is a summary for people; only its signature matters to the model, and comes elsewhere.
            return false;
        } else {
            let text = optional_text(text);
            let spoke = self.said.say(&text, deltas);
            (What::Text(text.into_owned()), spoke)
        };
        self.keep(Kept { what, signature });
        spoke
    }

    fn take_call(&mut self, call: FunctionCall<'_>, deltas: &mut Deltas<'_>) -> (What, bool) {
        let FunctionCall { id, name, args } = call;
        let (name, args) = (name.unwrap_or_default(), args.map_or("{}", RawValue::get));
        let kept =
            What::Call { id: id.as_deref().map(str::to_owned), name: name.clone().into_owned(), args: args.to_owned() };
        let piece = Piece { index: Some(self.calls), id: id.unwrap_or_default(), name, arguments: args.into() };
        self.calls += 1;
        (kept, self.said.call(piece, deltas))
    }

    /// Keeps a part as it must be sent back. Pieces of one text become one part again.
    fn keep(&mut self, part: Kept) {
        self.said.count(PART_BYTES);
        if let Some(signature) = &part.signature {
            self.said.count(signature.as_str().map_or(0, str::len));
            self.has_signature = true;
        } else if let (What::Text(text), Some(Kept { what: What::Text(before), signature: None })) =
            (&part.what, self.parts.last_mut())
        {
            before.push_str(text);
            return;
        }
        self.parts.push(part);
    }

    fn opaque(&mut self) -> Option<Value> {
        let parts = std::mem::take(&mut self.parts);
        self.has_signature
            .then(|| encoding::opaque(FORMAT, &self.model, parts.into_iter().map(Kept::into_part).collect()))
    }
}

/// A reason to stop as people read it.
fn words(reason: &str) -> String {
    reason.to_ascii_lowercase().replace('_', " ")
}

impl Draft for Partial {
    fn take(&mut self, data: &[u8], deltas: &mut Deltas<'_>) -> Result<(), ModelError> {
        let data = data.trim_ascii();
        if data.is_empty() || data == b"[DONE]" {
            return Ok(());
        }
        let chunk: Chunk<'_> = read(data).map_err(|error| unexpected(&error, data))?;
        if chunk.error.is_some_and(|error| error.get() != "null") {
            return Err(failure::from_event(data));
        }
        self.take_chunk(chunk, deltas)
    }

    fn take_whole(&mut self, json: &[u8], deltas: &mut Deltas<'_>) -> Result<(), ModelError> {
        // Without an event stream, the API sends a list.
        let chunks: Vec<&RawValue> = serde_json::from_slice(json)
            .or_else(|_| serde_json::from_slice(json).map(|chunk| vec![chunk]))
            .map_err(|error| unexpected(&error, json))?;
        for chunk in chunks {
            self.take(chunk.get().as_bytes(), deltas)?;
        }
        if self.progress() == Progress::Speaking { Err(no_reply(json)) } else { Ok(()) }
    }

    fn progress(&self) -> Progress {
        let is_whole = self.finish.is_some() || self.blocked.is_some();
        if is_whole { Progress::Whole } else { Progress::Speaking }
    }

    fn said(&mut self) -> String {
        self.said.take_text()
    }

    fn finish(mut self: Box<Self>, sent_bytes: u64, _deltas: &mut Deltas<'_>) -> Result<Reply, ModelError> {
        let tokens = self.usage.and_then(Usage::count).unwrap_or_else(|| self.said.estimate(sent_bytes));
        let said = std::mem::take(&mut self.said);
        let has_calls = said.has_calls();
        let (reason, message) = self.finish.take().unwrap_or_default();
        if MISTAKES.contains(&reason.as_str()) {
            let message = message.unwrap_or_else(|| words(&reason));
            let mut error = ModelError::new(FailureKind::Malformed, format!("the model stopped: {message}"));
            error.partial = Some(said.into_text()).filter(|text| !text.is_empty());
            return Err(error);
        }
        let (keep, stop) = match (self.blocked.take(), reason.as_str()) {
            (Some(blocked), _) => (Keep::None, Stop::Refused(words(&blocked))),
            (None, "STOP" | "FINISH_REASON_UNSPECIFIED") if has_calls => (Keep::All, Stop::ToolUse),
            (None, "STOP" | "FINISH_REASON_UNSPECIFIED") => (Keep::All, Stop::End),
            (None, "MAX_TOKENS") => (Keep::Complete, Stop::Length),
            // Filters have many names, and there will be more. What they cut off is not acted on.
            (None, filter) => (Keep::None, Stop::Refused(message.unwrap_or_else(|| words(filter)))),
        };
        let (text, tool_calls) = said.finish(keep)?;
        let opaque = if matches!(stop, Stop::End | Stop::ToolUse) { self.opaque() } else { None };
        Ok(Reply { text, tool_calls, stop, tokens, opaque })
    }
}
