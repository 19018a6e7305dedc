//! What a search finds in one file, kept until it is known that the file is not binary.

use std::io;

use grep_matcher::Matcher as _;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkContextKind, SinkFinish, SinkMatch};
use locum_core::limits::TOOL_OUTPUT_BYTES_MAX;

use crate::tools::bounded::{cut, head, without_line_end};

/// Bytes of one line that are shown.
const LINE_BYTES_MAX: usize = 500;

/// Bytes before the match that a long line begins with.
const BEFORE_MATCH_BYTES: usize = 100;

/// One line of output.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) is_match: bool,
}

/// The lines of one file.
#[derive(Debug)]
pub(super) struct FileMatches<'a> {
    name: &'a str,
    matcher: &'a RegexMatcher,
    shown_max: u64,
    counted_max: u64,
    found: u64,
    lines: Vec<Line>,
    bytes: usize,
    is_binary: bool,
}

impl<'a> FileMatches<'a> {
    /// At most `shown_max` matches are kept, and `counted_max` more are counted.
    pub(super) fn new(name: &'a str, matcher: &'a RegexMatcher, shown_max: u64, counted_max: u64) -> Self {
        let (found, bytes) = (0, 0);
        Self { name, matcher, shown_max, counted_max, found, lines: Vec::new(), bytes, is_binary: false }
    }

    /// The lines to show: none of a binary file.
    pub(super) fn lines(&self) -> &[Line] {
        if self.is_binary { &[] } else { &self.lines }
    }

    /// Whether the file has a NUL in it.
    pub(super) fn is_binary(&self) -> bool {
        self.is_binary
    }

    /// How many matches are not among the lines.
    pub(super) fn unshown(&self) -> u64 {
        let kept = self.lines.iter().filter(|line| line.is_match).count() as u64;
        if self.is_binary { 0 } else { self.found - kept }
    }

    fn keep(&mut self, line: u64, separator: char, text: &str) {
        // One file needs no more than the whole output takes.
        if self.bytes <= TOOL_OUTPUT_BYTES_MAX {
            let text = format!("{}{separator}{line}{separator}{text}", self.name);
            self.bytes += text.len();
            self.lines.push(Line { text, is_match: separator == ':' });
        }
    }

    /// A long line around its first match.
    fn excerpt(&self, line: &[u8]) -> String {
        if line.len() <= LINE_BYTES_MAX {
            return String::from_utf8_lossy(line).into_owned();
        }
        let start = self.matcher.find(line).ok().flatten().map_or(0, |found| found.start());
        if start + BEFORE_MATCH_BYTES <= LINE_BYTES_MAX {
            return cut(line, LINE_BYTES_MAX).into_owned();
        }
        let from = head(line, start - BEFORE_MATCH_BYTES).len();
        let rest = &line[from..];
        let end = if rest.len() > LINE_BYTES_MAX { "…" } else { "" };
        let text = String::from_utf8_lossy(head(rest, LINE_BYTES_MAX));
        format!("…{text}{end} [cut: {} bytes]", line.len())
    }
}

impl Sink for FileMatches<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.found += 1;
        if self.found <= self.shown_max {
            let text = self.excerpt(without_line_end(found.bytes()));
            self.keep(found.line_number().unwrap_or_default(), ':', &text);
        }
        Ok(self.found < self.shown_max + self.counted_max)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        // After the last match that is shown, only what belongs to it is.
        let is_after = *context.kind() == SinkContextKind::After;
        if self.found < self.shown_max || (self.found == self.shown_max && is_after) {
            let text = cut(without_line_end(context.bytes()), LINE_BYTES_MAX).into_owned();
            self.keep(context.line_number().unwrap_or_default(), '-', &text);
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        if self.found < self.shown_max {
            self.lines.push(Line { text: "--".to_owned(), is_match: false });
        }
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        self.is_binary = finish.binary_byte_offset().is_some();
        Ok(())
    }
}
