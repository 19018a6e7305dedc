//! The functions of a file, with what the checks ask about them: signature and length.

use super::items::item_end;
use super::source::SourceFile;
use super::words::{leading_identifier, word_positions};

/// A function found in the code of a file.
#[derive(Debug)]
pub(crate) struct Function<'a> {
    pub(crate) name: &'a str,
    pub(crate) line: usize,
    /// What stands before `fn` on its line: visibility, `async` and the like.
    pub(crate) qualifiers: &'a str,
    /// From `fn` up to the body.
    pub(crate) signature: &'a str,
    /// From the line of `fn` to the line of the closing brace.
    pub(crate) length_in_lines: usize,
}

/// Every function with a name, methods and nested functions included, tests excluded.
pub(crate) fn shipped_functions(file: &SourceFile) -> impl Iterator<Item = Function<'_>> {
    let code = file.code();
    word_positions(code, "fn ")
        .filter_map(move |start| {
            let name = leading_identifier(&code[start + "fn ".len()..]);
            let line_start = code[..start].rfind('\n').map_or(0, |newline| newline + 1);
            let end = item_end(code, start);
            let line = file.line_at(start);
            (!name.is_empty()).then(|| Function {
                name,
                line,
                qualifiers: code[line_start..start].trim(),
                signature: code[start..end.body].trim(),
                length_in_lines: file.line_at(end.offset) - line + 1,
            })
        })
        .filter(|function| !file.is_test(function.line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_have_qualifiers_signatures_and_lengths() {
        let file = SourceFile::new(
            "crates/a/src/b.rs",
            "impl A {\n    pub async fn b(\n        &self,\n    ) -> [u8; 2] {\n        c()\n    }\n}\n\
             trait D { fn e(&self); }\nstruct F { action: fn() -> bool }\n",
        );
        let found: Vec<_> = shipped_functions(&file)
            .map(|function| {
                (function.name, function.line, function.qualifiers, function.signature, function.length_in_lines)
            })
            .collect();
        assert_eq!(
            found,
            [
                ("b", 2, "pub async", "fn b(\n        &self,\n    ) -> [u8; 2]", 5),
                ("e", 8, "trait D {", "fn e(&self)", 1),
            ]
        );
    }

    #[test]
    fn functions_of_tests_are_left_out() {
        let text = "#[cfg(test)]\nmod tests {\n    fn a() {}\n}\n";
        let file = SourceFile::new("crates/a/src/b.rs", text);
        assert_eq!(shipped_functions(&file).count(), 0);
    }
}
