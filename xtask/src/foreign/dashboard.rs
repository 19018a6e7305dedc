//! The dashboard in a real browser: opened, read, clicked through, in dark and on a phone, with screenshots.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

use super::{Built, NODE_VERSION, finish, install_npm, install_package, node_package};

/// What drives the browser.
const DRIVER: &str = "playwright-core@1.65.0";

/// Where a browser may be.
const BROWSERS: &[&str] = &["chromium", "chromium-browser", "google-chrome"];

/// Looks at the dashboard as a person would.
pub(crate) fn look(root: &Path) -> Result<()> {
    let built = Built::of(root)?;
    let browser = browser()?;
    let folder = built.folder.join("browser");
    let node_package = node_package()?;
    install_npm(&folder, &[DRIVER, &format!("{node_package}@{NODE_VERSION}")])?;
    let node = folder.join("node_modules").join(node_package).join("bin/node");
    let script = root.join("tests/foreign/dashboard.mjs");
    finish(Command::new(node).arg(script).arg(&built.locum).arg(browser).arg(&folder))
}

/// Looks at it, and keeps what the README shows of it.
pub(crate) fn take_picture(root: &Path) -> Result<()> {
    look(root)?;
    let picture = root.join("docs/pictures/dashboard.png");
    std::fs::copy(Built::of(root)?.folder.join("browser/dashboard.png"), &picture)?;
    println!("look at {}", picture.display());
    Ok(())
}

/// The path of a browser, which is installed where there is none.
fn browser() -> Result<String> {
    if let Some(found) = found() {
        return Ok(found);
    }
    install_package("chromium").context("chromium is needed")?;
    found().context("chromium was installed and is not there")
}

fn found() -> Option<String> {
    BROWSERS.iter().find_map(|name| {
        let said = Command::new("sh").args(["-c", &format!("command -v {name}")]).output().ok()?;
        let path = String::from_utf8(said.stdout).ok()?.trim().to_owned();
        (said.status.success() && !path.is_empty()).then_some(path)
    })
}
