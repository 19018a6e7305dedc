//! Tasks as resources: all of them by pages, one, its log, its whole result, and what its worktree changes. They are
//! only looked at here; what changes them is a request.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use locum::desk::ShownTask;
use locum::protocol::Refusal;
use locum::protocol::request::ResultPage;
use locum::protocol::{Request, SubagentAction, ToolRequest};
use locum::{Desk, TaskId, Uid};
use serde_json::json;

use super::answer::{Refused, json};
use super::hall::Hall;
use super::parameters::{Named, Parameters};

/// Tasks of one page when the client does not say.
const TASKS_DEFAULT: usize = 50;
/// Tasks of one page at most.
const TASKS_MAX: usize = 500;
/// Entries of a log of one page when the client does not say: each may hold a whole reply.
const RECORDS_DEFAULT: usize = 50;
/// Entries of a log of one page at most.
const RECORDS_MAX: usize = 500;

/// The desk of the session that a task is in, and its id there. A uid says it all; an id needs a session.
pub(super) async fn find(hall: &Hall, name: &str, parameters: &mut Parameters) -> Result<(Desk, ShownTask), Refusal> {
    let session = parameters.session()?;
    if TaskId::parse(name).is_ok() {
        let desk = hall.named(session).await?;
        let task = desk.task(name).await?;
        return Ok((desk, task));
    }
    let task = hall.any().task(name).await?;
    let desk = hall.named(Some(task.session.clone())).await?;
    Ok((desk, task))
}

/// `GET /v1/tasks`
pub(super) async fn list(State(hall): State<Arc<Hall>>, mut parameters: Parameters) -> Result<Response, Refused> {
    let session = parameters.session()?;
    let before = parameters.take("before").map(|uid| Uid::parse(&uid)).transpose();
    let before = before.map_err(|error| Refusal::invalid(error.to_string()))?;
    let limit = parameters.limit(TASKS_DEFAULT, TASKS_MAX)?;
    parameters.finish()?;
    let tasks = hall.any().task_page(session, before, limit).await?;
    let next = if tasks.len() == limit { tasks.last().map(|task| task.uid.clone()) } else { None };
    let mut answer = json!({"tasks": tasks});
    if let Some(next) = next {
        answer["next"] = json!(next);
    }
    Ok(json(StatusCode::OK, &answer))
}

/// `GET /v1/tasks/{task}`
pub(super) async fn one(
    State(hall): State<Arc<Hall>>,
    Named(name): Named,
    mut parameters: Parameters,
) -> Result<Response, Refused> {
    let (_, task) = find(&hall, &name, &mut parameters).await?;
    parameters.finish()?;
    Ok(json(StatusCode::OK, &task))
}

/// `GET /v1/tasks/{task}/log`
pub(super) async fn log(
    State(hall): State<Arc<Hall>>,
    Named(name): Named,
    mut parameters: Parameters,
) -> Result<Response, Refused> {
    let (desk, task) = find(&hall, &name, &mut parameters).await?;
    let after = parameters.parsed("after", "a number")?.unwrap_or(0);
    let limit = parameters.limit(RECORDS_DEFAULT, RECORDS_MAX)?;
    parameters.finish()?;
    let records = desk.records_of(&task.uid, after, limit).await?;
    let next = records.last().map(|record| record.seq).filter(|last| *last < task.seq);
    let mut answer = json!({"records": records});
    if let Some(next) = next {
        answer["next"] = json!(next);
    }
    Ok(json(StatusCode::OK, &answer))
}

/// `GET /v1/tasks/{task}/result`
pub(super) async fn result(
    State(hall): State<Arc<Hall>>,
    Named(name): Named,
    mut parameters: Parameters,
) -> Result<Response, Refused> {
    let (desk, task) = find(&hall, &name, &mut parameters).await?;
    let (offset, limit) = (parameters.parsed("offset", "a number")?, parameters.parsed("limit", "a number")?);
    parameters.finish()?;
    let page = SubagentAction::Result(ResultPage { task_id: task.status.task_id.to_string(), offset, limit });
    let answer = desk.handle(Request::native(ToolRequest::Subagent(page))).await?;
    Ok(json(StatusCode::OK, &answer))
}

/// `GET /v1/tasks/{task}/diff`
pub(super) async fn diff(
    State(hall): State<Arc<Hall>>,
    Named(name): Named,
    mut parameters: Parameters,
) -> Result<Response, Refused> {
    let (desk, task) = find(&hall, &name, &mut parameters).await?;
    let against = parameters.take("against");
    parameters.finish()?;
    let comparison = desk.worktree_diff(task.uid.as_str(), against.as_deref()).await?;
    Ok(json(StatusCode::OK, &comparison))
}
