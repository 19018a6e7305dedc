//! Developer commands for this workspace: `cargo xtask ci` is the whole of CI, `cargo xtask tidy` holds the rules
//! that neither the compiler nor clippy can express, and `cargo xtask api` watches over the library's public items.
//! Nothing here ships to users.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a developer's command line: its output is its purpose")]

mod api;
mod ci;
mod foreign;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};
use serde_json::Value;

const USAGE: &str = "\
Usage: cargo xtask <command>

Commands:
  ci [--full]                 run every check in order, stopping at the first failure;
                              --full adds the steps that need more than the Rust toolchain
  tidy                        check the rules of the project over all files and the dependency graph
  api [--write]               check the list of the library's public items; --write brings it up to date
  foreign python | inspector  run a client that others wrote against the MCP server
  foreign conformance         run the official MCP conformance suite against the server
  foreign servers             let an agent use MCP servers that others wrote
  foreign requests            check what models are sent with the types of the vendors' SDKs
  foreign local-model         ask a real server with a very small model
  foreign api-tester          make up requests from the OpenAPI document
  foreign shells              try completions and manual pages with the programs that read them
  foreign dashboard [--picture]
                              look at the dashboard in a real browser; --picture takes the README's anew
  foreign witness             look at a hostile project under strace
  bench [--quick] [--json FILE] [--compare OLD.json]
                              measure what locum costs, as ratios to a floor in the same run
  help                        print this text
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments.as_slice() {
        ["ci"] => in_root(|root| ci::run(root, ci::Scope::Standard)),
        ["ci", "--full"] => in_root(|root| ci::run(root, ci::Scope::Full)),
        ["bench", options @ ..] => in_root(|root| bench(root, options)),
        ["tidy"] => in_root(tidy::run),
        ["api"] => in_root(api::check),
        ["api", "--write"] => in_root(api::write),
        ["foreign", "python"] => in_root(foreign::python),
        ["foreign", "inspector"] => in_root(foreign::inspector),
        ["foreign", "conformance"] => in_root(foreign::conformance::suite),
        ["foreign", "servers"] => in_root(foreign::servers::servers),
        ["foreign", "requests"] => in_root(foreign::models::requests),
        ["foreign", "local-model"] => in_root(foreign::models::local_model),
        ["foreign", "api-tester"] => in_root(foreign::api::tester),
        ["foreign", "shells"] => in_root(foreign::shells::complete),
        ["foreign", "dashboard"] => in_root(foreign::dashboard::look),
        ["foreign", "dashboard", "--picture"] => in_root(foreign::dashboard::take_picture),
        ["foreign", "witness"] => in_root(foreign::witness::inert),
        ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            Ok(())
        }
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Builds the binary and the bench with optimisation, and runs the bench.
fn bench(root: &Path, options: &[&str]) -> Result<()> {
    // Both in one build: for each alone cargo would choose other features, and compile most libraries twice.
    let build = ["build", "--quiet", "--release", "--workspace", "--bin", "locum", "--bin", "locum-bench"];
    let built = cargo_command(root).args(build).status().context("cargo cannot be started")?;
    anyhow::ensure!(built.success(), "`cargo {}` failed", build.join(" "));
    let program = target_folder(root)?.join("release/locum-bench");
    let measured = Command::new(&program).current_dir(root).args(options).status();
    anyhow::ensure!(measured.with_context(|| program.display().to_string())?.success(), "the bench failed");
    Ok(())
}

/// Where cargo puts what it builds.
fn target_folder(root: &Path) -> Result<PathBuf> {
    let metadata = cargo_command(root)
        .args(["metadata", "--no-deps", "--format-version", "1", "--locked"])
        .output()
        .context("cargo cannot be started")?;
    let metadata: Value = serde_json::from_slice(&metadata.stdout).context("cargo metadata cannot be read")?;
    Ok(metadata["target_directory"].as_str().context("cargo names no target folder")?.into())
}

/// Runs a command with the root of the workspace, wherever `cargo xtask` was typed.
fn in_root(command: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    // Asked at run time, because checkouts that share a target folder also share this program.
    let manifest_folder =
        std::env::var_os("CARGO_MANIFEST_DIR").context("CARGO_MANIFEST_DIR is not set; run this as `cargo xtask`")?;
    let root = Path::new(&manifest_folder).parent().context("xtask has no parent folder")?;
    command(root)
}

/// Cargo at the root of the workspace. It names itself in `CARGO`, which keeps the toolchain of this run.
///
/// What `cargo run` says about xtask itself is not handed on: a build script that looks at it would run again, and half
/// of the workspace would be compiled anew after every change between `cargo build` and `cargo xtask`.
fn cargo_command(root: &Path) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(root);
    let about_xtask = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(about_xtask)) {
        command.env_remove(name);
    }
    command
}
