//! Which tools to call next, and with what.

use std::collections::BTreeMap;

use locum_core::transcript::{Prompt, ToolSpec};
use serde_json::{Map, Value, json};

use super::evidence::Evidence;
use super::keywords::{self, Keyword, Kind};
use super::ranking::Place;

/// Keywords that are searched for one by one; the others only help to choose.
const SEARCHED_MAX: usize = 6;
/// Keywords that file names are searched for.
const NAMES_MAX: usize = 4;
/// Lines that one `grep` may return: a word with more is too common to be looked at everywhere.
const MATCHES_MAX: u32 = 200;
/// Files that are searched again where the first search had to leave something out.
const FOCUS_FILES_MAX: usize = 6;
/// Places that are read.
const READ_PLACES_MAX: usize = 6;
/// Lines that are read before and after a place.
const READ_BEFORE: u32 = 24;
const READ_AFTER: u32 = 12;
/// Lines of a file that is read from its beginning.
const READ_HEAD: u32 = 60;

/// What begins a definition in the languages that are common.
const DEFINERS: &str =
    "(fn|def|class|struct|enum|trait|type|interface|const|static|impl|func|function|macro_rules!|module|#define)";

/// Where tests begin in a file that has both code and tests.
pub(super) const TESTS_PATTERN: &str = "^mod tests? \\{";

/// Files that say what a project is.
const MANIFESTS: &[&str] = &["Cargo.toml", "package.json", "pyproject.toml", "go.mod", "pom.xml", "mix.exs"];

/// A tool to call.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Request {
    /// Its name.
    pub(super) tool: &'static str,
    /// Its input.
    pub(super) input: Value,
}

/// The tools that the agent has, as far as they are of use.
pub(super) struct Toolbox<'a> {
    tools: &'a [ToolSpec],
}

impl<'a> Toolbox<'a> {
    /// The tools of a prompt.
    pub(super) fn new(prompt: &Prompt<'a>) -> Self {
        Self { tools: prompt.tools }
    }

    /// Whether there is nothing to look with.
    pub(super) fn is_empty(&self) -> bool {
        !["grep", "find", "read", "ls", "tree"].into_iter().any(|tool| self.has(tool))
    }

    fn has(&self, tool: &str) -> bool {
        self.tools.iter().any(|spec| spec.name == tool)
    }

    /// Asks a tool, if the agent has it, with as much of the input as the tool knows.
    pub(super) fn request(&self, tool: &'static str, input: Value) -> Option<Request> {
        let spec = self.tools.iter().find(|spec| spec.name == tool)?;
        let known = spec.input_schema.get("properties").and_then(Value::as_object);
        let input = match (input, known) {
            (Value::Object(fields), Some(known)) => {
                let fields = fields.into_iter().filter(|(field, _)| known.contains_key(field));
                Value::Object(fields.collect::<Map<_, _>>())
            }
            (input, _) => input,
        };
        Some(Request { tool, input })
    }

    fn grep(&self, pattern: &str, path: Option<&str>) -> Option<Request> {
        let mut input = json!({"pattern": pattern, "ignore_case": true, "max_results": MATCHES_MAX});
        if let (Some(path), Some(fields)) = (path, input.as_object_mut()) {
            fields.insert("path".to_owned(), path.into());
        }
        self.request("grep", input)
    }

    fn read(&self, path: &str, offset: u32, limit: u32) -> Option<Request> {
        self.request("read", json!({"path": path, "offset": offset, "limit": limit}))
    }
}

/// The first look: each keyword, what is defined with one, where two stand together, and files that are named so.
pub(super) fn survey(toolbox: &Toolbox<'_>, keywords: &[Keyword]) -> Vec<Request> {
    let own: Vec<&Keyword> = keywords.iter().filter(|keyword| keyword.kind != Kind::Part).take(SEARCHED_MAX).collect();
    let patterns: Vec<String> = own.iter().map(|keyword| pattern(keyword)).collect();
    let mut requests: Vec<Request> = patterns.iter().filter_map(|pattern| toolbox.grep(pattern, None)).collect();
    let any = patterns.join("|");
    if !any.is_empty() {
        requests.extend(toolbox.grep(&format!("{DEFINERS}\\s+\\w*({any})"), None));
    }
    requests.extend(together(&own).and_then(|pattern| toolbox.grep(&pattern, None)));
    let parts: Vec<String> = keywords.iter().filter(|keyword| keyword.kind == Kind::Part).map(pattern).collect();
    if !parts.is_empty() && own.len() <= 2 {
        requests.extend(toolbox.grep(&format!("{DEFINERS}\\s+\\w*({})", parts.join("|")), None));
    }
    requests.extend(toolbox.grep(TESTS_PATTERN, None));
    let globs = own.iter().filter_map(|keyword| glob(keyword)).take(NAMES_MAX);
    requests.extend(globs.filter_map(|glob| toolbox.request("find", json!({"pattern": glob}))));
    if !toolbox.has("find") && !toolbox.has("grep") {
        let paths = own.iter().filter(|keyword| keyword.kind == Kind::Path);
        requests.extend(paths.filter_map(|keyword| toolbox.read(&keyword.shown, 1, READ_HEAD)));
    }
    if requests.is_empty() { overview(toolbox) } else { requests }
}

