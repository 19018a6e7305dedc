//! The full paths that `use` declarations bring in, so that `use std::{env, fs}` is found when a rule asks
//! for `std::fs`.

use super::source::SourceFile;
use super::words::word_positions;

/// Every imported path that ships, with the line of its `use`.
pub(crate) fn shipped_imports(file: &SourceFile) -> Vec<(usize, String)> {
    let code = file.code();
    let mut imports = Vec::new();
    for start in word_positions(code, "use ") {
        let line = file.line_at(start);
        let tree = code[start + "use ".len()..].split(';').next().unwrap_or("");
        if !file.is_test(line) {
            let mut paths = Vec::new();
            expand("", tree, &mut paths);
            imports.extend(paths.into_iter().map(|path| (line, path)));
        }
    }
    imports
}

/// Writes out `prefix::{a, b::{c, d}}` as one path per leaf.
pub(crate) fn expand(prefix: &str, tree: &str, paths: &mut Vec<String>) {
    let tree = tree.trim();
    match tree.split_once('{') {
        Some((head, rest)) => {
            let prefix = format!("{prefix}{}", head.trim());
            let inside = rest.trim_end().strip_suffix('}').unwrap_or(rest);
            for branch in branches(inside) {
                expand(&prefix, branch, paths);
            }
        }
        None if tree.is_empty() => {}
        None => paths.push(format!("{prefix}{tree}")),
    }
}

/// Splits at the commas that are not inside further braces.
pub(crate) fn branches(inside: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    inside
        .split(move |character| {
            match character {
                '{' => depth += 1,
                '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            character == ',' && depth == 0
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imports(text: &str) -> Vec<(usize, String)> {
        shipped_imports(&SourceFile::new("crates/a/src/b.rs", text))
    }

    #[test]
    fn trees_are_written_out() {
        let text = "use std::{\n    env,\n    io::{self as i, Read},\n};\npub(crate) use a::b;\n";
        let expected = [(1, "std::env"), (1, "std::io::self as i"), (1, "std::io::Read"), (5, "a::b")];
        assert_eq!(imports(text), expected.map(|(line, path)| (line, path.to_owned())));
    }

    #[test]
    fn imports_of_tests_do_not_count() {
        assert_eq!(imports("#[cfg(test)]\nuse std::fs;\n"), []);
    }
}
