//! The binary `locum`: doors to the engine, and nothing else. What is allowed and what happens is decided behind them.

mod args;
mod commands;
mod door;
mod lines;
mod mcp;
mod news;
mod output;

use std::process::ExitCode;

use clap::Parser;

use args::Cli;
use output::Output;

fn main() -> ExitCode {
    // A worker is this program started again: it must not parse, print or open anything else first.
    if std::env::args_os().nth(1).is_some_and(|argument| argument == locum::launch::WORKER_ARGUMENT) {
        return match locum::launch::run_worker() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                Output::default().complain(&error.to_string(), None);
                ExitCode::FAILURE
            }
        };
    }
    let cli = Cli::parse();
    let output = Output::new(cli.global.json, cli.global.quiet);
    match commands::run(cli, output) {
        Ok(exit) => exit.into(),
        Err(error) => {
            output.complain(&format!("{error:#}"), None);
            ExitCode::FAILURE
        }
    }
}
