//! What clients read beside the tools: agents, tasks with their transcripts and whole results, and the shared context,
//! under `locum://` addresses. Everything comes in pages that a model can afford.

mod address;
mod listing;
mod page;
mod transcript;

use locum::Desk;
use locum::desk::ShownTask;
use locum::faces::Face;
use locum::protocol::request::{ContextAction, ContextKey, ResultPage};
use locum::protocol::{Code, FaceDefaults, Refusal, Response, SubagentAction};
use rmcp::ErrorData;
use rmcp::model::{CallToolRequestParams, ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::{Value, json};

pub(super) use self::address::{Address, Spot};
pub(super) use self::listing::list;
use self::page::Page;
use super::repeat;

/// The addresses that can be made up, and what is there.
const TEMPLATES: [(&str, &str, &str); 5] = [
    ("locum://agents/{name}", "agent", "What an agent is for, what it has, and its instructions"),
    ("locum://tasks/{id}", "task", "How a task stands; by its id in this session or its uid"),
    ("locum://tasks/{id}/transcript{?after,offset}", "transcript", "What was said and done in a task, by pages"),
    ("locum://tasks/{id}/result{?offset}", "result", "The whole result of a task that has ended, by pages"),
    ("locum://context/{key}", "context", "A value of the shared context"),
];

/// The templates of all addresses.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    let template = |(address, name, what): (&str, &str, &str)| {
        let kind = if name == "task" { "application/json" } else { "text/plain" };
        ResourceTemplate::new(address, name).with_description(what).with_mime_type(kind)
    };
    TEMPLATES.into_iter().map(template).collect()
}

/// Whether there may be other resources after a call.
pub(super) fn are_added_by(face: Face, request: &CallToolRequestParams) -> bool {
    let action = request.arguments.as_ref().and_then(|arguments| arguments.get("action")).and_then(Value::as_str);
    match (face, &*request.name, action) {
        (Face::Native, "subagent", Some(action)) => {
            ["define", "spawn"].contains(&action) || repeat::WAITING.contains(&action)
        }
        (Face::Native, "shared_context", Some(action)) => ["write", "delete", "restore"].contains(&action),
        (Face::Native, _, _) => false,
        // Those of other programs start something, but for those that tell how it stands.
        (_, name, _) => !name.ends_with("_status"),
    }
}

/// Where the whole of a result is that was cut.
pub(super) fn whole_result(task_id: &str) -> Resource {
    Resource::new(Address::Result(task_id.to_owned()).to_string(), format!("{task_id} result"))
        .with_description("The whole result, by pages")
        .with_mime_type("text/plain")
}

/// Reads what is at an address.
pub(super) async fn read(desk: &Desk, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let missing = |message: String| ErrorData::resource_not_found(message, Some(json!({"uri": uri})));
    let spot: Spot = uri.parse().map_err(missing)?;
    let (page, kind) = match page_of(desk, &spot).await {
        Ok(page) => page,
        Err(Refusal { code: Code::Internal, message, .. }) => return Err(ErrorData::internal_error(message, None)),
        Err(refusal) => return Err(missing(refusal.message)),
    };
    let mut contents = vec![ResourceContents::text(page.text, uri).with_mime_type(kind)];
    if let Some(next) = page.next {
        let next = next.to_string();
        contents.push(ResourceContents::text(format!("[more at {next}]"), next));
    }
    Ok(ReadResourceResult::new(contents))
}

async fn page_of(desk: &Desk, spot: &Spot) -> Result<(Page, &'static str), Refusal> {
    const TEXT: &str = "text/plain";
    Ok(match &spot.address {
        Address::Agent(name) => (Page::of(&agent(desk, name).await?, spot), TEXT),
        Address::Task(name) => (Page::of(&standing(&desk.task(name).await?), spot), "application/json"),
        Address::Transcript(name) => {
            let task = desk.task(name).await?;
            (transcript::read(desk, &task, spot).await?, TEXT)
        }
        Address::Result(name) => (result(desk, name, spot).await?, TEXT),
        Address::Value(key) => {
            let action = ContextAction::Read(ContextKey { key: key.clone() });
            match desk.handle(action).await? {
                Response::Entry(entry) => (Page::of(&entry.value, spot), TEXT),
                other => return Err(Refusal::internal(format!("an unexpected entry: {other:?}"))),
            }
        }
    })
}

fn standing(task: &ShownTask) -> String {
    // A task has no keys that are not text.
    serde_json::to_string(task).unwrap_or_default()
}

async fn agent(desk: &Desk, name: &str) -> Result<String, Refusal> {
    let shown = desk.show_agent(name, &FaceDefaults::native()).await?;
    let line = shown.agent.line;
    let tools = if line.tools.is_empty() { "none".to_owned() } else { line.tools.join(", ") };
    Ok(format!(
        "name: {}\ndescription: {}\nmodel: {}\nmax_turns: {}\ntools: {tools}\nsource: {}\n\n{}",
        line.name, line.description, line.model, line.max_turns, line.source, shown.prompt
    ))
}

/// A page of a result, as the action `result` gives it.
async fn result(desk: &Desk, name: &str, spot: &Spot) -> Result<Page, Refusal> {
    let task = desk.task(name).await?;
    let page = ResultPage {
        task_id: task.status.task_id.to_string(),
        offset: Some(spot.offset),
        limit: Some(page::BYTES_MAX),
    };
    match desk.in_session(task.session).handle(SubagentAction::Result(page)).await? {
        Response::ResultPage(result) => {
            let (text, count) = page::head(&result.text);
            let next = spot.offset + count;
            Ok(Page { text: text.to_owned(), next: (next < result.total_chars).then(|| spot.at(next)) })
        }
        other => Err(Refusal::internal(format!("an unexpected result: {other:?}"))),
    }
}
