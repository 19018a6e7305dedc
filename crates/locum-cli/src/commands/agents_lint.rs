//! `locum agents lint`: what is wrong with agent files, and what other programs would make of them.

use std::path::Path;

use anyhow::Context as _;
use locum::Executor;
use locum::agent::Dialect;
use locum::agent::note::Severity;
use locum::agents::{Lint, LintedFile};
use serde_json::json;

use crate::args::{Global, LintArgs, Program};
use crate::door::{self, Orchestrator};
use crate::output::{Exit, Output, counted};

pub(super) fn lint(args: &LintArgs, global: &Global, output: Output) -> anyhow::Result<Exit> {
    let setup = door::setup(global, Orchestrator::Person, Executor::InProcess);
    let search = setup.agent_places().context("the places with agents are not known")?;
    // Settings that cannot be used name no tools; whoever runs an agent is told why.
    let tools = setup.settings().map(|(settings, _)| settings.described_tools()).unwrap_or_default();
    let tools = tools.into_iter().map(|(name, _)| name).collect();
    let lint = Lint { target: args.program.map(Into::into), strict: global.strict, tools };
    let files = match &args.path {
        None => lint.places(&search),
        Some(path) => match lint.path(path, &search) {
            Ok(files) => files,
            Err(message) => {
                output.complain(&message, Some("name a file, or a directory with agent files"));
                return Ok(Exit::Failed);
            }
        },
    };
    let count = |severity: Severity| files.iter().map(|file| file.count(severity)).sum::<usize>();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    if output.is_json() {
        output.json(&json!({"files": files, "errors": errors, "warnings": warnings}));
    } else {
        show(&files, output);
        output.note(&format!(
            "{}: {}, {}",
            counted(files.len() as u64, "file"),
            counted(errors as u64, "error"),
            counted(warnings as u64, "warning")
        ));
    }
    Ok(if errors > 0 { Exit::Failed } else { Exit::Done })
}

fn show(files: &[LintedFile], output: Output) {
    let here = std::env::current_dir().unwrap_or_default();
    let mut lines = Vec::new();
    for file in files {
        let path = file.path.strip_prefix(&here).ok().filter(|path| *path != Path::new("")).unwrap_or(&file.path);
        for note in &file.notes {
            let (at, severity) = (note.at, note.severity.as_str());
            lines.push(format!("{}:{}:{}: {severity}: {}", path.display(), at.line, at.column, note.message));
        }
    }
    if !lines.is_empty() {
        output.answer(&lines.join("\n"));
    }
}

impl From<Program> for Dialect {
    fn from(program: Program) -> Self {
        match program {
            Program::Claude => Self::Claude,
            Program::Tallow => Self::Tallow,
            Program::Acai => Self::Acai,
            Program::Pi => Self::Pi,
            Program::Native => Self::Native,
        }
    }
}
