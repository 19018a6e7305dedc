//! The tool calls of a reply, from being asked for to their answers in the conversation.

use std::fmt::{self, Write as _};

use serde_json::Value;

use super::{Phase, Task};
use crate::transcript::{Intent, Message, Repeat, ToolCall, ToolEnd, ToolOutput};

/// A tool call of the last reply.
#[derive(Debug, Clone)]
pub(super) struct PendingCall {
    pub(super) call: ToolCall,
    pub(super) state: ToolState,
}

impl PendingCall {
    pub(super) fn is_open(&self) -> bool {
        !matches!(self.state, ToolState::Ended(_))
    }
}

#[derive(Debug, Clone)]
pub(super) enum ToolState {
    Asked,
    Started(Option<Intent>),
    Ended(ToolOutput),
}

impl Task {
    /// The first open call with this id; a model may give two calls the same one.
    fn pending_mut(&mut self, turn: u32, call_id: &str) -> Option<&mut PendingCall> {
        if turn != self.spent.usage.turns {
            return None;
        }
        let Phase::Tooling(pending) = &mut self.phase else { return None };
        pending.iter_mut().find(|pending| pending.call.id == call_id && pending.is_open())
    }

    pub(super) fn start_tool(
        &mut self,
        turn: u32,
        call_id: &str,
        repeat: Repeat,
        intent: Option<Intent>,
    ) -> Result<(), &'static str> {
        let pending = self.pending_mut(turn, call_id).ok_or("no such tool call")?;
        if repeat == Repeat::Unsafe && matches!(pending.state, ToolState::Started(_)) {
            return Err("an unrepeatable tool call was started twice");
        }
        pending.state = ToolState::Started(intent);
        Ok(())
    }

    pub(super) fn end_tool(&mut self, turn: u32, call_id: &str, output: ToolOutput) -> Result<(), &'static str> {
        let denied = output.end == ToolEnd::Denied;
        let (marks, forbidden) = (output.files.clone(), output.forbidden.clone());
        let pending = self.pending_mut(turn, call_id).ok_or("no such tool call")?;
        pending.state = ToolState::Ended(output);
        self.note_files(marks);
        self.note_forbidden(forbidden);
        self.spent.usage.tool_calls += 1;
        self.spent.usage.denials += u32::from(denied);
        self.close_tools();
        Ok(())
    }

    /// Once every call is answered, the answers join the conversation in the order of the calls.
    fn close_tools(&mut self) {
        let Phase::Tooling(pending) = &self.phase else { return };
        if pending.iter().any(PendingCall::is_open) {
            return;
        }
        let Phase::Tooling(pending) = std::mem::replace(&mut self.phase, Phase::Ready) else { return };
        self.repetition.note(pending.iter().filter_map(|pending| match &pending.state {
            ToolState::Ended(output) => Some((&pending.call, output)),
            ToolState::Asked | ToolState::Started(_) => None,
        }));
        for PendingCall { call, state } in pending {
            let ToolState::Ended(output) = state else { continue };
            self.conversation.chars += output.text.chars().count();
            self.conversation.messages.push(Message::Tool { call_id: call.id, name: call.name, output });
        }
    }
}

/// How many characters a value has when it is written.
pub(super) fn chars_of(value: &Value) -> usize {
    struct Count(usize);
    impl fmt::Write for Count {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0 += text.chars().count();
            Ok(())
        }
    }
    let mut count = Count(0);
    // Counting never fails.
    write!(count, "{value}").ok();
    count.0
}
