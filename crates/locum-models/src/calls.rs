//! Tool calls put together from their pieces. Servers disagree on what a piece carries: some repeat the name in every
//! one, some leave out the index or the id, some send whole calls.

use std::borrow::Cow;

use locum_core::transcript::ToolCall;
use serde::de::IgnoredAny;
use serde_json::Value;

/// What a call costs besides its text: a stream of empty calls must not fill the memory either.
const CALL_BYTES: usize = 64;

/// The tool calls of a reply under way.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    calls: Vec<PartialCall>,
}

/// Which calls of a reply count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// All: the model ended them.
    All,
    /// Those whose arguments are complete: the reply was cut somewhere.
    Complete,
    /// None: a filter took the reply away.
    None,
}

/// A piece of a call, as far as the server filled it in.
#[derive(Debug, Default)]
pub(crate) struct Piece<'a> {
    pub(crate) index: Option<u64>,
    pub(crate) id: Cow<'a, str>,
    pub(crate) name: Cow<'a, str>,
    pub(crate) arguments: Cow<'a, str>,
}

#[derive(Debug, Default)]
struct PartialCall {
    index: u64,
    id: String,
    name: String,
    arguments: String,
}

impl Calls {
    /// Takes a piece of a call. Returns the bytes that it added and, when a call has just begun, its name.
    pub(crate) fn add(&mut self, piece: Piece<'_>) -> (usize, Option<&str>) {
        let Piece { index, id, name, arguments } = piece;
        let (place, mut bytes) = match self.find(index, &id, &name) {
            Some(place) => (place, 0),
            None => {
                let index = index.unwrap_or(self.calls.len() as u64);
                self.calls.push(PartialCall { index, ..PartialCall::default() });
                (self.calls.len() - 1, CALL_BYTES)
            }
        };
        let call = &mut self.calls[place];
        bytes += id.len() + name.len() + arguments.len();
        if call.id.is_empty() {
            call.id = id.into_owned();
        }
        let has_begun = call.name.is_empty() && !name.is_empty();
        call.add_name(&name);
        call.arguments.push_str(&arguments);
        (bytes, has_begun.then_some(call.name.as_str()))
    }

    /// Replaces the arguments of the call at an index by all of them. Returns the bytes that this added.
    pub(crate) fn settle(&mut self, index: Option<u64>, arguments: String) -> usize {
        let Some(call) = self.calls.iter_mut().rev().find(|call| Some(call.index) == index) else { return 0 };
        let added = arguments.len().saturating_sub(call.arguments.len());
        if !arguments.is_empty() {
            call.arguments = arguments;
        }
        added
    }

    /// The call that a piece belongs to; none if it begins another.
    fn find(&self, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
        let last = self.calls.len().checked_sub(1)?;
        if let Some(index) = index {
            let place = self.calls.iter().rposition(|call| call.index == index)?;
            // Some servers number all calls 0; then only a new id together with a name tells them apart.
            let is_other = !id.is_empty() && !name.is_empty() && self.calls[place].has_other_id(id);
            return (!is_other).then_some(place);
        }
        if !id.is_empty() {
            return self.calls.iter().rposition(|call| call.id == id);
        }
        let call = &self.calls[last];
        let begins_another = !name.is_empty() && (call.name != name || call.is_complete());
        (!begins_another || call.name.is_empty()).then_some(last)
    }

    /// The calls, in the order that the model gave them, with ids that are unique among them.
    pub(crate) fn finish(mut self, keep: Keep) -> Vec<ToolCall> {
        self.calls.sort_by_key(|call| call.index);
        match keep {
            Keep::All => {}
            Keep::Complete => self.calls.retain(|call| !call.name.is_empty() && call.is_complete()),
            Keep::None => self.calls.clear(),
        }
        let mut finished: Vec<ToolCall> = Vec::with_capacity(self.calls.len());
        for (place, call) in self.calls.into_iter().enumerate() {
            let is_taken = |id: &str| id.is_empty() || finished.iter().any(|other| other.id == id);
            let made_up = (place + 1..).map(|number| format!("call_{number}"));
            let id = std::iter::once(call.id).chain(made_up).find(|id| !is_taken(id)).unwrap_or_default();
            finished.push(ToolCall { id, name: call.name, input: input_of(call.arguments) });
        }
        finished
    }

    /// Whether there are any.
    pub(crate) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }
}

impl PartialCall {
    /// A name comes whole, again and again, or in pieces.
    fn add_name(&mut self, name: &str) {
        if name.is_empty() || name == self.name {
            return;
        }
        if name.starts_with(&self.name) {
            name.clone_into(&mut self.name);
        } else if self.arguments.is_empty() {
            self.name.push_str(name);
        }
    }

    fn has_other_id(&self, id: &str) -> bool {
        !self.id.is_empty() && self.id != id
    }

    /// Whether the arguments are an object from its beginning to its end.
    fn is_complete(&self) -> bool {
        let arguments = self.arguments.trim();
        arguments.starts_with('{') && arguments.ends_with('}') && serde_json::from_str::<IgnoredAny>(arguments).is_ok()
    }
}

/// The input that the text of arguments means.
fn input_of(arguments: String) -> Value {
    if arguments.trim().is_empty() {
        return Value::Object(serde_json::Map::new());
    }
    match serde_json::from_str(&arguments) {
        Ok(Value::Null) => Value::Object(serde_json::Map::new()),
        Ok(input) => input,
        Err(_) => Value::String(arguments),
    }
}
