//! What a task is about, as words to look for. Names from code count most, then words, then their parts.

use super::vocabulary::{self, Worth};

/// Characters of a task that are looked at: a question comes first, and what follows is material.
const TASK_CHARS_MAX: usize = 4000;
/// Keywords that are kept: more would make every line match.
const KEYWORDS_MAX: usize = 10;
/// A quoted text that is longer is read as words.
const QUOTED_CHARS_MAX: usize = 60;
/// Files that are named by what they end with.
const EXTENSIONS: &[&str] = &[
    "c", "cc", "cfg", "cpp", "cs", "css", "ex", "go", "h", "hpp", "html", "ini", "java", "js", "json", "jsx", "kt",
    "lock", "lua", "md", "php", "proto", "py", "rb", "rs", "rst", "scala", "sh", "sql", "swift", "toml", "ts", "tsx",
    "txt", "vue", "xml", "yaml", "yml", "zig",
];

/// One thing that a task is about.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Keyword {
    /// As the task says it.
    pub(super) shown: String,
    /// How it may be written where it is found.
    pub(super) variants: Vec<Variant>,
    /// How much it counts.
    pub(super) weight: f64,
    /// What it is.
    pub(super) kind: Kind,
}

/// One way to write a keyword.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Variant {
    /// In lower case, without what [`squeeze`] takes away if the keyword is a name of several words.
    pub(super) text: String,
    /// The same as a regular expression for `grep`.
    pub(super) pattern: String,
    /// How good it is to find this one, up to 1.
    pub(super) factor: f64,
}

impl Variant {
    /// Text that is compared as it is.
    fn verbatim(text: &str, factor: f64) -> Self {
        let text = text.to_lowercase();
        Self { pattern: escape(&text), text, factor }
    }

    /// The beginning of a word.
    fn stem(stem: &str, factor: f64) -> Self {
        let mut variant = Self::verbatim(stem, factor);
        if stem.chars().count() <= SHORT_CHARS_MAX {
            // Within longer words a short one is everywhere.
            variant.pattern = format!("(\\b|_){}(s?\\b|_)", variant.pattern);
        }
        variant
    }

    /// A name of several words, however they are joined.
    fn name(name: &str, factor: f64) -> Self {
        let mut pattern = String::new();
        let mut after_lower = false;
        for character in name.chars() {
            let is_separator = matches!(character, '_' | '-' | ' ');
            if is_separator || (after_lower && character.is_uppercase()) {
                pattern.push_str("[_ -]?");
            }
            if !is_separator {
                pattern.push_str(&escape(&character.to_lowercase().to_string()));
            }
            after_lower = character.is_lowercase();
        }
        Self { text: squeeze(&name.to_lowercase()), pattern, factor }
    }
}

/// Words up to this length are only found whole.
pub(super) const SHORT_CHARS_MAX: usize = 3;

/// A text as a regular expression that matches it.
fn escape(text: &str) -> String {
    let escaped = text.chars().flat_map(|character| {
        let needs =
            character.is_ascii_punctuation() && !matches!(character, '_' | '/' | '"' | '\'' | '`' | ',' | '<' | '>');
        needs.then_some('\\').into_iter().chain([character])
    });
    escaped.collect()
}

/// What a keyword is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A word.
    Word,
    /// A name from code, or several words that may be written as one: compared without `_`, `-` and spaces.
    Name,
    /// Exactly this text: a quotation, a flag, an error code with punctuation.
    Literal,
    /// The path or name of a file.
    Path,
    /// A part of another keyword; it does not stand for itself.
    Part,
    /// What a word begins with, where nothing has the word itself.
    Beginning,
}

impl Keyword {
    fn new(shown: &str, kind: Kind, weight: f64, variants: Vec<Variant>) -> Self {
        Self { shown: shown.to_owned(), variants, weight, kind }
    }

    /// Whether it is something that the task says, not made of it.
    pub(super) fn stands_alone(&self) -> bool {
        matches!(self.kind, Kind::Word | Kind::Literal | Kind::Path | Kind::Beginning) || self.is_name()
    }

    /// Whether it is a name from code, not two words of the task that may be one.
    pub(super) fn is_name(&self) -> bool {
        self.kind == Kind::Name && !self.shown.contains(' ')
    }

    /// Whether it is named as types are in most languages.
    pub(super) fn is_type(&self) -> bool {
        self.is_name() && is_type_name(&self.shown)
    }

