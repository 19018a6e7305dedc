//! How much of a text is one page: what fits into a message that is cheap for a model, counted as it is written there.

use super::address::Spot;

/// Bytes of a page's text as JSON writes it. With what is around it, a message stays below eight thousand.
pub(super) const BYTES_MAX: usize = 7_000;

/// A page, and where the next one is.
#[derive(Debug, PartialEq)]
pub(super) struct Page {
    pub(super) text: String,
    pub(super) next: Option<Spot>,
}

impl Page {
    /// The page of a text that begins at a spot.
    pub(super) fn of(text: &str, spot: &Spot) -> Self {
        let start = text.char_indices().nth(spot.offset).map_or(text.len(), |(start, _)| start);
        let rest = &text[start..];
        let (page, count) = head(rest);
        let next = (page.len() < rest.len()).then(|| spot.at(spot.offset + count));
        Self { text: page.to_owned(), next }
    }
}

/// As much of a text as fits into a page, and how many characters that are.
pub(super) fn head(text: &str) -> (&str, usize) {
    head_within(text, BYTES_MAX)
}

/// As much of a text as fits into so many bytes of JSON, and how many characters that are.
pub(super) fn head_within(text: &str, bytes_max: usize) -> (&str, usize) {
    let (mut bytes, mut count) = (0, 0);
    for (start, character) in text.char_indices() {
        bytes += written(character);
        if bytes > bytes_max {
            return (&text[..start], count);
        }
        count += 1;
    }
    (text, count)
}

/// Bytes that JSON takes for a character.
fn written(character: char) -> usize {
    match character {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        control if u32::from(control) < 0x20 => 6,
        other => other.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_make_the_whole_and_each_fits() {
        for text in [
            String::new(),
            "short".to_owned(),
            "é".repeat(20_000),
            "\u{1}\"\n".repeat(9_000),
            "🦀x".repeat(5_000),
            "m".repeat(BYTES_MAX),
            "m".repeat(BYTES_MAX + 1),
        ] {
            let mut spot: Option<Spot> = Some("locum://agents/a".parse().unwrap());
            let mut whole = String::new();
            while let Some(from) = spot {
                let page = Page::of(&text, &from);
                assert!(serde_json::to_string(&page.text).unwrap().len() <= BYTES_MAX + 2);
                assert!(!page.text.is_empty() || text.is_empty());
                whole.push_str(&page.text);
                spot = page.next;
            }
            assert_eq!(whole, text);
        }
        let beyond: Spot = "locum://agents/a?offset=10".parse().unwrap();
        assert_eq!(Page::of("short", &beyond), Page { text: String::new(), next: None });
    }
}
