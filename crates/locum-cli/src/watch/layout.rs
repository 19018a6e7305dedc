//! Where on the screen everything is: side by side where there is room, one below the other where there is not.

use ratatui::layout::{Position, Rect};

/// From how many columns on two panes stand side by side.
const WIDE: u16 = 110;

/// How much there is to show.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wants {
    pub(super) tasks: usize,
    pub(super) board: usize,
    pub(super) jobs: usize,
}

/// The panes; one without room is empty.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Areas {
    pub(super) header: Rect,
    pub(super) board: Rect,
    pub(super) agents: Rect,
    pub(super) jobs: Rect,
    pub(super) details: Rect,
    pub(super) bar: Rect,
    pub(super) footer: Rect,
}

/// The rows of a list that are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    /// Where they are.
    pub(super) area: Rect,
    /// The first of them.
    pub(super) top: usize,
}

impl Window {
    /// Which rows are drawn, counted from one; nothing where that is all of them.
    pub(super) fn part_of(&self, count: usize) -> Option<(usize, usize)> {
        let height = usize::from(self.area.height);
        (height < count).then(|| ((self.top + 1).min(count), (self.top + height).min(count)))
    }
}

impl Areas {
    /// Divides a screen.
    pub(super) fn of(screen: Rect, wants: Wants) -> Self {
        let [header, rest] = split_top(screen, 1);
        let [rest, footer] = split_bottom(rest, 1);
        let [body, bar] = split_bottom(rest, 1);
        let areas = Self { header, bar, footer, ..Self::default() };
        if screen.width >= WIDE { side_by_side(areas, body, wants) } else { stacked(areas, body, wants) }
    }

    /// Everything between the first line and the last two.
    pub(super) fn body(&self) -> Rect {
        let height = self.bar.y.saturating_sub(self.header.bottom());
        Rect { y: self.header.bottom(), height, ..self.header }
    }

    /// The task that stands there, by its row.
    pub(super) fn agent_row(&self, at: usize, count: usize, position: Position) -> Option<usize> {
        row_at(agents_window(self.agents, at, count), count, position)
    }

    /// The task of the board that stands there, by its row.
    pub(super) fn board_row(&self, at: usize, count: usize, position: Position) -> Option<usize> {
        row_at(board_window(self.board, at, count), count, position)
    }
}

/// The rows of tasks that are drawn, below a title and, where there is room, the names of the columns.
pub(super) fn agents_window(pane: Rect, at: usize, count: usize) -> Window {
    window(pane, if has_heads(pane) { 2 } else { 1 }, at, count)
}

/// The rows of the board that are drawn, below a title.
pub(super) fn board_window(pane: Rect, at: usize, count: usize) -> Window {
    window(pane, 1, at, count)
}

/// Whether there is room for the names of columns.
pub(super) fn has_heads(pane: Rect) -> bool {
    pane.height >= 5
}

fn window(pane: Rect, above: u16, at: usize, count: usize) -> Window {
    let [_, area] = split_top(pane, above);
    let height = usize::from(area.height);
    let top = at.saturating_sub(height / 2).min(count.saturating_sub(height));
    Window { area, top }
}

fn row_at(window: Window, count: usize, position: Position) -> Option<usize> {
    let line = usize::from(position.y.saturating_sub(window.area.y));
    let row = window.top + line;
    (window.area.contains(position) && row < count).then_some(row)
}

/// The board on the left, what runs beside it, and what was said below both.
fn side_by_side(mut areas: Areas, body: Rect, wants: Wants) -> Areas {
    let jobs = jobs_height(body, wants);
    let tall = rows(wants.board, 1).max(rows(wants.tasks, 2).saturating_add(jobs));
    let [upper, lower] = split_top(body, tall.max(6).min(body.height / 2));
    areas.details = lower;
    let right = if wants.board == 0 {
        upper
    } else {
        let [left, right] = split_left(upper, upper.width * 2 / 5);
        areas.board = Rect { width: left.width.saturating_sub(2), ..left };
        right
    };
    [areas.agents, areas.jobs] = split_bottom(right, jobs.min(right.height / 2));
    areas
}

/// The board, what runs below it, commands in the background, and what was said.
fn stacked(mut areas: Areas, body: Rect, wants: Wants) -> Areas {
    let details = body.height.saturating_mul(2) / 5;
    let [lists, _] = split_bottom(body, details);
    let board = if wants.board == 0 { 0 } else { rows(wants.board, 1).min((lists.height / 3).max(2)) };
    let jobs = jobs_height(lists, wants);
    let left = lists.height.saturating_sub(board).saturating_sub(jobs);
    let agents = rows(wants.tasks.max(1), 2).min(left);
    [areas.board, areas.agents] = split_top(lists, board);
    [areas.agents, areas.jobs] = split_top(areas.agents, agents);
    [areas.jobs, _] = split_top(areas.jobs, jobs);
    [_, areas.details] = split_top(body, board + agents + jobs);
    areas
}

/// A spacer, a title and the commands; nothing without commands.
fn jobs_height(pane: Rect, wants: Wants) -> u16 {
    if wants.jobs == 0 { 0 } else { rows(wants.jobs, 2).min((pane.height / 4).max(3)) }
}

fn rows(count: usize, above: u16) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX).saturating_add(above)
}

pub(super) fn split_top(area: Rect, height: u16) -> [Rect; 2] {
    let height = height.min(area.height);
    [Rect { height, ..area }, Rect { y: area.y + height, height: area.height - height, ..area }]
}

fn split_bottom(area: Rect, height: u16) -> [Rect; 2] {
    split_top(area, area.height.saturating_sub(height))
}

fn split_left(area: Rect, width: u16) -> [Rect; 2] {
    let width = width.min(area.width);
    [Rect { width, ..area }, Rect { x: area.x + width, width: area.width - width, ..area }]
}