    /// The same keyword as only the beginnings of its words, for a second try that finds more.
    pub(super) fn broadened(&self) -> Self {
        let words = self.variants.iter().flat_map(|variant| variant.text.split(|c: char| !c.is_alphanumeric()));
        let beginnings = words.filter(|word| word.chars().count() >= 4).map(|word| {
            let keep = (word.chars().count() * 3).div_ceil(4).max(4);
            Variant::verbatim(&word.chars().take(keep).collect::<String>(), 1.0)
        });
        Self { variants: deduplicated(beginnings.collect()), kind: Kind::Beginning, ..self.clone() }
    }
}

/// A text as names are compared: in lower case, without what separates their words.
pub(super) fn squeeze(lower: &str) -> String {
    lower.chars().filter(|character| !matches!(character, '_' | '-' | ' ')).collect()
}

/// The keywords of a task, the most important first.
pub(super) fn extract(task: &str) -> Vec<Keyword> {
    let end = super::speech::chars_end(task, TASK_CHARS_MAX);
    let mut gathered = Gathered::default();
    for (index, paragraph) in task[..end].split("\n\n").enumerate() {
        // What follows the first paragraph is more often material than question.
        gathered.factor = if index == 0 { 1.0 } else { 0.4 };
        gathered.paragraph(paragraph);
    }
    gathered.finish()
}

#[derive(Default)]
struct Gathered {
    strong: Vec<Keyword>,
    weak: Vec<Keyword>,
    /// Of the paragraph that is being read.
    factor: f64,
    /// The plain word before, if nothing stands between: two words may be one name.
    previous: Option<String>,
}

impl Gathered {
    fn paragraph(&mut self, text: &str) {
        for name in vocabulary::phrases(text) {
            self.add(Keyword::new(name, Kind::Name, 1.2, vec![Variant::name(name, 1.0)]));
        }
        for (index, span) in quoted_spans(text).into_iter().enumerate() {
            self.previous = None;
            let is_quoted = index % 2 == 1;
            if is_quoted && span.chars().count() <= QUOTED_CHARS_MAX && span.contains(char::is_alphanumeric) {
                self.quoted(span.trim());
            } else {
                span.split_whitespace().for_each(|token| self.token(token));
            }
        }
    }

    fn quoted(&mut self, text: &str) {
        if text.contains(char::is_whitespace) {
            let variant = Variant::verbatim(text, 1.0);
            self.add(Keyword::new(text, Kind::Literal, 3.0, vec![variant]));
        } else if is_plain(text) {
            // Whoever quotes a word means that word, even if it is one that usually says nothing.
            self.add(word_keyword(&text.to_lowercase(), 2.5));
        } else {
            self.token(text);
        }
    }

