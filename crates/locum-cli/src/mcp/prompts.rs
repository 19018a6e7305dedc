//! Prompts that a person picks in a host: how to delegate, and what a model must know again after its conversation was
//! shortened. They speak of locum's own tools, so the other faces have none.

use std::fmt::Write as _;

use locum::Desk;
use locum::faces::Face;
use locum::protocol::request::{ContextAction, ListKeys};
use locum::protocol::{Refusal, Response};
use rmcp::ErrorData;
use rmcp::model::{GetPromptRequestParams, GetPromptResult, Prompt, PromptArgument, PromptMessage, Role};
use serde_json::Value;

use super::server::Place;

const DELEGATE: &str = "delegate";
const ROSTER: &str = "roster";

/// Lines of one list: a model that was told to be brief needs no more.
const LINES_MAX: usize = 50;

/// The prompts of a face.
pub(super) fn list(face: Face) -> Vec<Prompt> {
    if face != Face::Native {
        return Vec::new();
    }
    let goal = PromptArgument::new("goal").with_description("What is to be reached").with_required(false);
    vec![
        Prompt::new(DELEGATE, Some("How to delegate well, and to whom"), Some(vec![goal])).with_title("Delegate"),
        Prompt::new(ROSTER, Some("Who can be asked and what is under way, for after a compaction"), None)
            .with_title("Roster"),
    ]
}

/// The text of a prompt.
pub(super) async fn get(place: &Place, request: GetPromptRequestParams) -> Result<GetPromptResult, ErrorData> {
    let prompts = list(place.face);
    let Some(prompt) = prompts.into_iter().find(|prompt| prompt.name == request.name) else {
        return Err(ErrorData::invalid_params("there is no such prompt", None));
    };
    let arguments = request.arguments.unwrap_or_default();
    let known: Vec<&str> = prompt.arguments.iter().flatten().map(|argument| argument.name.as_str()).collect();
    if let Some(unknown) = arguments.keys().find(|name| !known.contains(&name.as_str())) {
        let message = format!("the prompt has no argument `{}`", super::server::shortened(unknown));
        return Err(ErrorData::invalid_params(message, None));
    }
    let text = match request.name.as_str() {
        DELEGATE => delegate(&place.desk, arguments.get("goal").and_then(Value::as_str)).await,
        _ => roster(&place.desk).await,
    };
    let text = text.map_err(|refusal| ErrorData::internal_error(refusal.message, None))?;
    let result = GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]);
    Ok(result.with_description(prompt.description.unwrap_or_default()))
}

async fn delegate(desk: &Desk, goal: Option<&str>) -> Result<String, Refusal> {
    let mut text = desk.prompt().await?;
    if let Some(goal) = goal.filter(|goal| !goal.trim().is_empty()) {
        // Writing to a string does not fail.
        write!(text, "\nThe goal: {}\n\n{}", goal.trim(), include_str!("prompts/goal.md")).ok();
    }
    Ok(text)
}

async fn roster(desk: &Desk) -> Result<String, Refusal> {
    let mut text = format!("{}\n\n{}", include_str!("prompts/roster.md").trim_end(), desk.prompt().await?);
    let glance = desk.glance().await?;
    let tasks = glance.tasks.iter().map(|shown| {
        let task = &shown.status;
        let label = task.label.as_ref().map(|label| format!(": {label}")).unwrap_or_default();
        format!("{} @{} {}{label}", task.task_id, task.agent, task.status.as_str())
    });
    section(&mut text, "Tasks that were not collected", &tasks.collect::<Vec<_>>());
    let board = glance.board.iter().map(|task| format!("{} {}: {}", task.id, task.status.as_str(), task.subject));
    section(&mut text, "The board", &board.collect::<Vec<_>>());
    let Response::Keys(keys) = desk.handle(ContextAction::ListKeys(ListKeys {})).await? else {
        return Err(Refusal::internal("an unexpected list of keys"));
    };
    let keys = keys.keys.iter().map(|line| format!("{} (version {}, {})", line.key, line.version, line.written_by));
    section(&mut text, "Keys of the shared context", &keys.collect::<Vec<_>>());
    Ok(text)
}

fn section(text: &mut String, title: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    let more = lines.len().saturating_sub(LINES_MAX);
    // Writing to a string does not fail.
    write!(text, "\n{title}:\n").ok();
    for line in lines.iter().take(LINES_MAX) {
        writeln!(text, "- {line}").ok();
    }
    if more > 0 {
        writeln!(text, "- and {more} more").ok();
    }
}