/// A second look at the best files alone, where the first had to leave something out.
pub(super) fn focus(toolbox: &Toolbox<'_>, keywords: &[Keyword], places: &[Place]) -> Vec<Request> {
    let any: Vec<String> = keywords.iter().map(pattern).collect();
    let mut paths: Vec<&str> = Vec::new();
    for place in places {
        if !paths.contains(&place.path.as_str()) && !Evidence::is_handed_on(&place.path) {
            paths.push(&place.path);
        }
    }
    let paths = paths.into_iter().take(FOCUS_FILES_MAX);
    paths.filter_map(|path| toolbox.grep(&any.join("|"), Some(path))).collect()
}

/// A second look where the first found nothing: the beginnings of the words.
pub(super) fn broaden(toolbox: &Toolbox<'_>, keywords: &[Keyword]) -> Vec<Request> {
    let broad: Vec<Keyword> = broadened(keywords);
    let mut patterns: Vec<&str> =
        broad.iter().flat_map(|keyword| &keyword.variants).map(|variant| variant.pattern.as_str()).collect();
    patterns.sort_unstable();
    patterns.dedup();
    let any = (!patterns.is_empty()).then(|| patterns.join("|"));
    any.and_then(|any| toolbox.grep(&any, None)).into_iter().chain(overview(toolbox)).collect()
}

/// The beginnings of what a task says.
pub(super) fn broadened(keywords: &[Keyword]) -> Vec<Keyword> {
    keywords.iter().filter(|keyword| keyword.stands_alone()).map(Keyword::broadened).collect()
}

/// What there is at all.
pub(super) fn overview(toolbox: &Toolbox<'_>) -> Vec<Request> {
    let manifests = format!("{{{}}}", MANIFESTS.join(","));
    let requests = [
        toolbox.request("find", json!({"pattern": "README*"})),
        toolbox.request("find", json!({"pattern": manifests})),
        toolbox.request("ls", json!({"path": "."})).or_else(|| toolbox.request("tree", json!({"path": "."}))),
    ];
    let found: Vec<Request> = requests.into_iter().flatten().collect();
    if found.is_empty() { toolbox.read("README.md", 1, READ_HEAD).into_iter().collect() } else { found }
}

/// Reads the best places. Places that lie close together are read at once.
pub(super) fn reads(toolbox: &Toolbox<'_>, places: &[Place]) -> Vec<Request> {
    let mut ranges: BTreeMap<&str, Vec<(u32, u32)>> = BTreeMap::new();
    let files = places.iter().filter(|place| !Evidence::is_handed_on(&place.path));
    for place in files.take(READ_PLACES_MAX) {
        let first = place.first.min(place.line).saturating_sub(READ_BEFORE).max(1);
        let last = if place.line == 1 { READ_HEAD } else { place.last.max(place.line).saturating_add(READ_AFTER) };
        ranges.entry(&place.path).or_default().push((first, last));
    }
    let mut requests = Vec::new();
    for (path, ranges) in ranges {
        let merged = merge(ranges);
        requests.extend(merged.into_iter().filter_map(|(first, last)| toolbox.read(path, first, last - first + 1)));
    }
    requests
}

/// Reads what says what a project is, of the files that were found.
pub(super) fn introductions(toolbox: &Toolbox<'_>, evidence: &Evidence) -> Vec<Request> {
    let names = evidence.files.keys().map(String::as_str).chain(evidence.listed.iter().map(String::as_str));
    let mut paths: Vec<&str> = names.filter(|path| is_introduction(path)).collect();
    paths.sort_by_key(|path| (!is_readme(path), path.len(), *path));
    paths.dedup();
    paths.into_iter().take(2).filter_map(|path| toolbox.read(path, 1, READ_HEAD)).collect()
}

