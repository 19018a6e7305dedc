//! What kind of line and what kind of file something is, by its looks. No language is parsed.

use super::keywords::squeeze;

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape<'a> {
    /// It defines something with this name.
    Definition(&'a str),
    /// A field or a key with this name.
    Field(&'a str),
    /// A heading in Markdown.
    Heading,
    /// It brings in something that is defined elsewhere.
    Import,
    /// It checks something in a test.
    Assertion,
    /// A comment or documentation.
    Comment,
    /// Anything else.
    Other,
}

/// Words that may stand before a definition.
const MODIFIERS: &[&str] = &[
    "abstract",
    "async",
    "declare",
    "default",
    "export",
    "extern",
    "final",
    "inline",
    "internal",
    "local",
    "open",
    "override",
    "private",
    "protected",
    "pub",
    "public",
    "static",
    "suspend",
    "unsafe",
    "virtual",
];

/// Words that a definition begins with; its name follows.
const DEFINERS: &[&str] = &[
    "class",
    "const",
    "def",
    "defmodule",
    "defp",
    "enum",
    "fn",
    "fun",
    "func",
    "function",
    "impl",
    "interface",
    "macro",
    "macro_rules!",
    "mod",
    "module",
    "namespace",
    "object",
    "record",
    "static",
    "struct",
    "trait",
    "type",
    "typedef",
    "union",
    "#define",
];

impl Shape<'_> {
    /// What a line of a file with this path is.
    pub(super) fn of<'a>(path: &str, text: &'a str) -> Shape<'a> {
        let text = text.trim_start();
        let is_prose = has_extension(path, &["md", "markdown", "rst", "txt", "adoc"]);
        if is_prose {
            return if text.starts_with('#') { Shape::Heading } else { Shape::Other };
        }
        if let Some(name) = defined_name(text) {
            return Shape::Definition(name);
        }
        let begins = |beginnings: &[&str]| beginnings.iter().any(|beginning| text.starts_with(beginning));
        if begins(&["use ", "pub use ", "mod ", "pub mod ", "import ", "from ", "#include", "require(", "using "]) {
            Shape::Import
        } else if begins(&["assert", "expect(", "self.assert", "EXPECT_", "ASSERT_", "t.Error", "t.Fatal"]) {
            Shape::Assertion
        } else if is_comment(text) {
            Shape::Comment
        } else if let Some(name) = field_name(text) {
            Shape::Field(name)
        } else {
            Shape::Other
        }
    }
}

/// Whether a line is a comment, documentation or an attribute: what stands above a definition and belongs to it.
pub(super) fn is_comment(text: &str) -> bool {
    let text = text.trim_start();
    let beginnings = ["//", "/*", "* ", "*/", "# ", "#[", "#!", "@", "--", "\"\"\"", ";;", "<!--"];
    text == "*" || text == "#" || beginnings.iter().any(|beginning| text.starts_with(beginning))
}

fn defined_name(text: &str) -> Option<&str> {
    let mut rest = text;
    // No definition has more words before its name.
    for _ in 0..6 {
        let (word, after) = rest.split_once([' ', '\t'])?;
        let plain = word.split_once('(').map_or(word, |(plain, _)| plain);
        let after = after.trim_start();
        let definer = DEFINERS.contains(&word) || word.starts_with("impl<");
        if definer && starts_definer(after) {
            // `const fn name`, `static class Name`: the next word defines.
            rest = after;
        } else if word == "mod" && after.ends_with(';') {
            // It is written elsewhere.
            return None;
        } else if definer {
            return name_after(word, after);
        } else if MODIFIERS.contains(&plain) || word.starts_with('"') {
            rest = after;
        } else {
            return None;
        }
    }
    None
}

fn starts_definer(text: &str) -> bool {
    let word = text.split([' ', '\t']).next().unwrap_or_default();
    DEFINERS.contains(&word) || matches!(word, "async" | "unsafe" | "extern")
}

fn name_after<'a>(definer: &str, after: &'a str) -> Option<&'a str> {
    if definer.starts_with("impl") {
        return after.split(['{', ';']).next().map(str::trim).filter(|name| !name.is_empty());
    }
    // `func (r *Receiver) Name(` of Go.
    let after = match (definer, after.split_once(')')) {
        ("func", Some((_, method))) if after.starts_with('(') => method.trim_start(),
        _ => after,
    };
    let after = after.trim_start_matches("mut ").trim_start_matches(['*', '&']);
    let end = after.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '$').unwrap_or(after.len());
    (end > 0).then(|| &after[..end])
}

