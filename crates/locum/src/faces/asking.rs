//! What faces ask the desk: the requests that all of them make, under the terms of each.

use locum_core::ids::TaskId;
use locum_core::protocol::request::{ListAgents, Run};
use locum_core::protocol::response::{AgentLine, Collected};
use locum_core::protocol::{FaceDefaults, Refusal, Request, Response, SpawnEntry, SubagentAction, ToolRequest};

use crate::desk::Desk;

/// Asks the desk under the terms of a face.
pub(super) async fn ask(desk: &Desk, action: SubagentAction, face: FaceDefaults) -> Result<Response, Refusal> {
    desk.handle(Request { tool: ToolRequest::Subagent(action), face }).await
}

/// Runs a task and waits for it. Where all places are taken it waits for one: these callers know no such limit.
pub(super) async fn run(desk: &Desk, entry: SpawnEntry, face: FaceDefaults) -> Result<Collected, Refusal> {
    match ask(desk, run_action(entry, false), face).await? {
        Response::Collected(collected) => Ok(*collected),
        other => Err(unexpected(&other)),
    }
}

/// Starts a task in the background.
pub(super) async fn start(desk: &Desk, entry: SpawnEntry, face: FaceDefaults) -> Result<TaskId, Refusal> {
    let response = ask(desk, run_action(entry, true), face).await?;
    match &response {
        Response::Background(ids) => ids.task_ids.first().copied().ok_or_else(|| unexpected(&response)),
        other => Err(unexpected(other)),
    }
}

fn run_action(entry: SpawnEntry, background: bool) -> SubagentAction {
    SubagentAction::Run(Run { entry: SpawnEntry { queue: Some(true), ..entry }, background: Some(background) })
}

/// The agents that can be asked through a face.
pub(super) async fn agents(desk: &Desk, face: FaceDefaults) -> Result<Vec<AgentLine>, Refusal> {
    match ask(desk, SubagentAction::ListAgents(ListAgents {}), face).await? {
        Response::Agents(agents) => Ok(agents.agents),
        other => Err(unexpected(&other)),
    }
}

/// An answer that belongs to another request.
pub(super) fn unexpected(response: &Response) -> Refusal {
    Refusal::internal(format!("an unexpected answer: {response:?}"))
}

/// A refusal in one sentence or two.
pub(super) fn words(refusal: &Refusal) -> String {
    match &refusal.hint {
        Some(hint) => format!("{} ({hint})", refusal.message),
        None => refusal.message.clone(),
    }
}
