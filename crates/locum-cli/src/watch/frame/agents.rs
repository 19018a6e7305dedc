//! The tasks of agents, one line each, and apart from them the commands that they have in the background.

use locum::protocol::response::TaskStatus;
use ratatui::layout::Rect;
use ratatui::style::Style;
use unicode_width::UnicodeWidthStr;

use super::super::layout::{Window, agents_window, has_heads, split_top};
use super::super::scene::{Focus, Scene};
use super::super::words;
use super::pen::{Cell, Pen};
use super::{SPINNER, sign};
use crate::output::counted;

/// Columns of a task's id.
const ID: usize = 5;

/// Columns of a name at most.
const NAME_MAX: usize = 20;

/// From how many columns on tokens and costs have room.
const ROOMY: u16 = 64;

/// From how many columns for what a task does on, there is room for what it was asked as well.
const TELLING: usize = 38;

/// How wide the columns are.
struct Columns {
    name: usize,
    about: usize,
    doing: usize,
    tokens: usize,
    cost: usize,
}

const TURN: usize = 4;
const TIME: usize = 6;

impl Columns {
    fn of(width: u16, name_wide: usize) -> Self {
        let name = name_wide.clamp(5, NAME_MAX).min(usize::from(width) / 4);
        let (tokens, cost) = if width >= ROOMY { (6, 7) } else { (0, 0) };
        let gaps = if width >= ROOMY { 7 } else { 5 };
        let fixed = 1 + ID + name + TURN + TIME + tokens + cost + gaps;
        let rest = usize::from(width).saturating_sub(fixed);
        let about = if rest >= TELLING { rest / 2 } else { 0 };
        let doing = if about > 0 { rest - about - 1 } else { rest };
        Self { name, about, doing, tokens, cost }
    }
}

/// Draws the tasks.
pub(super) fn agents(scene: &Scene, area: Rect, pen: &mut Pen<'_>) {
    let (total, count) = (scene.facts.tasks.len(), scene.rows.len());
    let window = agents_window(area, scene.view.at, count);
    pen.title(first(area), &title(scene, window), scene.view.focus == Focus::Agents);
    if scene.rows.is_empty() {
        let hint = if total == 0 {
            "no tasks in this session; `locum spawn AGENT TASK` starts one"
        } else {
            "no task is like the filter"
        };
        let [_, below] = split_top(area, 1);
        pen.row(first(below), &[Cell::left(hint, usize::from(area.width), pen.palette.faint())]);
        return;
    }
    let visible = scene.rows.iter().enumerate().skip(window.top).take(usize::from(window.area.height));
    let names = visible.clone().map(|(_, row)| scene.facts.tasks[*row].agent.as_str().width() + 1);
    let columns = Columns::of(area.width, names.max().unwrap_or(0));
    if has_heads(area) {
        let [_, below] = split_top(area, 1);
        heads(first(below), &columns, pen);
    }
    for ((place, row), line) in visible.zip(window.area.rows()) {
        let task = &scene.facts.tasks[*row];
        agent(scene, task, line, &columns, pen);
        if place == scene.view.at {
            pen.mark(line, pen.palette.chosen());
        }
    }
}

/// How many run, and which of them are seen.
fn title(scene: &Scene, window: Window) -> String {
    let (running, total, count) = (scene.running().count(), scene.facts.tasks.len(), scene.rows.len());
    let filter = if scene.view.filter.is_empty() { String::new() } else { format!(" · /{}", scene.view.filter) };
    let seen = match window.part_of(count) {
        Some((from, to)) => format!("{from}–{to} of {count}"),
        None => format!("{count} of {total}"),
    };
    format!("agents · {running} running · {seen}{filter}")
}

fn heads(line: Rect, columns: &Columns, pen: &mut Pen<'_>) {
    let faint = pen.palette.faint();
    pen.row(
        line,
        &[
            Cell::left(" ", 1, faint),
            Cell::left("task", ID, faint),
            Cell::left("agent", columns.name, faint),
            Cell::left("about", columns.about, faint),
            Cell::left("activity", columns.doing, faint),
            Cell::right("turn", TURN, faint),
            Cell::right("time", TIME, faint),
            Cell::right("tokens", columns.tokens, faint),
            Cell::right("cost", columns.cost, faint),
        ],
    );
}