/// Whether a file at the top says what a project is.
pub(super) fn is_introduction(path: &str) -> bool {
    MANIFESTS.contains(&path) || is_readme(path)
}

/// Whether a file at the top is written for whoever comes first.
pub(super) fn is_readme(path: &str) -> bool {
    path.to_lowercase().starts_with("readme") && !path.contains('/')
}

fn merge(mut ranges: Vec<(u32, u32)>) -> Vec<(u32, u32)> {
    ranges.sort_unstable();
    let mut merged: Vec<(u32, u32)> = Vec::new();
    for (first, last) in ranges {
        match merged.last_mut() {
            Some((_, end)) if first <= end.saturating_add(3) => *end = last.max(*end),
            _ => merged.push((first, last)),
        }
    }
    merged
}

fn pattern(keyword: &Keyword) -> String {
    let patterns: Vec<&str> = keyword.variants.iter().map(|variant| variant.pattern.as_str()).collect();
    patterns.join("|")
}

/// Lines on which two keywords stand, in any order: the most telling ones, found however common each is.
fn together(keywords: &[&Keyword]) -> Option<String> {
    let single = keywords.iter().filter(|keyword| !keyword.shown.contains(' '));
    let patterns: Vec<String> = single.map(|keyword| pattern(keyword)).collect();
    let pairs = patterns.iter().enumerate().filter_map(|(index, one)| {
        let others: Vec<&str> =
            patterns.iter().enumerate().filter(|(other, _)| *other != index).map(|(_, other)| other.as_str()).collect();
        (!others.is_empty()).then(|| format!("({one}).*({})", others.join("|")))
    });
    let pairs: Vec<String> = pairs.collect();
    (!pairs.is_empty()).then(|| pairs.join("|"))
}

/// File names with a keyword in them.
fn glob(keyword: &Keyword) -> Option<String> {
    let is_plain = |text: &str| text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/'));
    match keyword.kind {
        Kind::Path => is_plain(&keyword.shown).then(|| format!("**/{}", keyword.shown)),
        Kind::Word => {
            let stem = &keyword.variants.first()?.text;
            (is_plain(stem) && !stem.contains('/')).then(|| format!("**/*{}*", any_case(stem)))
        }
        Kind::Name => {
            let parts: Vec<String> = keywords::parts(&keyword.shown).iter().map(|part| any_case(part)).collect();
            (!parts.is_empty()).then(|| format!("**/*{}*", parts.join("*")))
        }
        Kind::Literal | Kind::Part | Kind::Beginning => None,
    }
}

/// A word that may begin with a capital, as a glob.
fn any_case(word: &str) -> String {
    let Some(first) = word.chars().next() else { return String::new() };
    let upper: String = first.to_uppercase().collect();
    if upper.chars().count() != 1 || upper.starts_with(first) {
        return word.to_owned();
    }
    format!("[{first}{upper}]{}", &word[first.len_utf8()..])
}

#[cfg(test)]
mod tests {
    use super::super::keywords::extract;
    use super::*;

    #[test]
    fn ranges_that_touch_are_read_at_once() {
        assert_eq!(merge(vec![(20, 30), (1, 8), (32, 40), (50, 60)]), [(1, 8), (20, 40), (50, 60)]);
        assert_eq!(merge(vec![(5, u32::MAX), (7, 9)]), [(5, u32::MAX)]);
    }

    #[test]
    fn names_are_looked_for_in_any_case() {
        for (task, expected) in [
            ("policies", Some("**/*[pP]olic*")),
            ("RouteFinder", Some("**/*[rR]oute*[fF]inder*")),
            ("src/a.rs", Some("**/src/a.rs")),
            ("`--no-color`", None),
            ("\"two words\"", None),
        ] {
            assert_eq!(glob(extract(task).first().unwrap()).as_deref(), expected, "{task}");
        }
    }

    #[test]
    fn patterns_find_names_however_they_are_written() {
        for (task, expected) in [
            ("RouteFinder", "route[_ -]?finder"),
            ("quiet_hours", "quiet[_ -]?hours"),
            ("a.b(c)?", "a\\.b\\(c|b\\(c"),
            ("id", "(\\b|_)id(s?\\b|_)"),
            ("\"a (b) [c]\"", "a \\(b\\) \\[c\\]"),
        ] {
            assert_eq!(extract(task).first().map(pattern).as_deref(), Some(expected), "{task}");
        }
    }
}
