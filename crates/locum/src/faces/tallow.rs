//! Tallow's tools: `subagent` with its three modes, `subagent_status`, and `manage_tasks`.

mod board;
mod input;
mod result;
mod status;
mod words;

use locum_core::agent::Roster;
use locum_core::agent::tool_names::MANAGE_TASKS;
use locum_core::ids::{SessionId, TaskId};
use locum_core::limits;
use locum_core::protocol::request::{Collect, Many, Wait};
use locum_core::protocol::response::{Collected, Parallel, ParallelResult, TaskIds};
use locum_core::protocol::schema::ToolDefinition;
use locum_core::protocol::{FaceDefaults, Refusal, Response, SpawnEntry, SubagentAction};
use serde_json::Value;

use super::{FaceAnswer, asking};
use crate::desk::Desk;
use crate::tools::input as tool_input;
use input::{Call, Mode, StatusInput, SubagentInput};
use result::{Details, TaskResult};

/// The names of the tools.
const SUBAGENT: &str = "subagent";
const STATUS: &str = "subagent_status";

pub(super) fn tools(roster: &Roster) -> Vec<ToolDefinition> {
    let names: Vec<&str> = roster.iter().map(|agent| agent.name.as_str()).collect();
    let description =
        format!("{}\n\nAvailable agents: {}", include_str!("tallow/subagent.md").trim(), names.join(", "));
    vec![
        tool_input::definition::<SubagentInput>(SUBAGENT, &description),
        tool_input::definition::<StatusInput>(STATUS, include_str!("tallow/subagent_status.md")),
        board::tool(),
    ]
}

pub(super) async fn handle(desk: &Desk, tool: &str, input: Value) -> Option<FaceAnswer> {
    match tool {
        SUBAGENT => Some(subagent(desk, input).await),
        STATUS => Some(status::answer(desk, input).await),
        MANAGE_TASKS => Some(board::answer(desk, input).await),
        _ => None,
    }
}

/// The terms of one call.
struct Terms {
    face: FaceDefaults,
    /// The session that the call names.
    session: Option<String>,
    details: Details,
}

async fn subagent(desk: &Desk, input: Value) -> FaceAnswer {
    let call = match Call::read(input, &desk.session().project) {
        Ok(call) => call,
        Err(complaint) => return invalid(desk, &complaint).await,
    };
    let desk = match call.session.as_deref().map(SessionId::parse) {
        None => desk.clone(),
        Some(Ok(id)) => desk.in_session(id),
        Some(Err(error)) => return invalid(desk, &format!("Invalid parameters. `session`: {error}")).await,
    };
    let face = FaceDefaults { scope: call.scope, ..FaceDefaults::tallow() };
    let terms = Terms { details: Details::new(&call, &desk.session().project), face, session: call.session };
    let failed_first = terms.details.clone();
    let answered = match (call.mode, call.background) {
        (Mode::Single(entry), false) => single(&desk, *entry, terms).await,
        (Mode::Single(entry), true) => {
            let started = asking::start(&desk, *entry, terms.face).await;
            let ids = |id| TaskIds { task_ids: vec![id], refused: Vec::new() };
            started.map(|id| words::started(&ids(id), terms.session.as_deref(), &terms.details))
        }
        (Mode::Parallel(entries), background) => parallel(&desk, entries, background, terms).await,
        (Mode::Centipede(entries), _) => centipede(&desk, entries, terms).await,
    };
    answered.unwrap_or_else(|refusal| {
        let text = format!("Agent failed: {}", asking::words(&refusal));
        FaceAnswer::content(text, Some(&failed_first), true)
    })
}

/// What is said about a call that is none, with who could be asked.
async fn invalid(desk: &Desk, complaint: &str) -> FaceAnswer {
    let details = Details::none(&desk.session().project);
    let agents = asking::agents(desk, FaceDefaults::tallow()).await.unwrap_or_default();
    FaceAnswer::content(words::invalid(complaint, &agents), Some(&details), true)
}

