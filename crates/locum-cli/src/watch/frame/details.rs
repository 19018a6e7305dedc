//! The task that is selected: how it stands and what was said in it. In its place, what the keys do.

use ratatui::layout::Rect;
use ratatui::style::Style;

use super::super::layout::split_top;
use super::super::scene::{Focus, Scene};
use super::super::transcript::{Speaker, window};
use super::super::words;
use super::agents::{elapsed_ms, first};
use super::pen::{Cell, Pen};
use crate::output::counted;

const KEYS: [(&str, &str); 12] = [
    ("↑ ↓  j k", "select; in the pane that Tab chose"),
    ("Tab", "next pane: agents, board, what was said"),
    ("PgUp PgDn", "scroll what was said"),
    ("Home End", "first and last"),
    ("x", "stop the selected task"),
    ("c  Enter", "collect the selected task, if it has ended"),
    ("Esc", "stop all agents of the session; after a filter, first show all again"),
    ("/", "filter tasks; Esc ends it, Enter keeps it"),
    ("[ ]", "other sessions of the project"),
    ("mouse", "click to select, wheel to scroll"),
    ("q  Ctrl-C", "leave; tasks go on"),
    ("any key", "closes this help"),
];

/// Draws the task that is selected.
pub(super) fn details(scene: &Scene, area: Rect, pen: &mut Pen<'_>) {
    if area.is_empty() {
        return;
    }
    let is_focused = scene.view.focus == Focus::Details;
    let Some(task) = scene.selected() else {
        pen.title(first(area), "details", is_focused);
        return;
    };
    let about = scene.facts.about.get(&task.task_id).map(|about| format!(" · {about}")).unwrap_or_default();
    let title = format!("{} @{} · {}{about}", task.task_id, task.agent, task.status.as_str());
    pen.title(first(area), &words::fit(&title, usize::from(area.width).saturating_sub(4)), is_focused);
    let [_, below] = split_top(area, 1);
    let usage = &task.usage;
    let sent = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens;
    let facts = format!(
        "{} · turn {} · {} · {} + {} tokens · {}{}",
        words::elapsed(elapsed_ms(scene, task)),
        task.turns_used,
        counted(usage.tool_calls.into(), "tool call"),
        words::tokens(sent),
        words::tokens(usage.output_tokens),
        words::cost(usage.cost_usd),
        if scene.view.back > 0 { " · scrolled back, PgDn" } else { "" },
    );
    pen.row(first(below), &[Cell::left(&facts, usize::from(area.width), pen.palette.faint())]);
    let [_, text] = split_top(below, 1);
    let Some(said) = scene.facts.transcript.as_ref().filter(|said| said.task == task.task_id) else { return };
    let lines = window(said, usize::from(text.width), usize::from(text.height), scene.view.back);
    for ((speaker, line), place) in lines.iter().zip(text.rows()) {
        let style = match speaker {
            Speaker::Caller => pen.palette.strong(),
            Speaker::Agent => Style::new(),
            Speaker::Tool | Speaker::Event => pen.palette.faint(),
        };
        pen.row(place, &[Cell::left(line, usize::from(text.width), style)]);
    }
}

/// Draws what the keys do.
pub(super) fn help(area: Rect, pen: &mut Pen<'_>) {
    pen.title(first(area), "help", true);
    let [_, rows] = split_top(area, 1);
    for ((key, what), line) in KEYS.iter().zip(rows.rows()) {
        let (key_style, wide) = (pen.palette.strong(), usize::from(line.width));
        pen.row(line, &[Cell::left(key, 9, key_style), Cell::left(what, wide, Style::new())]);
    }
}
