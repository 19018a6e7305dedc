//! `manage_tasks` as tallow spells it: the native board, with fields in camel case and a text to read.

use locum_core::agent::tool_names::MANAGE_TASKS;
use locum_core::protocol::schema::{self, ToolDefinition};
use serde_json::{Map, Value, json};

use super::super::{FaceAnswer, asking};
use crate::desk::Desk;

/// A field whose keys are the caller's own.
const METADATA: &str = "metadata";

pub(super) fn tool() -> ToolDefinition {
    let mut tool = schema::manage_tasks();
    if let Some(fields) = tool.input_schema.get_mut("properties") {
        *fields = renamed(std::mem::take(fields), &camel);
    }
    tool
}

pub(super) async fn answer(desk: &Desk, input: Value) -> FaceAnswer {
    match desk.call(MANAGE_TASKS, renamed(lists_from_text(input), &snake)).await {
        Ok(response) => {
            let details = renamed(json!(response), &camel);
            FaceAnswer::content(text(&details), Some(&details), false)
        }
        Err(refusal) => {
            let details = json!({"error": {"code": refusal.code, "message": refusal.message}});
            FaceAnswer::content(asking::words(&refusal), Some(&details), true)
        }
    }
}

/// Models write lists as texts now and then, and a task as its subject alone.
fn lists_from_text(mut input: Value) -> Value {
    for name in ["tasks", "blockedBy"] {
        let Some(field) = input.get_mut(name) else { continue };
        if let Some(list @ Value::Array(_)) = field.as_str().and_then(|text| serde_json::from_str(text).ok()) {
            *field = list;
        }
    }
    for task in input.get_mut("tasks").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Value::String(subject) = task {
            *task = json!({"subject": std::mem::take(subject)});
        }
    }
    input
}

/// The same value with other names for its fields.
fn renamed(value: Value, name_of: &dyn Fn(&str) -> String) -> Value {
    match value {
        Value::Object(fields) => {
            let rename = |(name, field): (String, Value)| {
                let field = if name == METADATA { field } else { renamed(field, name_of) };
                (name_of(&name), field)
            };
            Value::Object(fields.into_iter().map(rename).collect::<Map<_, _>>())
        }
        Value::Array(items) => items.into_iter().map(|item| renamed(item, name_of)).collect(),
        other => other,
    }
}

fn camel(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |mut name, word| {
        let mut letters = word.chars();
        name.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        name.push_str(letters.as_str());
        name
    })
}

fn snake(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 2);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

/// The tasks of an answer, one on a line; or how many it was about.
fn text(details: &Value) -> String {
    if let Some(count) = details["completed"].as_u64() {
        return format!("Completed {count} tasks");
    }
    if let Some(count) = details["archived"].as_u64() {
        return format!("Archived {count} tasks");
    }
    let listed = details["added"].as_array().or_else(|| details["tasks"].as_array());
    match listed {
        None => line(details),
        Some(tasks) if tasks.is_empty() => "No tasks.".to_owned(),
        Some(tasks) => tasks.iter().map(line).collect::<Vec<_>>().join("\n"),
    }
}

/// A task: what is being done shows in the place of what is to be done, and who does it beside it.
fn line(task: &Value) -> String {
    let word = |name: &str| task[name].as_str().unwrap_or_default();
    let status = word("status");
    let shown = match (status, task["activeForm"].as_str()) {
        ("in_progress", Some(active_form)) => active_form,
        _ => word("subject"),
    };
    let owner = task["owner"].as_str().map(|owner| format!(" (@{})", short(owner))).unwrap_or_default();
    let blockers: Vec<&str> = task["blockedBy"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let blocked = if blockers.is_empty() { String::new() } else { format!(", blocked by {}", blockers.join(", ")) };
    format!("{} [{status}] {shown}{owner}{blocked}", word("id"))
}

/// Who it is, without saying which of its tasks.
fn short(owner: &str) -> &str {
    match owner.split(':').collect::<Vec<_>>().as_slice() {
        ["subagent", agent, _] => agent,
        _ => owner,
    }
}