    fn token(&mut self, raw: &str) {
        let ends_phrase = raw.ends_with([',', '.', ';', ':', '?', '!', ')']);
        let token = raw.trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '-' | '_' | '/'));
        let token = token.trim_end_matches(['-', '/']).strip_suffix("'s").unwrap_or(token);
        if token.contains("://") || !token.contains(char::is_alphanumeric) || token.chars().count() > 200 {
            self.previous = None;
        } else if is_path(token) {
            self.path(token);
        } else if token.starts_with("--") {
            let variant = Variant::verbatim(token, 1.0);
            self.add(Keyword::new(token, Kind::Literal, 2.0, vec![variant]));
            self.name(token.trim_start_matches('-'), 2.0);
        } else if token.contains('/') {
            token.split('/').for_each(|part| self.token(part));
        } else if is_plain(token) {
            self.word(&token.to_lowercase());
        } else if token.split('-').all(is_plain) {
            // `built-in` is a word rather than a name, and `content-length` may be either.
            self.name(token, 1.5);
        } else {
            self.name(token.trim_matches('-'), 3.0);
        }
        if ends_phrase {
            self.previous = None;
        }
    }

    fn path(&mut self, token: &str) {
        self.previous = None;
        let path = token.trim_start_matches("./");
        let variant = Variant::verbatim(path, 1.0);
        self.add(Keyword::new(path, Kind::Path, 3.0, vec![variant]));
    }

    fn word(&mut self, word: &str) {
        let worth = vocabulary::worth(word);
        if worth == Worth::Nothing || word.chars().count() < 2 {
            self.previous = None;
            return;
        }
        if let Some(before) = self.previous.replace(word.to_owned()) {
            self.pair(&before, word);
        }
        match worth {
            Worth::Much => self.add(word_keyword(word, 1.0)),
            Worth::Some | Worth::Little | Worth::Nothing => self.weak.push(word_keyword(word, 0.5 * self.factor)),
        }
    }

    /// Two neighbours are one thing more often than not: `quiet hours`, `entry point`.
    fn pair(&mut self, first: &str, second: &str) {
        let others = vocabulary::pair_synonyms(first, second);
        if [first, second].iter().any(|word| vocabulary::worth(word) == Worth::Little) && others.is_empty() {
            return;
        }
        let second_stem = vocabulary::stem(second);
        // The first word is written whole, or in another form: `entry point`, `avoid tolls` for `avoiding tolls`.
        let mut variants = vec![
            Variant::name(&format!("{first} {second_stem}"), 1.0),
            Variant::name(&format!("{} {second_stem}", vocabulary::stem(first)), 1.0),
        ];
        variants.extend(others.iter().map(|other| Variant::name(other, 0.8)));
        self.add(Keyword::new(&format!("{first} {second}"), Kind::Name, 0.7, deduplicated(variants)));
    }

    /// A name from code: as a whole, and its parts for less.
    fn name(&mut self, name: &str, weight: f64) {
        self.previous = None;
        // What is asked of a type is rarely told where its name stands.
        let weight = if is_type_name(name) { weight * 0.7 } else { weight };
        let segments: Vec<&str> = name.split(['.', ':']).filter(|segment| !segment.is_empty()).collect();
        if let [_, .., last] = segments.as_slice() {
            let variants = vec![Variant::name(name, 1.0), Variant::name(last, 0.7)];
            self.add(Keyword::new(name, Kind::Name, weight, variants));
        } else {
            self.add(Keyword::new(name, Kind::Name, weight, vec![Variant::name(name, 1.0)]));
        }
        for part in segments.iter().flat_map(|segment| parts(segment)) {
            if part.chars().count() >= 3 && vocabulary::worth(&part) == Worth::Much && part != name.to_lowercase() {
                self.add(Keyword { kind: Kind::Part, ..word_keyword(&part, weight * 0.12) });
            }
        }
    }

    fn add(&mut self, keyword: Keyword) {
        let keyword = Keyword { weight: keyword.weight * self.factor, ..keyword };
        let first = |keyword: &Keyword| keyword.variants.first().map(|variant| variant.text.clone());
        let same = |other: &&mut Keyword| {
            first(other) == first(&keyword) && (other.kind == Kind::Name) == (keyword.kind == Kind::Name)
        };
        match self.strong.iter_mut().find(same) {
            Some(known) if known.weight < keyword.weight => *known = keyword,
            Some(_) => {}
            None => self.strong.push(keyword),
        }
    }

    fn finish(self) -> Vec<Keyword> {
        let stands_alone = self.strong.iter().any(Keyword::stands_alone);
        let mut keywords = self.strong;
        let is_few = keywords.iter().filter(|keyword| keyword.kind == Kind::Word).count() < 2;
        // A weak word beside strong ones helps to choose among what is found.
        let factor = if stands_alone { 0.4 } else { 1.0 };
        for weak in self.weak {
            let is_known = keywords.iter().any(|keyword| keyword.variants.first() == weak.variants.first());
            if !is_known && (is_few || vocabulary::worth(&weak.shown) == Worth::Some) {
                keywords.push(Keyword { weight: weak.weight * factor, ..weak });
            }
        }
        keywords.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        keywords.truncate(KEYWORDS_MAX);
        keywords
    }
}

fn word_keyword(word: &str, weight: f64) -> Keyword {
    let mut variants = vec![Variant::stem(&vocabulary::stem(word), 1.0)];
    if let Some(verb) = word.strip_suffix("er").or_else(|| word.strip_suffix("ers")).filter(|verb| verb.len() >= 4) {
        variants.push(Variant::stem(verb, 0.5));
    }
    variants.extend(vocabulary::synonyms(word).iter().map(|other| Variant::stem(other, 0.4)));
    Keyword::new(word, Kind::Word, weight, deduplicated(variants))
}

fn deduplicated(mut variants: Vec<Variant>) -> Vec<Variant> {
    let mut seen = Vec::new();
    variants.retain(|variant| {
        let is_new = !seen.contains(&variant.text);
        seen.push(variant.text.clone());
        is_new
    });
    variants
}

/// The text outside and inside of quotation marks, in turn, beginning outside.
fn quoted_spans(text: &str) -> Vec<&str> {
    let mut spans = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find(['`', '"', '“']) {
        let mark = rest[open..].chars().next().unwrap_or('`');
        let inside = &rest[open + mark.len_utf8()..];
        let closing = if mark == '“' { '”' } else { mark };
        let Some(close) = inside.find(closing) else { break };
        spans.push(&rest[..open]);
        spans.push(&inside[..close]);
        rest = &inside[close + closing.len_utf8()..];
    }
    spans.push(rest);
    spans
}

