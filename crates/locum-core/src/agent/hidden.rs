//! Characters that a person does not see and a model reads: they can make a file say something else than it shows.

use super::note::{Note, Place, Topic};

/// How many are named one by one; a file that is full of them needs no longer list.
const NAMED_MAX: usize = 8;

/// What a hidden character is; none for a character that is seen, or that ordinary text needs.
pub fn kind(character: char) -> Option<&'static str> {
    match character {
        '\t' | '\n' | '\r' => None,
        '\u{202e}' => Some("a mark that reverses the text"),
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202d}' | '\u{2066}'..='\u{2069}' => {
            Some("a mark that changes the direction of the text")
        }
        '\u{e0000}'..='\u{e007f}' => Some("a tag character"),
        '\u{e0100}'..='\u{e01ef}' => Some("a variation selector"),
        '\u{200b}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{180e}' => Some("a character without width"),
        '\u{fff9}'..='\u{fffb}' => Some("an annotation mark"),
        other if other.is_control() => Some("a control character"),
        _ => None,
    }
}

/// The text with its hidden characters written as `\u{202e}`.
pub fn escape(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match kind(character) {
            Some(_) => shown.extend(character.escape_unicode()),
            None => shown.push(character),
        }
    }
    shown
}

/// The hidden characters of a text, each with its place.
pub(super) fn find(text: &str) -> Vec<Note> {
    // Most files have none, and most of what is hidden is outside of ASCII: look at bytes first.
    if !text.bytes().any(|byte| byte >= 0x80 || (byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r')) || byte == 0x7f)
    {
        return Vec::new();
    }
    let mut notes = Vec::new();
    let (mut more, mut first_more) = (0, Place::START);
    for (line, content) in text.split('\n').enumerate() {
        for (column, character) in content.chars().enumerate() {
            let Some(what) = kind(character) else { continue };
            let at = Place { line: line + 1, column: column + 1 };
            if notes.len() < NAMED_MAX {
                notes.push(note(at, character, what));
            } else {
                if more == 0 {
                    first_more = at;
                }
                more += 1;
            }
        }
    }
    if more > 0 {
        notes.push(Note::warning(first_more, Topic::Hidden, format!("{more} more hidden characters from here on")));
    }
    notes
}

/// The first hidden character of a value; escapes in quotes can make one that the file's bytes do not have.
pub(super) fn in_value(text: &str, at: Place) -> Option<Note> {
    text.chars().find_map(|character| kind(character).map(|what| note(at, character, what)))
}

fn note(at: Place, character: char, what: &str) -> Note {
    let message = format!(
        "hidden character {}, {what}: people do not see it and models read it; delete it",
        character.escape_unicode()
    );
    Note::warning(at, Topic::Hidden, message)
}
