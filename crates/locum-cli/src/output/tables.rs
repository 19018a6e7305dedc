//! Tables that fit the terminal: the last column is cut, in a pipe nothing is.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

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
        let widths: Vec<usize> = (0..columns).map(|column| widest(column).unwrap_or(0)).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                line.push_str(cell);
                if column + 1 < columns {
                    line.extend(std::iter::repeat_n(' ', widths[column] - cell.width() + 2));
                }
            }
            text.push_str(cut(line.trim_end(), width).trim_end());
            text.push('\n');
        }
        text
    }
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
}
