//! Tells code, text and comments of a Rust file apart. It knows just enough of the grammar to never mistake
//! one for the other; it does not parse.

/// The same file seen three ways. In each view the other two are blanked character by character, so lines
/// stay lines and columns stay comparable.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Views {
    /// Code; string and character literals keep their quotes but are empty inside.
    pub(crate) code: String,
    /// Code with literals as written.
    pub(crate) code_with_literals: String,
    /// Comments, documentation included, with their markers.
    pub(crate) comments: String,
}

/// Splits the text of a Rust file.
pub(crate) fn split(text: &str) -> Views {
    let mut lexer = Lexer {
        characters: text.chars().collect(),
        position: 0,
        views: Views {
            code: String::with_capacity(text.len()),
            code_with_literals: String::with_capacity(text.len()),
            comments: String::new(),
        },
    };
    while lexer.position < lexer.characters.len() {
        lexer.step();
    }
    lexer.views
}

/// Whether a character can be part of an identifier.
pub(crate) fn is_identifier(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Code,
    Literal,
    Comment,
}

struct Lexer {
    characters: Vec<char>,
    position: usize,
    views: Views,
}

impl Lexer {
    fn step(&mut self) {
        match (self.peek(0), self.peek(1)) {
            (Some('/'), Some('/')) => self.line_comment(),
            (Some('/'), Some('*')) => self.block_comment(),
            (Some('"'), _) => self.string(),
            (Some('r'), Some('"' | '#')) => self.raw_string_or_identifier(),
            (Some('\''), _) => self.character_or_lifetime(),
            _ => self.take(1, Kind::Code),
        }
    }

    fn line_comment(&mut self) {
        while self.peek(0).is_some_and(|character| character != '\n') {
            self.take(1, Kind::Comment);
        }
    }

    fn block_comment(&mut self) {
        let mut depth = 0_usize;
        while self.position < self.characters.len() {
            match (self.peek(0), self.peek(1)) {
                (Some('/'), Some('*')) => {
                    depth += 1;
                    self.take(2, Kind::Comment);
                }
                (Some('*'), Some('/')) => {
                    depth -= 1;
                    self.take(2, Kind::Comment);
                    if depth == 0 {
                        return;
                    }
                }
                _ => self.take(1, Kind::Comment),
            }
        }
    }

    fn string(&mut self) {
        self.take(1, Kind::Code);
        self.literal_until('"');
    }

    /// The rest of a literal in which a backslash hides the next character, with the closing quote.
    fn literal_until(&mut self, quote: char) {
        while let Some(character) = self.peek(0) {
            if character == quote {
                self.take(1, Kind::Code);
                return;
            }
            let length = if character == '\\' { 2 } else { 1 };
            self.take(length, Kind::Literal);
        }
    }

    /// `r"…"`, `r#"…"#`, also after `b` or `c`; but `r#type` and an `r` that ends a name are code.
    fn raw_string_or_identifier(&mut self) {
        let hashes = self.characters[self.position + 1..].iter().take_while(|character| **character == '#').count();
        let opens = self.peek(1 + hashes) == Some('"') && !self.is_inside_name();
        if !opens {
            self.take(1, Kind::Code);
            return;
        }
        self.take(hashes + 2, Kind::Code);
        while self.position < self.characters.len() {
            let closes = self.peek(0) == Some('"') && (1..=hashes).all(|offset| self.peek(offset) == Some('#'));
            if closes {
                self.take(1 + hashes, Kind::Code);
                return;
            }
            self.take(1, Kind::Literal);
        }
    }

    /// Whether the `r` at hand belongs to a longer name, such as `for` before a quote in a macro.
    fn is_inside_name(&self) -> bool {
        let mut before = self.characters[..self.position].iter().rev();
        match before.next() {
            Some('b' | 'c') => before.next().is_some_and(|character| is_identifier(*character)),
            Some(character) => is_identifier(*character),
            None => false,
        }
    }

    fn character_or_lifetime(&mut self) {
        let is_character = match self.peek(1) {
            Some('\\') => true,
            Some(_) => self.peek(2) == Some('\''),
            None => false,
        };
        self.take(1, Kind::Code);
        if is_character {
            self.literal_until('\'');
        }
    }

    fn peek(&self, offset: usize) -> Option<char> {
        self.characters.get(self.position + offset).copied()
    }

    fn take(&mut self, length: usize, kind: Kind) {
        for _ in 0..length {
            let Some(character) = self.peek(0) else {
                return;
            };
            self.position += 1;
            let shown = |visible: bool| {
                if visible || character == '\n' { character } else { ' ' }
            };
            self.views.code.push(shown(kind == Kind::Code));
            self.views.code_with_literals.push(shown(kind != Kind::Comment));
            self.views.comments.push(shown(kind == Kind::Comment));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        split(text).code
    }

    #[test]
    fn each_view_keeps_lines_and_columns() {
        let views = split("let a = \"b\"; // c\nd\n");
        assert_eq!(views.code, "let a = \" \";     \nd\n");
        assert_eq!(views.code_with_literals, "let a = \"b\";     \nd\n");
        assert_eq!(views.comments, "             // c\n \n");
    }

    #[test]
    fn comment_markers_inside_strings_are_text() {
        assert_eq!(code(r#"f("// x"); g()"#), r#"f("    "); g()"#);
        assert_eq!(code(r#"f("\" /* "); g()"#), r#"f("      "); g()"#);
    }

    #[test]
    fn block_comments_nest() {
        assert_eq!(code("a /* b /* c */ d */ e"), "a                   e");
    }

    #[test]
    fn raw_strings_end_with_their_hashes() {
        assert_eq!(code("r#\"a\"b\"# c"), "r#\"   \"# c");
        assert_eq!(code("br\"\\\" c"), "br\" \" c");
    }

    #[test]
    fn raw_identifiers_are_code() {
        assert_eq!(code("r#type = 1"), "r#type = 1");
    }

    #[test]
    fn lifetimes_are_not_characters() {
        assert_eq!(code("fn f<'a>(x: &'a str)"), "fn f<'a>(x: &'a str)");
        assert_eq!(code(r"['{', '\'', 'x']"), "[' ', '  ', ' ']");
    }
}
