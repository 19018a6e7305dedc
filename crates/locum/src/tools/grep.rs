//! `grep`: lines that match a regular expression, searched with ripgrep's libraries in the order of the paths, so that
//! the same question always gets the same answer.

mod matches;

use std::io::{self, Read as _};
use std::path::Path;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use locum_core::transcript::ToolOutput;
use schemars::JsonSchema;
use serde::Deserialize;

use self::matches::FileMatches;
use super::beneath::{Beneath, Kind, Located, quoted};
use super::bounded::{self, BoundedText, count, cut, shown};
use super::path_glob::PathGlob;
use super::reading::Reading;
use super::walk::{Hidden, Walk};

/// Matching lines that are shown when the model does not say, and at most.
const RESULTS_DEFAULT: u32 = 100;
const RESULTS_MAX: u32 = 1_000;

/// Lines around a match: more than this is a case for `read`.
const CONTEXT_LINES_MAX: u32 = 20;

/// Matches beyond those shown that are still counted: after that the number says nothing more.
const COUNTED_MAX: u64 = 10_000;

/// Bytes of a pattern.
const PATTERN_BYTES_MAX: usize = 10_000;

/// Bytes of a compiled pattern: the slowest search is proportional to it.
const COMPILED_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Bytes of a file: what is larger is data or generated.
const FILE_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Bytes of one line in memory, with its context.
const LINE_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Bytes that one call searches in all.
const SEARCH_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// Files that a notice names.
const NAMED_MAX: usize = 3;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Grep {
    pattern: String,
    /// File or directory
    path: Option<String>,
    /// Only these files, e.g. `*.rs`
    glob: Option<String>,
    ignore_case: Option<bool>,
    /// Lines around each match
    context: Option<u32>,
    /// Default 100, at most 1000
    max_results: Option<u32>,
}

impl Reading for Grep {
    const NAME: &'static str = "grep";
    const DESCRIPTION: &'static str = include_str!("grep.md");

    fn answer(self, files: &Beneath) -> Result<String, ToolOutput> {
        let matcher = self.matcher()?;
        let glob = self.glob.as_deref().map(PathGlob::parse).transpose()?;
        let said = self.path.as_deref().unwrap_or(".");
        let start = files.locate(said)?;
        let mut search = Search::new(files, &matcher, &self);
        match start.kind {
            Kind::File => search.file(&start.path),
            Kind::Directory => search.directory(&start, glob.as_ref()),
            Kind::Link | Kind::Fifo | Kind::Socket | Kind::Device => {
                let noun = start.kind.noun();
                return Err(ToolOutput::failed(format!("{} is a {noun}; only files are searched", quoted(said))));
            }
        }
        files.check_stop()?;
        Ok(search.finish())
    }
}

impl Grep {
    fn matcher(&self) -> Result<RegexMatcher, ToolOutput> {
        let bytes = self.pattern.len();
        if bytes > PATTERN_BYTES_MAX {
            return Err(ToolOutput::failed(format!("the pattern is too long: {bytes} bytes")));
        }
        RegexMatcherBuilder::new()
            .case_insensitive(self.ignore_case.unwrap_or(false))
            .multi_line(true)
            .size_limit(COMPILED_BYTES_MAX)
            .crlf(true)
            .build(&self.pattern)
            .map_err(|error| {
                let error = error.to_string();
                let hint = "escape special characters with a backslash to mean them literally; a match is within one \
                            line, and look-around and backreferences are not supported";
                ToolOutput::failed(format!("invalid pattern: {}\n{hint}", cut(error.as_bytes(), 1_000)))
            })
    }

    fn searcher(&self) -> Searcher {
        let context = self.context.unwrap_or(0).min(CONTEXT_LINES_MAX) as usize;
        SearcherBuilder::new()
            .line_terminator(grep_matcher::LineTerminator::crlf())
            .before_context(context)
            .after_context(context)
            .heap_limit(Some(LINE_BYTES_MAX))
            .binary_detection(BinaryDetection::quit(0))
            .build()
    }
}

/// A search under way.
struct Search<'a> {
    files: &'a Beneath,
    matcher: &'a RegexMatcher,
    searcher: Searcher,
    text: BoundedText,
    /// How many matches may still be shown.
    results_left: u64,
    /// Matches that are not shown.
    unshown: u64,
    bytes_left: u64,
    files_searched: u64,
    files_binary: u64,
    notices: Vec<String>,
    too_large: Skipped,
    unsearchable: Skipped,
}

