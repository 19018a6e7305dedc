//! Picoclaw's tools: `subagent` waits for its answer, `spawn` does not, `spawn_status` tells how it goes.

use locum_core::agent::Roster;
use locum_core::ids::TaskId;
use locum_core::limits;
use locum_core::neutral::neutralise;
use locum_core::protocol::face::PICOCLAW_AGENT;
use locum_core::protocol::request::Status as StatusRequest;
use locum_core::protocol::response::{Collected, TaskStatus};
use locum_core::protocol::schema::ToolDefinition;
use locum_core::protocol::{Code, FaceDefaults, Refusal, Response, SpawnEntry, SubagentAction};
use locum_core::task::Status;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;
use serde_json::Value;

use super::answer::line;
use super::cut::first_chars;
use super::transcript::Transcript;
use super::{FaceAnswer, asking};
use crate::desk::Desk;
use crate::tools::input;

/// The names of the tools.
const SUBAGENT: &str = "subagent";
const SPAWN: &str = "spawn";
const STATUS: &str = "spawn_status";

/// What a task is called that nobody gave a name.
const UNNAMED: &str = "(unnamed)";

/// What is said where delegation is switched off.
const NOT_CONFIGURED: &str = "Subagent manager not configured";

/// The input of `subagent`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SubagentInput {
    /// What the subagent should do, with everything that it needs to know
    task: String,
    /// Short name of the task
    label: Option<String>,
}

/// The input of `spawn`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SpawnInput {
    /// What the subagent should do, with everything that it needs to know
    task: String,
    /// Short name of the task
    label: Option<String>,
    /// The agent to ask, in the place of the common one
    agent_id: Option<String>,
}

/// The input of `spawn_status`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StatusInput {
    /// Id from spawn; all of them if left out
    task_id: Option<String>,
}

