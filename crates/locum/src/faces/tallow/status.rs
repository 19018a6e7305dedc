//! `subagent_status`: how background tasks stand. What has ended leaves the list after a while; its result is kept.

use locum_core::ids::{SessionId, Timestamp};
use locum_core::limits;
use locum_core::protocol::request::Status as StatusRequest;
use locum_core::protocol::response::TaskStatus;
use locum_core::protocol::{Code, FaceDefaults, Refusal, Response, SubagentAction};
use locum_core::task::{Outcome, Reason};
use serde::Serialize;
use serde_json::Value;

use super::super::cut::first_chars;
use super::super::transcript::Transcript;
use super::super::{FaceAnswer, asking};
use super::input::StatusInput;
use super::words::{background_id, task_of, terminated, whole};
use crate::desk::Desk;
use crate::faces::Retention;
use crate::tools::input;

/// The details of an answer.
#[derive(Debug, Serialize)]
struct Details {
    tasks: Vec<Line>,
}

/// One task.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    task_id: String,
    agent: String,
    status: &'static str,
    duration_ms: u64,
    task: String,
    isolation: &'static str,
    history: String,
    messages: Vec<Value>,
    output: Option<String>,
}

pub(super) async fn answer(desk: &Desk, input: Value) -> FaceAnswer {
    let StatusInput { task_id } = match input::parse(input) {
        Ok(input) => input,
        Err(output) => return failed(format!("Invalid parameters. {}", output.text)),
    };
    let answered = match &task_id {
        Some(id) => one(desk, id).await,
        None => all(desk).await,
    };
    answered.unwrap_or_else(|refusal| failed(asking::words(&refusal)))
}

fn failed(text: String) -> FaceAnswer {
    FaceAnswer::content(text, Some(&Details { tasks: Vec::new() }), true)
}

async fn one(desk: &Desk, id: &str) -> Result<FaceAnswer, Refusal> {
    let not_found = || Ok(failed(format!("Task not found: {}", first_chars(id, 80))));
    let Some((task_id, session)) = task_of(id) else { return not_found() };
    let desk = &match session.map(SessionId::parse) {
        None => desk.clone(),
        Some(Ok(session)) => desk.in_session(session),
        Some(Err(_)) => return not_found(),
    };
    let status = SubagentAction::Status(StatusRequest { task_id: Some(task_id.to_string()) });
    let status = match asking::ask(desk, status, FaceDefaults::tallow()).await {
        Ok(Response::Status(status)) => *status,
        Ok(other) => return Err(asking::unexpected(&other)),
        Err(refusal) if refusal.code == Code::TaskNotFound => return not_found(),
        Err(refusal) => return Err(refusal),
    };
    if !is_remembered(&status, desk.now(), &desk.face_settings().retention) {
        return not_found();
    }
    let line = Line::of(desk, &status, session).await?;
    let text = format!(
        "{}\nAgent: {}\nStatus: {}\nDuration: {}\nTask: {}\nIsolation: {}\nHistory: {}{}",
        line.task_id,
        line.agent,
        line.status,
        seconds(line.duration_ms),
        line.task,
        line.isolation,
        line.history,
        line.output.as_ref().map(|output| format!("\n\nOutput:\n{output}")).unwrap_or_default(),
    );
    Ok(FaceAnswer::content(text, Some(&Details { tasks: vec![line] }), false))
}

async fn all(desk: &Desk) -> Result<FaceAnswer, Refusal> {
    let status = SubagentAction::Status(StatusRequest { task_id: None });
    let tasks = match asking::ask(desk, status, FaceDefaults::tallow()).await? {
        Response::Tasks(tasks) => tasks.tasks,
        other => return Err(asking::unexpected(&other)),
    };
    let (now, retention) = (desk.now(), &desk.face_settings().retention);
    let mut lines = Vec::new();
    for status in tasks.iter().filter(|status| is_remembered(status, now, retention)) {
        lines.push(Line::of(desk, status, None).await?);
    }
    let shown = |line: &Line| {
        let task = first_chars(line.task.lines().next().unwrap_or_default(), TASK_CHARS_SHOWN);
        format!("{} @{} {} {} {task}", line.task_id, line.agent, line.status, seconds(line.duration_ms))
    };
    let text = match lines.as_slice() {
        [] => "No background subagents.".to_owned(),
        lines => lines.iter().map(shown).collect::<Vec<_>>().join("\n"),
    };
    Ok(FaceAnswer::content(text, Some(&Details { tasks: lines }), false))
}

/// Characters of a task in a list.
const TASK_CHARS_SHOWN: usize = 80;

/// Whether a task is still listed.
fn is_remembered(status: &TaskStatus, now: Timestamp, retention: &Retention) -> bool {
    let minutes = |ended: Timestamp| now.millis_since(ended) / 60_000;
    status.completed_at.is_none_or(|ended| minutes(ended) < retention.minutes)
}

impl Line {
    async fn of(desk: &Desk, status: &TaskStatus, session: Option<&str>) -> Result<Self, Refusal> {
        let transcript = Transcript::of(desk, status.task_id).await?;
        let retention = &desk.face_settings().retention;
        let (all, shown) = (transcript.messages.len(), retention.shown_messages());
        let history = match &transcript.outcome {
            Some(_) if !retention.full_history => format!("compacted ({}/{all} messages retained)", shown.min(all)),
            _ => format!("full ({all} messages)"),
        };
        let duration_ms = match status.completed_at {
            Some(ended) => ended.millis_since(status.created_at),
            None => desk.now().millis_since(status.created_at),
        };
        let plan = &transcript.plan;
        Ok(Self {
            task_id: background_id(status.task_id, session),
            agent: status.agent.to_string(),
            status: match status.reason {
                Some(Reason::Stalled) => "stalled",
                _ => status.status.as_str(),
            },
            duration_ms,
            task: first_chars(&plan.assignment.task, limits::FACE_MESSAGE_CHARS_MAX).to_owned(),
            isolation: plan.grants.isolation.as_str(),
            history,
            messages: transcript.tail(shown),
            output: transcript.outcome.as_ref().map(|outcome| output(desk, status, outcome, plan.bounds.max_turns)),
        })
    }
}

fn output(desk: &Desk, status: &TaskStatus, outcome: &Outcome, max_turns: u32) -> String {
    let said = locum_core::neutral::neutralise(outcome.text());
    let said = whole(desk, status.task_id, &said);
    let why = match outcome.reason() {
        Some(Reason::MaxTurns) => Some(terminated(max_turns)),
        Some(_) | None => outcome.error().map(str::to_owned),
    };
    match why {
        None => said.into_owned(),
        Some(why) if said.is_empty() => why,
        Some(why) => format!("{said}\n\n{why}"),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a duration for people")]
fn seconds(ms: u64) -> String {
    format!("{:.1}s", ms as f64 / 1000.0)
}