/// Files that were left out, the first of them by name.
#[derive(Debug, Default)]
struct Skipped {
    number: u64,
    names: Vec<String>,
}

impl<'a> Search<'a> {
    fn new(files: &'a Beneath, matcher: &'a RegexMatcher, input: &Grep) -> Self {
        Self {
            files,
            matcher,
            searcher: input.searcher(),
            text: BoundedText::default(),
            results_left: input.max_results.unwrap_or(RESULTS_DEFAULT).clamp(1, RESULTS_MAX).into(),
            unshown: 0,
            bytes_left: SEARCH_BYTES_MAX,
            files_searched: 0,
            files_binary: 0,
            notices: Vec::new(),
            too_large: Skipped::default(),
            unsearchable: Skipped::default(),
        }
    }

    fn directory(&mut self, start: &Located, glob: Option<&PathGlob>) {
        let mut walk = Walk::new(self.files, &start.path, Hidden::Skip);
        for found in walk.by_ref() {
            let is_meant = found.kind == Kind::File && glob.is_none_or(|glob| glob.is_match(&found.path, &start.path));
            if is_meant {
                self.file(&found.path);
            }
            if self.bytes_left == 0 {
                let bytes = bounded::size(SEARCH_BYTES_MAX);
                self.notices.push(format!("stopped after {bytes} at {}; narrow the path", shown(&found.path)));
                break;
            }
            if self.unshown >= COUNTED_MAX {
                break;
            }
        }
        self.notices.extend(walk.left_out().notices());
    }

    fn file(&mut self, path: &Path) {
        let opened = self.files.open_file(path).and_then(|file| Ok((file.metadata()?.len(), file)));
        let (size, file) = match opened {
            Ok(opened) => opened,
            Err(_) => return self.unsearchable.add(path),
        };
        if size > FILE_BYTES_MAX {
            return self.too_large.add(path);
        }
        self.files_searched += 1;
        self.bytes_left = self.bytes_left.saturating_sub(size);
        let name = shown(path);
        let mut matches = FileMatches::new(&name, self.matcher, self.results_left, COUNTED_MAX);
        // The size was that of a moment ago; the reader holds the bound.
        let reader = self.files.stoppable(file).take(FILE_BYTES_MAX);
        let result: io::Result<()> = self.searcher.search_reader(self.matcher, reader, &mut matches);
        if result.is_err() {
            self.unsearchable.add(path);
        }
        self.show(&matches);
    }

    fn show(&mut self, matches: &FileMatches<'_>) {
        self.files_binary += u64::from(matches.is_binary());
        self.unshown += matches.unshown();
        for line in matches.lines() {
            let is_shown = self.text.push_line(&line.text);
            match (line.is_match, is_shown) {
                (true, true) => self.results_left -= 1,
                (true, false) => self.unshown += 1,
                (false, _) => {}
            }
        }
        if self.text.is_full() {
            self.results_left = 0;
        }
    }

    fn finish(mut self) -> String {
        self.notices.extend(self.too_large.notice(&format!("over {} skipped", bounded::size(FILE_BYTES_MAX))));
        self.notices.extend(self.unsearchable.notice("could not be searched (unreadable, or with too long lines)"));
        if self.text.is_empty() {
            self.text.push_line(&match (self.files_searched, self.files_binary) {
                (0, _) => {
                    "no matches: no file was searched; check path and glob, or ignore rules left them out".to_owned()
                }
                (files, 0) => format!("no matches in {}", count(files, "file")),
                (files, binary) => format!("no matches in {}, {binary} of them binary", count(files, "file")),
            });
        }
        if self.unshown > 0 {
            let more = if self.unshown >= COUNTED_MAX { format!("{COUNTED_MAX}+") } else { self.unshown.to_string() };
            let noun = if self.unshown == 1 { "match" } else { "matches" };
            self.notices.push(format!("{more} more {noun} not shown; narrow the pattern or path"));
        }
        self.text.finish(&self.notices)
    }
}

impl Skipped {
    fn add(&mut self, path: &Path) {
        self.number += 1;
        if self.names.len() < NAMED_MAX {
            self.names.push(shown(path));
        }
    }