fn agent(scene: &Scene, task: &TaskStatus, line: Rect, columns: &Columns, pen: &mut Pen<'_>) {
    let palette = pen.palette;
    let name = format!("@{}", task.agent);
    let name_style =
        if task.status.is_final() { palette.faint() } else { palette.name(scene.place_of(task.agent.as_str())) };
    let usage = &task.usage;
    let used = usage.input_tokens + usage.output_tokens + usage.cache_read_tokens + usage.cache_write_tokens;
    let asked = task.label.as_ref().or_else(|| scene.facts.about.get(&task.task_id));
    let about = asked.cloned().unwrap_or_default();
    let doing = match &task.label {
        Some(label) if columns.about == 0 => format!("{label}: {}", doing(task)),
        _ => doing(task),
    };
    // What a process says is chatter beside who it is and what it does.
    let said = if task.error.is_some() { palette.status(task.status) } else { palette.faint() };
    pen.row(
        line,
        &[
            Cell::left(sign(task.status, scene.beat), 1, palette.status(task.status)),
            Cell::left(&task.task_id.to_string(), ID, palette.faint()),
            Cell::left(&name, columns.name, name_style),
            Cell::left(&about, columns.about, Style::new()),
            Cell::left(&doing, columns.doing, said),
            Cell::right(&task.turns_used.to_string(), TURN, palette.faint()),
            Cell::right(&words::elapsed(elapsed_ms(scene, task)), TIME, palette.faint()),
            Cell::right(&words::tokens(used), columns.tokens, palette.faint()),
            Cell::right(&words::cost(usage.cost_usd), columns.cost, palette.faint()),
        ],
    );
}

/// What a task does, waits for, or came to.
fn doing(task: &TaskStatus) -> String {
    let waits = |ids: &Vec<locum::TaskId>| {
        let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
        format!("waiting for {}", ids.join(", "))
    };
    task.error
        .clone()
        .or_else(|| task.position.map(|position| format!("queued, number {position}")))
        .or_else(|| task.waiting_for.as_ref().map(waits))
        .or_else(|| task.activity.as_deref().filter(|_| !task.status.is_final()).map(without_turn))
        .unwrap_or_else(|| task.status.as_str().to_owned())
}

/// An activity without its turn, which has a column of its own.
fn without_turn(activity: &str) -> String {
    let what = activity.strip_prefix("turn ").and_then(|rest| rest.split_once(": "));
    what.filter(|(turn, _)| turn.bytes().all(|b| b.is_ascii_digit())).map_or(activity, |(_, what)| what).to_owned()
}

/// How long a task has taken, or took.
pub(super) fn elapsed_ms(scene: &Scene, task: &TaskStatus) -> u64 {
    task.completed_at.unwrap_or(scene.facts.now).millis_since(task.created_at)
}

/// Draws the commands in the background, below a spacer.
pub(super) fn jobs(scene: &Scene, area: Rect, pen: &mut Pen<'_>) {
    if area.height < 3 {
        return;
    }
    let [_, area] = split_top(area, 1);
    let commands = counted(scene.facts.jobs.len() as u64, "command");
    pen.title(first(area), &format!("background · {commands}"), false);
    let [_, rows] = split_top(area, 1);
    for (job, line) in scene.facts.jobs.iter().zip(rows.rows()) {
        let (name, faint) = (format!("@{}", job.agent), pen.palette.faint());
        let wide = name.width().min(NAME_MAX);
        pen.row(
            line,
            &[
                Cell::left(SPINNER[scene.beat % SPINNER.len()], 1, pen.palette.status(locum::task::Status::Running)),
                Cell::left(&job.task.to_string(), ID, faint),
                Cell::left(&name, wide, pen.palette.name(scene.place_of(&job.agent))),
                Cell::left(&format!("job {}", job.number), 6, faint),
                Cell::left(&job.command, usize::from(line.width).saturating_sub(wide + ID + 11), faint),
            ],
        );
    }
}

/// The first line of a pane.
pub(super) fn first(area: Rect) -> Rect {
    Rect { height: area.height.min(1), ..area }
}
