//! Text for a model that cannot grow beyond its bound, and that says what was left out.

use std::borrow::Cow;
use std::ffi::OsStr;

use locum_core::limits::TOOL_OUTPUT_BYTES_MAX;

/// Bytes that are kept free for the notices at the end.
const NOTICE_BYTES_MAX: usize = 2_000;

/// Lines until the output is full.
#[derive(Debug, Default)]
pub(crate) struct BoundedText {
    text: String,
    is_full: bool,
}

impl BoundedText {
    /// Adds a line and answers whether it is in. After the first that does not fit none does, so that what is shown
    /// has no holes.
    pub(crate) fn push_line(&mut self, line: &str) -> bool {
        self.is_full = self.is_full || self.text.len() + line.len() + 1 > TOOL_OUTPUT_BYTES_MAX - NOTICE_BYTES_MAX;
        if !self.is_full {
            self.text.push_str(line);
            self.text.push('\n');
        }
        !self.is_full
    }

    /// Whether a line was turned away.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Whether no line is in.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The text, with the notices in brackets on lines of their own.
    pub(crate) fn finish(mut self, notices: &[String]) -> String {
        for notice in notices {
            let room = TOOL_OUTPUT_BYTES_MAX.saturating_sub(self.text.len() + CUT_MARK_BYTES_MAX + 3);
            let notice = cut(notice.as_bytes(), room);
            self.text.push('[');
            self.text.push_str(&notice);
            self.text.push_str("]\n");
        }
        if self.text.ends_with('\n') {
            self.text.pop();
        }
        self.text
    }
}

/// Bytes of the mark that [`cut`] leaves, whatever the number in it.
const CUT_MARK_BYTES_MAX: usize = 60;

/// At most `bytes_max` bytes of a text, with a mark where it was cut. Bytes that are not UTF-8 are shown as such.
pub(crate) fn cut(text: &[u8], bytes_max: usize) -> Cow<'_, str> {
    if text.len() <= bytes_max {
        return String::from_utf8_lossy(text);
    }
    cut_line(head(text, bytes_max), text.len() as u64).into()
}

/// The beginning of a line of `bytes_total` bytes, with the mark of its cut.
pub(crate) fn cut_line(beginning: &[u8], bytes_total: u64) -> String {
    format!("{}… [cut: {bytes_total} bytes]", String::from_utf8_lossy(beginning))
}

/// At most `bytes_max` bytes from the beginning, without the first half of a character at the end.
pub(crate) fn head(text: &[u8], bytes_max: usize) -> &[u8] {
    if text.len() <= bytes_max {
        return text;
    }
    let is_continuation = |index: &usize| text[*index] & 0b1100_0000 == 0b1000_0000;
    let steps_back = (bytes_max.saturating_sub(3)..=bytes_max).rev().take_while(is_continuation).count();
    &text[..bytes_max.saturating_sub(steps_back)]
}

/// A line without its end, be it LF or CRLF.
pub(crate) fn without_line_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// A name or path as one line: what is not UTF-8 is replaced, control characters are escaped.
pub(crate) fn shown(name: impl AsRef<OsStr>) -> String {
    let name = name.as_ref().to_string_lossy();
    if !name.contains(char::is_control) {
        return name.into_owned();
    }
    let mut text = String::with_capacity(name.len() + 8);
    for character in name.chars() {
        if character.is_control() {
            text.extend(character.escape_default());
        } else {
            text.push(character);
        }
    }
    text
}

/// A number of bytes as people write it.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [(&str, u64); 4] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match UNITS.iter().find(|(_, unit)| bytes >= *unit) {
        Some((name, unit)) => format!("{}.{} {name}", bytes / unit, bytes % unit * 10 / unit),
        None => format!("{bytes} B"),
    }
}

/// `1 file`, `2 files`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{number} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    #[test]
    fn the_text_stays_within_its_bound() {
        let mut text = BoundedText::default();
        assert!(text.is_empty());
        while text.push_line(&"x".repeat(999)) {}
        assert!(text.is_full());
        assert!(!text.push_line("short"), "what comes after a hole is not shown");
        let notices = vec!["a notice".to_owned(), "n".repeat(5_000), "last".to_owned()];
        let text = text.finish(&notices);
        assert!(text.len() <= TOOL_OUTPUT_BYTES_MAX, "{}", text.len());
        assert!(text.contains("\n[a notice]\n"));
    }

    #[test]
    fn a_cut_does_not_split_characters() {
        assert_eq!(cut("äöü".as_bytes(), 6), "äöü");
        assert_eq!(cut("äöü".as_bytes(), 5), "äö… [cut: 6 bytes]");
        assert_eq!(cut("äöü".as_bytes(), 4), "äö… [cut: 6 bytes]");
        assert_eq!(cut("𝄞𝄞".as_bytes(), 7), "𝄞… [cut: 8 bytes]");
        assert_eq!(cut(b"\x80\x80\x80\x80\x80\x80", 5), "\u{fffd}… [cut: 6 bytes]".to_owned());
        assert_eq!(cut("ä".as_bytes(), 0), "… [cut: 2 bytes]");
    }

    #[test]
    fn names_are_one_line() {
        assert_eq!(shown("plain name.rs"), "plain name.rs");
        assert_eq!(shown("a\nb\u{1b}[0m"), "a\\nb\\u{1b}[0m");
        assert_eq!(shown(OsStr::from_bytes(b"\xff\xfe.rs")), "\u{fffd}\u{fffd}.rs");
    }

    #[test]
    fn sizes_are_short() {
        for (bytes, expected) in
            [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1536, "1.5 KiB"), (4 << 30, "4.0 GiB")]
        {
            assert_eq!(size(bytes), expected);
        }
    }
}
