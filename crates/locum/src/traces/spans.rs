//! From the log of a task that has ended to spans: the task, its turns, and in each turn the model's and the tools' calls.
//! Names, numbers and words of our own go out; nothing that a person, a model or a tool has said does.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::{Duration, SystemTime};

use locum_core::ids::{SessionKey, Timestamp, Uid};
use locum_core::task::outcome::Outcome;
use locum_core::task::plan::ModelName;
use locum_core::task::{Plan, Record, TaskEvent};
use locum_core::transcript::{Reply, Stop, ToolEnd};
use locum_core::usage::TokenCount;
use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
use serde::Serialize;

/// The error of a call whose end nobody saw.
const INTERRUPTED: &str = "interrupted";

/// Where the spans of a session hang.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Root {
    pub(super) trace: TraceId,
    pub(super) session: SpanId,
}

/// The span of a session, as long as this process has worked in it.
pub(super) fn of_session(key: &SessionKey, root: Root, began: Timestamp, ended: Timestamp) -> SpanData {
    let attributes = vec![KeyValue::new("gen_ai.conversation.id", key.id.to_string())];
    let open = Open { id: root.session, parent: SpanId::INVALID, kind: SpanKind::Internal, began, attributes };
    open.close(root.trace, "session".into(), ended, None)
}

/// The id of a task's span: whoever delegated it, and what it delegates, know it without asking.
pub(super) fn id_of_task(uid: &Uid) -> SpanId {
    numbered(uid, 0)
}

fn numbered(uid: &Uid, number: usize) -> SpanId {
    let mut hasher = DefaultHasher::new();
    (uid.as_str(), number).hash(&mut hasher);
    // Zero is no id.
    SpanId::from(hasher.finish().max(1))
}

/// The spans of one task, from its whole log.
pub(super) fn of_task(records: &[Record], root: Root, parent: SpanId) -> Vec<SpanData> {
    let Some((Record { event: TaskEvent::Accepted { plan, .. }, at, .. }, rest)) = records.split_first() else {
        return Vec::new();
    };
    let mut reading = Reading::new(plan, root.trace, *at, parent);
    for record in rest {
        reading.read(record);
    }
    reading.spans
}

/// A span that has begun.
struct Open {
    id: SpanId,
    parent: SpanId,
    kind: SpanKind,
    began: Timestamp,
    attributes: Vec<KeyValue>,
}

impl Open {
    fn close(self, trace: TraceId, name: Cow<'static, str>, ended: Timestamp, error: Option<String>) -> SpanData {
        let mut attributes = self.attributes;
        let status = match error {
            None => Status::Unset,
            Some(error) => {
                attributes.push(KeyValue::new("error.type", error));
                Status::error("")
            }
        };
        SpanData {
            span_context: SpanContext::new(trace, self.id, TraceFlags::SAMPLED, false, TraceState::default()),
            parent_span_id: self.parent,
            parent_span_is_remote: false,
            span_kind: self.kind,
            name,
            start_time: time(self.began),
            // A clock may have been set back meanwhile.
            end_time: time(ended.max(self.began)),
            attributes,
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status,
            instrumentation_scope: InstrumentationScope::builder("locum")
                .with_version(env!("CARGO_PKG_VERSION"))
                .build(),
        }
    }
}

/// A log that is being read.
struct Reading<'a> {
    plan: &'a Plan,
    trace: TraceId,
    model: &'a ModelName,
    task: Option<Open>,
    turn: Option<(u32, Open)>,
    call: Option<Open>,
    tools: BTreeMap<&'a str, (&'a str, Open)>,
    begun: usize,
    tokens: TokenCount,
    spans: Vec<SpanData>,
}

impl<'a> Reading<'a> {
    fn new(plan: &'a Plan, trace: TraceId, began: Timestamp, parent: SpanId) -> Self {
        let attributes = vec![
            KeyValue::new("gen_ai.operation.name", "invoke_agent"),
            KeyValue::new("gen_ai.agent.name", plan.agent.name.to_string()),
            KeyValue::new("gen_ai.conversation.id", plan.session.id.to_string()),
            KeyValue::new("locum.task.id", plan.task_id.to_string()),
            KeyValue::new("locum.task.uid", plan.uid.to_string()),
            KeyValue::new("locum.task.depth", i64::from(plan.lineage.depth)),
        ];
        let task = Open { id: id_of_task(&plan.uid), parent, kind: SpanKind::Internal, began, attributes };
        Self {
            plan,
            trace,
            model: &plan.model,
            task: Some(task),
            turn: None,
            call: None,
            tools: BTreeMap::new(),
            begun: 0,
            tokens: TokenCount::default(),
            spans: Vec::new(),
        }
    }

    fn read(&mut self, record: &'a Record) {
        let at = record.at;
        match &record.event {
            TaskEvent::TurnStarted { turn, .. } => self.turn_starts(*turn, at),
            TaskEvent::Replied { reply, .. } => self.model_replies(reply, at),
            TaskEvent::ModelFailed { failure, tokens, .. } => self.model_ends(*tokens, Some(word(&failure.kind)), at),
            TaskEvent::ModelReplaced { to, .. } => self.model = to,
            TaskEvent::ToolStarted { call_id, name, .. } => self.tool_starts(call_id, name, at),
            TaskEvent::ToolEnded { call_id, output, .. } => {
                self.tool_ends(call_id, (!output.end.is_ok()).then(|| tool_error(&output.end).to_owned()), at);
            }
            TaskEvent::WorkerLost { .. } => self.interrupt(at),
            TaskEvent::Ended { outcome } => self.task_ends(outcome, at),
            _ => {}
        }
    }

