//! Names that say nothing. A type called `Manager` or a file called `utils.rs` collects whatever has no home;
//! and the words an agent engine uses for several things at once are kept for none.

use super::report::Problem;
use super::source::SourceFile;
use super::words::{leading_identifier, word_positions};

const TYPE_RULE: &str = "type-name";
const FILE_RULE: &str = "file-name";

const REFUSED_TYPES: &[&str] =
    &["Agent", "Manager", "Session", "Context", "Service", "Util", "Utils", "Helper", "Helpers"];

const REFUSED_FILES: &[&str] =
    &["util.rs", "utils.rs", "common.rs", "helper.rs", "helpers.rs", "manager.rs", "misc.rs", "mod.rs"];

/// What introduces a type.
const KEYWORDS: &[&str] = &["struct ", "enum ", "union ", "trait ", "type "];

/// Reports types and files with such names, in tests as well.
pub(crate) fn check(files: &[SourceFile]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let name = file.path.rsplit('/').next().unwrap_or(&file.path);
        if REFUSED_FILES.contains(&name) {
            let message = if name == "mod.rs" {
                "a module is written as name.rs beside the folder name/; move it there".to_owned()
            } else {
                format!("{name} does not say what it holds; name it after its one noun")
            };
            problems.push(Problem::failure(&file.path, 1, FILE_RULE, message));
        }
        for (line, code) in file.code_lines() {
            for name in declared_types(code).filter(|name| REFUSED_TYPES.contains(name)) {
                let message = format!("`{name}` alone does not say which; add the noun that does");
                problems.push(Problem::failure(&file.path, line, TYPE_RULE, message));
            }
        }
    }
    problems
}

fn declared_types(code: &str) -> impl Iterator<Item = &str> {
    KEYWORDS.iter().flat_map(move |keyword| {
        word_positions(code, keyword).map(move |offset| leading_identifier(&code[offset + keyword.len()..]))
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::found;
    use super::*;

    #[test]
    fn types_with_empty_names_are_refused() {
        for code in [
            "pub struct Agent;",
            "enum Session {}",
            "pub(crate) trait Service {}",
            "type Context = ();",
            "struct Manager<T>(T);",
        ] {
            assert_eq!(found(check, "crates/a/src/b.rs", code), [(1, TYPE_RULE)], "{code}");
        }
    }

    #[test]
    fn types_with_a_noun_are_accepted() {
        for code in [
            "pub struct AgentName(String);",
            "fn f(cx: &mut Context<'_>) {}",
            "// struct Agent;",
            "impl Service for A {}",
        ] {
            assert_eq!(found(check, "crates/a/src/b.rs", code), [], "{code}");
        }
    }

    #[test]
    fn files_with_empty_names_are_refused() {
        for name in REFUSED_FILES {
            let path = format!("crates/a/tests/{name}");
            assert_eq!(found(check, &path, ""), [(1, FILE_RULE)], "{path}");
        }
        assert_eq!(found(check, "crates/a/src/modes.rs", ""), []);
        assert_eq!(found(check, "crates/a/src/misc.md", ""), []);
    }
}
