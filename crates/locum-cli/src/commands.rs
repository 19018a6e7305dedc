//! The verbs, one file each.

mod agents;
mod agents_lint;
mod agents_new;
mod agents_show;
mod ask;
mod board;
mod call;
mod chain;
mod config;
mod context;
mod doctor;
mod foreground;
mod gc;
mod help;
pub(crate) mod logs;
mod man;
mod map;
mod mcp_servers;
mod models;
mod parallel;
mod prompt;
mod race;
mod result;
mod run;
mod sessions;
mod spawn;
mod tasks;
mod tools;
pub(crate) mod trust;
mod worktree;

pub(crate) use sessions::line as session_line;

use std::time::Duration;

use crate::args::{Agents, Cli, Command, Global, McpVerb};
use crate::output::{Exit, Output};
use crate::{complete, install, mcp, serve, watch};

/// Runs a verb.
pub(crate) fn run(cli: Cli, output: Output) -> anyhow::Result<Exit> {
    let Cli { global, command } = cli;
    match command {
        Command::Completions(args) => {
            output.answer(&complete::script(args.shell));
            Ok(Exit::Done)
        }
        Command::Complete(args) => {
            let offers = complete::offers(args.words);
            if !offers.is_empty() {
                output.answer(&offers);
            }
            Ok(Exit::Done)
        }
        Command::Help(args) => Ok(help::help(&args, output)),
        Command::Man(args) => man::man(&args, output),
        Command::Tools(args) => tools::show(args.face(), &global, output),
        Command::Config(_) => config::show(&global, output),
        Command::Agents(Agents::Lint(args)) => agents_lint::lint(&args, &global, output),
        Command::Agents(Agents::New(args)) => agents_new::new(&args, &global, output),
        Command::Agents(Agents::Trust(args)) => trust::trust(&args, &global, output),
        command => {
            let runtime = runtime(&command)?;
            let exit = runtime.block_on(run_async(command, &global, output));
            // Reading standard input or writing to a full pipe cannot be interrupted and must not delay the end.
            runtime.shutdown_timeout(Duration::from_millis(500));
            exit
        }
    }
}

/// One thread is enough to wait for models; searching files has a pool of its own. A server has many clients.
fn runtime(command: &Command) -> std::io::Result<tokio::runtime::Runtime> {
    let mut builder = match command {
        Command::Serve(_) => tokio::runtime::Builder::new_multi_thread(),
        _ => tokio::runtime::Builder::new_current_thread(),
    };
    builder.enable_all().build()
}

async fn run_async(command: Command, global: &Global, output: Output) -> anyhow::Result<Exit> {
    match command {
        Command::Run(args) => run::run(args, global, output).await,
        Command::Parallel(args) => parallel::parallel(args, global, output).await,
        Command::Chain(args) => chain::chain(args, global, output).await,
        Command::Ask(args) => ask::ask(args, global, output).await,
        Command::Race(args) => race::race(args, global, output).await,
        Command::Map(args) => map::map(args, global, output).await,
        Command::Spawn(args) => spawn::spawn(args, global, output).await,
        Command::Status(args) => tasks::status(args, global, output).await,
        Command::Wait(args) => tasks::wait(args, global, output).await,
        Command::Collect(args) => tasks::collect(args, global, output).await,
        Command::Result(args) => result::result(args, global, output).await,
        Command::Cancel(args) => tasks::cancel(args, global, output).await,
        Command::Watch => watch::watch(global, output).await,
        Command::Logs(args) => logs::logs(args, global, output).await,
        Command::Agents(args) => agents::agents(args, global, output).await,
        Command::Gc(args) => gc::gc(args, global, output).await,
        Command::Doctor => doctor::doctor(global, output).await,
        Command::Models(args) => models::models(args, global, output).await,
        Command::Worktree(verb) => worktree::worktree(verb, global, output).await,
        Command::Context(args) => context::context(args, global, output).await,
        Command::Board(verb) => board::board(verb, global, output).await,
        Command::Call(args) => call::call(args, global, output).await,
        Command::Prompt => prompt::prompt(global, output).await,
        Command::Mcp(args) => match args.verb {
            Some(McpVerb::Install(args)) => install::install(&args, global, output),
            None => mcp::serve(args.face.face(), global, output).await,
            Some(verb) => mcp_servers::mcp_servers(verb, global, output).await,
        },
        Command::Serve(args) => serve::serve(args, global, output).await,
        Command::Tools(_)
        | Command::Config(_)
        | Command::Completions(_)
        | Command::Complete(_)
        | Command::Help(_)
        | Command::Man(_) => Ok(Exit::Done),
    }
}
