//! The tools as clients list them, with what hosts like to know before they let a model call one, and their answers.

use std::sync::Arc;

use locum::agent::Roster;
use locum::faces::{Face, FaceAnswer};
use locum::protocol::schema::ToolDefinition;
use rmcp::model::{CallToolResult, ContentBlock, Tool, ToolAnnotations};
use serde_json::{Map, Value};

use super::resources;

/// The tools of a face.
pub(super) fn list(face: Face, roster: &Roster) -> Vec<Tool> {
    face.tools(roster).into_iter().map(|definition| tool(face, definition)).collect()
}

fn tool(face: Face, definition: ToolDefinition) -> Tool {
    let output = output_schema(face, &definition.name);
    let annotations = annotations(&definition.name);
    let schema = match definition.input_schema {
        Value::Object(schema) => schema,
        _ => Map::new(),
    };
    let mut tool = Tool::new(definition.name, definition.description, Arc::new(schema));
    tool.annotations = Some(annotations);
    tool.output_schema = output.map(Arc::new);
    tool
}

/// What the answers of a tool may hold. Which fields are there depends on the action, so none is required; a refusal has
/// `error`, `message` and `hint`.
fn output_schema(face: Face, name: &str) -> Option<Map<String, Value>> {
    let text = match (face, name) {
        (Face::Native, "subagent") => include_str!("tools/subagent.json"),
        (Face::Native, "shared_context") => include_str!("tools/shared_context.json"),
        (Face::Native, "manage_tasks") => include_str!("tools/manage_tasks.json"),
        // Those of other programs answer with text.
        _ => return None,
    };
    serde_json::from_str(text).ok()
}

/// What a tool does to the world, as far as its name tells. The same name means the same in every face.
fn annotations(name: &str) -> ToolAnnotations {
    let hints = ToolAnnotations::new();
    match name {
        "subagent_status" | "spawn_status" => hints.read_only(true).open_world(false),
        // A value is replaced, a board cleared; both are kept and can be brought back.
        "shared_context" | "manage_tasks" => hints.read_only(false).destructive(false).open_world(false),
        // An agent may do whatever it was given tools for.
        _ => hints.read_only(false).destructive(true).open_world(true),
    }
}

/// An answer as text for a model, with what a program reads as structured content, and links to what was cut off. A
/// failure is an answer too: the model must see it.
pub(super) fn result(answer: FaceAnswer) -> CallToolResult {
    let mut content = vec![ContentBlock::text(answer.text)];
    let cut = answer.structured.iter().flat_map(cut_results);
    content.extend(cut.map(|task_id| ContentBlock::resource_link(resources::whole_result(task_id))));
    let mut result = if answer.is_error { CallToolResult::error(content) } else { CallToolResult::success(content) };
    result.structured_content = answer.structured;
    result
}

/// The tasks of an answer whose results are not whole.
fn cut_results(answer: &Value) -> Vec<&str> {
    let many = answer["results"].as_array().into_iter().flatten();
    let cut = many.chain([answer]).filter(|result| result["truncated"] == true);
    cut.filter_map(|result| result["task_id"].as_str()).collect()
}
