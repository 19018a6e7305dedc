//! What tallow's callers read beside the text: the details of a call, with one result for each task.

use std::path::Path;

use locum_core::protocol::face::AgentScope;
use locum_core::protocol::response::{Collected, RefusedEntry};
use locum_core::task::{Reason, Status};
use serde::Serialize;
use serde_json::Value;

use super::super::transcript::Transcript;
use super::super::usage::{UsageLine, exit_code};
use super::input::Call;
use crate::desk::Desk;

/// Where a project keeps agents that tallow knows, the nearer one first.
const PROJECT_AGENTS: [&str; 2] = [".tallow/agents", ".claude/agents"];

/// The details of a call.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Details {
    pub(super) mode: &'static str,
    pub(super) agent_scope: &'static str,
    pub(super) project_agents_dir: Option<String>,
    pub(super) results: Vec<TaskResult>,
}

/// How one task went.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskResult {
    agent: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_source: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    requested_agent: Option<String>,
    task: String,
    exit_code: i32,
    messages: Vec<Value>,
    stderr: &'static str,
    usage: TaskUsage,
    model: Option<String>,
    stop_reason: &'static str,
    error_message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<usize>,
}

/// What a task used, with what tallow counts besides.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct TaskUsage {
    #[serde(flatten)]
    line: UsageLine,
    context_tokens: u64,
    denials: u32,
}

impl Details {
    /// The details of a call, before there are results.
    pub(super) fn new(call: &Call, root: &str) -> Self {
        Self::of(call.mode.as_str(), call.scope, root)
    }

    /// The details of a call that was not understood.
    pub(super) fn none(root: &str) -> Self {
        Self::of("single", AgentScope::Both, root)
    }

    fn of(mode: &'static str, scope: AgentScope, root: &str) -> Self {
        let directories = PROJECT_AGENTS.iter().map(|directory| Path::new(root).join(directory));
        let directory = directories.into_iter().find(|directory| directory.is_dir());
        Self {
            mode,
            agent_scope: scope.as_str(),
            project_agents_dir: directory.map(|directory| directory.to_string_lossy().into_owned()),
            results: Vec::new(),
        }
    }
}

impl TaskResult {
    /// A task that ran.
    pub(super) async fn of(desk: &Desk, collected: &Collected, task: &str, step: Option<usize>) -> Self {
        let transcript = Transcript::of(desk, collected.task_id).await.ok();
        let tail = desk.face_settings().retention.shown_messages();
        let receipt = &collected.receipt;
        let context_tokens = transcript.as_ref().map_or(0, |transcript| transcript.context_tokens);
        Self {
            agent: collected.agent.to_string(),
            agent_source: Some(source(&receipt.agent.source)),
            requested_agent: is_substituted(collected).then(|| receipt.agent.requested.clone()),
            task: task.to_owned(),
            exit_code: exit_code(collected),
            messages: transcript.map(|transcript| transcript.tail(tail)).unwrap_or_default(),
            stderr: "",
            usage: TaskUsage { line: (&collected.usage).into(), context_tokens, denials: collected.usage.denials },
            model: Some(receipt.model.effective.clone()),
            stop_reason: stop_reason(collected),
            error_message: collected.error.clone(),
            step,
        }
    }

    /// A task that was not started.
    pub(super) fn refused(refused: &RefusedEntry) -> Self {
        Self {
            agent: refused.agent.clone(),
            agent_source: None,
            requested_agent: None,
            task: refused.task.clone(),
            exit_code: 1,
            messages: Vec::new(),
            stderr: "",
            usage: TaskUsage::default(),
            model: None,
            stop_reason: "error",
            error_message: Some(refused.refusal.message.clone()),
            step: None,
        }
    }
}

/// Whether another agent than the one that was named has worked on it.
pub(super) fn is_substituted(collected: &Collected) -> bool {
    collected.receipt.agent.requested != collected.receipt.agent.resolved || collected.receipt.agent.how == "ephemeral"
}

/// Where an agent came from, in the words that tallow has for it.
pub(super) fn source(ours: &str) -> &'static str {
    match ours {
        "project" => "project",
        "bundled" => "bundled",
        "ephemeral" => "ephemeral",
        _ => "user",
    }
}

fn stop_reason(collected: &Collected) -> &'static str {
    match (collected.status, collected.reason) {
        (Status::Completed, _) => "stop",
        (Status::Cancelled, _) => "aborted",
        (_, Some(Reason::Stalled)) => "stalled",
        (_, Some(Reason::MaxTurns)) => "maxTurns",
        (_, Some(Reason::Cut)) => "length",
        _ => "error",
    }
}
