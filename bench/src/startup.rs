//! How long the binary takes to be there: from its start to its end, or to its first answer.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::Context as _;

/// A command of the binary whose start is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// A Rust program that does nothing.
    Nothing,
    /// `locum --version`.
    Version,
    /// A task of one turn.
    Run,
    /// `locum mcp` to its first list of tools.
    Mcp,
}

impl Start {
    /// Everything that is measured.
    pub(crate) const ALL: [Self; 4] = [Self::Nothing, Self::Version, Self::Run, Self::Mcp];

    /// The row's name.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Nothing => "an empty program",
            Self::Version => "locum --version",
            Self::Run => "locum run, one turn",
            Self::Mcp => "locum mcp to tools/list",
        }
    }

    /// Milliseconds of one start.
    pub(crate) fn measure(self, locum: &Path, home: &Path) -> anyhow::Result<f64> {
        let started = Instant::now();
        match self {
            Self::Nothing => finish(Command::new(std::env::current_exe()?).arg("nothing"))?,
            Self::Version => finish(Command::new(locum).arg("--version"))?,
            Self::Run => finish(
                Command::new(locum)
                    .args(["run", "explore", "hello", "--model"])
                    .arg(format!("scripted:{}", script(home)?.display()))
                    .env("LOCUM_HOME", home)
                    .current_dir(home),
            )?,
            Self::Mcp => {
                let (elapsed, tools) = first_tools(Command::new(locum).arg("mcp").env("LOCUM_HOME", home), home)?;
                anyhow::ensure!(tools.contains("shared_context"), "unexpected tools: {tools}");
                return Ok(elapsed);
            }
        }
        Ok(started.elapsed().as_secs_f64() * 1e3)
    }
}

fn script(home: &Path) -> anyhow::Result<PathBuf> {
    let path = home.join("script.json");
    std::fs::write(&path, r#"{"agents": {"*": [{"text": "hello"}]}}"#)?;
    Ok(path)
}

fn finish(command: &mut Command) -> anyhow::Result<()> {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    anyhow::ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}

/// Milliseconds from the start of somebody else's MCP server to its first list of tools.
pub(crate) fn beside(command: &str, home: &Path) -> anyhow::Result<f64> {
    let mut words = command.split_whitespace();
    let program = words.next().context("--beside names no program")?;
    Ok(first_tools(Command::new(program).args(words), home)?.0)
}

/// Milliseconds from the start of an MCP server to its first list of tools, and the list.
fn first_tools(server: &mut Command, home: &Path) -> anyhow::Result<(f64, String)> {
    let started = Instant::now();
    let mut child =
        server.current_dir(home).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let mut stdin = child.stdin.take().context("no standard input")?;
    let mut lines = BufReader::new(child.stdout.take().context("no standard output")?).lines();
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"0"}}}"#;
    writeln!(stdin, "{hello}")?;
    lines.next().context("no answer to initialize")??;
    writeln!(stdin, r#"{{"jsonrpc":"2.0","method":"notifications/initialized"}}"#)?;
    writeln!(stdin, r#"{{"jsonrpc":"2.0","id":2,"method":"tools/list"}}"#)?;
    let tools = lines.next().context("no answer to tools/list")??;
    let elapsed = started.elapsed();
    drop(stdin);
    child.wait()?;
    Ok((elapsed.as_secs_f64() * 1e3, tools))
}
