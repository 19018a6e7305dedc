//! `locum mcp install`: the words that make a host start locum, and the file of the host that they go into. What a file
//! holds otherwise, comments and order included, stays as it is; a file that cannot be understood is not touched.

mod hosts;
mod json_text;
mod merging;
mod toml_text;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use locum::settings::environment::Environment;
use locum::{Executor, protocol::Refusal};
use serde_json::json;

use self::hosts::Entry;
pub(crate) use self::hosts::Host;
use self::merging::{Merged, Spot};
use crate::args::{Global, InstallArgs};
use crate::door::{self, Orchestrator};
use crate::output::{Exit, Output};

pub(crate) fn install(args: &InstallArgs, global: &Global, output: Output) -> anyhow::Result<Exit> {
    let host = args.host;
    let environment = Environment::of_process();
    let project = door::setup(global, Orchestrator::Person, Executor::InProcess).project();
    let path = match args.project {
        true => project.join(host.project_file()),
        false => host.user_file(&environment).context("there is no home directory")?,
    };
    let face = args.face.face();
    let mut arguments = vec!["mcp".to_owned()];
    if face != locum::faces::Face::Native {
        arguments.extend(["--face".to_owned(), face.as_str().to_owned()]);
    }
    // Programs with windows often have another PATH than a shell, and a project's file is for others too.
    let command = match args.project {
        true => "locum".to_owned(),
        false => std::env::current_exe()?.to_string_lossy().into_owned(),
    };
    let entry = Entry { name: args.name.clone(), command, arguments };
    let (spot, fields) = (Spot { folder: host.folder(), name: &entry.name }, host.fields(&entry));
    if !args.write {
        output.answer(host.language().only(spot, &fields).trim_end());
        output.note(&format!("it belongs into {}; --write puts it there", path.display()));
        return Ok(Exit::Done);
    }
    let before = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error).with_context(|| format!("{} cannot be read", path.display())),
    };
    let is_changed = match host.language().merge(&before, spot, &fields) {
        Ok(Merged::Same) => false,
        Ok(Merged::Changed(text)) => {
            replace(&path, &text).with_context(|| format!("{} cannot be written", path.display()))?;
            true
        }
        Err(problem) => {
            let refusal = Refusal::invalid(format!("{}: {problem}", path.display()));
            return Ok(output.refuse(&refusal.hint("nothing was changed; without --write the words are shown")));
        }
    };
    if output.is_json() {
        output.json(&json!({"host": host.as_str(), "path": path, "name": entry.name, "changed": is_changed}));
    } else {
        output.answer(&path.display().to_string());
        let note = if is_changed { "restart the host, or reload its servers" } else { "it was there already" };
        output.note(note);
    }
    Ok(Exit::Done)
}

/// Puts a text in the place of a file, all at once; one that is linked to elsewhere is replaced there.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    let target: PathBuf = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut beside = target.clone().into_os_string();
    beside.push(format!(".{}.new", std::process::id()));
    let written = match fs::metadata(&target) {
        // It may hold keys: nobody else reads it on the way.
        Ok(known) => write_private(Path::new(&beside), text)
            .and_then(|()| fs::set_permissions(&beside, known.permissions()))
            .and_then(|()| fs::rename(&beside, &target)),
        Err(_) => fs::write(&beside, text).and_then(|()| fs::rename(&beside, &target)),
    };
    if written.is_err() {
        // What was begun is of no use.
        fs::remove_file(&beside).ok();
    }
    written
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?.write_all(text.as_bytes())
}
