//! `read`: the lines of a file. It streams, so that neither a huge file nor an endless line fills the memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::num::NonZero;

use locum_core::limits;
use locum_core::transcript::{FileMark, FileUse, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use super::beneath::{Beneath, Kind, quoted, unreadable};
use super::bounded::{self, BoundedText, without_line_end};
use super::content;
use super::reading::Reading;

/// Lines that are shown when the model does not say.
const LINES_DEFAULT: u64 = 2_000;

/// Bytes of one line that are shown: what is longer is generated, and is not read but searched.
const LINE_BYTES_MAX: usize = 2_000;

/// Bytes at the beginning in which a NUL makes a file binary, as in git.
const BINARY_BYTES: usize = 8 * 1024;

/// Bytes that one call reads at most: to find a line, all before it have to be read.
const SCAN_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Bytes of a file up to which its lines are counted to the end.
const COUNTED_BYTES_MAX: u64 = 16 * 1024 * 1024;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Read {
    path: String,
    /// First line, from 1
    offset: Option<u64>,
    /// Lines, default 2000
    limit: Option<NonZero<u64>>,
}

impl Reading for Read {
    const NAME: &'static str = "read";
    const DESCRIPTION: &'static str = include_str!("read.md");

    fn answer(self, files: &Beneath) -> Result<String, ToolOutput> {
        let located = files.locate(&self.path)?;
        match located.kind {
            Kind::File => {}
            Kind::Directory => {
                return Err(ToolOutput::failed(format!("{} is a directory; use ls", quoted(&self.path))));
            }
            Kind::Link | Kind::Fifo | Kind::Socket | Kind::Device => {
                let noun = located.kind.noun();
                return Err(ToolOutput::failed(format!("{} is a {noun}; only files are read", quoted(&self.path))));
            }
        }
        let result = files.open_file(&located.path).and_then(|file| self.pages(files, file));
        // A stopped read ends with an error of its own, which is not the file's fault.
        files.check_stop()?;
        result.map_err(|error| unreadable(&self.path, &error))?
    }
}

impl Read {
    fn pages(&self, files: &Beneath, file: File) -> io::Result<Result<String, ToolOutput>> {
        let size = file.metadata()?.len();
        let source = self.source(files, file)?;
        let mut reader = BufReader::with_capacity(64 * 1024, files.stoppable(source.bytes).take(SCAN_BYTES_MAX));
        let beginning = reader.fill_buf()?;
        if beginning.is_empty() {
            source.mark.into_iter().for_each(|mark| files.mark(mark));
            return Ok(Ok(format!("{} is empty", quoted(&self.path))));
        }
        if beginning[..beginning.len().min(BINARY_BYTES)].contains(&0) {
            let refusal = format!("{} is a binary file ({})", quoted(&self.path), bounded::size(size));
            return Ok(Err(ToolOutput::failed(refusal)));
        }
        let first = self.offset.unwrap_or(1).max(1);
        for before in 1..first {
            if reader.skip_until(b'\n')? == 0 {
                return Ok(Err(self.past_the_end(before - 1, size, &reader)));
            }
        }
        let page = self.page(&mut reader, first)?;
        if page.next == first {
            return Ok(Err(self.past_the_end(first - 1, size, &reader)));
        }
        source.mark.into_iter().for_each(|mark| files.mark(mark));
        Ok(Ok(page.finish(&mut reader, size)?))
    }

    /// The bytes of the file. A small one is read at once, so that what is shown is what is known of it.
    fn source(&self, files: &Beneath, file: File) -> io::Result<Source> {
        let size = file.metadata()?.len();
        if size > limits::WRITTEN_BYTES_MAX as u64 {
            return Ok(Source { bytes: Box::new(file), mark: None });
        }
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
        let mut reader = files.stoppable(file).take(limits::WRITTEN_BYTES_MAX as u64 + 1);
        reader.read_to_end(&mut bytes)?;
        let path = files.locate(&self.path).ok().map(|located| located.path.to_string_lossy().into_owned());
        let mark = path.map(|path| FileMark { path, hash: content::hash(&bytes), by: FileUse::Read });
        Ok(Source { bytes: Box::new(io::Cursor::new(bytes)), mark })
    }

    fn page(&self, reader: &mut impl BufRead, first: u64) -> io::Result<Page> {
        let lines_max = self.limit.map_or(LINES_DEFAULT, NonZero::get);
        let mut page = Page { first, next: first, text: BoundedText::default(), has_more: true };
        while page.next - first < lines_max {
            let Some(line) = read_line(reader)? else {
                page.has_more = false;
                return Ok(page);
            };
            if !page.text.push_line(&format!("{}\t{line}", page.next)) {
                return Ok(page);
            }
            page.next += 1;
        }
        Ok(page)
    }

    fn past_the_end<R>(&self, lines: u64, size: u64, reader: &BufReader<io::Take<R>>) -> ToolOutput {
        let path = quoted(&self.path);
        ToolOutput::failed(if is_scan_over(reader) {
            let (scanned, size) = (bounded::size(SCAN_BYTES_MAX), bounded::size(size));
            format!("{path} has {size}, and line {lines} is the last in the first {scanned}, which is all that is read")
        } else {
            format!("{path} has only {}", bounded::count(lines, "line"))
        })
    }
}

/// What is shown of a file, and what is known of it.
struct Source {
    bytes: Box<dyn io::Read>,
    mark: Option<FileMark>,
}

/// The lines that are shown of a file.
#[derive(Debug)]
struct Page {
    first: u64,
    /// The line after the last one shown.
    next: u64,
    text: BoundedText,
    has_more: bool,
}

impl Page {
    fn finish(mut self, reader: &mut BufReader<io::Take<impl io::Read>>, size: u64) -> io::Result<String> {
        // The line that did not fit was read already.
        let mut lines = self.next - 1 + u64::from(self.text.is_full());
        let is_counted = size <= COUNTED_BYTES_MAX;
        if self.has_more && is_counted {
            while reader.skip_until(b'\n')? > 0 {
                lines += 1;
            }
            self.has_more = lines >= self.next;
        } else if self.has_more {
            self.has_more = self.text.is_full() || !reader.fill_buf()?.is_empty();
        }
        let is_scan_over = is_scan_over(reader);
        if !self.has_more && self.first == 1 && !is_scan_over {
            return Ok(self.text.finish(&[]));
        }
        let total = if is_counted { lines.to_string() } else { format!("a file of {}", bounded::size(size)) };
        let (first, next) = (self.first, self.next);
        let mut notice = format!("lines {first}-{} of {total}", next - 1);
        if self.has_more {
            notice.push_str(&format!("; continue with offset {next}"));
        } else if is_scan_over {
            notice.push_str("; what comes after is too far into the file to be read");
        }
        Ok(self.text.finish(&[notice]))
    }
}

/// Whether as much was read as one call reads.
fn is_scan_over<R>(reader: &BufReader<io::Take<R>>) -> bool {
    reader.get_ref().limit() == 0 && reader.buffer().is_empty()
}

/// The next line, cut if it is long; nothing at the end. What is cut off is read but not kept.
fn read_line(reader: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    // Two more for a line end that is not shown.
    let taken = reader.by_ref().take(LINE_BYTES_MAX as u64 + 2).read_until(b'\n', &mut line)?;
    if taken == 0 {
        return Ok(None);
    }
    let mut bytes = without_line_end(&line).len() as u64;
    if !line.ends_with(b"\n") && taken > LINE_BYTES_MAX {
        let skipped = reader.skip_until(b'\n')? as u64;
        bytes = taken as u64 + skipped.saturating_sub(1);
    }
    if bytes <= LINE_BYTES_MAX as u64 {
        return Ok(Some(String::from_utf8_lossy(without_line_end(&line)).into_owned()));
    }
    Ok(Some(bounded::cut_line(bounded::head(&line, LINE_BYTES_MAX), bytes)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tools::fixture::Fixture;

    #[test]
    fn lines_are_numbered() {
        let fixture = Fixture::new(&[
            ("unix", "one\ntwo\n\nfour"),
            ("dos", "one\r\ntwo\r\n"),
            ("empty", ""),
            ("newline", "\n"),
            ("directory/", ""),
        ]);
        fixture.write("latin1", b"caf\xe9\n");
        fixture.write("binary", b"\x7fELF\0\0\0");
        let absolute = fixture.root().join("dos");
        for (path, expected) in [
            ("unix", "1\tone\n2\ttwo\n3\t\n4\tfour"),
            ("./unix", "1\tone\n2\ttwo\n3\t\n4\tfour"),
            ("dos", "1\tone\n2\ttwo"),
            (absolute.to_str().unwrap(), "1\tone\n2\ttwo"),
            ("latin1", "1\tcaf\u{fffd}"),
            ("empty", "`empty` is empty"),
            ("newline", "1\t"),
            ("binary", "failed: `binary` is a binary file (7 B)"),
            ("directory", "failed: `directory` is a directory; use ls"),
            ("", "failed: `` is a directory; use ls"),
        ] {
            assert_eq!(fixture.ask::<Read>(json!({ "path": path })), expected, "{path}");
        }
    }

    #[test]
    fn pages_say_where_to_continue() {
        let fixture = Fixture::new(&[("five", "1\n2\n3\n4\n5\n")]);
        for (offset, limit, expected) in [
            (1, 5, "1\t1\n2\t2\n3\t3\n4\t4\n5\t5"),
            (0, 1, "1\t1\n[lines 1-1 of 5; continue with offset 2]"),
            (2, 2, "2\t2\n3\t3\n[lines 2-3 of 5; continue with offset 4]"),
            (4, 2, "4\t4\n5\t5\n[lines 4-5 of 5]"),
            (5, 9, "5\t5\n[lines 5-5 of 5]"),
            (6, 1, "failed: `five` has only 5 lines"),
            (u64::MAX, 1, "failed: `five` has only 5 lines"),
        ] {
            let input = json!({"path": "five", "offset": offset, "limit": limit});
            assert_eq!(fixture.ask::<Read>(input), expected, "{offset} {limit}");
        }
    }

    #[test]
    fn a_long_file_is_shown_until_the_output_is_full() {
        let fixture = Fixture::new(&[]);
        fixture.write("long", format!("{}\n", "x".repeat(99)).repeat(2_310));
        let text = fixture.ask::<Read>(json!({"path": "long"}));
        assert!(text.len() <= locum_core::limits::TOOL_OUTPUT_BYTES_MAX);
        let last = text.lines().last().unwrap();
        assert_eq!(last, "[lines 1-462 of 2310; continue with offset 463]");
        let text = fixture.ask::<Read>(json!({"path": "long", "offset": 463}));
        assert!(text.starts_with("463\txxx"), "{}", &text[..10]);
    }

    #[test]
    fn long_lines_are_cut() {
        let fixture = Fixture::new(&[]);
        for (length, expected) in [(2_000, None), (2_001, Some(2_001)), (2_002, Some(2_002)), (1 << 22, Some(1 << 22))]
        {
            let line = "x".repeat(length);
            fixture.write("long", format!("{line}\nnext"));
            let shown = match expected {
                None => line,
                Some(bytes) => format!("{}… [cut: {bytes} bytes]", "x".repeat(2_000)),
            };
            assert_eq!(fixture.ask::<Read>(json!({"path": "long"})), format!("1\t{shown}\n2\tnext"), "{length}");
        }
        fixture.write("exact", format!("{}\r\nnext", "x".repeat(2_000)));
        assert_eq!(
            fixture.ask::<Read>(json!({"path": "exact"})),
            format!("1\t{}\n2\tnext", "x".repeat(2_000)),
            "the end of a line is not part of it"
        );
    }

    #[test]
    fn a_huge_file_is_not_read_whole() {
        let fixture = Fixture::new(&[("zeros", ""), ("text", "")]);
        let grow = |name: &str, beginning: &str| {
            fixture.write(name, beginning);
            let file = std::fs::OpenOptions::new().write(true).open(fixture.root().join(name)).unwrap();
            file.set_len(4 << 30).unwrap();
        };
        grow("zeros", "");
        grow("text", &"some text\n".repeat(10_000));
        let text = fixture.ask::<Read>(json!({"path": "zeros"}));
        assert_eq!(text, "failed: `zeros` is a binary file (4.0 GiB)");
        let text = fixture.ask::<Read>(json!({"path": "text", "limit": 1}));
        assert_eq!(text, "1\tsome text\n[lines 1-1 of a file of 4.0 GiB; continue with offset 2]");
        let text = fixture.ask::<Read>(json!({"path": "text", "offset": 1_000_000}));
        let expected = "failed: `text` has 4.0 GiB, and line 10001 is the last in the first 256.0 MiB, which is all \
                        that is read";
        assert_eq!(text, expected);
        let text = fixture.ask::<Read>(json!({"path": "text", "offset": 10_001}));
        let end = "[lines 10001-10001 of a file of 4.0 GiB; what comes after is too far into the file to be read]";
        assert!(text.ends_with(end), "{}", text.lines().last().unwrap());
    }

    #[test]
    fn a_missing_file_brings_what_may_be_meant() {
        let mut fixture = Fixture::new(&[
            ("src/y.rs", ""),
            ("src/limits.rs", ""),
            ("crates/core/src/deep.rs", ""),
            ("README.md", ""),
        ]);
        for (path, expected) in [
            ("src/x.rs", "failed: no such file: src/x.rs; similar: src/y.rs"),
            ("src/limit.rs", "failed: no such file: src/limit.rs; similar: src/limits.rs"),
            ("readme.txt", "failed: no such file: readme.txt; similar: README.md"),
            ("deep.rs", "failed: no such file: deep.rs; similar: crates/core/src/deep.rs"),
            ("sorce/lib/mod.rs", "failed: no such file: sorce/lib/mod.rs"),
        ] {
            assert_eq!(fixture.ask::<Read>(json!({ "path": path })), expected);
        }
        fixture.write("src/y.rs", "y\n");
        fixture.scope.cwd = "src".into();
        for path in ["y.rs", "./y.rs", "../src/y.rs", "src/y.rs"] {
            assert_eq!(fixture.ask::<Read>(json!({ "path": path })), "1\ty", "{path}");
        }
    }
}