/// The name of a field, a key of a file of settings, or a variable that is set.
fn field_name(text: &str) -> Option<&str> {
    let text = text.strip_prefix("pub ").unwrap_or(text).trim_start_matches(['"', '\'', '[']);
    let end = text.find(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-' | '.'))?;
    let (name, after) = text.split_at(end);
    let after = after.trim_start_matches(['"', '\'']).trim_start();
    let sets = (after.starts_with(": ") || after.starts_with("= ") || after == ":") && !name.is_empty();
    (sets && !name.chars().all(char::is_numeric)).then_some(name)
}

/// What a test counts: it shows how something is used, not what it is.
pub(super) const TEST_FACTOR: f64 = 0.45;

/// How much a file counts, by its path: what is written by hand to be run counts most.
pub(super) fn file_factor(path: &str, asks_for_tests: bool) -> f64 {
    let lower = path.to_lowercase();
    let folders = || lower.split('/').rev().skip(1);
    let file = lower.rsplit('/').next().unwrap_or_default();
    let in_folder = |names: &[&str]| folders().any(|folder| names.contains(&folder));
    let begins = |names: &[&str]| names.iter().any(|name| file.starts_with(name));
    if in_folder(&["node_modules", "vendor", "third_party", "target", "dist", ".git", "site-packages"])
        || has_extension(&lower, &["lock", "map", "snap", "svg", "csv", "po"])
        || file.contains(".min.")
        || file.contains("lock.json")
        || file.contains("generated")
        || begins(&["bindgen", "package-lock"])
    {
        return 0.2;
    }
    if begins(&["changelog", "changes", "history", "news", "release", "licen", "copying"]) {
        return 0.4;
    }
    let is_test = in_folder(&["test", "tests", "__tests__", "testdata", "fixtures", "spec", "snapshots"])
        || file.starts_with("test_")
        || ["_test.", ".test.", ".spec.", "_spec.", "tests."].iter().any(|mark| file.contains(mark));
    if is_test && !asks_for_tests {
        return TEST_FACTOR;
    }
    if in_folder(&["examples", "example", "benches", "bench", "benchmarks", "demo"]) {
        return 0.75;
    }
    if has_extension(&lower, &["md", "markdown", "rst", "txt", "adoc"]) { 0.85 } else { 1.0 }
}

/// Whether a line begins the tests that some languages keep at the end of a file.
pub(super) fn begins_tests(text: &str) -> bool {
    let text = text.trim();
    ["mod tests {", "mod test {", "if __name__ =="].iter().any(|beginning| text.starts_with(beginning))
}

/// Whether a path ends with one of these extensions.
fn has_extension(path: &str, extensions: &[&str]) -> bool {
    let extension = path.rsplit_once('.').map(|(_, extension)| extension).unwrap_or_default();
    extensions.contains(&extension)
}

/// Whether a defined name is long for what is asked: `quiet_hours_are_kept_after_a_reset` merely mentions it.
pub(super) fn is_sentence(name: &str) -> bool {
    name.len() > 30 && name.len() - squeeze(name).len() >= 5
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_told_apart() {
        for (path, text, expected) in [
            ("a.rs", "    pub(crate) async fn wait(x: u8) {", Shape::Definition("wait")),
            ("a.rs", "pub const fn new() -> Self {", Shape::Definition("new")),
            ("a.rs", "pub const LIMIT: usize = 3;", Shape::Definition("LIMIT")),
            ("a.rs", "impl<T> Model for Offline<T> {", Shape::Definition("Model for Offline<T>")),
            ("a.rs", "macro_rules! check {", Shape::Definition("check")),
            ("a.rs", "pub unsafe extern \"C\" fn raw()", Shape::Definition("raw")),
            ("a.go", "func (s *Server) Listen(port int) error {", Shape::Definition("Listen")),
            ("a.py", "async def fetch(url):", Shape::Definition("fetch")),
            ("a.ts", "export default class Store {", Shape::Definition("Store")),
            ("a.c", "#define MAX 3", Shape::Definition("MAX")),
            ("a.rs", "pub timeout: Duration,", Shape::Field("timeout")),
            ("a.yml", "retries: 3", Shape::Field("retries")),
            ("a.toml", "max-turns = 3", Shape::Field("max-turns")),
            ("a.json", "\"name\": \"x\",", Shape::Field("name")),
            ("a.md", "## Retries", Shape::Heading),
            ("a.rs", "use std::fmt;", Shape::Import),
            ("a.rs", "pub mod shape;", Shape::Import),
            ("a.rs", "pub mod shape {", Shape::Definition("shape")),
            ("a.rs", "assert_eq!(a, b);", Shape::Assertion),
            ("a.rs", "/// Says why.", Shape::Comment),
            ("a.rs", "let x = class;", Shape::Other),
            ("a.rs", "", Shape::Other),
            ("a.rs", "fn ", Shape::Other),
        ] {
            assert_eq!(Shape::of(path, text), expected, "{text}");
        }
    }

    #[test]
    fn files_are_told_apart() {
        let order = ["src/a.rs", "docs/a.md", "examples/a.rs", "tests/a.rs", "CHANGELOG.md", "Cargo.lock"];
        let factors = order.map(|path| file_factor(path, false));
        assert!(factors.is_sorted_by(|a, b| a > b), "{factors:?}");
        assert!(file_factor("tests/a.rs", true) > file_factor("tests/a.rs", false));
    }
}
