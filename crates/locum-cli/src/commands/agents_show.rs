//! `locum agents show`: everything that a task of an agent would have, and where each value comes from.

use locum::agent::hidden::escape;
use locum::{ListedAgent, ShownAgent, ShownValue};
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use crate::output::{Exit, Output};

pub(super) fn show(shown: &ShownAgent, output: Output) -> Exit {
    if output.is_json() {
        output.json(shown);
        return Exit::Done;
    }
    // What is hidden in a file must not be hidden from whoever looks at it before trusting it.
    output.answer(&escape(&page(shown, output.width())));
    output.answer(&format!("\n{}", escape(&shown.prompt)));
    Exit::Done
}

fn page(shown: &ShownAgent, width: Option<usize>) -> String {
    let line = &shown.agent.line;
    let mut page = format!("{}: {}\n\n", line.name, line.description);
    let mut rows = vec![("source", source(&shown.agent), String::new())];
    rows.extend(shown.values.iter().map(|value| (value.field, is(value), origin(value))));
    rows.extend(shown.others.iter().map(|other| ("not asked", source(other), String::new())));
    let column = rows.iter().map(|(name, _, _)| name.width()).max().unwrap_or(0) + 2;
    for (name, value, origin) in rows {
        let first = format!("{name:<column$}{value}");
        let fits = width.is_none_or(|width| first.width() + 2 + origin.width() <= width);
        page.push_str(&first);
        match (origin.is_empty(), fits) {
            (true, _) => {}
            (false, true) => page.push_str(&format!("  {origin}")),
            (false, false) => page.push_str(&format!("\n{}{origin}", " ".repeat(column))),
        }
        page.push('\n');
    }
    page
}

fn source(agent: &ListedAgent) -> String {
    let version = agent.line.version.map(|version| format!(", version {version}")).unwrap_or_default();
    let mark = agent.mark.map(|mark| format!(", {}", mark.as_str())).unwrap_or_default();
    let path = agent.path.as_ref().map(|path| format!(" {}", path.display())).unwrap_or_default();
    format!("{}{version}{mark}{path}", agent.line.source)
}

/// What a task has; where that is nothing, what was asked for in vain.
fn is(shown: &ShownValue) -> String {
    match (&shown.value.effective, &shown.value.requested) {
        (Some(value), _) => plain(value),
        (None, Some(asked)) => format!("{} (no effect)", plain(asked)),
        (None, None) => "none".to_owned(),
    }
}

/// Who said so and where, and why it is not what was asked for.
fn origin(shown: &ShownValue) -> String {
    let from = match (&shown.file, shown.line) {
        (Some(file), Some(line)) => format!("{}:{line}", file.display()),
        _ => shown.value.from.clone(),
    };
    let base = shown.extends.as_ref().map(|base| format!(", extends {base}")).unwrap_or_default();
    let why = shown.value.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    format!("[{from}{base}{why}]")
}

/// A value as a person writes it.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}
