//! Completions and manual pages with the programs that read them. The suite tries those that are there; here, those that
//! can be had must be.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::{finish, install_package};

/// The programs, each in a package of the same name.
const PROGRAMS: [&str; 3] = ["zsh", "fish", "groff"];

/// The tests that need them.
const TESTS: [&str; 2] = ["completes_what_is_typed", "man_reads_it"];

/// Runs the tests with every program that can be had.
pub(crate) fn complete(root: &Path) -> Result<()> {
    let is_there = |name: &&str| {
        let is_there = Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success());
        let can_be_had = is_there || install_package(name).is_ok();
        if !can_be_had {
            println!("not tried: {name} is not installed and cannot be");
        }
        can_be_had
    };
    let wanted: Vec<&str> = PROGRAMS.into_iter().filter(is_there).collect();
    let mut tests = Command::new("cargo");
    tests.args(["test", "--package", "locum-cli", "--test", "cli", "--locked", "--"]).args(TESTS);
    finish(tests.current_dir(root).env("LOCUM_TEST_PROGRAMS", wanted.join(",")))
}
