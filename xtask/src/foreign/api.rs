//! The OpenAPI document of `locum serve`, put to the test by a tester that others wrote.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::{Built, finish, install_python};

/// How long requests are made up. Longer runs find more; this finds what a change breaks.
const SECONDS: &str = "60";

/// Requests of every kind that the document allows, and some that it does not.
pub(crate) fn tester(root: &Path) -> Result<()> {
    let built = Built::of(root)?;
    let sources = root.join("tests/foreign");
    let folder = built.folder.join("api_tester");
    install_python(&folder, &sources.join("api_tester_requirements.txt"))?;
    let mut tester = Command::new(folder.join("bin/python"));
    finish(tester.arg(sources.join("api_tester.py")).arg(&built.locum).arg(SECONDS))
}
