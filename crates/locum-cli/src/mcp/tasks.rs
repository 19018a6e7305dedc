//! Calls that are answered with a task of the protocol. Such a task is one of locum's own, under its uid: it outlives the
//! connection and the process, and can be asked for by whoever knows its name.

pub(super) mod handshake_era;

use locum::desk::ShownTask;
use locum::faces::{Face, FaceAnswer};
use locum::protocol::request::Cancel;
use locum::protocol::{Code, Refusal, SubagentAction};
use locum::task::Status;
use locum::{Desk, Uid};
use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, CreateTaskResult, DetailedTask, GetTaskResult, Task, TaskPayload,
    TaskStatus, UpdateTaskParams,
};
use serde_json::{Value, json};

use super::asking::Clients;
use super::server::Place;
use super::tools;

/// How often a client should look, in milliseconds: answers of models take seconds.
const POLL_MS: u64 = 1000;

/// Whether a call may be answered with a task: only where a client would wait for one agent.
pub(super) fn may_be_task(face: Face, request: &CallToolRequestParams) -> bool {
    let says = |name: &str| request.arguments.as_ref().and_then(|arguments| arguments.get(name));
    let is_run = request.name == "subagent" && says("action").and_then(Value::as_str) == Some("run");
    face == Face::Native && is_run && says("background").is_none()
}

/// What became of a call that asked for a task.
pub(super) enum Started {
    Task(Box<ShownTask>),
    /// There is none, and this is why.
    Refused(Box<CallToolResult>),
}

/// Starts what a call asks for, and does not wait for it.
pub(super) async fn start(place: &Place, request: CallToolRequestParams) -> Result<Started, ErrorData> {
    let mut input = Value::Object(request.arguments.unwrap_or_default());
    input["background"] = json!(true);
    let answer = place.face.handle(&place.desk, &request.name, input).await;
    let id = answer.structured.as_ref().and_then(|answer| answer["task_ids"][0].as_str()).map(str::to_owned);
    match id {
        Some(id) => Ok(Started::Task(Box::new(place.desk.task(&id).await.map_err(failed)?))),
        None => Ok(Started::Refused(Box::new(tools::result(answer)))),
    }
}

/// The answer that there is a task.
pub(super) async fn created(desk: &Desk, task: &ShownTask) -> Result<CreateTaskResult, ErrorData> {
    Ok(CreateTaskResult::new(shown(desk, task).await?))
}

/// How a task stands, with its result once it has one, and with what a person has to say first.
pub(super) async fn get(desk: &Desk, name: &str, clients: &Clients) -> Result<GetTaskResult, ErrorData> {
    let task = find(desk, name).await?;
    let input_requests = clients.questions(&task.session, task.status.task_id);
    let payload = match status_of(&task) {
        TaskStatus::Completed => match serde_json::to_value(result(desk, &task).await?) {
            Ok(Value::Object(result)) => TaskPayload::Completed { result },
            Ok(_) | Err(_) => return Err(ErrorData::internal_error("the result cannot be written", None)),
        },
        TaskStatus::Cancelled => TaskPayload::Cancelled,
        _ if !input_requests.is_empty() => TaskPayload::InputRequired { input_requests },
        _ => TaskPayload::Working,
    };
    Ok(GetTaskResult::new(DetailedTask::new(shown(desk, &task).await?, payload)))
}

/// Brings what a person said to the questions of a task.
pub(super) async fn update(desk: &Desk, request: &UpdateTaskParams, clients: &Clients) -> Result<(), ErrorData> {
    let task = find(desk, &request.task_id).await?;
    clients.bring(&task.session, &request.input_responses);
    Ok(())
}

/// Ends a task.
pub(super) async fn cancel(desk: &Desk, name: &str) -> Result<ShownTask, ErrorData> {
    let task = find(desk, name).await?;
    let cancel = Cancel { task_id: task.status.task_id.to_string() };
    desk.in_session(task.session).handle(SubagentAction::Cancel(cancel)).await.map_err(failed)?;
    find(desk, name).await
}

/// The task that a name stands for. Only uids leave a session.
async fn find(desk: &Desk, name: &str) -> Result<ShownTask, ErrorData> {
    let uid = Uid::parse(name).map_err(|_| ErrorData::invalid_params("there is no such task", None))?;
    desk.task(uid.as_str()).await.map_err(failed)
}

/// What the call would have been answered if it had waited.
async fn result(desk: &Desk, task: &ShownTask) -> Result<CallToolResult, ErrorData> {
    let desk = desk.in_session(task.session.clone());
    Ok(tools::result(FaceAnswer::native(&desk.outcome_of(&task.status.task_id.to_string()).await)))
}

fn status_of(task: &ShownTask) -> TaskStatus {
    match task.status.status {
        Status::Queued | Status::Waiting | Status::Running => TaskStatus::Working,
        // That an agent failed is an answer, too.
        Status::Completed | Status::Failed => TaskStatus::Completed,
        Status::Cancelled => TaskStatus::Cancelled,
    }
}

async fn shown(desk: &Desk, task: &ShownTask) -> Result<Task, ErrorData> {
    let last = desk.records_of(&task.uid, task.seq.saturating_sub(1), 1).await.map_err(failed)?;
    let created = task.status.created_at.to_string();
    let updated = last.first().map_or_else(|| created.clone(), |record| record.at.to_string());
    let about = task.status.activity.clone().or_else(|| task.status.error.clone());
    let message = format!("@{} {} {}", task.status.agent, task.status.task_id, task.status.status.as_str());
    let message = about.map_or(message.clone(), |about| format!("{message}: {about}"));
    Ok(Task::new(task.uid.to_string(), status_of(task), created, updated)
        .with_status_message(message)
        .with_poll_interval_ms(POLL_MS))
}

fn failed(refusal: Refusal) -> ErrorData {
    match refusal.code {
        Code::Internal => ErrorData::internal_error(refusal.message, None),
        _ => ErrorData::invalid_params(refusal.message, None),
    }
}
