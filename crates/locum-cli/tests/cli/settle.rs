//! What differs from run to run, made the same: ids, times, durations and the place of the test.

use std::path::Path;

use serde_json::{Value, json};

/// The longest text that a transcript shows whole.
const SHOWN_CHARS: usize = 400;

/// The answer without what no test can know beforehand. What does not look as it should is left as it is, so that it
/// is found.
pub(crate) fn settle(mut value: Value, root: &Path) -> Value {
    walk(&mut value, &root.display().to_string());
    value
}

fn walk(value: &mut Value, root: &str) {
    match value {
        Value::String(text) => *text = text.replace(root, "ROOT"),
        Value::Array(items) => items.iter_mut().for_each(|item| walk(item, root)),
        Value::Object(fields) => {
            for (name, field) in fields {
                match name.as_str() {
                    "uid" if is_uid(field) => *field = json!("UID"),
                    "created_at" | "completed_at" | "written_at" | "taken_at" | "expires_at" | "archived_at"
                        if is_time(field) =>
                    {
                        *field = json!("TIME");
                    }
                    "duration_ms" | "pid" if field.is_u64() => *field = json!(0),
                    "started" if field.is_string() => *field = json!("START"),
                    _ => walk(field, root),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn is_uid(value: &Value) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    value.as_str().is_some_and(|text| text.len() == 26 && text.chars().all(allowed))
}

fn is_time(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.len() == "2026-01-01T00:00:00.000Z".len() && text.ends_with('Z'))
}

/// The same value with long texts shortened: their head, their length and their end.
pub(crate) fn shorten(value: &Value) -> Value {
    match value {
        Value::String(text) => match text.chars().count() {
            0..=SHOWN_CHARS => value.clone(),
            count => {
                let head: String = text.chars().take(10).collect();
                let end: String = text.chars().skip(count - 60).collect();
                json!(format!("{head}…{count} characters…{end}"))
            }
        },
        Value::Array(items) => items.iter().map(shorten).collect(),
        Value::Object(fields) => fields.iter().map(|(name, field)| (name.clone(), shorten(field))).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}
