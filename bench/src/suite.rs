//! A whole run: every group of rows, a table of them, and JSON for the next comparison.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::report::Report;
use crate::rounds::{Bench, Server};
use crate::rows;

/// A group of rows.
type Group = fn(&Bench, &mut Report) -> anyhow::Result<()>;

/// Everything that is measured.
const GROUPS: [(&str, Group); 10] = [
    ("crowds", rows::crowds),
    ("a long task", rows::long_task),
    ("large results", rows::large_results),
    ("long streams", rows::long_stream),
    ("protocols", rows::protocols),
    ("starts", rows::starts),
    ("agent files", rows::agent_files),
    ("sandbox", rows::sandboxed),
    ("workers", rows::workers),
    ("scale", rows::many),
];

/// How a run was asked for.
struct Options {
    quick: bool,
    json: Option<PathBuf>,
    compare: Option<PathBuf>,
    /// One group alone.
    only: Option<String>,
    locum: PathBuf,
    /// The command of another MCP server.
    beside: Option<String>,
}

impl Options {
    fn parse(words: &[&str]) -> anyhow::Result<Self> {
        // Both programs come from one build.
        let locum = std::env::current_exe()?.with_file_name("locum");
        let mut options = Self { quick: false, json: None, compare: None, only: None, locum, beside: None };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().map(PathBuf::from).with_context(|| format!("{word} needs a file"));
            match *word {
                "--quick" => options.quick = true,
                "--json" => options.json = Some(value()?),
                "--compare" => options.compare = Some(value()?),
                "--only" => options.only = Some(value()?.display().to_string()),
                "--locum" => options.locum = value()?,
                "--beside" => options.beside = Some(value()?.display().to_string()),
                other => anyhow::bail!(
                    "unknown option {other}; there are --quick, --json FILE, --compare OLD.json, --only GROUP, \
                     --beside COMMAND"
                ),
            }
        }
        if let Some(only) = &options.only {
            let names = GROUPS.map(|(name, _)| name);
            anyhow::ensure!(names.contains(&only.as_str()), "no group is called {only}; there are {names:?}");
        }
        Ok(options)
    }
}

/// Measures everything, prints a table, writes JSON where it was asked for.
pub(crate) fn run(words: &[&str]) -> anyhow::Result<()> {
    let options = Options::parse(words)?;
    let old = options.compare.as_ref().map(|path| -> anyhow::Result<Report> {
        Ok(serde_json::from_str(&std::fs::read_to_string(path).with_context(|| path.display().to_string())?)?)
    });
    let old = old.transpose()?;
    // Programs are started in other directories than this one.
    let locum = std::path::absolute(&options.locum)?;
    let bench = Bench { quick: options.quick, locum, beside: options.beside.clone(), server: Server::start()? };
    let mut report = Report { load_before: load(), ..Report::default() };
    let mut failures = Vec::new();
    for (name, group) in GROUPS {
        if options.only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        writeln!(std::io::stderr(), "measuring: {name}")?;
        // What was measured before is worth keeping.
        if let Err(error) = group(&bench, &mut report) {
            failures.push(format!("{name}: {error:#}"));
        }
        // A run that is broken off leaves what it has measured.
        save(options.json.as_deref(), &report)?;
    }
    report.load_after = load();
    show(&report, old.as_ref())?;
    save(options.json.as_deref(), &report)?;
    anyhow::ensure!(failures.is_empty(), "could not be measured: {}", failures.join("; "));
    Ok(())
}

fn save(path: Option<&Path>, report: &Report) -> anyhow::Result<()> {
    let Some(path) = path else { return Ok(()) };
    std::fs::write(path, serde_json::to_string_pretty(report)?).with_context(|| path.display().to_string())
}

fn show(report: &Report, old: Option<&Report>) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    write!(out, "{}", report.table(old))?;
    for name in report.missed() {
        writeln!(out, "missed: {name}")?;
    }
    writeln!(out, "load of the machine: {} before, {} after", report.load_before, report.load_after)?;
    Ok(())
}

/// What the machine did besides, as the kernel tells it; empty where it does not.
fn load() -> String {
    std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim().to_owned()
}