/// An answer under picoclaw's names.
#[derive(Debug, Serialize)]
struct ToolResult {
    #[serde(rename = "ForLLM")]
    for_model: String,
    #[serde(rename = "ForUser")]
    for_user: String,
    #[serde(rename = "Silent")]
    silent: bool,
    #[serde(rename = "IsError")]
    is_error: bool,
    #[serde(rename = "Async")]
    asynchronous: bool,
    #[serde(rename = "Err", skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

pub(super) fn tools(_roster: &Roster) -> Vec<ToolDefinition> {
    vec![
        input::definition::<SubagentInput>(SUBAGENT, include_str!("picoclaw/subagent.md")),
        input::definition::<SpawnInput>(SPAWN, include_str!("picoclaw/spawn.md")),
        input::definition::<StatusInput>(STATUS, include_str!("picoclaw/spawn_status.md")),
    ]
}

pub(super) async fn handle(desk: &Desk, tool: &str, input: Value) -> Option<FaceAnswer> {
    let result = match tool {
        SUBAGENT => subagent(desk, input).await,
        SPAWN => spawn(desk, input).await,
        STATUS => status(desk, input).await,
        _ => return None,
    };
    Some(result.unwrap_or_else(|failed| *failed).answer())
}

/// An answer, or a failure, which is one too.
type Answered = Result<ToolResult, Box<ToolResult>>;

async fn subagent(desk: &Desk, input: Value) -> Answered {
    let SubagentInput { task, label } = input::parse(with_task(input)?).map_err(|output| invalid(&output.text))?;
    let entry = entry_of(PICOCLAW_AGENT.to_owned(), task, label.as_deref());
    let collected = asking::run(desk, entry, FaceDefaults::picoclaw()).await.map_err(|refusal| failed(&refusal))?;
    if collected.status != Status::Completed {
        return Err(unfinished(&collected));
    }
    let result = collected.result.unwrap_or_default();
    let for_model = format!(
        "Subagent task completed:\nLabel: {}\nIterations: {}\nResult: {result}",
        label.as_deref().unwrap_or(UNNAMED),
        collected.turns_used
    );
    Ok(ToolResult::good(for_model, &result))
}

async fn spawn(desk: &Desk, input: Value) -> Answered {
    let SpawnInput { task, label, agent_id } =
        input::parse(with_task(input)?).map_err(|output| invalid(&output.text))?;
    let agent = agent_id.unwrap_or_else(|| PICOCLAW_AGENT.to_owned());
    let shown = first_chars(&task, limits::LABEL_CHARS_MAX).to_owned();
    let entry = entry_of(agent, task, label.as_deref());
    let id = asking::start(desk, entry, FaceDefaults::picoclaw()).await.map_err(|refusal| failed(&refusal))?;
    let text = format!("Spawned subagent {id} '{}' for task: {shown}", label.as_deref().unwrap_or(UNNAMED));
    Ok(ToolResult { asynchronous: true, ..ToolResult::good(text.clone(), &text) })
}

async fn status(desk: &Desk, input: Value) -> Answered {
    let StatusInput { task_id } = input::parse(input).map_err(|output| invalid(&output.text))?;
    let request = SubagentAction::Status(StatusRequest { task_id: task_id.clone() });
    let tasks = match asking::ask(desk, request, FaceDefaults::picoclaw()).await {
        Ok(Response::Status(status)) => vec![*status],
        Ok(Response::Tasks(tasks)) => tasks.tasks,
        Ok(other) => return Err(failed(&asking::unexpected(&other))),
        Err(refusal) if refusal.code == Code::TaskNotFound => {
            let id = task_id.unwrap_or_default();
            return Err(invalid(&format!("No subagent found with task ID: {}", first_chars(&id, 80))));
        }
        Err(refusal) => return Err(failed(&refusal)),
    };
    let mut lines = vec![format!("Subagent status report ({} total):", tasks.len())];
    for task in &tasks {
        lines.push(status_line(task));
        if task_id.is_some() {
            lines.extend(result_of(desk, task.task_id).await);
        }
    }
    let text = lines.join("\n");
    Ok(ToolResult::good(text.clone(), &text))
}

fn status_line(task: &TaskStatus) -> String {
    let why = task.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
    let label = task.label.as_deref().unwrap_or(UNNAMED);
    format!("[{}] {} {label}, {} iterations{why}", task.task_id, task.status.as_str(), task.turns_used)
}

/// What a task said, once it has ended.
async fn result_of(desk: &Desk, task_id: TaskId) -> Option<String> {
    let outcome = Transcript::of(desk, task_id).await.ok()?.outcome?;
    let text = outcome.text();
    (!text.is_empty()).then(|| format!("Result: {}", neutralise(text)))
}

/// A missing task, and one that is none, has its own words.
fn with_task(input: Value) -> Result<Value, Box<ToolResult>> {
    let said = input.get("task").and_then(Value::as_str).is_some_and(|task| !task.trim().is_empty());
    if said { Ok(input) } else { Err(invalid("task is required")) }
}

fn entry_of(agent: String, task: String, label: Option<&str>) -> SpawnEntry {
    SpawnEntry { agent, task, label: label.map(str::to_owned), ..SpawnEntry::default() }
}

fn invalid(message: &str) -> Box<ToolResult> {
    ToolResult::bad(message, message.to_owned())
}

/// A request that led to no task.
fn failed(refusal: &Refusal) -> Box<ToolResult> {
    match refusal.code {
        Code::SubagentsDisabled => invalid(NOT_CONFIGURED),
        _ => {
            let why = asking::words(refusal);
            ToolResult::bad(&format!("Subagent execution failed: {why}"), why)
        }
    }
}

/// A task that ended without an answer, with what it had said.
fn unfinished(collected: &Collected) -> Box<ToolResult> {
    let why = collected.error.clone().unwrap_or_else(|| "cancelled".to_owned());
    let failed = format!("Subagent execution failed: {why}");
    let mut result = ToolResult::bad(&failed, why);
    if let Some(partial) = &collected.partial_result {
        result.for_model = format!("{failed}\n\nPartial result:\n{partial}");
    }
    result
}

impl ToolResult {
    fn good(for_model: String, for_user: &str) -> Self {
        let for_user = first_chars(for_user, limits::PICOCLAW_USER_CHARS_MAX).to_owned();
        Self { for_model, for_user, silent: false, is_error: false, asynchronous: false, error: None }
    }

    fn bad(message: &str, why: String) -> Box<Self> {
        let good = Self::good(message.to_owned(), message);
        Box::new(Self { is_error: true, error: Some(why), ..good })
    }

    fn answer(self) -> FaceAnswer {
        let (json, structured, is_error) = (line(&self), serde_json::to_value(&self).ok(), self.is_error);
        FaceAnswer { json, text: self.for_model, structured, is_error }
    }
}
