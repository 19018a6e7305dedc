//! The project speaks of itself only: paths of the machine or the folder that someone happened to work in
//! mean nothing to the next reader.

use super::report::Problem;
use super::source::SourceFile;
use super::words::contains_word;

const RULE: &str = "foreign-path";

/// Each in two halves, because this file is checked as well.
const FOREIGN_PATHS: &[(&str, &str)] = &[("/wor", "k/"), ("../sha", "red"), ("shared/sp", "ec"), ("shared/des", "ign")];

/// Reports such paths in the text and in the name of any tracked file.
pub(crate) fn check(files: &[SourceFile]) -> Vec<Problem> {
    let foreign: Vec<String> = FOREIGN_PATHS.iter().map(|(left, right)| format!("{left}{right}")).collect();
    let mut problems = Vec::new();
    for file in files {
        let name = std::iter::once((1, file.path.as_str()));
        let lines = file.text.lines().enumerate();
        for (line, text) in name.chain(lines.map(|(index, text)| (index + 1, text))) {
            if let Some(path) = foreign.iter().find(|path| contains_word(text, path)) {
                let message = format!("{path} exists only on one machine; say it without the path");
                problems.push(Problem::failure(&file.path, line, RULE, message));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::super::testing::found;
    use super::*;

    #[test]
    fn foreign_paths_are_found_in_any_file() {
        for (left, right) in FOREIGN_PATHS {
            let text = format!("first\nsee {left}{right} there");
            assert_eq!(found(check, "README.md", &text), [(2, RULE)], "{text}");
            assert_eq!(found(check, "crates/a/src/b.rs", &format!("// {text}")), [(2, RULE)]);
            assert_eq!(found(check, "README.md", &format!("{left}-{right}")), []);
        }
    }

    #[test]
    fn longer_names_are_not_meant() {
        let text = format!("{}{}_context.md", "../sha", "red");
        assert_eq!(found(check, "README.md", &text), []);
    }
}
