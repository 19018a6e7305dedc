//! The one way onto the screen: what is written is neutralised and never leaves its place.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use unicode_width::UnicodeWidthStr;

use super::super::palette::Palette;
use super::super::words;

/// Writes lines onto a buffer and counts them.
pub(super) struct Pen<'a> {
    buffer: &'a mut Buffer,
    pub(super) palette: Palette,
    pub(super) lines: usize,
}

/// A part of a line.
pub(super) struct Cell<'a> {
    text: &'a str,
    width: usize,
    style: Style,
    side: Side,
}

enum Side {
    Left,
    Right,
}

impl<'a> Cell<'a> {
    /// At the left of so many columns.
    pub(super) fn left(text: &'a str, width: usize, style: Style) -> Self {
        Self { text, width, style, side: Side::Left }
    }

    /// At the right of so many columns.
    pub(super) fn right(text: &'a str, width: usize, style: Style) -> Self {
        Self { text, width, style, side: Side::Right }
    }

    /// As wide as its text.
    pub(super) fn whole(text: &'a str, style: Style) -> Self {
        Self::left(text, text.width(), style)
    }
}

impl<'a> Pen<'a> {
    pub(super) fn new(buffer: &'a mut Buffer, palette: Palette) -> Self {
        Self { buffer, palette, lines: 0 }
    }

    /// A line of cells with a space between them; each is cut to its own width, and none is drawn beyond the area.
    pub(super) fn row(&mut self, area: Rect, cells: &[Cell<'_>]) {
        self.lines += 1;
        if area.is_empty() || area.intersection(self.buffer.area) != area {
            return;
        }
        let mut x = area.x;
        for cell in cells.iter().filter(|cell| cell.width > 0) {
            let left = usize::from(area.right().saturating_sub(x));
            let width = cell.width.min(left);
            if width == 0 {
                return;
            }
            let text = words::fit(cell.text, width);
            let inset = match cell.side {
                Side::Left => 0,
                Side::Right => width.saturating_sub(text.width()),
            };
            self.buffer.set_stringn(x + columns(inset), area.y, text, width - inset, cell.style);
            x = x.saturating_add(columns(width + 1));
        }
    }

    /// The title of a pane, with a rule behind it.
    pub(super) fn title(&mut self, area: Rect, title: &str, is_focused: bool) {
        let (strong, faint) = (self.palette.strong(), self.palette.faint());
        let title = words::plain(title);
        let rule = "─".repeat(usize::from(area.width).saturating_sub(title.width() + 4));
        let (mark, style) = if is_focused { ("━━", strong) } else { ("──", faint) };
        let title_style = if is_focused { strong } else { Style::new() };
        self.row(area, &[Cell::whole(mark, style), Cell::whole(&title, title_style), Cell::whole(&rule, faint)]);
    }

    /// Gives a whole line a style, over the styles that it has.
    pub(super) fn mark(&mut self, area: Rect, style: Style) {
        self.buffer.set_style(area, style);
    }
}

fn columns(width: usize) -> u16 {
    u16::try_from(width).unwrap_or(u16::MAX)
}
