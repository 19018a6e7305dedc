//! The head of a text that is too long to be handed on whole.

/// The head of a text within so many bytes and lines, if it has more. It ends between two characters.
pub(super) fn head(text: &str, bytes_max: usize, lines_max: usize) -> Option<&str> {
    let by_lines = text.match_indices('\n').nth(lines_max.saturating_sub(1)).map(|(end, _)| end);
    // A line end at the very end of the text begins no further line.
    let by_lines = by_lines.filter(|end| end + 1 < text.len());
    let by_bytes = (text.len() > bytes_max).then(|| (0..=bytes_max).rfind(|end| text.is_char_boundary(*end))).flatten();
    let end = by_lines.into_iter().chain(by_bytes).min()?;
    Some(&text[..end])
}

/// The first so many characters of a text.
pub(super) fn first_chars(text: &str, chars_max: usize) -> &str {
    text.char_indices().nth(chars_max).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_at_its_bytes_or_its_lines_whichever_comes_first() {
        for (text, bytes, lines, expected) in [
            ("abc", 3, 1, None),
            ("abcd", 3, 1, Some("abc")),
            ("aéb", 2, 9, Some("a")),
            ("a\nb\n", 9, 2, None),
            ("a\nb\nc", 9, 2, Some("a\nb")),
            ("a\nb\nc", 2, 2, Some("a\n")),
            ("", 0, 1, None),
        ] {
            assert_eq!(head(text, bytes, lines), expected, "{text:?} {bytes} {lines}");
        }
        assert_eq!(first_chars("aéb", 2), "aé");
        assert_eq!(first_chars("aé", 2), "aé");
    }
}
