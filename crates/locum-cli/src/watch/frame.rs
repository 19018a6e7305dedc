//! A scene on a screen of some size: the same scene gives the same frame, and only rows that are seen are made.

mod agents;
mod board;
mod details;
mod edges;
mod pen;

use locum::task::Status;
use ratatui::buffer::Buffer;

use self::pen::Pen;
use super::layout::Areas;
use super::scene::{Mode, Scene};

/// What a frame came to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Drawn {
    /// Where everything is.
    pub(super) areas: Areas,
    /// How many lines were made for it.
    #[cfg_attr(not(test), expect(dead_code, reason = "a test counts them: what is not seen is not made"))]
    pub(super) lines: usize,
}

/// The turns of a spinner.
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// Draws a scene.
pub(super) fn draw(scene: &Scene, buffer: &mut Buffer) -> Drawn {
    let areas = Areas::of(buffer.area, scene.wants());
    let mut pen = Pen::new(buffer, scene.palette);
    edges::header(scene, areas.header, &mut pen);
    match scene.view.mode {
        Mode::Help => details::help(areas.body(), &mut pen),
        Mode::Looking | Mode::Filtering => {
            board::board(scene, areas.board, &mut pen);
            agents::agents(scene, areas.agents, &mut pen);
            agents::jobs(scene, areas.jobs, &mut pen);
            details::details(scene, areas.details, &mut pen);
        }
    }
    edges::bar(scene, areas.bar, &mut pen);
    edges::footer(scene, areas.footer, &mut pen);
    Drawn { areas, lines: pen.lines }
}

/// The sign of a task's state. It turns only while somebody works.
fn sign(status: Status, beat: usize) -> &'static str {
    match status {
        Status::Running => SPINNER[beat % SPINNER.len()],
        Status::Queued | Status::Waiting => "○",
        Status::Completed => "✓",
        Status::Failed => "✗",
        Status::Cancelled => "■",
    }
}

#[cfg(test)]
mod picture;
#[cfg(test)]
pub(super) mod tests;
