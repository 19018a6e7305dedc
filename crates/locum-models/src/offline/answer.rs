//! What was found, as an answer: passages as they are written, with where they are. It claims nothing else.

use std::collections::BTreeSet;

use super::evidence::{Evidence, Found};
use super::keywords::{Keyword, Kind};
use super::ranking::Place;
use super::shape::{self, Shape};
use super::{search, speech};

/// Characters of an answer: below what is shown of a result without paging.
const ANSWER_CHARS_MAX: usize = 3500;
/// Passages that are shown.
const PASSAGES_MAX: usize = 5;
/// A passage after the third must have this share of the best one's score.
const PASSAGE_SHARE_MIN: f64 = 0.35;
/// Lines of one passage.
const PASSAGE_LINES_MAX: usize = 11;
/// Characters of one passage.
const PASSAGE_CHARS_MAX: usize = 750;
/// Characters of one line.
const LINE_CHARS_MAX: usize = 150;
/// Characters of a path.
const PATH_CHARS_MAX: usize = 200;
/// Comment lines above a definition that are looked at.
const COMMENT_LINES_MAX: u32 = 40;
/// Comment lines that are shown: of a longer comment, its beginning says what it is about.
const COMMENT_LINES_SHOWN: usize = 5;
/// Further places that are named.
const ALSO_MAX: usize = 12;

/// Whether there was anything to look with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Means {
    /// It could search.
    Tools,
    /// It could not.
    None,
}

/// An answer that is being written, of a bounded length.
struct Answer {
    text: String,
    chars_left: usize,
}

impl Answer {
    fn new(chars_max: usize) -> Self {
        Self { text: String::new(), chars_left: chars_max }
    }

    /// Adds a paragraph if there is room for it.
    fn add(&mut self, paragraph: &str) -> bool {
        let separator = if self.text.is_empty() { "" } else { "\n\n" };
        let chars = paragraph.chars().count() + separator.len();
        let fits = chars <= self.chars_left;
        if fits {
            self.text.push_str(separator);
            self.text.push_str(paragraph);
            self.chars_left -= chars;
        }
        fits
    }
}

/// The answer from places that were found.
pub(super) fn found(evidence: &Evidence, keywords: &[Keyword], places: &[Place], limit: Option<u64>) -> String {
    let mut answer = Answer::new(chars_max(limit));
    let files: BTreeSet<&str> = places.iter().map(|place| place.path.as_str()).collect();
    let is_like = keywords.iter().any(|keyword| keyword.kind == Kind::Beginning);
    let like = if is_like { " words that begin like" } else { "" };
    let at_least = if evidence.is_partial { "at least " } else { "" };
    answer.add(&format!(
        "Found {at_least}{} in {} for{like}: {} (offline search, no language model).",
        count(places.len(), "place", "places"),
        count(files.len(), "file", "files"),
        shown(keywords)
    ));
    let mut also = Vec::new();
    let mut passages = 0;
    for place in places {
        let is_telling = passages < 3 || place.share(places) >= PASSAGE_SHARE_MIN;
        let text = if passages < PASSAGES_MAX && is_telling { passage(evidence, place) } else { None };
        if text.is_some_and(|text| answer.add(&format!("{}\n{text}", name(place)))) {
            passages += 1;
        } else if also.len() < ALSO_MAX {
            let is_seen = evidence.files.get(&place.path).is_some_and(|found| !found.lines.is_empty());
            also.push(if is_seen { name(place) } else { cut(&place.path, PATH_CHARS_MAX) });
        }
    }
    if !also.is_empty() {
        let label = if passages == 0 { "By name" } else { "Also" };
        answer.add(&format!("{label}: {}", also.join(", ")));
    }
    answer.text
}

/// The answer where nothing was found that the task asks for.
pub(super) fn nothing(evidence: &Evidence, keywords: &[Keyword], means: Means, limit: Option<u64>) -> String {
    let mut answer = Answer::new(chars_max(limit));
    answer.add(&match (means, keywords.is_empty()) {
        (Means::None, _) => {
            "This is the offline model: it searches, it is no language model, and it has no tools to look with."
                .to_owned()
        }
        (Means::Tools, true) => {
            "The task names nothing to search for. What there is (offline search, no language model):".to_owned()
        }
        (Means::Tools, false) => {
            format!("Found nothing for: {} (offline search, no language model).", shown(keywords))
        }
    });
    let heads = evidence.files.iter().filter(|(path, found)| {
        !found.lines.is_empty() && (Evidence::is_handed_on(path) || search::is_introduction(path))
    });
    let mut heads: Vec<_> = heads.collect();
    heads.sort_by_key(|(path, _)| !search::is_readme(path));
    for (path, found) in heads {
        let head = Place::at(path, found.lines.keys().next().copied().unwrap_or(1));
        if let Some(text) = passage(evidence, &head) {
            answer.add(&format!("{}\n{text}", name(&head)));
        }
    }
    let names = names(evidence);
    if !names.is_empty() {
        answer.add(&format!("Names that do occur: {}", names.join(", ")));
    }
    answer.add("A language model gives real answers: set OPENAI_API_KEY or another provider's key, or use --model.");
    answer.text
}

