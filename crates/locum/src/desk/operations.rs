//! What the operation log says about a request and its answer.

use locum_core::protocol::{BoardAction, ContextAction, Refusal, Response, SubagentAction, ToolRequest};
use serde_json::Value;

use super::Desk;
use crate::context_changes::ContextChange;
use crate::operation_log::Operation;

impl Desk {
    /// One line, or one for each change of the shared context.
    pub(super) fn log_operation(
        &self,
        action: &str,
        payload: Option<Value>,
        answer: &Result<Response, Refusal>,
        changes: &[ContextChange],
    ) {
        let log = &self.engine.hands.log;
        if !log.is_open() {
            return;
        }
        let about = About::of(answer);
        let payload = payload.map(|request| serde_json::json!({"request": request, "answer": shown(answer)}));
        let mut operation = Operation {
            timestamp: self.engine.hands.clock.now(),
            session: self.session.id.as_str(),
            task: about.task,
            agent: about.agent.as_deref(),
            action,
            status: about.status,
            turns: about.turns,
            change: changes.first(),
            payload,
        };
        log.write(&operation);
        operation.payload = None;
        for change in changes.iter().skip(1) {
            operation.change = Some(change);
            log.write(&operation);
        }
    }
}

/// What an answer is about, for the operation log.
#[derive(Default)]
struct About {
    task: Option<String>,
    agent: Option<String>,
    status: &'static str,
    turns: Option<u32>,
}

impl About {
    fn of(answer: &Result<Response, Refusal>) -> Self {
        let about = |task: locum_core::ids::TaskId, agent: Option<&locum_core::ids::AgentName>, status, turns| Self {
            task: Some(task.to_string()),
            agent: agent.map(ToString::to_string),
            status,
            turns,
        };
        match answer {
            Err(refusal) => Self { status: refusal.code.as_str(), ..Self::default() },
            Ok(Response::Spawned(spawned)) => {
                about(spawned.task_id, Some(&spawned.agent), spawned.status.as_str(), None)
            }
            Ok(Response::Status(task)) => {
                about(task.task_id, Some(&task.agent), task.status.as_str(), Some(task.turns_used))
            }
            Ok(Response::Collected(task)) => {
                about(task.task_id, Some(&task.agent), task.status.as_str(), Some(task.turns_used))
            }
            Ok(Response::Cancelled(task)) => {
                about(task.task_id, None, task.status.as_str(), Some(task.receipt.usage.turns))
            }
            Ok(_) => Self { status: "ok", ..Self::default() },
        }
    }
}

fn shown(answer: &Result<Response, Refusal>) -> Value {
    match answer {
        Ok(response) => serde_json::json!(response),
        Err(refusal) => serde_json::json!(refusal),
    }
}

/// The name of what is asked for.
pub(super) fn action_name(tool: &ToolRequest) -> &'static str {
    match tool {
        ToolRequest::Subagent(action) => match action {
            SubagentAction::ListAgents(_) => "list_agents",
            SubagentAction::Define(_) => "define",
            SubagentAction::Spawn(_) => "spawn",
            SubagentAction::Status(_) => "status",
            SubagentAction::Wait(_) => "wait",
            SubagentAction::Collect(_) => "collect",
            SubagentAction::Result(_) => "result",
            SubagentAction::Cancel(_) => "cancel",
            SubagentAction::Run(_) => "run",
            SubagentAction::Parallel(_) => "parallel",
            SubagentAction::Chain(_) => "chain",
            SubagentAction::Race(_) => "race",
            SubagentAction::Map(_) => "map",
        },
        ToolRequest::SharedContext(action) => match action {
            ContextAction::ListKeys(_) => "shared_context.list_keys",
            ContextAction::Read(_) => "shared_context.read",
            ContextAction::Write(_) => "shared_context.write",
            ContextAction::Delete(_) => "shared_context.delete",
            ContextAction::ReadBatch(_) => "shared_context.read_batch",
            ContextAction::ReadHistory(_) => "shared_context.read_history",
            ContextAction::Snapshot(_) => "shared_context.snapshot",
            ContextAction::ListSnapshots(_) => "shared_context.list_snapshots",
            ContextAction::Restore(_) => "shared_context.restore",
        },
        ToolRequest::ManageTasks(action) => match action {
            BoardAction::Add(_) => "manage_tasks.add",
            BoardAction::List(_) => "manage_tasks.list",
            BoardAction::Get(_) => "manage_tasks.get",
            BoardAction::Update(_) => "manage_tasks.update",
            BoardAction::Claim(_) => "manage_tasks.claim",
            BoardAction::Complete(_) => "manage_tasks.complete",
            BoardAction::CompleteAll(_) => "manage_tasks.complete_all",
            BoardAction::Clear(_) => "manage_tasks.clear",
        },
    }
}