    fn open(&mut self, parent: SpanId, kind: SpanKind, began: Timestamp, attributes: Vec<KeyValue>) -> Open {
        self.begun += 1;
        Open { id: numbered(&self.plan.uid, self.begun), parent, kind, began, attributes }
    }

    fn close(&mut self, open: Open, name: String, ended: Timestamp, error: Option<String>) {
        self.spans.push(open.close(self.trace, name.into(), ended, error));
    }

    fn turn_starts(&mut self, turn: u32, at: Timestamp) {
        self.interrupt(at);
        // A turn is announced again when another model is asked.
        if self.turn.as_ref().is_none_or(|(open, _)| *open != turn) {
            self.turn_ends(at);
            let number = KeyValue::new("locum.turn", i64::from(turn));
            let open = self.open(id_of_task(&self.plan.uid), SpanKind::Internal, at, vec![number]);
            self.turn = Some((turn, open));
        }
        let attributes = vec![
            KeyValue::new("gen_ai.operation.name", "chat"),
            KeyValue::new("gen_ai.provider.name", self.model.provider.clone()),
            KeyValue::new("gen_ai.request.model", name_of(self.model).to_owned()),
        ];
        self.call = Some(self.open(self.within(), SpanKind::Client, at, attributes));
    }

    /// The turn under way, else the task.
    fn within(&self) -> SpanId {
        self.turn.as_ref().map_or_else(|| id_of_task(&self.plan.uid), |(_, turn)| turn.id)
    }

    fn turn_ends(&mut self, at: Timestamp) {
        if let Some((turn, open)) = self.turn.take() {
            self.close(open, format!("turn {turn}"), at, None);
        }
    }

    fn model_replies(&mut self, reply: &Reply, at: Timestamp) {
        let finish = match reply.stop {
            Stop::End => "stop",
            Stop::ToolUse => "tool_calls",
            Stop::Length => "length",
            Stop::Refused(_) => "content_filter",
        };
        if let Some(call) = &mut self.call {
            let reasons = opentelemetry::Value::Array(vec![opentelemetry::StringValue::from(finish)].into());
            call.attributes.push(KeyValue::new("gen_ai.response.finish_reasons", reasons));
        }
        self.model_ends(reply.tokens, None, at);
    }

    fn model_ends(&mut self, tokens: TokenCount, error: Option<String>, at: Timestamp) {
        self.tokens.add(tokens);
        if let Some(mut call) = self.call.take() {
            call.attributes.extend(usage(tokens));
            self.close(call, format!("chat {}", name_of(self.model)), at, error);
        }
    }

    fn tool_starts(&mut self, call_id: &'a str, name: &'a str, at: Timestamp) {
        let attributes = vec![
            KeyValue::new("gen_ai.operation.name", "execute_tool"),
            KeyValue::new("gen_ai.tool.name", name.to_owned()),
            KeyValue::new("gen_ai.tool.call.id", call_id.to_owned()),
        ];
        let open = self.open(self.within(), SpanKind::Internal, at, attributes);
        self.tools.insert(call_id, (name, open));
    }

    fn tool_ends(&mut self, call_id: &str, error: Option<String>, at: Timestamp) {
        if let Some((name, open)) = self.tools.remove(call_id) {
            self.close(open, format!("execute_tool {name}"), at, error);
        }
    }

    /// Whatever is under way ends without anybody having seen how.
    fn interrupt(&mut self, at: Timestamp) {
        self.model_ends(TokenCount::default(), Some(INTERRUPTED.to_owned()), at);
        while let Some((call_id, _)) = self.tools.first_key_value() {
            self.tool_ends(call_id, Some(INTERRUPTED.to_owned()), at);
        }
    }

    fn task_ends(&mut self, outcome: &Outcome, at: Timestamp) {
        self.interrupt(at);
        self.turn_ends(at);
        let Some(mut task) = self.task.take() else { return };
        task.attributes.push(KeyValue::new("gen_ai.provider.name", self.model.provider.clone()));
        task.attributes.push(KeyValue::new("gen_ai.request.model", name_of(self.model).to_owned()));
        task.attributes.extend(usage(self.tokens));
        task.attributes.push(KeyValue::new("locum.task.status", outcome.status().as_str()));
        let error = match outcome {
            Outcome::Failed { reason, .. } => Some(reason.as_str().to_owned()),
            Outcome::Completed { .. } | Outcome::Cancelled { .. } => None,
        };
        self.close(task, format!("invoke_agent {}", self.plan.agent.name), at, error);
    }
}

/// What a model is called; one that is all its provider has is called as that is.
fn name_of(model: &ModelName) -> &str {
    if model.id.is_empty() { &model.provider } else { &model.id }
}

fn usage(tokens: TokenCount) -> [KeyValue; 4] {
    let count = |name: &'static str, tokens: u64| KeyValue::new(name, i64::try_from(tokens).unwrap_or(i64::MAX));
    [
        count("gen_ai.usage.input_tokens", tokens.input.saturating_add(tokens.cache_read)),
        count("gen_ai.usage.output_tokens", tokens.output),
        count("gen_ai.usage.cache_read.input_tokens", tokens.cache_read),
        count("gen_ai.usage.cache_creation.input_tokens", tokens.cache_write),
    ]
}

fn tool_error(end: &ToolEnd) -> &'static str {
    match end {
        ToolEnd::Ok => "",
        ToolEnd::Failed => "failed",
        ToolEnd::Denied => "denied",
        ToolEnd::Unknown => INTERRUPTED,
    }
}

/// The word that a log has for something.
fn word(value: &impl Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or("other").to_owned()
}

fn time(at: Timestamp) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(at.millis()).unwrap_or(0))
}
