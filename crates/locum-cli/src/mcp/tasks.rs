//! Calls that are answered with a task of the protocol. Such a task is one of locum's own, under its uid, or several that
//! were asked for together, under that of the first: it outlives the connection and the process, and can be asked for
//! by whoever knows its name.

pub(super) mod handshake_era;

use futures_util::future::join_all;
use locum::desk::{ShownErrand, ShownTask};
use locum::faces::{Face, FaceAnswer};
use locum::protocol::request::Cancel;
use locum::protocol::{Code, Refusal, SubagentAction};
use locum::task::Status;
use locum::{Desk, Uid};
use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, CreateTaskResult, DetailedTask, GetTaskResult, InputRequests, Task,
    TaskPayload, TaskStatus, UpdateTaskParams,
};
use serde_json::{Value, json};

use super::asking::Clients;
use super::server::Place;
use super::{repeat, tools};

/// How often a client should look, in milliseconds: answers of models take seconds.
const POLL_MS: u64 = 1000;

/// Whether a call may be answered with a task: where a client would wait for agents.
pub(super) fn may_be_task(face: Face, request: &CallToolRequestParams) -> bool {
    let says = |name: &str| request.arguments.as_ref().and_then(|arguments| arguments.get(name));
    let waits = says("action").and_then(Value::as_str).is_some_and(|action| repeat::WAITING.contains(&action));
    face == Face::Native && request.name == "subagent" && waits && says("background").is_none()
}

/// What became of a call that asked for a task.
pub(super) enum Started {
    Task(Box<ShownErrand>),
    /// There is none, and this is why.
    Refused(Box<CallToolResult>),
}

/// Starts what a call asks for, and does not wait for it.
pub(super) async fn start(place: &Place, request: CallToolRequestParams) -> Result<Started, ErrorData> {
    let mut input = Value::Object(request.arguments.unwrap_or_default());
    input["background"] = json!(true);
    let answer = place.face.handle(&place.desk.keeping_errands(), &request.name, input).await;
    let ids = answer.structured.as_ref().map(|answer| &answer["task_ids"]).and_then(Value::as_array);
    let ids: Vec<String> = ids.into_iter().flatten().filter_map(|id| id.as_str().map(str::to_owned)).collect();
    // The first new one keeps the whole. Where all were started by other calls there is none, and they are named.
    for id in &ids {
        let errand = place.desk.errand_of(id).await.map_err(failed)?;
        if errand.tasks.iter().map(|task| task.status.task_id.to_string()).eq(ids.iter().cloned()) {
            return Ok(Started::Task(Box::new(errand)));
        }
    }
    Ok(Started::Refused(Box::new(tools::result(answer))))
}

/// The answer that there is a task.
pub(super) async fn created(desk: &Desk, errand: &ShownErrand) -> Result<CreateTaskResult, ErrorData> {
    Ok(CreateTaskResult::new(shown(desk, errand).await?))
}

/// How a task stands, with its result once it has one, and with what a person has to say first.
pub(super) async fn get(desk: &Desk, name: &str, clients: &Clients) -> Result<GetTaskResult, ErrorData> {
    let errand = find(desk, name).await?;
    let questions = errand.tasks.iter().flat_map(|task| clients.questions(&task.session, task.status.task_id));
    let input_requests: InputRequests = questions.collect();
    let payload = match status_of(&errand) {
        TaskStatus::Completed => match serde_json::to_value(result(desk, &errand).await?) {
            Ok(Value::Object(result)) => TaskPayload::Completed { result },
            Ok(_) | Err(_) => return Err(ErrorData::internal_error("the result cannot be written", None)),
        },
        TaskStatus::Cancelled => TaskPayload::Cancelled,
        _ if !input_requests.is_empty() => TaskPayload::InputRequired { input_requests },
        _ => TaskPayload::Working,
    };
    Ok(GetTaskResult::new(DetailedTask::new(shown(desk, &errand).await?, payload)))
}

/// Brings what a person said to the questions of a task.
pub(super) async fn update(desk: &Desk, request: &UpdateTaskParams, clients: &Clients) -> Result<(), ErrorData> {
    let errand = find(desk, &request.task_id).await?;
    clients.bring(&errand.first.session, &request.input_responses);
    Ok(())
}

/// Ends a task, with all that were asked for together.
pub(super) async fn cancel(desk: &Desk, name: &str) -> Result<ShownErrand, ErrorData> {
    let errand = find(desk, name).await?;
    let seat = desk.in_session(errand.first.session.clone());
    let is_open = |task: &&ShownTask| !task.status.status.is_final();
    let open = errand.tasks.iter().filter(is_open).map(|task| task.status.task_id.to_string());
    // The last first: what waits for another is not started by its end.
    let cancels = open.rev().map(|task_id| seat.handle(SubagentAction::Cancel(Cancel { task_id })));
    for cancelled in join_all(cancels).await {
        match cancelled {
            // One that was taken in the meantime has ended.
            Err(refusal) if refusal.code != Code::TaskNotFound => return Err(failed(refusal)),
            Ok(_) | Err(_) => {}
        }
    }
    find(desk, name).await
}

/// What a name stands for. Only uids leave a session.
async fn find(desk: &Desk, name: &str) -> Result<ShownErrand, ErrorData> {
    let uid = Uid::parse(name).map_err(|_| ErrorData::invalid_params("there is no such task", None))?;
    desk.errand_of(uid.as_str()).await.map_err(failed)
}

/// What the call would have been answered if it had waited.
async fn result(desk: &Desk, errand: &ShownErrand) -> Result<CallToolResult, ErrorData> {
    let desk = desk.in_session(errand.first.session.clone());
    Ok(tools::result(FaceAnswer::native(&desk.outcome_of(&errand.first.status.task_id.to_string()).await)))
}

fn status_of(errand: &ShownErrand) -> TaskStatus {
    match errand.status {
        Status::Queued | Status::Waiting | Status::Running => TaskStatus::Working,
        // That an agent failed is an answer, too.
        Status::Completed | Status::Failed => TaskStatus::Completed,
        Status::Cancelled => TaskStatus::Cancelled,
    }
}

async fn shown(desk: &Desk, errand: &ShownErrand) -> Result<Task, ErrorData> {
    let first = &errand.first;
    let last = desk.records_of(&first.uid, first.seq.saturating_sub(1), 1).await.map_err(failed)?;
    let created = first.status.created_at;
    let ends = errand.tasks.iter().filter_map(|task| task.status.completed_at);
    let updated = ends.chain(last.first().map(|record| record.at)).max().unwrap_or(created);
    Ok(Task::new(first.uid.to_string(), status_of(errand), created.to_string(), updated.to_string())
        .with_status_message(message(errand))
        .with_poll_interval_ms(POLL_MS))
}

/// What is said about how it stands.
fn message(errand: &ShownErrand) -> String {
    let [task] = errand.tasks.as_slice() else {
        let ended = errand.tasks.iter().filter(|task| task.status.status.is_final()).count();
        return format!("{ended} of {} tasks have ended", errand.tasks.len());
    };
    let about = task.status.activity.clone().or_else(|| task.status.error.clone());
    let message = format!("@{} {} {}", task.status.agent, task.status.task_id, task.status.status.as_str());
    about.map_or(message.clone(), |about| format!("{message}: {about}"))
}

fn failed(refusal: Refusal) -> ErrorData {
    match refusal.code {
        Code::Internal => ErrorData::internal_error(refusal.message, None),
        _ => ErrorData::invalid_params(refusal.message, None),
    }
}
