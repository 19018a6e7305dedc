//! The conversation of a task, read from its log, and how faces show it.

use std::sync::Arc;

use locum_core::ids::TaskId;
use locum_core::limits;
use locum_core::neutral::neutralise;
use locum_core::protocol::Refusal;
use locum_core::task::{Outcome, Plan, Record, Task, TaskEvent};
use locum_core::transcript::{Message, Reply, ToolCall, ToolEnd};
use serde_json::{Value, json};

use super::cut::first_chars;
use crate::desk::Desk;

/// What was said in a task, so far or to its end.
pub(super) struct Transcript {
    pub(super) plan: Arc<Plan>,
    pub(super) messages: Vec<Message>,
    /// Tokens of the last request with its answer.
    pub(super) context_tokens: u64,
    /// How it ended, if it has.
    pub(super) outcome: Option<Outcome>,
}

impl Transcript {
    /// The conversation of a task of the desk's session.
    pub(super) async fn of(desk: &Desk, task_id: TaskId) -> Result<Self, Refusal> {
        Self::read(desk.log_of(&task_id.to_string()).await?)
    }

    fn read(mut records: Vec<Record>) -> Result<Self, Refusal> {
        let outcome = match records.last().map(|record| &record.event) {
            Some(TaskEvent::Ended { outcome }) => Some(outcome.clone()),
            _ => None,
        };
        if outcome.is_some() {
            // An ended task holds no conversation: it is read as it was just before.
            records.pop();
        }
        let replied = records.iter().rev().find_map(|record| match &record.event {
            TaskEvent::Replied { reply, .. } => Some(reply.tokens.input_total().saturating_add(reply.tokens.output)),
            _ => None,
        });
        let task = Task::replay(records).map_err(Refusal::internal)?;
        Ok(Self {
            plan: Arc::clone(task.plan()),
            messages: task.messages().to_vec(),
            context_tokens: replied.unwrap_or_default(),
            outcome,
        })
    }

    /// The last messages, as programs of this kind write them.
    pub(super) fn tail(&self, count: usize) -> Vec<Value> {
        let skipped = self.messages.len().saturating_sub(count);
        self.messages.iter().skip(skipped).map(|message| shown(message, &bounded)).collect()
    }

    /// Every message, as it was said.
    pub(super) fn whole(&self) -> impl Iterator<Item = Value> {
        self.messages.iter().map(|message| shown(message, &|text| text.to_owned()))
    }
}

fn shown(message: &Message, text_of: &dyn Fn(&str) -> String) -> Value {
    let text_block = |text: &str| json!({"type": "text", "text": text_of(text)});
    match message {
        Message::User(text) => json!({"role": "user", "content": [text_block(text)]}),
        Message::Assistant(reply) => json!({"role": "assistant", "content": items(reply, &text_block)}),
        Message::Tool { call_id, name, output } => json!({
            "role": "toolResult",
            "toolCallId": call_id,
            "toolName": name,
            "content": [text_block(&output.text)],
            "isError": output.end != ToolEnd::Ok,
        }),
    }
}

fn items(reply: &Reply, text_block: &dyn Fn(&str) -> Value) -> Vec<Value> {
    let text = (!reply.text.is_empty()).then(|| text_block(&reply.text));
    let call = |call: &ToolCall| json!({"type": "toolCall", "id": call.id, "name": call.name, "arguments": call.input});
    text.into_iter().chain(reply.tool_calls.iter().map(call)).collect()
}

/// The head of a text that an orchestrator may read.
fn bounded(text: &str) -> String {
    neutralise(first_chars(text, limits::FACE_MESSAGE_CHARS_MAX)).into_owned()
}
