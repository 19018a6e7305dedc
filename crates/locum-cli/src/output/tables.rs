//! Tables that fit the terminal: the last column is cut first, then whichever is widest; in a pipe nothing is.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// What stays of the last column before others are cut: it says what the rest is about.
const LAST_MIN: usize = 16;

/// What stays of every other column.
const COLUMN_MIN: usize = 8;

/// Rows of text under a head.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(head: &[&str]) -> Self {
        Self { rows: vec![head.iter().map(|name| (*name).to_owned()).collect()] }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        // A cell is one line, whatever was put into it.
        let clean = |cell: String| cell.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        self.rows.push(cells.into_iter().map(clean).collect());
    }

    /// The table as text, cut to `width` columns where one is given.
    pub(crate) fn render(&self, width: Option<usize>) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widest = |column: usize| self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width()).max();
        let widths = fitted((0..columns).map(|column| widest(column).unwrap_or(0)).collect(), width);
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let cell = cut(cell, Some(widths[column]));
                line.push_str(&cell);
                if column + 1 < columns {
                    line.extend(std::iter::repeat_n(' ', widths[column].saturating_sub(cell.width()) + 2));
                }
            }
            text.push_str(cut(line.trim_end(), width).trim_end());
            text.push('\n');
        }
        text
    }
}

/// The widths of columns on a terminal that may be too narrow for them.
fn fitted(mut widths: Vec<usize>, width: Option<usize>) -> Vec<usize> {
    let (Some(width), Some(last)) = (width, widths.len().checked_sub(1)) else { return widths };
    let mut over = (widths.iter().sum::<usize>() + 2 * last).saturating_sub(width);
    let spare = widths[last].saturating_sub(LAST_MIN).min(over);
    widths[last] -= spare;
    over -= spare;
    while over > 0 {
        let Some(widest) = widths[..last].iter_mut().max().filter(|widest| **widest > COLUMN_MIN) else { break };
        *widest -= 1;
        over -= 1;
    }
    widths
}

/// A number of things, in words that fit it.
pub(crate) fn counted(number: u64, noun: &str) -> String {
    match number {
        0 => format!("no {noun}s"),
        1 => format!("1 {noun}"),
        number => format!("{number} {noun}s"),
    }
}

/// A line of at most so many columns, where there is a limit.
pub(crate) fn cut(line: &str, width: Option<usize>) -> String {
    let Some(width) = width.filter(|width| line.width() > *width) else { return line.to_owned() };
    let mut shown = String::new();
    let mut used = 0;
    for c in line.chars() {
        used += c.width().unwrap_or(0);
        if used > width.saturating_sub(1) {
            break;
        }
        shown.push(c);
    }
    shown + "…"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_only_a_terminal_cuts_them() {
        let mut table = Table::new(&["ID", "WHAT"]);
        table.row(["t_01".to_owned(), "漢字 and\nmore".to_owned()]);
        assert_eq!(table.render(None), "ID    WHAT\nt_01  漢字 and more\n");
        assert_eq!(table.render(Some(9)), "ID    WH…\nt_01  漢…\n");
    }

    #[test]
    fn a_long_name_does_not_hide_the_other_columns() {
        let mut table = Table::new(&["AGENT", "TURNS", "FOR"]);
        table.row([
            "an-agent-with-a-very-long-name".to_owned(),
            "10".to_owned(),
            "Everything that is left over".to_owned(),
        ]);
        let cases = [
            (80, "an-agent-with-a-very-long-name  10     Everything that is left over"),
            (60, "an-agent-with-a-very-long-name  10     Everything that is l…"),
            (40, "an-agent-with-…  10     Everything that…"),
            (30, "an-agen…  10     Everything t…"),
        ];
        for (width, line) in cases {
            let shown = table.render(Some(width));
            assert_eq!(shown.lines().nth(1), Some(line), "{width}");
            assert!(shown.lines().all(|line| line.width() <= width), "{shown}");
        }
    }
}
