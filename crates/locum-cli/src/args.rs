//! The command line, as it is said. What it means is made of it in `door` and `commands`.

mod agents;
mod board;
mod context;
mod examples;
mod face;
mod mcp;
mod models;
mod serve;
mod several;
mod shell;
mod tasks;
mod worktree;

use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue};
use clap::{Args, FromArgMatches as _, Parser, Subcommand};

pub(crate) use agents::{Agents, LintArgs, NewArgs, Program, TrustArgs};
pub(crate) use board::{BoardAddArgs, BoardFields, BoardState, BoardUpdateArgs, BoardVerb};
pub(crate) use context::{ContextVerb, ContextWriteArgs, SessionVerb};
pub(crate) use face::FaceArgs;
pub(crate) use mcp::{InstallArgs, McpArgs, McpVerb};
pub(crate) use models::{Models, RouteArgs, RoutingOptions};
pub(crate) use serve::ServeArgs;
pub(crate) use several::{Entries, Map, Pair, Parallel};
pub(crate) use shell::{CompleteArgs, CompletionsArgs, HelpArgs, ManArgs, Shell};
pub(crate) use tasks::{Apart, Ask, ResultArgs, Run, Spawn, StatusArgs, TaskArgs, TaskOptions, WaitArgs};
pub(crate) use worktree::WorktreeVerb;

/// Ask a specialist, get an answer.
#[derive(Debug, Parser)]
#[command(name = "locum", version, max_term_width = 100, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The option that every verb takes as the program itself does, each of them several times.
const AGENTS: &str = "agents";

impl Cli {
    /// The command line as it can be said. What may be given several times cannot be global: of what stands before and
    /// what stands behind the verb, the parser would keep only the last.
    pub(crate) fn whole_command() -> clap::Command {
        let command = <Self as clap::CommandFactory>::command();
        let agents = command.get_arguments().find(|argument| argument.get_id() == AGENTS).cloned();
        let command = match agents {
            Some(agents) => command.mut_subcommands(|verb| with_argument(verb, &agents)),
            None => command,
        };
        examples::add(command)
    }

    /// What was said; the parser answers in the place of a program that cannot understand it.
    pub(crate) fn said() -> Self {
        let matches = Self::whole_command().try_get_matches().unwrap_or_else(|error| with_tip(error).exit());
        let mut cli = Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
        let mut behind = matches.subcommand();
        while let Some((_, matches)) = behind {
            cli.global.agents.extend(matches.get_many::<PathBuf>(AGENTS).into_iter().flatten().cloned());
            behind = matches.subcommand();
        }
        cli
    }
}

/// An error that names the verb which was meant: the parser finds no likeness in letters that changed places.
fn with_tip(mut error: clap::Error) -> clap::Error {
    if let Some(ContextValue::String(said)) = error.get(ContextKind::InvalidSubcommand)
        && error.get(ContextKind::SuggestedSubcommand).is_none()
    {
        let command = Cli::whole_command();
        let names = command.get_subcommands().filter(|verb| !verb.is_hide_set()).map(|verb| verb.get_name().to_owned());
        let meant: Vec<String> = names.filter(|name| letters(name) == letters(said)).collect();
        if !meant.is_empty() {
            error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(meant));
        }
    }
    error
}

fn letters(word: &str) -> Vec<char> {
    let mut letters: Vec<char> = word.chars().collect();
    letters.sort_unstable();
    letters
}

fn with_argument(verb: clap::Command, argument: &clap::Arg) -> clap::Command {
    verb.arg(argument.clone()).mut_subcommands(|verb| with_argument(verb, argument))
}

/// What every verb takes.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Options of every verb")]
pub(crate) struct Global {
    /// Print JSON for machines
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print the answer and nothing else
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// The session to work in [env: LOCUM_SESSION]
    #[arg(long, global = true, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// The server to ask, as http://HOST:PORT, instead of working in this process [env: LOCUM_SERVER]
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) server: Option<String>,
    /// The model, for example openai:gpt-5.4-mini, offline, scripted:FILE or replay:FILE
    #[arg(long, global = true, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// A directory with further agents; several times for several
    #[arg(long, value_name = "DIR")]
    pub(crate) agents: Vec<PathBuf>,
    /// Add what the models answer to a file, without known secrets; --model replay:FILE says it again
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// What commands of agents are shut into: full, landlock or none
    #[arg(long, global = true, value_name = "LEVEL")]
    pub(crate) sandbox: Option<String>,
    /// Refuse a task that would not get all that was asked for; lint: warnings are errors
    #[arg(long, global = true)]
    pub(crate) strict: bool,
    /// Write tasks, inputs and results to the operation log
    #[arg(long, global = true)]
    pub(crate) log_payloads: bool,
}

