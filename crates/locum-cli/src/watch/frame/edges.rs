//! The first line and the last two: where one is, who works, and what can be done.

use std::collections::BTreeMap;

use ratatui::layout::Rect;
use ratatui::style::Style;
use unicode_width::UnicodeWidthStr;

use super::super::scene::{Mode, Scene};
use super::super::words;
use super::pen::{Cell, Pen};
use crate::output::counted;

/// Columns of a name at most.
const NAME_MAX: usize = 20;

/// Draws the session and what it has cost so far, as far as that is known.
pub(super) fn header(scene: &Scene, area: Rect, pen: &mut Pen<'_>) {
    let facts = &scene.facts;
    let costs: Vec<f64> = facts.tasks.iter().filter_map(|task| task.usage.cost_usd).collect();
    let cost = if costs.is_empty() { String::new() } else { words::cost(Some(costs.iter().sum())) };
    let (place, count) = facts.place;
    let sessions = if count > 1 { format!("({place} of {count})") } else { String::new() };
    let session = format!("session {} {sessions}", facts.session);
    let cost_wide = if cost.is_empty() { 0 } else { cost.width() + 1 };
    let session_wide = usize::from(area.width).saturating_sub(6 + cost_wide);
    pen.row(
        area,
        &[
            Cell::left("locum", 5, pen.palette.strong()),
            Cell::left(&session, session_wide, pen.palette.faint()),
            Cell::right(&cost, cost.width(), pen.palette.faint()),
        ],
    );
}

/// Draws the names of who works: `@main @scout @reviewer · 2 agents`.
pub(super) fn bar(scene: &Scene, area: Rect, pen: &mut Pen<'_>) {
    let mut counts: BTreeMap<usize, (&str, usize)> = BTreeMap::new();
    let mut agents = 0;
    for task in scene.running() {
        agents += 1;
        counts.entry(scene.place_of(task.agent.as_str())).or_insert((task.agent.as_str(), 0)).1 += 1;
    }
    let total = format!("· {}", counted(agents as u64, "agent"));
    let mut left = usize::from(area.width).saturating_sub(total.width() + 1);
    let mut names: Vec<(String, Style)> = vec![("@main".to_owned(), pen.palette.strong())];
    for (place, (name, count)) in counts {
        let times = if count > 1 { format!("×{count}") } else { String::new() };
        names.push((format!("@{}{times}", words::fit(name, NAME_MAX)), pen.palette.name(place)));
    }
    let mut cells = Vec::new();
    for (number, (name, style)) in names.iter().enumerate() {
        // The last place is kept for a sign that there are more.
        let needed = name.width() + 1 + if number + 1 < names.len() { 2 } else { 0 };
        if needed > left {
            cells.push(Cell::whole("…", Style::new()));
            break;
        }
        left -= name.width() + 1;
        cells.push(Cell::whole(name, *style));
    }
    cells.push(Cell::whole(&total, pen.palette.faint()));
    pen.row(area, &cells);
}

/// Draws the keys, or what was typed, or how it went.
pub(super) fn footer(scene: &Scene, area: Rect, pen: &mut Pen<'_>) {
    let running = scene.running().count();
    let count = if running > 0 { format!("({running} sub)") } else { String::new() };
    let (text, style) = match (&scene.facts.trouble, &scene.view.notice, scene.view.mode) {
        (Some(trouble), _, _) => (format!("! {trouble}"), pen.palette.alarm()),
        (None, _, Mode::Filtering) => (format!("/{}▏", scene.view.filter), pen.palette.strong()),
        (None, Some(notice), _) => (notice.clone(), pen.palette.alarm()),
        (None, None, _) => {
            let escape = if scene.view.filter.is_empty() { "stop all agents" } else { "show all again" };
            (format!("? help  x stop  c collect  / filter  Esc {escape}  q leave"), pen.palette.faint())
        }
    };
    let text_wide = usize::from(area.width).saturating_sub(count.width() + 1);
    pen.row(area, &[Cell::left(&text, text_wide, style), Cell::right(&count, count.width(), pen.palette.strong())]);
}
