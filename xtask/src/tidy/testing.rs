//! What the tests of all checks share: run one over files given as text, and name what it found.

use super::FileCheck;
use super::report::{Problem, Severity};
use super::source::{SourceFile, mark_test_modules};

/// Files as `(path, text)` pairs become what checks read.
pub(crate) fn files(files: &[(&str, &str)]) -> Vec<SourceFile> {
    let mut files: Vec<SourceFile> = files.iter().map(|(path, text)| SourceFile::new(path, text)).collect();
    mark_test_modules(&mut files);
    files
}

/// Findings as `path:line: rule`, with their severity in front if it is only a warning. Messages are prose
/// and left out.
pub(crate) fn places(problems: &[Problem]) -> Vec<String> {
    problems
        .iter()
        .map(|problem| {
            let word = match problem.severity {
                Severity::Warning => "warning: ",
                Severity::Failure => "",
            };
            format!("{word}{}:{}: {}", problem.path, problem.line, problem.rule)
        })
        .collect()
}

/// The lines and rules that `check` finds in a single file.
pub(crate) fn found(check: FileCheck, path: &str, text: &str) -> Vec<(usize, &'static str)> {
    check(&files(&[(path, text)])).iter().map(|problem| (problem.line, problem.rule)).collect()
}