    fn notice(&self, what: &str) -> Option<String> {
        let more = if self.number > self.names.len() as u64 { ", …" } else { "" };
        (self.number > 0).then(|| format!("{} {what}: {}{more}", count(self.number, "file"), self.names.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tools::fixture::Fixture;

    fn project() -> Fixture {
        Fixture::new(&[
            ("src/main.rs", "fn main() {\n    run();\n}\n\nfn run() {}\n"),
            ("src/lib.rs", "pub fn run() {}\n// Run it.\n"),
            ("src.md", "run it\r\nrun\r\n"),
            (".gitignore", "/target\n*.log\n"),
            (".ignore", "!keep.log\n"),
            ("target/out.rs", "fn run() {}\n"),
            ("a.log", "run\n"),
            ("keep.log", "run\n"),
            (".hidden/run.rs", "run\n"),
            (".git/config", "run\n"),
            ("docs/.gitignore", "draft*\n!draft.md\n"),
            ("docs/draft.md", "run 1\n"),
            ("docs/draft2.md", "run 2\n"),
        ])
    }

    #[test]
    fn matches_come_in_the_order_of_paths() {
        let fixture = project();
        insta::assert_snapshot!(fixture.ask::<Grep>(json!({"pattern": r"run\b"})), @r"
        docs/draft.md:1:run 1
        keep.log:1:run
        src/lib.rs:1:pub fn run() {}
        src/main.rs:2:    run();
        src/main.rs:5:fn run() {}
        src.md:1:run it
        src.md:2:run
        ");
    }

    #[test]
    fn the_question_can_be_narrowed() {
        let mut fixture = project();
        for (input, expected) in [
            (json!({"pattern": "run$"}), "keep.log:1:run\nsrc.md:2:run"),
            (json!({"pattern": "RUN IT", "ignore_case": true, "path": "src"}), "src/lib.rs:2:// Run it."),
            (json!({"pattern": "run", "path": "src.md"}), "src.md:1:run it\nsrc.md:2:run"),
            (json!({"pattern": "pub", "glob": "*.rs"}), "src/lib.rs:1:pub fn run() {}"),
            (json!({"pattern": "fn run", "glob": "!main.rs"}), "src/lib.rs:1:pub fn run() {}"),
            (json!({"pattern": "run", "path": "target"}), "target/out.rs:1:fn run() {}"),
            (json!({"pattern": "run", "path": ".hidden"}), ".hidden/run.rs:1:run"),
            (json!({"pattern": "run", "path": "docs"}), "docs/draft.md:1:run 1"),
            (json!({"pattern": "nothing"}), "no matches in 5 files"),
            (
                json!({"pattern": "run", "glob": "*.py"}),
                "no matches: no file was searched; check path and glob, or ignore rules left them out",
            ),
            (
                json!({"pattern": "run", "path": "src", "max_results": 1}),
                "src/lib.rs:1:pub fn run() {}\n[2 more matches not shown; narrow the pattern or path]",
            ),
            (
                json!({"pattern": "run", "path": "src", "max_results": 2}),
                "src/lib.rs:1:pub fn run() {}\nsrc/main.rs:2:    run();\n\
                 [1 more match not shown; narrow the pattern or path]",
            ),
        ] {
            assert_eq!(fixture.ask::<Grep>(input.clone()), expected, "{input}");
        }
        fixture.scope.cwd = "src".into();
        let text = fixture.ask::<Grep>(json!({"pattern": "run", "glob": "src/l*.rs"}));
        assert_eq!(text, "src/lib.rs:1:pub fn run() {}", "paths are from the root");
    }

    #[test]
    fn context_is_told_from_matches() {
        let fixture = Fixture::new(&[("a.txt", "1\n2\nhit\n4\n5\n6\n7\nhit\n9\n"), ("b.txt", "hit\n")]);
        insta::assert_snapshot!(fixture.ask::<Grep>(json!({"pattern": "hit", "context": 1})), @r"
        a.txt-2-2
        a.txt:3:hit
        a.txt-4-4
        --
        a.txt-7-7
        a.txt:8:hit
        a.txt-9-9
        b.txt:1:hit
        ");
        insta::assert_snapshot!(fixture.ask::<Grep>(json!({"pattern": "hit", "context": 3, "max_results": 1})), @r"
        a.txt-1-1
        a.txt-2-2
        a.txt:3:hit
        a.txt-4-4
        a.txt-5-5
        a.txt-6-6
        [2 more matches not shown; narrow the pattern or path]
        ");
    }

    #[test]
    fn a_bad_pattern_is_explained() {
        let fixture = Fixture::new(&[]);
        let text = fixture.ask::<Grep>(json!({"pattern": "fn main("}));
        assert!(text.starts_with("failed: invalid pattern: ") && text.contains("unclosed group"), "{text}");
        assert!(text.contains("escape special characters"), "{text}");
        for pattern in ["(?=a)", r"a\nb", "(a{100}{100}{100})", &"(".repeat(9_000)] {
            let text = fixture.ask::<Grep>(json!({ "pattern": pattern }));
            assert!(text.starts_with("failed: invalid pattern: ") && text.len() < 2_000, "{text}");
        }
        let text = fixture.ask::<Grep>(json!({"pattern": "a".repeat(10_001)}));
        assert_eq!(text, "failed: the pattern is too long: 10001 bytes");
        let text = fixture.ask::<Grep>(json!({"pattern": "a", "glob": "a["}));
        assert_eq!(text, "failed: invalid glob `a[`: unclosed character class; missing ']'");
    }

    #[test]
    fn what_is_not_text_or_too_large_is_left_out() {
        let fixture = Fixture::new(&[("small.txt", "hit\n")]);
        fixture.write("binary.bin", b"hit\n\0\0hit\n");
        fixture.write("large.txt", "hit\n".repeat(3 << 20));
        fixture.write("line.js", format!("{}hit\n", "x".repeat(3 << 20)));
        let sparse = std::fs::File::create(fixture.root().join("sparse")).unwrap();
        sparse.set_len(4 << 30).unwrap();
        let text = fixture.ask::<Grep>(json!({"pattern": "hit", "path": "binary.bin"}));
        assert_eq!(text, "no matches in 1 file, 1 of them binary");
        insta::assert_snapshot!(fixture.ask::<Grep>(json!({"pattern": "hit"})), @r"
        small.txt:1:hit
        [2 files over 8.0 MiB skipped: large.txt, sparse]
        [1 file could not be searched (unreadable, or with too long lines): line.js]
        ");
    }

    #[test]
    fn a_long_line_is_shown_around_its_match() {
        let fixture = Fixture::new(&[]);
        let text = format!("{}hit{}\nhit{}\n", "ä".repeat(500), "x".repeat(1_000), "x".repeat(1_000));
        fixture.write("long.txt", text);
        let text = fixture.ask::<Grep>(json!({"pattern": "hit"}));
        let (first, second) = text.split_once('\n').unwrap();
        let expected = format!("long.txt:1:…{}hit{}… [cut: 2003 bytes]", "ä".repeat(50), "x".repeat(397));
        assert_eq!(first, expected);
        assert_eq!(second, format!("long.txt:2:hit{}… [cut: 1003 bytes]", "x".repeat(497)));
    }

    #[test]
    fn the_output_is_bounded_and_the_rest_counted() {
        let fixture = Fixture::new(&[]);
        for number in 0..30 {
            fixture.write(format!("{number}.txt"), format!("{}\n", "x".repeat(100)).repeat(1_000));
        }
        let text = fixture.ask::<Grep>(json!({"pattern": "x", "max_results": 1_000}));
        assert!(text.len() <= locum_core::limits::TOOL_OUTPUT_BYTES_MAX);
        let end = "[10000+ more matches not shown; narrow the pattern or path]";
        assert!(text.ends_with(end), "{}", text.lines().last().unwrap());
        assert_eq!(text, fixture.ask::<Grep>(json!({"pattern": "x", "max_results": 9_999_999})));
        let text = fixture.ask::<Grep>(json!({"pattern": "x", "path": "1.txt", "max_results": 1_000, "context": 1}));
        let shown = text.lines().count() - 1;
        assert!(text.ends_with(&format!("[{} more matches not shown; narrow the pattern or path]", 1_000 - shown)));
    }

    #[test]
    fn thousands_of_files_take_less_than_a_second() {
        let fixture = Fixture::new(&[]);
        for number in 0..5_000 {
            fixture.write(format!("{}/{number}.rs", number % 50), "fn a() {}\nfn b() {}\n".repeat(50));
        }
        let start = std::time::Instant::now();
        let text = fixture.ask::<Grep>(json!({"pattern": "struct|enum"}));
        assert_eq!(text, "no matches in 5000 files");
        let elapsed = start.elapsed();
        // A build without optimisations on a busy machine may take longer.
        let bound_s = if cfg!(debug_assertions) { 5 } else { 1 };
        assert!(elapsed < std::time::Duration::from_secs(bound_s), "{elapsed:?}");
    }
}
