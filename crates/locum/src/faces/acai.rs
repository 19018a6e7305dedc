//! Acai's tool `Agent`: one agent, one task, its answer as text.

use locum_core::agent::Roster;
use locum_core::limits;
use locum_core::protocol::response::Collected;
use locum_core::protocol::schema::ToolDefinition;
use locum_core::protocol::{Code, FaceDefaults, Refusal, SpawnEntry};
use locum_core::task::{Reason, Status};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::FaceAnswer;
use super::asking;
use super::transcript::Transcript;
use crate::desk::Desk;
use crate::tools::input;

/// The name of the tool.
const AGENT: &str = "Agent";

/// The input of `Agent`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AgentInput {
    /// The task for the agent to perform
    prompt: String,
    /// The agent type to use
    #[serde(rename = "type")]
    agent: String,
    /// Seconds, 1 to 3600, in the place of the agent's own limit
    timeout: Option<f64>,
}

pub(super) fn tools(roster: &Roster) -> Vec<ToolDefinition> {
    let listed: Vec<String> = roster.iter().map(|agent| format!("- {}: {}", agent.name, agent.description)).collect();
    let description = format!("{}\n\nAvailable agent types:\n{}", include_str!("acai.md").trim(), listed.join("\n"));
    vec![input::definition::<AgentInput>(AGENT, &description)]
}

pub(super) async fn handle(desk: &Desk, tool: &str, input: Value) -> Option<FaceAnswer> {
    if tool != AGENT {
        return None;
    }
    Some(match answer(desk, input).await {
        Ok(text) => FaceAnswer::content::<()>(text, None, false),
        Err(text) => FaceAnswer::content::<()>(text, None, true),
    })
}

/// The final text, or what went wrong.
async fn answer(desk: &Desk, input: Value) -> Result<String, String> {
    let AgentInput { prompt, agent, timeout } = input::parse(input).map_err(|output| output.text)?;
    let entry = SpawnEntry {
        agent: agent.clone(),
        task: prompt,
        timeout: timeout.map(seconds).transpose()?,
        ..SpawnEntry::default()
    };
    match asking::run(desk, entry, FaceDefaults::acai()).await {
        Ok(task) => text_of(desk, task).await,
        Err(refusal) => Err(explained(desk, &agent, &refusal).await),
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range was checked")]
fn seconds(timeout: f64) -> Result<u64, String> {
    let most = limits::ACAI_SECONDS_MAX;
    if !(1.0..=most as f64).contains(&timeout) {
        return Err(format!("timeout is in seconds and must be from 1 to {most}"));
    }
    Ok(timeout.ceil() as u64)
}

async fn text_of(desk: &Desk, task: Collected) -> Result<String, String> {
    if task.status == Status::Completed {
        return Ok(task.result.unwrap_or_default());
    }
    let why = match task.reason {
        Some(Reason::Timeout) => {
            let plan = Transcript::of(desk, task.task_id).await.map(|transcript| transcript.plan);
            let limit = plan.ok().and_then(|plan| plan.bounds.budget.timeout_s).unwrap_or_default();
            format!("SubAgent timed out after {limit} seconds")
        }
        _ => task.error.unwrap_or_else(|| "SubAgent was cancelled".to_owned()),
    };
    Err(match task.partial_result {
        Some(partial) => format!("{why}\n\nPartial output:\n{partial}"),
        None => why,
    })
}

/// A refusal in acai's words.
async fn explained(desk: &Desk, agent: &str, refusal: &Refusal) -> String {
    if refusal.code != Code::AgentNotFound {
        return asking::words(refusal);
    }
    let muster = desk.muster();
    let broken = muster.problems.iter().find(|problem| problem.file.file_stem().is_some_and(|stem| stem == agent));
    if let Some(problem) = broken {
        return format!("Invalid subagent file: {problem}");
    }
    let agents = asking::agents(desk, FaceDefaults::acai()).await.unwrap_or_default();
    let names: Vec<&str> = agents.iter().map(|agent| agent.name.as_str()).collect();
    let shown: String = agent.chars().take(80).collect();
    format!("Unknown subagent type: \"{shown}\". Available: {}", names.join(", "))
}