async fn single(desk: &Desk, entry: SpawnEntry, terms: Terms) -> Result<FaceAnswer, Refusal> {
    let task = entry.task.clone();
    let collected = asking::run(desk, entry, terms.face).await?;
    let result = TaskResult::of(desk, &collected, &task, None).await;
    let details = Details { results: vec![result], ..terms.details };
    Ok(words::single(desk, &collected, &details))
}

async fn parallel(
    desk: &Desk,
    entries: Vec<SpawnEntry>,
    background: bool,
    terms: Terms,
) -> Result<FaceAnswer, Refusal> {
    let face = FaceDefaults { concurrency: Some(limits::TALLOW_CONCURRENCY), ..terms.face };
    let tasks: Vec<String> = entries.iter().map(|entry| entry.task.clone()).collect();
    let many = Many { tasks: entries, background: Some(background) };
    match asking::ask(desk, SubagentAction::Parallel(many), face).await? {
        Response::Background(ids) => Ok(words::started(&ids, terms.session.as_deref(), &terms.details)),
        Response::Parallel(answer) => {
            let results = results_of(desk, &answer, &tasks).await;
            let details = Details { results, ..terms.details };
            Ok(words::parallel(desk, &answer, &details))
        }
        other => Err(asking::unexpected(&other)),
    }
}

async fn results_of(desk: &Desk, answer: &Parallel, tasks: &[String]) -> Vec<TaskResult> {
    let mut results = Vec::with_capacity(tasks.len());
    for (result, task) in answer.results.iter().zip(tasks) {
        results.push(match result {
            ParallelResult::Collected(collected) => TaskResult::of(desk, collected, task, None).await,
            ParallelResult::Refused(refused) => TaskResult::refused(refused),
        });
    }
    results
}

/// A chain, with the result of every step that was reached.
async fn centipede(desk: &Desk, entries: Vec<SpawnEntry>, terms: Terms) -> Result<FaceAnswer, Refusal> {
    let tasks: Vec<String> = entries.iter().map(|entry| entry.task.clone()).collect();
    let many = Many { tasks: entries, background: Some(true) };
    let response = asking::ask(desk, SubagentAction::Chain(many), terms.face.clone()).await?;
    let Response::Background(TaskIds { task_ids, .. }) = response else {
        return Err(asking::unexpected(&response));
    };
    wait(desk, &task_ids, &terms.face).await?;
    let mut steps: Vec<Collected> = Vec::with_capacity(task_ids.len());
    let mut results = Vec::with_capacity(task_ids.len());
    for (place, (task_id, task)) in task_ids.iter().zip(&tasks).enumerate() {
        let collect = SubagentAction::Collect(Collect { task_id: task_id.to_string() });
        let step = match asking::ask(desk, collect, terms.face.clone()).await? {
            Response::Collected(step) => *step,
            other => return Err(asking::unexpected(&other)),
        };
        // What comes after a step that failed has only waited for it.
        if steps.iter().all(words::is_completed) {
            results.push(TaskResult::of(desk, &step, task, Some(place + 1)).await);
            steps.push(step);
        }
    }
    let details = Details { results, ..terms.details };
    Ok(words::centipede(desk, &steps, &details))
}

/// Waits until all of these have ended, however long that takes.
async fn wait(desk: &Desk, task_ids: &[TaskId], face: &FaceDefaults) -> Result<(), Refusal> {
    let ids: Vec<String> = task_ids.iter().map(ToString::to_string).collect();
    loop {
        let wait = Wait { task_ids: Some(ids.clone()), mode: None, timeout_ms: Some(limits::WAIT_MS_MAX) };
        match asking::ask(desk, SubagentAction::Wait(wait), face.clone()).await? {
            Response::Waited(waited) if waited.timed_out => {}
            Response::Waited(_) => return Ok(()),
            other => return Err(asking::unexpected(&other)),
        }
    }
}