fn chars_max(limit: Option<u64>) -> usize {
    let tokens = limit.and_then(|tokens| usize::try_from(tokens).ok()).unwrap_or(usize::MAX);
    // Less than one sentence helps nobody; the engine, not this model, keeps the budget.
    tokens.saturating_mul(locum_core::limits::CHARS_PER_TOKEN).clamp(200, ANSWER_CHARS_MAX)
}

fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

fn shown(keywords: &[Keyword]) -> String {
    let most = keywords.first().map_or(0.0, |keyword| keyword.weight);
    // Words that merely help to choose are not what was searched for.
    let own = keywords.iter().filter(|keyword| keyword.stands_alone() && keyword.weight >= 0.1 * most);
    let names: Vec<String> = own.take(8).map(|keyword| cut(&keyword.shown, 60)).collect();
    names.join(", ")
}

fn name(place: &Place) -> String {
    format!("{}:{}", cut(&place.path, PATH_CHARS_MAX), place.line)
}

fn names(evidence: &Evidence) -> Vec<String> {
    let files = evidence.files.keys().filter(|path| !Evidence::is_handed_on(path));
    let mut names: Vec<String> = evidence.listed.iter().chain(files).map(|name| cut(name, 60)).collect();
    names.retain(|name| !matches!(name.as_str(), "." | "./"));
    names.sort_unstable();
    names.dedup();
    names.truncate(30);
    names
}

/// The most telling lines around a place, as they are written.
fn passage(evidence: &Evidence, place: &Place) -> Option<String> {
    let found = evidence.files.get(&place.path)?;
    let mut lines = lead(found, place);
    let mut chars: usize = lines.iter().map(|(_, text)| shown_chars(text)).sum();
    for (number, text) in found.lines.range(place.line..) {
        let gap = lines.last().is_some_and(|(last, _)| number - last > 1);
        chars += shown_chars(text);
        let is_full = lines.len() >= PASSAGE_LINES_MAX || chars > PASSAGE_CHARS_MAX;
        let is_over = closes(found, place, &lines) || (*number > place.last && (gap || pauses(place, &lines, text)));
        if *number > place.line && (is_full || is_over) {
            break;
        }
        lines.push((*number, text));
    }
    while lines.last().is_some_and(|(_, text)| text.trim().is_empty()) {
        lines.pop();
    }
    let written = written(&lines);
    (!written.trim().is_empty()).then_some(written)
}

fn shown_chars(text: &str) -> usize {
    text.trim().chars().count().min(LINE_CHARS_MAX)
}

/// Whether what the place defines is closed: a brace as far to the left as its beginning.
fn closes(found: &Found, place: &Place, lines: &[(u32, &str)]) -> bool {
    let indent = |text: &str| text.len() - text.trim_start().len();
    let Some(text) = found.lines.get(&place.line) else { return false };
    let is_definition = matches!(Shape::of(&place.path, text), Shape::Definition(_));
    let is_brace = |(number, last): &(u32, &str)| {
        *number > place.line && last.trim_start().starts_with('}') && indent(last) <= indent(text)
    };
    is_definition && lines.last().is_some_and(is_brace)
}

/// Whether a passage may end before this line: it is blank, after enough.
fn pauses(place: &Place, lines: &[(u32, &str)], text: &str) -> bool {
    let after = lines.iter().filter(|(number, _)| *number >= place.line).count();
    text.trim().is_empty() && after >= 4
}

