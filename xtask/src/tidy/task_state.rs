//! The state of a task changes in `Task::apply` and nowhere else. Text cannot prove that, but it can show
//! that the fields are private and that there is one `apply` to reach them through.

use super::functions::shipped_functions;
use super::items::item_end;
use super::report::Problem;
use super::source::{SourceFile, is_in_module};
use super::words::{contains_word, word_positions};

const RULE: &str = "task-state";
const MODULE: &str = "crates/locum-core/src/task";

/// Reports public fields of `Task`, and a number of `apply` functions other than one.
pub(crate) fn check(files: &[SourceFile]) -> Vec<Problem> {
    let task_files: Vec<&SourceFile> = files.iter().filter(|file| is_in_module(&file.path, MODULE)).collect();
    let mut problems: Vec<Problem> = task_files.iter().flat_map(|file| public_fields(file)).collect();
    let appliers = task_files.iter().flat_map(|file| appliers(file));
    let appliers: Vec<(&str, usize)> = appliers.collect();
    if appliers.is_empty() {
        let message = "`fn apply(&mut self, …)` is missing; it is the only way to change a task";
        problems.push(Problem::failure(&format!("{MODULE}.rs"), 1, RULE, message));
    }
    for (path, line) in appliers.iter().skip(1) {
        let message = "a second `apply`; a task changes in one place, so fold this into the first";
        problems.push(Problem::failure(path, *line, RULE, message));
    }
    problems
}

fn public_fields(file: &SourceFile) -> Vec<Problem> {
    let code = file.code();
    let mut problems = Vec::new();
    for start in word_positions(code, "struct Task") {
        let end = item_end(code, start);
        let first_line = file.line_at(end.body);
        for (index, field) in code[end.body..end.offset].lines().enumerate() {
            if contains_word(field, "pub") {
                let message = "fields of `Task` are private; change them in `apply` and read them \
                               through a method";
                problems.push(Problem::failure(&file.path, first_line + index, RULE, message));
            }
        }
    }
    problems
}

fn appliers(file: &SourceFile) -> impl Iterator<Item = (&str, usize)> {
    shipped_functions(file)
        .filter(|function| {
            let signature: String = function.signature.split_whitespace().collect();
            signature.starts_with("fnapply(&mutself")
        })
        .map(|function| (file.path.as_str(), function.line))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{files, places};
    use super::*;

    const TASK: &str = "\
pub struct Task {
    turns: u32,
}
impl Task {
    pub fn apply(
        &mut self,
        event: &TaskEvent,
    ) {
    }
    fn applied(&self) {}
}
";

    fn found(task_files: &[(&str, &str)]) -> Vec<String> {
        places(&check(&files(task_files)))
    }

    #[test]
    fn private_fields_and_one_apply_are_right() {
        assert_eq!(found(&[("crates/locum-core/src/task.rs", TASK)]), [""; 0]);
    }

    #[test]
    fn public_fields_are_refused() {
        for visibility in ["pub", "pub(crate)"] {
            let text = TASK.replace("turns", &format!("{visibility} turns"));
            assert_eq!(
                found(&[("crates/locum-core/src/task.rs", &text)]),
                ["crates/locum-core/src/task.rs:2: task-state"]
            );
        }
    }

    #[test]
    fn the_number_of_appliers_is_one() {
        let second = "impl Task { fn apply(&mut self) {} }";
        assert_eq!(
            found(&[
                ("crates/locum-core/src/task.rs", TASK),
                ("crates/locum-core/src/task/step.rs", second),
                ("crates/locum-core/src/board.rs", second),
            ]),
            ["crates/locum-core/src/task/step.rs:1: task-state"]
        );
        assert_eq!(
            found(&[("crates/locum-core/src/board.rs", second)]),
            ["crates/locum-core/src/task.rs:1: task-state"]
        );
    }
}