/// Whether a token is a word of a natural language, by its looks.
fn is_plain(token: &str) -> bool {
    let capitals = token.chars().skip(1).any(char::is_uppercase);
    let letters = token.chars().all(|c| c.is_alphabetic() || c == '\'' || c == '’');
    // `HTTP` and `JSON` are names, but they are written like words elsewhere.
    letters && (!capitals || token.chars().all(char::is_uppercase))
}

fn is_type_name(name: &str) -> bool {
    name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase) && !name.contains('-')
}

fn is_path(token: &str) -> bool {
    let extension = token.rsplit_once('.').map(|(stem, extension)| (stem, extension.to_ascii_lowercase()));
    let has_extension = extension.is_some_and(|(stem, extension)| {
        !stem.is_empty() && EXTENSIONS.contains(&extension.as_str()) && !stem.contains("::")
    });
    has_extension || token.matches('/').count() >= 2 || (token.starts_with("./") && token.len() > 2)
}

/// The words of a name: `RouteFinder`, `route_finder` and `ROUTE_FINDER` are `route` and `finder`.
pub(super) fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut after_lower = false;
    for character in name.chars() {
        let begins = !character.is_alphanumeric() || (after_lower && character.is_uppercase());
        if begins {
            parts.push(String::new());
        }
        if character.is_alphanumeric()
            && let Some(part) = parts.last_mut()
        {
            part.extend(character.to_lowercase());
        }
        after_lower = character.is_lowercase() || character.is_numeric();
    }
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(task: &str) -> Vec<String> {
        let part = |keyword: &Keyword| if keyword.kind == Kind::Part { "~" } else { "" };
        extract(task).iter().map(|keyword| format!("{}{}", part(keyword), keyword.shown)).collect()
    }

    #[test]
    fn tasks_are_reduced_to_what_they_are_about() {
        for (task, expected) in [
            ("Where is the invoice rounding computed?", &["invoice", "rounding", "invoice rounding"][..]),
            (
                "How does RouteFinder decide to avoid tolls?",
                &["RouteFinder", "avoid tolls", "avoid", "tolls", "~route", "~finder"],
            ),
            ("what does quiet_hours do", &["quiet_hours", "~quiet", "~hours"]),
            ("Explain ROUTE_NOT_FOUND.", &["ROUTE_NOT_FOUND", "~route", "~found"]),
            ("what does `--model` mean", &["--model", "model"]),
            ("find \"connection refused\" please", &["connection refused"]),
            ("Summarise src/route.rs", &["src/route.rs"]),
            ("Which functions call Config::load?", &["Config::load", "~config", "~load"]),
            ("the HTTP client's timeouts", &["http", "http client", "client timeouts", "client", "timeouts"]),
            ("", &[]),
            ("What is this?", &[]),
        ] {
            let found = shown(task);
            let found: Vec<&str> = found.iter().map(String::as_str).collect();
            let mut expected_sorted = expected.to_vec();
            let mut found_sorted: Vec<&str> =
                found.iter().copied().filter(|shown| expected.contains(shown) || !is_weak(shown)).collect();
            expected_sorted.sort_unstable();
            found_sorted.sort_unstable();
            assert_eq!(found_sorted, expected_sorted, "{task}: {found:?}");
            assert_eq!(found.first(), expected.first(), "{task}: {found:?}");
        }
    }

    fn is_weak(shown: &str) -> bool {
        matches!(vocabulary::worth(shown), Worth::Little | Worth::Some)
    }

    #[test]
    fn weak_words_count_when_nothing_else_is_left() {
        assert_eq!(shown("What does the main function do?"), ["main function", "main", "function"]);
    }

    #[test]
    fn names_fall_into_their_words() {
        for (name, expected) in [
            ("RouteFinder", &["route", "finder"][..]),
            ("route_finder", &["route", "finder"]),
            ("ROUTE_NOT_FOUND", &["route", "not", "found"]),
            ("utf8Text", &["utf8", "text"]),
            ("--max-turns", &["max", "turns"]),
            ("", &[]),
        ] {
            assert_eq!(parts(name), expected, "{name}");
        }
    }

    #[test]
    fn a_long_task_is_bounded() {
        let task = "alpha beta gamma_delta EpsilonZeta ".repeat(10_000);
        assert!(extract(&task).len() <= KEYWORDS_MAX);
        let words: String = (0..1000).map(|index| format!("word{index} ")).collect();
        assert_eq!(extract(&words).len(), KEYWORDS_MAX);
    }
}
