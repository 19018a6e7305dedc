//! The rules of the project that neither the compiler nor clippy can express. Each check is a pure function
//! from files or the dependency graph to problems; this module gathers the input and prints the output.

mod confinement;
mod crate_graph;
mod duplicates;
mod functions;
mod hygiene;
pub(crate) mod imports;
pub(crate) mod items;
pub(crate) mod lexer;
mod licences;
mod metadata;
mod module_docs;
mod names;
mod providers;
mod report;
mod serialization;
mod signatures;
mod sizes;
mod source;
mod surroundings;
mod task_state;
#[cfg(test)]
mod testing;
mod words;

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};

use self::metadata::Metadata;
use self::report::{Problem, Severity};
use self::source::SourceFile;
use crate::cargo_command;

/// A rule over all tracked files.
type FileCheck = fn(&[SourceFile]) -> Vec<Problem>;

/// A rule over the packages of the workspace and their dependencies.
type MetadataCheck = fn(&Metadata) -> Vec<Problem>;

/// A new check is a function and a row here.
const FILE_CHECKS: &[FileCheck] = &[
    confinement::check,
    hygiene::check,
    module_docs::check,
    names::check,
    providers::check,
    serialization::check,
    signatures::check,
    sizes::check,
    surroundings::check,
    task_state::check,
];

const METADATA_CHECKS: &[MetadataCheck] = &[crate_graph::check, licences::check];

/// The platform whose duplicates count.
const HOST: &str = "x86_64-unknown-linux-gnu";

/// Runs every check, prints all problems, and fails if one of them is more than a warning.
pub(crate) fn run(root: &Path) -> Result<()> {
    let files = tracked_files(root)?;
    let mut problems: Vec<Problem> = FILE_CHECKS.iter().flat_map(|check| check(&files)).collect();
    let metadata = cargo_output(root, "metadata --format-version 1 --locked")?;
    let metadata = Metadata::parse(&metadata)?;
    problems.extend(METADATA_CHECKS.iter().flat_map(|check| check(&metadata)));
    // Cargo's metadata lists optional dependencies that no feature turns on; its tree does not.
    let tree = format!("tree --workspace --locked --edges normal,build --target {HOST} --prefix none --format {{p}}");
    problems.extend(duplicates::check(&cargo_output(root, &tree)?));

    problems.sort_by(|left, right| (&left.path, left.line).cmp(&(&right.path, right.line)));
    for problem in &problems {
        println!("{problem}");
    }
    let is_failure = |problem: &&Problem| problem.severity == Severity::Failure;
    let failures = problems.iter().filter(is_failure).count();
    let warnings = problems.len() - failures;
    println!("tidy: {} files checked, problems: {failures}, warnings: {warnings}", files.len());
    if failures > 0 {
        bail!("tidy is not satisfied; problems: {failures}");
    }
    Ok(())
}

/// The text files that git tracks or would track. Files that are not UTF-8 hold nothing to check.
fn tracked_files(root: &Path) -> Result<Vec<SourceFile>> {
    let mut git = Command::new("git");
    git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let list = output(git.current_dir(root))?;
    let mut files = Vec::new();
    for path in list.split_terminator('\0') {
        // A file that was removed but not yet committed is still in git's list.
        let Ok(bytes) = std::fs::read(root.join(path)) else {
            continue;
        };
        if let Ok(text) = String::from_utf8(bytes) {
            files.push(SourceFile::new(path, &text));
        }
    }
    source::mark_test_modules(&mut files);
    Ok(files)
}

fn cargo_output(root: &Path, arguments: &str) -> Result<String> {
    output(cargo_command(root).args(arguments.split(' ')))
}

/// What a program prints; its complaints go to the terminal.
fn output(command: &mut Command) -> Result<String> {
    let output =
        command.stderr(Stdio::inherit()).output().with_context(|| format!("could not be started: {command:?}"))?;
    ensure!(output.status.success(), "{command:?} ended with {}", output.status);
    String::from_utf8(output.stdout).with_context(|| format!("printed no UTF-8: {command:?}"))
}
