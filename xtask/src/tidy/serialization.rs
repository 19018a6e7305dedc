//! The core derives serialization only in the types that cross a boundary: the protocol and the event log.
//! Everywhere else a type may change freely because nothing outside can have seen it.

use super::report::Problem;
use super::source::{SourceFile, is_in_module};
use super::words::contains_word;

const RULE: &str = "core-serialization";

const DERIVES: &[&str] = &["Serialize", "Deserialize", "JsonSchema"];

/// Modules of the core, with their children, whose types are part of a written format.
const BOUNDARY_MODULES: &[&str] = &[
    "crates/locum-core/src/protocol",
    "crates/locum-core/src/agent",
    // Purses are part of a plan, shortages of an event.
    "crates/locum-core/src/budget",
    // Rules and write scopes are part of a plan.
    "crates/locum-core/src/permission",
    "crates/locum-core/src/task/event",
    // What was asked for together is part of a plan.
    "crates/locum-core/src/task/errand",
    "crates/locum-core/src/task/plan",
    "crates/locum-core/src/task/outcome",
    // What the event log says of a worktree.
    "crates/locum-core/src/task/workspace",
    "crates/locum-core/src/transcript",
    "crates/locum-core/src/usage",
    "crates/locum-core/src/limits",
    "crates/locum-core/src/ids",
    // The rows of the catalogue file.
    "crates/locum-core/src/routing/entry",
];

/// Reports derives of serialization in other modules of the core.
pub(crate) fn check(files: &[SourceFile]) -> Vec<Problem> {
    let is_boundary = |file: &SourceFile| BOUNDARY_MODULES.iter().any(|module| is_in_module(&file.path, module));
    files
        .iter()
        .filter(|file| file.crate_name() == Some("locum-core") && !is_boundary(file))
        .flat_map(derives)
        .collect()
}

fn derives(file: &SourceFile) -> Vec<Problem> {
    let code = file.code();
    code.match_indices("derive(")
        .filter_map(|(start, _)| {
            let list = code[start..].split(')').next()?;
            let derive = DERIVES.iter().find(|derive| contains_word(list, derive))?;
            let line = file.line_at(start);
            let message = format!(
                "`{derive}` is derived in boundary modules only; convert to a type of one of them, \
                 or add this module to the list with the format it belongs to"
            );
            (!file.is_test(line)).then(|| Problem::failure(&file.path, line, RULE, message))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::found;
    use super::*;

    const DERIVED: &str = "#[derive(\n    Debug,\n    serde::Serialize,\n)]\nstruct A;\n";

    #[test]
    fn boundary_modules_derive_and_others_do_not() {
        for (path, expected) in [
            ("crates/locum-core/src/task.rs", [(1, RULE)].as_slice()),
            ("crates/locum-core/src/task/step.rs", &[(1, RULE)]),
            ("crates/locum-core/src/protocol.rs", &[]),
            ("crates/locum-core/src/protocol/refusal.rs", &[]),
            ("crates/locum-core/src/agent/markdown.rs", &[]),
            ("crates/locum-core/src/task/event.rs", &[]),
            ("crates/locum-core/src/ids.rs", &[]),
            ("crates/locum/src/settings.rs", &[]),
        ] {
            assert_eq!(found(check, path, DERIVED), expected, "{path}");
        }
    }

    #[test]
    fn each_derive_is_known() {
        let path = "crates/locum-core/src/board.rs";
        for derive in DERIVES {
            let text = format!("#[derive(Debug, {derive})]\nstruct A;");
            assert_eq!(found(check, path, &text), [(1, RULE)]);
        }
        assert_eq!(found(check, path, "#[derive(Debug)]\nstruct Serialize;"), []);
    }
}
