//! Whether, and how well, a keyword is found in a line.

use super::keywords::{Keyword, Kind, SHORT_CHARS_MAX, Variant, squeeze};
use super::speech;

/// Characters of a line that are looked at: what is longer is data, not something to read.
const LINE_CHARS_MAX: usize = 400;

/// A line, prepared to be searched.
#[derive(Debug)]
pub(super) struct Subject {
    plain: Searched,
    /// Without what separates the words of a name.
    squeezed: Searched,
}

#[derive(Debug)]
struct Searched {
    lower: String,
    /// For each byte, whether a word begins there.
    begins: Vec<bool>,
}

impl Subject {
    /// Prepares a line.
    pub(super) fn new(text: &str) -> Self {
        let text = &text[..speech::chars_end(text, LINE_CHARS_MAX)];
        let mut plain = Searched::default();
        let mut squeezed = Searched::default();
        let mut before = ' ';
        for character in text.chars() {
            let begins = character.is_alphanumeric()
                && (!before.is_alphanumeric() || (before.is_lowercase() && character.is_uppercase()));
            plain.push(character, begins);
            if !matches!(character, '_' | '-' | ' ') {
                squeezed.push(character, begins);
            }
            before = character;
        }
        Self { plain, squeezed }
    }

    /// How well a keyword is found: 0 not at all, 1 as itself.
    pub(super) fn strength(&self, keyword: &Keyword) -> f64 {
        let strengths = keyword.variants.iter().map(|variant| variant.factor * self.variant(keyword.kind, variant));
        strengths.fold(0.0, f64::max)
    }

    /// Whether the whole text is the keyword, as a name is.
    pub(super) fn is(&self, keyword: &Keyword) -> bool {
        keyword.variants.iter().any(|variant| self.squeezed.lower == squeeze(&variant.text))
    }

    fn variant(&self, kind: Kind, variant: &Variant) -> f64 {
        let found = |searched: &Searched, quality: fn(&Searched, usize, usize) -> f64| {
            let positions = searched.lower.match_indices(&variant.text).map(|(start, _)| start);
            positions.map(|start| quality(searched, start, start + variant.text.len())).fold(0.0, f64::max)
        };
        match kind {
            _ if variant.text.is_empty() => 0.0,
            Kind::Literal | Kind::Path => f64::from(u8::from(self.plain.lower.contains(&variant.text))),
            Kind::Name => found(&self.squeezed, name_quality),
            Kind::Word | Kind::Part => found(&self.plain, word_quality),
            Kind::Beginning => found(&self.plain, |searched, start, _| f64::from(u8::from(searched.begins_at(start)))),
        }
    }
}

impl Default for Searched {
    fn default() -> Self {
        // Most lines are shorter than this.
        Self { lower: String::with_capacity(100), begins: Vec::with_capacity(100) }
    }
}

impl Searched {
    fn push(&mut self, character: char, begins: bool) {
        self.lower.extend(character.to_lowercase());
        self.begins.push(begins);
        self.begins.resize(self.lower.len(), false);
    }

    fn begins_at(&self, position: usize) -> bool {
        self.begins.get(position).copied().unwrap_or(false)
    }

    /// Letters from here to the end of the word.
    fn tail(&self, position: usize) -> usize {
        let rest = self.lower.get(position..).unwrap_or_default();
        let word = rest
            .char_indices()
            .take_while(|(offset, character)| character.is_alphanumeric() && !self.begins_at(position + offset));
        word.count()
    }
}

fn name_quality(searched: &Searched, start: usize, end: usize) -> f64 {
    let ends = searched.tail(end) <= 2;
    match (searched.begins_at(start), ends) {
        (true, true) => 1.0,
        (true, false) | (false, true) => 0.6,
        (false, false) => 0.3,
    }
}

fn word_quality(searched: &Searched, start: usize, end: usize) -> f64 {
    let length = end - start;
    let tail = searched.tail(end);
    match (searched.begins_at(start), tail) {
        (true, 0) => 1.0,
        (true, 1) => 0.95,
        (_, _) if length <= SHORT_CHARS_MAX => 0.0,
        (true, 2..=5) => 0.9,
        (true, _) => 0.5,
        (false, _) if length >= 6 => 0.5,
        (false, _) => 0.15,
    }
}

#[cfg(test)]
mod tests {
    use super::super::keywords::extract;
    use super::*;

    fn strength(task: &str, line: &str) -> f64 {
        let keywords = extract(task);
        let keyword = keywords.first().unwrap();
        Subject::new(line).strength(keyword)
    }

    #[test]
    fn whole_words_are_stronger_than_parts() {
        for (task, best, worse) in [
            ("read", "fn read(x)", "a thread"),
            ("policies", "fn policy()", "a policymaker of things"),
            ("policies", "max_policies: 3", "unpolic"),
            ("id", "task_id", "valid"),
            ("id", "ids", "ideas"),
            ("quiet_hours", "fn set_quiet_hours()", "quiet; hours"),
            ("RouteFinder", "route_finder()", "reroutefindering"),
            ("timeout", "the timeout", "a deadline"),
            ("`--model`", "use --model x", "model"),
        ] {
            assert!(strength(task, best) > strength(task, worse), "{task}: {best} / {worse}");
            assert!(strength(task, best) > 0.8, "{task}: {best}");
        }
    }

    #[test]
    fn strange_text_is_only_text() {
        for line in ["", "İİİ ß ﬁ İd", "\u{0}\u{1b}[31m\u{202e}", &"é".repeat(100_000), "😀id😀"] {
            for task in ["id", "read", "quiet_hours", "`--x y`", "İstanbul"] {
                let found = strength(task, line);
                assert!((0.0..=1.0).contains(&found), "{task} {found}");
            }
        }
    }
}
