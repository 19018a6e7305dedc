//! How long files and functions may get. Tests do not count: a long list of cases is not hard to read.

use super::functions::shipped_functions;
use super::report::Problem;
use super::source::SourceFile;

const FILE_RULE: &str = "file-length";
const FUNCTION_RULE: &str = "function-length";

/// Beyond this a file is probably about two things; worth a look.
const FILE_LINES_AIM: usize = 400;
/// Beyond this it has to be split.
const FILE_LINES_MAX: usize = 600;
/// What fits on a screen.
const FUNCTION_LINES_MAX: usize = 70;

/// What may be longer, and why.
struct Exemption {
    path: &'static str,
    reason: &'static str,
}

/// Files that are tables of data rather than code.
const LONG_FILES: &[Exemption] = &[];

/// Reports what is too long, and exemptions that are no longer needed.
pub(crate) fn check(files: &[SourceFile]) -> Vec<Problem> {
    let mut problems = check_files(files, LONG_FILES);
    problems.extend(files.iter().flat_map(check_functions));
    problems
}

fn check_files(files: &[SourceFile], exemptions: &[Exemption]) -> Vec<Problem> {
    let too_long: Vec<&SourceFile> =
        files.iter().filter(|file| file.is_rust() && file.shipped_line_count() > FILE_LINES_AIM).collect();
    let is_exempt = |file: &SourceFile| exemptions.iter().any(|entry| entry.path == file.path);
    let mut problems: Vec<Problem> =
        too_long.iter().filter(|file| !is_exempt(file)).map(|file| file_problem(file)).collect();
    for exemption in exemptions {
        if !too_long.iter().any(|file| file.path == exemption.path) {
            let message =
                format!("exempt as \"{}\", but it is gone or short enough; remove the exemption", exemption.reason);
            problems.push(Problem::failure(exemption.path, 1, FILE_RULE, message));
        }
    }
    problems
}

fn file_problem(file: &SourceFile) -> Problem {
    let lines = file.shipped_line_count();
    let message = format!(
        "{lines} lines without tests, aim for {FILE_LINES_AIM} and stay within {FILE_LINES_MAX}; \
         split it where a responsibility ends"
    );
    let problem = Problem::failure(&file.path, 1, FILE_RULE, message);
    if lines > FILE_LINES_MAX { problem } else { problem.into_warning() }
}

fn check_functions(file: &SourceFile) -> Vec<Problem> {
    shipped_functions(file)
        .filter(|function| function.length_in_lines > FUNCTION_LINES_MAX)
        .map(|function| {
            let message = format!(
                "`{}` has {} lines, {FUNCTION_LINES_MAX} fit on a screen; name its parts",
                function.name, function.length_in_lines
            );
            Problem::failure(&file.path, function.line, FUNCTION_RULE, message)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{files, found, places};
    use super::*;

    const PATH: &str = "crates/a/src/b.rs";

    fn lines(count: usize) -> String {
        "const A: u8 = 0;\n".repeat(count)
    }

    fn sizes(text: &str) -> Vec<String> {
        places(&check(&files(&[(PATH, text)])))
    }

    #[test]
    fn files_are_warned_about_and_then_refused() {
        assert_eq!(sizes(&lines(400)), [""; 0]);
        assert_eq!(sizes(&lines(401)), ["warning: crates/a/src/b.rs:1: file-length"]);
        assert_eq!(sizes(&lines(600)), ["warning: crates/a/src/b.rs:1: file-length"]);
        assert_eq!(sizes(&lines(601)), ["crates/a/src/b.rs:1: file-length"]);
    }

    #[test]
    fn tests_and_other_languages_do_not_count() {
        let tests = format!("{}#[cfg(test)]\nmod tests {{\n{}}}\n", lines(399), lines(500));
        assert_eq!(sizes(&tests), [""; 0]);
        assert_eq!(found(check, "Cargo.lock", &lines(700)), []);
    }

    #[test]
    fn tables_can_be_exempt_while_they_are_long() {
        let exemptions = [Exemption { path: PATH, reason: "a table" }];
        let check = |text: &str| places(&check_files(&files(&[(PATH, text)]), &exemptions));
        assert_eq!(check(&lines(700)), [""; 0]);
        assert_eq!(check(&lines(10)), ["crates/a/src/b.rs:1: file-length"]);
    }

    #[test]
    fn functions_fit_on_a_screen() {
        let function = |lines: usize| format!("\nfn f() {{\n{}}}\n", "    g();\n".repeat(lines - 2));
        assert_eq!(found(check, PATH, &function(70)), []);
        assert_eq!(found(check, PATH, &function(71)), [(2, FUNCTION_RULE)]);
        let test = format!("#[cfg(test)]\nmod tests {{{}}}\n", function(200));
        assert_eq!(found(check, PATH, &test), []);
    }
}
