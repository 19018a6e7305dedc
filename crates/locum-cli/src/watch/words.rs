//! Text and amounts as the screen shows them. What came from a child is data: nothing in it reaches the terminal as a
//! command, turns the direction of what follows, or takes more than its line.

use unicode_width::UnicodeWidthChar;

use crate::output::cut;

/// How wide a tab is.
const TAB: &str = "    ";

/// One line without anything that a terminal would obey.
pub(super) fn plain(text: &str) -> String {
    text.chars().filter_map(|c| if is_space(c) { Some(' ') } else { (!is_hidden(c)).then_some(c) }).collect()
}

/// One line of at most so many columns; what was cut ends with `…`.
pub(super) fn fit(text: &str, width: usize) -> String {
    if width == 0 {
        return String::new();
    }
    // A line is never worth more than its columns, and a text may be long.
    let head: String = text.chars().take(width.saturating_mul(4).saturating_add(16)).collect();
    cut(&plain(&head), Some(width))
}

/// A text as lines of at most so many columns, broken between words where that is possible.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for line in text.lines() {
        let line = plain(&line.replace('\t', TAB));
        wrap_line(line.trim_end(), width.max(1), &mut lines);
    }
    lines
}

fn wrap_line(line: &str, width: usize, lines: &mut Vec<String>) {
    let (mut start, mut used, mut space) = (0, 0, None);
    for (at, c) in line.char_indices() {
        let wide = c.width().unwrap_or(0);
        if used + wide > width && at > start {
            let end = space.filter(|space| *space > start).unwrap_or(at);
            lines.push(line[start..end].trim_end().to_owned());
            start = end;
            used = line[start..at].chars().map(|c| c.width().unwrap_or(0)).sum();
            space = None;
        }
        used += wide;
        if c == ' ' {
            space = Some(at + 1);
        }
    }
    lines.push(line[start..].to_owned());
}

/// A time that passed.
pub(super) fn elapsed(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..360_000 => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// A number of tokens.
pub(super) fn tokens(count: u64) -> String {
    match count {
        0..1000 => count.to_string(),
        1000..1_000_000 => format!("{}.{}k", count / 1000, count / 100 % 10),
        _ => format!("{}.{}M", count / 1_000_000, count / 100_000 % 10),
    }
}

/// Money, where it is known.
pub(super) fn cost(usd: Option<f64>) -> String {
    match usd {
        None => "-".to_owned(),
        Some(usd) if usd < 0.1 => format!("${usd:.4}"),
        Some(usd) => format!("${usd:.2}"),
    }
}

fn is_space(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}')
}

/// Control characters, and those that turn or hide what stands beside them.
fn is_hidden(c: char) -> bool {
    let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || turns || matches!(c, '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_is_obeyed() {
        let cases = [
            ("plain", "plain"),
            ("\u{1b}[2J\u{1b}]0;title\u{7}x", "[2J]0;titlex"),
            ("two\nlines\tand a tab", "two lines and a tab"),
            ("\u{9b}31mred \u{202e}txet", "31mred txet"),
        ];
        for (text, shown) in cases {
            assert_eq!(plain(text), shown, "{text:?}");
        }
    }

    #[test]
    fn texts_are_broken_between_words_and_never_wider_than_asked() {
        let cases: [(&str, usize, &[&str]); 6] = [
            ("one two three", 8, &["one two", "three"]),
            ("unbreakable", 4, &["unbr", "eaka", "ble"]),
            ("漢字漢字", 5, &["漢字", "漢字"]),
            ("a\n\nb", 10, &["a", "", "b"]),
            ("漢", 1, &["漢"]),
            ("", 10, &[]),
        ];
        for (text, width, lines) in cases {
            assert_eq!(wrap(text, width), lines, "{text:?} in {width}");
        }
    }

    #[test]
    fn amounts_are_short() {
        assert_eq!([999, 61_000, 3_600_000, 3_600_000_000].map(elapsed), ["0s", "1m01s", "1h00m", "41d"]);
        assert_eq!([0, 999, 1234, 45_678_901].map(tokens), ["0", "999", "1.2k", "45.6M"]);
        assert_eq!([None, Some(0.0012), Some(1.5)].map(cost), ["-", "$0.0012", "$1.50"]);
        assert_eq!(fit("a long line", 6), "a lon…");
    }
}
