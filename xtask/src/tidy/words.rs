//! Finding whole words in code, so that `print!` is not found inside `eprint!`.

use super::lexer::is_identifier;

/// Whether `word` occurs in `text` as a whole word or path.
pub(crate) fn contains_word(text: &str, word: &str) -> bool {
    word_positions(text, word).next().is_some()
}

/// The byte offsets at which `word` occurs as a whole. An end of `word` that is punctuation needs no
/// boundary: `.spawn(` matches after any receiver.
pub(crate) fn word_positions<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + use<'a> {
    text.match_indices(word).map(|(offset, _)| offset).filter(move |offset| {
        let before = text[..*offset].chars().next_back();
        let after = text[offset + word.len()..].chars().next();
        !(joins(before, word.chars().next()) || joins(word.chars().next_back(), after))
    })
}

/// The identifier that `text` begins with; empty if it begins with something else.
pub(crate) fn leading_identifier(text: &str) -> &str {
    let end = text.find(|character| !is_identifier(character)).unwrap_or(text.len());
    &text[..end]
}

/// Whether two neighbouring characters belong to the same word.
fn joins(left: Option<char>, right: Option<char>) -> bool {
    left.is_some_and(is_identifier) && right.is_some_and(is_identifier)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_whole() {
        assert!(contains_word("use std::fs;", "std::fs"));
        assert!(contains_word("anstream::println!(x)", "println!"));
        assert!(contains_word("handle.spawn(async {})", ".spawn(async"));
        assert!(!contains_word("eprintln!(x)", "println!"));
        assert!(!contains_word("std::fs_extra", "std::fs"));
        assert!(!contains_word("my_std::fs", "std::fs"));
    }

    #[test]
    fn identifiers_end_at_punctuation() {
        assert_eq!(leading_identifier("apply(&mut self)"), "apply");
        assert_eq!(leading_identifier("(x)"), "");
    }
}