/// What is shown before the line itself: the comment above it, or the lines from the first keyword on.
fn lead<'a>(found: &'a Found, place: &Place) -> Vec<(u32, &'a str)> {
    let line = |number: u32| found.lines.get(&number).map(|text| (number, text.as_str()));
    let above = (1..=COMMENT_LINES_MAX).map_while(|above| line(place.line.checked_sub(above)?));
    let mut comment: Vec<(u32, &str)> = above.take_while(|(_, text)| shape::is_comment(text)).collect();
    comment.reverse();
    let begins = comment.first().is_some_and(|(first, _)| *first == 1 || line(first - 1).is_some());
    let text = line(place.line).map(|(_, text)| text).unwrap_or_default();
    match Shape::of(&place.path, text) {
        Shape::Comment => comment.split_off(comment.len().saturating_sub(3)),
        Shape::Definition(_) | Shape::Heading | Shape::Field(_) if begins => {
            comment.truncate(COMMENT_LINES_SHOWN);
            comment
        }
        Shape::Definition(_) | Shape::Heading | Shape::Field(_) => {
            comment.split_off(comment.len().saturating_sub(COMMENT_LINES_SHOWN))
        }
        Shape::Import | Shape::Assertion | Shape::Other => {
            let first = place.first.clamp(place.line.saturating_sub(4), place.line);
            (first..place.line).filter_map(line).collect()
        }
    }
}

/// Lines without the indentation that they share, each indented by four.
fn written(lines: &[(u32, &str)]) -> String {
    let clean: Vec<(u32, String)> = lines.iter().map(|(number, text)| (*number, plain(text))).collect();
    let texts = clean.iter().map(|(_, text)| text).filter(|text| !text.trim().is_empty());
    let shared = texts.map(|text| text.len() - text.trim_start_matches(' ').len()).min().unwrap_or(0);
    let mut written = String::new();
    let mut before: Option<u32> = None;
    for (number, text) in &clean {
        if before.is_some_and(|before| number - before > 1) {
            written.push_str("    …\n");
        }
        before = Some(*number);
        let text = cut(text.get(shared..).unwrap_or_default().trim_end(), LINE_CHARS_MAX);
        let indent = if text.is_empty() { "" } else { "    " };
        written.push_str(&format!("{indent}{text}\n"));
    }
    written.trim_end().to_owned()
}

/// A line without what a terminal would obey.
fn plain(text: &str) -> String {
    let text = text.replace('\t', "    ");
    let is_shown = |c: &char| !c.is_control() && !matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().filter(is_shown).collect()
}

fn cut(text: &str, chars_max: usize) -> String {
    let text = plain(text);
    let end = speech::chars_end(&text, chars_max);
    if end == text.len() { text } else { format!("{}…", &text[..end]) }
}

#[cfg(test)]
mod tests {
    use super::super::{keywords, ranking};
    use super::*;

    fn answer(task: &str, path: &str, text: &str, limit: Option<u64>) -> String {
        let mut evidence = Evidence::default();
        let lines = (1..).zip(text.lines().map(str::to_owned)).collect();
        evidence.files.insert(path.to_owned(), Found { lines, ..Found::default() });
        let keywords = keywords::extract(task);
        let places = ranking::rank(&evidence, &keywords);
        found(&evidence, &keywords, &places, limit)
    }

    #[test]
    fn passages_are_whole_and_no_longer() {
        for (text, expected) in [
            // The comment belongs to what is defined, and what follows the brace does not.
            (
                "use a;\n\n    /// Weighs.\n    fn parcel() {\n        1\n    }\n    fn other() {\n",
                "a.rs:4\n    /// Weighs.\n    fn parcel() {\n        1\n    }",
            ),
            // Of a long comment, the beginning is shown.
            (
                "\n/// 1\n/// 2\n/// 3\n/// 4\n/// 5\n/// 6\n/// 7\nconst PARCEL: u8 = 1;\n",
                "a.rs:9\n    /// 1\n    /// 2\n    /// 3\n    /// 4\n    /// 5\n    …\n    const PARCEL: u8 = 1;",
            ),
            ("\t\tlet a = parcel;\n\t\t\tb\n", "a.rs:1\n    let a = parcel;\n        b"),
        ] {
            let answer = answer("parcel", "a.rs", text, None);
            let head = "Found 1 place in 1 file for: parcel (offline search, no language model).";
            assert_eq!(answer, format!("{head}\n\n{expected}"));
        }
    }

    #[test]
    fn what_a_terminal_would_obey_is_left_out_and_lengths_are_bounded() {
        let text = format!("\u{1b}[31mparcel\u{202e} {}", "x".repeat(100_000));
        let answer = answer("parcel", &"p".repeat(5000), &text, None);
        assert!(answer.chars().count() < 700, "{}", answer.len());
        assert!(!answer.contains(['\u{1b}', '\u{202e}']));
    }

    #[test]
    fn a_small_output_limit_is_kept() {
        let text = "parcel one\n\n\n\n\n".repeat(100);
        assert!(answer("parcel", "a.rs", &text, Some(100)).chars().count() <= 400);
        assert!(answer("parcel", "a.rs", &text, Some(u64::MAX)).chars().count() <= ANSWER_CHARS_MAX);
    }
}
