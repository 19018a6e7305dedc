//! Pi's tool `subagent`: one agent, one task, waited for. Whatever happens is an answer with a code, and what was said in
//! the task is in a file.

mod cleaning;
mod result;
mod session_file;

use locum_core::agent::Roster;
use locum_core::limits;
use locum_core::protocol::response::Collected;
use locum_core::protocol::schema::ToolDefinition;
use locum_core::protocol::{Code, FaceDefaults, Refusal, SpawnEntry};
use locum_core::task::{Reason, Status};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::cut::head;
use super::transcript::Transcript;
use super::usage::exit_code;
use super::{FaceAnswer, asking};
use crate::desk::Desk;
use crate::tools::input;
use cleaning::Cleaner;
use result::{Details, ErrorCode, ErrorLine, SingleResult};

/// The name of the tool.
const SUBAGENT: &str = "subagent";

/// The input of `subagent`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SubagentInput {
    /// The agent to ask
    #[schemars(length(min = 1))]
    agent: String,
    /// What it should do
    #[schemars(length(min = 1))]
    task: String,
}

pub(super) fn tools(roster: &Roster) -> Vec<ToolDefinition> {
    let listed: Vec<String> = roster.iter().map(|agent| format!("- {}: {}", agent.name, agent.description)).collect();
    let description = format!("{}\n\nAgents:\n{}", include_str!("pi/subagent.md").trim(), listed.join("\n"));
    vec![input::definition::<SubagentInput>(SUBAGENT, &description)]
}

pub(super) async fn handle(desk: &Desk, tool: &str, input: Value) -> Option<FaceAnswer> {
    if tool != SUBAGENT {
        return None;
    }
    let cleaner = Cleaner::new(desk.face_settings().home.as_deref());
    Some(match read(input) {
        Ok(entry) => run(desk, entry, &cleaner).await,
        Err(complaint) => refused(ErrorCode::InvalidInput, &complaint, &cleaner),
    })
}

fn read(input: Value) -> Result<SpawnEntry, String> {
    let SubagentInput { agent, task } = input::parse(input).map_err(|output| output.text)?;
    for (name, text) in [("agent", &agent), ("task", &task)] {
        if text.trim().is_empty() {
            return Err(format!("invalid input: `{name}` is empty"));
        }
    }
    Ok(SpawnEntry { agent, task, ..SpawnEntry::default() })
}

async fn run(desk: &Desk, entry: SpawnEntry, cleaner: &Cleaner) -> FaceAnswer {
    let (agent, task) = (entry.agent.clone(), entry.task.clone());
    match asking::run(desk, entry, FaceDefaults::pi()).await {
        Ok(collected) => answer(desk, &collected, &task, cleaner).await,
        Err(refusal) => {
            let (code, message) = explained(desk, &agent, &refusal).await;
            refused(code, &message, cleaner)
        }
    }
}

/// A call that led to no run.
fn refused(code: ErrorCode, message: &str, cleaner: &Cleaner) -> FaceAnswer {
    let message = cleaner.text(message);
    let text = format!("{}: {message}", code.as_str());
    Details { mode: "management", run_id: None, results: Vec::new(), error: Some(ErrorLine { code, message }) }
        .answer(text)
}

async fn explained(desk: &Desk, agent: &str, refusal: &Refusal) -> (ErrorCode, String) {
    let code = match refusal.code {
        Code::InvalidRequest | Code::TaskTooLarge | Code::InvalidAgentName => ErrorCode::InvalidInput,
        Code::SubagentsDisabled => ErrorCode::SubagentsDisabled,
        Code::AgentNotFound => ErrorCode::UnknownAgent,
        Code::DepthExceeded => ErrorCode::DepthExceeded,
        Code::NotTrusted => ErrorCode::SubagentDisabled,
        _ => ErrorCode::Failed,
    };
    if code != ErrorCode::UnknownAgent {
        return (code, asking::words(refusal));
    }
    let agents = asking::agents(desk, FaceDefaults::pi()).await.unwrap_or_default();
    let names: Vec<&str> = agents.iter().map(|agent| agent.name.as_str()).collect();
    let shown: String = agent.chars().take(80).collect();
    (code, format!("Unknown agent: \"{shown}\". Available agents: {}", names.join(", ")))
}

/// The answer of a task that ran.
async fn answer(desk: &Desk, collected: &Collected, task: &str, cleaner: &Cleaner) -> FaceAnswer {
    let transcript = Transcript::of(desk, collected.task_id).await.ok();
    let run_id = transcript.as_ref().map(|transcript| transcript.plan.uid.to_string());
    let session_file = match &transcript {
        Some(transcript) => session_file::write(desk, transcript).await,
        None => None,
    };
    let said = collected.result.as_deref().or(collected.partial_result.as_deref()).unwrap_or_default();
    let output = cleaner.text(said);
    let failure = failure(collected, cleaner);
    let result = SingleResult {
        agent: collected.agent.to_string(),
        task: cleaner.text(task),
        exit_code: exit_code(collected),
        usage: (&collected.usage).into(),
        error: failure.as_ref().map(|failure| failure.message.clone()),
        session_file: session_file.as_ref().map(|path| path.to_string_lossy().into_owned()),
        output: Some(output.clone()).filter(|output| !output.is_empty()),
        display_items: transcript.map(|transcript| result::display_items(&transcript, cleaner)).unwrap_or_default(),
    };
    let cut = head(&output, limits::FACE_RESULT_BYTES_MAX, limits::PI_RESULT_LINES_MAX);
    let shown = cut.map_or_else(
        || output.clone(),
        |head| format!("{head}\n[output truncated: details.results[0].output has all of it]"),
    );
    let text = match &failure {
        None => shown,
        Some(failure) => {
            let file = session_file.map(|path| cleaner.text(&path.to_string_lossy()));
            failed_text(failure, &result, &shown, file.as_deref())
        }
    };
    let truncated = || ErrorLine {
        code: ErrorCode::OutputTruncated,
        message: format!("the output has {} bytes; its head is shown", output.len()),
    };
    let error = failure.or_else(|| cut.map(|_| truncated()));
    Details { mode: "single", run_id, results: vec![result], error }.answer(text)
}

fn failed_text(failure: &ErrorLine, result: &SingleResult, shown: &str, file: Option<&str>) -> String {
    let mut text = format!("{} (exit code {}): {}", failure.code.as_str(), result.exit_code, failure.message);
    if !shown.is_empty() {
        text.push_str(&format!("\n\nPartial output:\n{shown}"));
    }
    if let Some(file) = file {
        text.push_str(&format!("\n\nSession file: {file}"));
    }
    text
}

fn failure(collected: &Collected, cleaner: &Cleaner) -> Option<ErrorLine> {
    if collected.status == Status::Completed {
        return None;
    }
    let error = cleaner.text(collected.error.as_deref().unwrap_or("the task was cancelled"));
    Some(match collected.reason {
        Some(Reason::Timeout) => ErrorLine { code: ErrorCode::Timeout, message: format!("hard time limit: {error}") },
        Some(Reason::Stalled) => ErrorLine { code: ErrorCode::Timeout, message: format!("idle time limit: {error}") },
        _ => ErrorLine { code: ErrorCode::Failed, message: error },
    })
}
