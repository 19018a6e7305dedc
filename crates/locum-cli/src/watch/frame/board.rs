//! The task board: what there is to do, who has it, and whether they are at it.

use locum::ids::Identity;
use locum::protocol::response::{BoardStatus, BoardTask};
use locum::task::Status;
use ratatui::layout::Rect;
use ratatui::style::Style;
use unicode_width::UnicodeWidthStr;

use super::super::layout::board_window;
use super::super::scene::{Focus, Scene};
use super::super::words;
use super::SPINNER;
use super::agents::first;
use super::pen::{Cell, Pen};

/// Columns of an owner at most, with what surrounds it.
const OWNER_MAX: usize = 24;

/// Draws the board.
pub(super) fn board(scene: &Scene, area: Rect, pen: &mut Pen<'_>) {
    if area.is_empty() {
        return;
    }
    let tasks = &scene.facts.board;
    let done = tasks.iter().filter(|task| task.status == BoardStatus::Completed).count();
    let window = board_window(area, scene.view.board_at, tasks.len());
    let part = window.part_of(tasks.len()).map(|(from, to)| format!(" · {from}–{to} shown")).unwrap_or_default();
    let title = format!("board · {done} of {} done{part}", tasks.len());
    pen.title(first(area), &title, scene.view.focus == Focus::Board);
    let visible = scene.board_rows.iter().enumerate().skip(window.top);
    for ((place, row), line) in visible.zip(window.area.rows()) {
        entry(scene, &tasks[*row], line, pen);
        if scene.view.focus == Focus::Board && place == scene.view.board_at {
            pen.mark(line, pen.palette.chosen());
        }
    }
}

fn entry(scene: &Scene, task: &BoardTask, line: Rect, pen: &mut Pen<'_>) {
    let style = pen.palette.board(task.status);
    let (owner, owner_style) = owner(scene, task, pen);
    let owner_wide = owner.width().min(OWNER_MAX).min(usize::from(line.width) / 3);
    let owner = cut_name(&owner, owner_wide);
    let gaps = if owner_wide == 0 { 2 } else { 3 };
    let what = words_for(task);
    // The subject and its owner are cut each on its own, so that a long one does not hide the other.
    let what_wide = what.width().min(usize::from(line.width).saturating_sub(1 + owner_wide + gaps));
    let text = if task.status == BoardStatus::InProgress { Style::new() } else { style };
    pen.row(
        line,
        &[
            Cell::left(sign(task, scene.beat), 1, style),
            Cell::left(&what, what_wide, text),
            Cell::left(&owner, owner_wide, owner_style),
        ],
    );
}

/// What is in parentheses stays in them, also if it is cut.
fn cut_name(owner: &str, width: usize) -> String {
    if owner.width() <= width { owner.to_owned() } else { format!("{})", words::fit(owner, width.saturating_sub(1))) }
}

/// A spinner turns only while the owner runs.
fn sign(task: &BoardTask, beat: usize) -> &'static str {
    match task.status {
        BoardStatus::Pending if !task.blocked_by.is_empty() => "⊘",
        BoardStatus::Pending => "○",
        BoardStatus::InProgress if task.owner_status == Some(Status::Running) => SPINNER[beat % SPINNER.len()],
        BoardStatus::InProgress => "◐",
        BoardStatus::Completed => "✓",
    }
}

/// What is being done while somebody does it, and otherwise what there is to do.
fn words_for(task: &BoardTask) -> String {
    match (&task.active_form, task.status) {
        (Some(form), BoardStatus::InProgress) => form.clone(),
        _ if task.status == BoardStatus::Pending && !task.blocked_by.is_empty() => {
            let ids: Vec<String> = task.blocked_by.iter().map(ToString::to_string).collect();
            format!("{} (after {})", task.subject, ids.join(", "))
        }
        _ => task.subject.clone(),
    }
}

fn owner(scene: &Scene, task: &BoardTask, pen: &Pen<'_>) -> (String, Style) {
    let style = |style: Style| if task.status == BoardStatus::Completed { pen.palette.faint() } else { style };
    match task.owner.as_deref().map(|owner| (owner, Identity::parse(owner))) {
        None => (String::new(), Style::new()),
        Some((_, Some(Identity::Subagent { agent, .. }))) => {
            (format!("(@{agent})"), style(pen.palette.name(scene.place_of(agent.as_str()))))
        }
        Some((_, Some(Identity::Orchestrator))) => ("(@main)".to_owned(), style(pen.palette.strong())),
        Some((other, None)) => (format!("({other})"), style(Style::new())),
    }
}
