//! The binary `locum`: doors to the engine, and nothing else. What is allowed and what happens is decided behind them.

mod args;
mod commands;
mod complete;
mod door;
mod entrance;
mod install;
mod lines;
mod mcp;
mod news;
mod output;
mod remote;
mod roll;
mod serve;
mod tool_call;
mod watch;

use std::process::ExitCode;

use args::Cli;
use output::Output;

fn main() -> ExitCode {
    // Workers and launchers are this program started again: they must not parse, print or open anything else first.
    if let Some(done) = locum::launch::intercept() {
        return match done {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                Output::default().complain(&error.to_string(), None);
                ExitCode::FAILURE
            }
        };
    }
    let cli = Cli::said();
    let output = Output::new(cli.global.json, cli.global.quiet);
    match commands::run(cli, output) {
        Ok(exit) => exit.into(),
        Err(error) => {
            output.complain(&format!("{error:#}"), None);
            ExitCode::FAILURE
        }
    }
}
