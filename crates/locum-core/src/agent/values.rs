//! What a written value means for the field it is given to. A value of the wrong kind is an error that names the field,
//! says what it takes and what was found.

use serde_json::{Map, Number, Value as Json};

use super::findings::Findings;
use super::note::{Place, Topic};
use super::yaml::{Entry, Node, Style, Value, short};

/// A piece of a list, with its place.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Item {
    pub(super) at: Place,
    pub(super) text: String,
}

impl Findings {
    /// Text on one line. Line breaks that a folded or literal text has become spaces.
    pub(super) fn line(&mut self, entry: &Entry) -> Option<String> {
        let text = self.text(entry)?;
        if !text.contains(['\n', '\r']) {
            return Some(text.trim().to_owned());
        }
        Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    pub(super) fn text(&mut self, entry: &Entry) -> Option<String> {
        match &entry.value.value {
            Value::Scalar { text, .. } => Some(text.trim().to_owned()),
            Value::List(_) | Value::Map(_) => self.wrong(entry, "text"),
        }
    }

    pub(super) fn boolean(&mut self, entry: &Entry) -> Option<bool> {
        if let Value::Scalar { text, .. } = &entry.value.value {
            match text.to_ascii_lowercase().as_str() {
                "true" | "yes" | "on" | "1" => return Some(true),
                "false" | "no" | "off" | "0" => return Some(false),
                _ => {}
            }
        }
        self.wrong(entry, "true or false")
    }

    pub(super) fn whole(&mut self, entry: &Entry, example: &str) -> Option<i64> {
        if let Value::Scalar { text, .. } = &entry.value.value
            && let Ok(number) = text.trim().parse::<i64>()
        {
            return Some(number);
        }
        self.wrong(entry, &format!("a whole number, for example {example}"))
    }

    pub(super) fn number(&mut self, entry: &Entry, example: &str) -> Option<f64> {
        if let Value::Scalar { text, .. } = &entry.value.value
            && let Ok(number) = text.trim().parse::<f64>()
            && number.is_finite()
        {
            return Some(number);
        }
        self.wrong(entry, &format!("a number, for example {example}"))
    }

    /// One of a few words.
    pub(super) fn word<T: Copy>(&mut self, entry: &Entry, words: &[(&str, T)]) -> Option<T> {
        if let Value::Scalar { text, .. } = &entry.value.value
            && let Some((_, meaning)) = words.iter().find(|(word, _)| word.eq_ignore_ascii_case(text.trim()))
        {
            return Some(*meaning);
        }
        let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        self.wrong(entry, &format!("one of {}", words.join(", ")))
    }

    /// A list, or one text with commas; what is in parentheses belongs together. Pieces that are neither text nor
    /// number are given to `other`, which says something about them.
    pub(super) fn items(&mut self, entry: &Entry, other: impl Fn(&mut Self, &Node)) -> Option<Vec<Item>> {
        match &entry.value.value {
            Value::Scalar { text, style } => Some(pieces(text, *style, entry.value.at)),
            Value::List(nodes) => {
                let mut items = Vec::new();
                for node in nodes {
                    match &node.value {
                        Value::Scalar { text, style } => items.extend(pieces(text, *style, node.at)),
                        Value::List(_) | Value::Map(_) => other(self, node),
                    }
                }
                Some(items)
            }
            Value::Map(_) => self.wrong(entry, "a list, or one text with commas"),
        }
    }

    /// A list of texts.
    pub(super) fn texts(&mut self, entry: &Entry) -> Option<Vec<String>> {
        let before = self.notes.len();
        let key = &entry.key;
        let items = self.items(entry, |findings, node| {
            findings.error(node.at, format!("`{key}` takes a list of texts; found {}", found(node)));
        })?;
        (self.notes.len() == before).then(|| items.into_iter().map(|item| item.text).collect())
    }

    /// Says that a value is of the wrong kind.
    pub(super) fn wrong<T>(&mut self, entry: &Entry, expected: &str) -> Option<T> {
        self.error(entry.value.at, format!("`{}` takes {expected}; found {}", entry.key, found(&entry.value)));
        None
    }

    /// Whether a value was written at all; a key without one is as good as not there, which is worth saying.
    pub(super) fn is_given(&mut self, entry: &Entry, remedy: &str) -> bool {
        if !entry.value.is_null() {
            return true;
        }
        let message = format!("`{}` has no value and counts as left out{remedy}", entry.key);
        self.warn(entry.at, Topic::Value, message);
        false
    }
}

/// What was found, in words.
pub(super) fn found(node: &Node) -> String {
    match &node.value {
        _ if node.is_null() => "nothing".to_owned(),
        Value::Scalar { text, .. } => format!("`{}`", short(text)),
        Value::List(_) => "a list".to_owned(),
        Value::Map(_) => "a map".to_owned(),
    }
}

/// The pieces of a text with commas. Their columns are known where the text stands as it is in its line.
fn pieces(text: &str, style: Style, at: Place) -> Vec<Item> {
    let is_plain = style == Style::Plain && !text.contains('\n');
    let mut items = Vec::new();
    let (mut start, mut depth) = (0, 0_usize);
    let ends = text.char_indices().map(|(place, character)| (place, Some(character))).chain([(text.len(), None)]);
    for (place, character) in ends {
        match character {
            Some('(') => depth += 1,
            Some(')') => depth = depth.saturating_sub(1),
            Some(',') if depth > 0 => {}
            Some(',') | None => {
                let raw = &text[start..place];
                let piece = raw.trim();
                if !piece.is_empty() {
                    let before = start + (raw.len() - raw.trim_start().len());
                    let at = if is_plain { at.right(text[..before].chars().count()) } else { at };
                    items.push(Item { at, text: piece.to_owned() });
                }
                start = place + 1;
            }
            Some(_) => {}
        }
    }
    items
}

/// The pieces of a list or of a text with commas; what is neither has none.
pub(super) fn pieces_of(node: &Node) -> Vec<Item> {
    match &node.value {
        Value::Scalar { text, style } => pieces(text, *style, node.at),
        Value::List(nodes) => nodes.iter().flat_map(pieces_of).collect(),
        Value::Map(_) => Vec::new(),
    }
}

/// A value as JSON, typed as YAML's core schema types it.
pub(super) fn json(node: &Node) -> Json {
    match &node.value {
        _ if node.is_null() => Json::Null,
        Value::Scalar { text, style: Style::Plain } => plain_json(text),
        Value::Scalar { text, .. } => Json::String(text.clone()),
        Value::List(nodes) => Json::Array(nodes.iter().map(json).collect()),
        Value::Map(entries) => {
            Json::Object(entries.iter().map(|entry| (entry.key.clone(), json(&entry.value))).collect::<Map<_, _>>())
        }
    }
}

fn plain_json(text: &str) -> Json {
    match text {
        "true" | "True" | "TRUE" => return Json::Bool(true),
        "false" | "False" | "FALSE" => return Json::Bool(false),
        _ => {}
    }
    if let Ok(number) = text.parse::<i64>() {
        return Json::Number(number.into());
    }
    // `inf`, `nan` and words like `e5` are text in YAML, and parse as numbers elsewhere.
    let looks_numeric = text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.'))
        && text.contains(|c: char| c.is_ascii_digit());
    let number = text.parse::<f64>().ok().filter(|_| looks_numeric).and_then(Number::from_f64);
    number.map_or_else(|| Json::String(text.to_owned()), Json::Number)
}