/// A verb.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Ask one agent and wait for its answer
    Run(Run),
    /// Ask several agents at once and wait for all answers
    Parallel(Parallel),
    /// Ask several agents in turn; {previous} stands for the answer before
    Chain(Entries),
    /// Give a goal to an orchestrator, which asks agents and joins what they found
    Ask(Ask),
    /// Ask several agents at once; the first answer counts, the others are cancelled
    Race(Entries),
    /// Ask one agent the same about many inputs; {input} stands for each
    Map(Map),
    /// Start a task in the background and return at once
    Spawn(Spawn),
    /// Show how tasks stand
    Status(StatusArgs),
    /// Watch tasks, their agents and the board on a screen, as they go on
    Watch,
    /// Wait for tasks to end
    Wait(WaitArgs),
    /// Take a finished task's result; `status` shows it no longer
    Collect(TaskArgs),
    /// Read a task's whole result, also after it was collected
    Result(ResultArgs),
    /// Stop a task, keeping what it has
    Cancel(TaskArgs),
    /// Show what happened in a task
    Logs(TaskArgs),
    /// Show the agents, write new ones, check their files, and trust those of a project
    #[command(subcommand)]
    Agents(Agents),
    /// Show models, what they cost, and which one would be chosen
    #[command(subcommand)]
    Models(Models),
    /// Show what tasks left in their worktrees, take it, or let it go
    #[command(subcommand)]
    Worktree(WorktreeVerb),
    /// Show or change the shared context of the session
    #[command(subcommand)]
    Context(ContextVerb),
    /// Show or change the task board of the session
    #[command(subcommand)]
    Board(BoardVerb),
    /// Call a tool with JSON, as a model would
    Call(Call),
    /// Show the tools that a model is offered
    Tools(FaceArgs),
    /// Print the text that tells an orchestrating model how to delegate
    Prompt,
    /// Serve the tools, everything about tasks, and a dashboard over HTTP
    Serve(ServeArgs),
    /// Serve the tools over MCP on standard input and output; or see to hosts, and to servers that agents borrow from
    Mcp(McpArgs),
    /// Show the settings
    #[command(subcommand)]
    Config(Config),
    /// Say whether everything that locum needs is there, and what to do where it is not
    Doctor,
    /// Remove results and logs of tasks that ended more than 30 days ago
    Gc(GcArgs),
    /// Print a script that makes a shell complete command lines, with agents and tasks by name
    Completions(CompletionsArgs),
    /// Show what there is to say, or what a verb takes
    Help(HelpArgs),
    /// Print the manual page, or write one for each verb to a directory
    Man(ManArgs),
    /// Say what may come next on a command line
    #[command(name = "__complete", hide = true)]
    Complete(CompleteArgs),
}

#[derive(Debug, Args)]
pub(crate) struct Call {
    /// The tool, see `locum tools`; - reads one {"tool", "input"} per line from standard input
    pub(crate) tool: String,
    /// The tool's input as JSON
    #[arg(required_if_eq_any = [("tool", "subagent"), ("tool", "shared_context"), ("tool", "manage_tasks")])]
    pub(crate) input: Option<String>,
    #[command(flatten)]
    pub(crate) face: FaceArgs,
}

#[derive(Debug, Args)]
pub(crate) struct GcArgs {
    /// Say what would be removed, and remove nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Show every setting, its value and where it comes from
    Show,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    /// Arguments of verbs, by the path of the verb.
    fn own_arguments(command: &clap::Command, path: &str, found: &mut Vec<(String, String)>) {
        for verb in command.get_subcommands() {
            let path = format!("{path} {}", verb.get_name());
            found.extend(verb.get_arguments().map(|argument| (path.clone(), argument.get_id().to_string())));
            own_arguments(verb, &path, found);
        }
    }

    #[test]
    fn no_argument_of_a_verb_is_called_as_a_flag_of_all_of_them() {
        let command = Cli::command();
        let flags: Vec<&str> = command.get_arguments().map(|flag| flag.get_id().as_str()).collect();
        let mut found = Vec::new();
        own_arguments(&command, "locum", &mut found);
        assert!(flags.contains(&"server") && found.len() > 50, "nothing was looked at");
        for (verb, argument) in found {
            // Clap would take one for the other, silently.
            assert!(!flags.contains(&argument.as_str()), "`{argument}` of `{verb}` is also a flag of every verb");
        }
    }
}
