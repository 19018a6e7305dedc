//! The command line, as it is said. What it means is made of it in `door` and `commands`.

mod agents;
mod board;
mod face;
mod mcp;
mod models;
mod serve;
mod shell;
mod worktree;

use std::path::PathBuf;

use clap::{Args, FromArgMatches as _, Parser, Subcommand, ValueEnum};

pub(crate) use agents::{Agents, LintArgs, NewArgs, Program, TrustArgs};
pub(crate) use board::{BoardAddArgs, BoardFields, BoardState, BoardUpdateArgs, BoardVerb};
pub(crate) use face::FaceArgs;
pub(crate) use mcp::{InstallArgs, McpArgs, McpVerb};
pub(crate) use models::{Models, RouteArgs, RoutingOptions};
pub(crate) use serve::ServeArgs;
pub(crate) use shell::{CompleteArgs, CompletionsArgs, ManArgs, Shell};
pub(crate) use worktree::WorktreeVerb;

/// Ask a specialist, get an answer.
#[derive(Debug, Parser)]
#[command(name = "locum", version, max_term_width = 100, propagate_version = true, disable_help_subcommand = true)]
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
        match agents {
            Some(agents) => command.mut_subcommands(|verb| with_argument(verb, &agents)),
            None => command,
        }
    }

    /// What was said; the parser answers in the place of a program that cannot understand it.
    pub(crate) fn said() -> Self {
        let matches = Self::whole_command().get_matches();
        let mut cli = Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
        let mut behind = matches.subcommand();
        while let Some((_, matches)) = behind {
            cli.global.agents.extend(matches.get_many::<PathBuf>(AGENTS).into_iter().flatten().cloned());
            behind = matches.subcommand();
        }
        cli
    }
}

fn with_argument(verb: clap::Command, argument: &clap::Arg) -> clap::Command {
    verb.arg(argument.clone()).mut_subcommands(|verb| with_argument(verb, argument))
}

/// What every verb takes.
#[derive(Debug, Clone, Default, Args)]
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
    /// A directory with further agents
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
    Chain(Chain),
    /// Give a goal to an orchestrator, which asks agents and joins what they found
    Ask(Ask),
    /// Ask several agents at once; the first answer counts, the others are cancelled
    Race(Race),
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
    /// Take a finished task's result
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
    /// Print the manual page, or write one for each verb to a directory
    Man(ManArgs),
    /// Say what may come next on a command line
    #[command(name = "__complete", hide = true)]
    Complete(CompleteArgs),
}

/// A task given as `AGENT=TASK`.
#[derive(Debug, Clone)]
pub(crate) struct Pair {
    pub(crate) agent: String,
    pub(crate) task: String,
}

fn parse_pair(text: &str) -> Result<Pair, String> {
    match text.split_once('=') {
        Some((agent, task)) if !agent.is_empty() && !task.is_empty() => {
            Ok(Pair { agent: agent.to_owned(), task: task.to_owned() })
        }
        _ => Err("write it as AGENT=TASK, for example 'explore=Where is the retry loop?'".to_owned()),
    }
}

/// What a task is given beside its text.
#[derive(Debug, Clone, Args)]
pub(crate) struct TaskOptions {
    /// Shown beside the task
    #[arg(long)]
    pub(crate) label: Option<String>,
    /// Seconds until the task is stopped
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<u64>,
    /// Input tokens that the task may use
    #[arg(long, value_name = "TOKENS")]
    pub(crate) max_input_tokens: Option<u64>,
    /// Output tokens that the task may use
    #[arg(long, value_name = "TOKENS")]
    pub(crate) max_output_tokens: Option<u64>,
    /// US dollars that the task may cost, where the model's price is known
    #[arg(long = "max-cost", value_name = "USD")]
    pub(crate) max_cost_usd: Option<f64>,
    /// Directory to work in, below the project's root
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(crate) cwd: Option<String>,
    /// Work apart: worktree makes a git worktree and a branch for the task, process a process without keys
    #[arg(long, value_name = "HOW", value_enum)]
    pub(crate) isolation: Option<Apart>,
    #[command(flatten)]
    pub(crate) routing: RoutingOptions,
}

/// How a task is set apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Apart {
    Worktree,
    Process,
    None,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The agent to ask
    pub(crate) agent: String,
    /// What it should do; - reads it from standard input
    #[arg(required = true)]
    pub(crate) task: Vec<String>,
    #[command(flatten)]
    pub(crate) options: TaskOptions,
    /// Do not wait: print the task's id and leave it to work in the background
    #[arg(long, conflicts_with = "wait")]
    pub(crate) background: bool,
    /// Wait for the answer, also of an agent that works in the background
    #[arg(long)]
    pub(crate) wait: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Ask {
    /// What is wanted; - reads it from standard input
    #[arg(required = true)]
    pub(crate) goal: Vec<String>,
    #[command(flatten)]
    pub(crate) options: TaskOptions,
}

#[derive(Debug, Args)]
pub(crate) struct Spawn {
    /// The agent to ask
    pub(crate) agent: String,
    /// What it should do; - reads it from standard input
    #[arg(required = true)]
    pub(crate) task: Vec<String>,
    #[command(flatten)]
    pub(crate) options: TaskOptions,
    /// Start only after this task has completed; its result is handed on
    #[arg(long = "after", value_name = "TASK")]
    pub(crate) depends_on: Vec<String>,
    /// Queue when all places are taken
    #[arg(long)]
    pub(crate) queue: bool,
    /// The same key and request give the same task
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Parallel {
    /// Tasks, each as AGENT=TASK
    #[arg(required_unless_present = "tasks", value_name = "AGENT=TASK", value_parser = parse_pair)]
    pub(crate) entries: Vec<Pair>,
    /// A file with one JSON object per line: agent, task and any option; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "entries")]
    pub(crate) tasks: Option<PathBuf>,
    /// How many run at once
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) concurrency: u32,
    #[command(flatten)]
    pub(crate) routing: RoutingOptions,
}

#[derive(Debug, Args)]
pub(crate) struct Chain {
    /// Steps, each as AGENT=TASK
    #[arg(required_unless_present = "tasks", value_name = "AGENT=TASK", value_parser = parse_pair)]
    pub(crate) entries: Vec<Pair>,
    /// A file with one JSON object per line: agent, task and any option; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "entries")]
    pub(crate) tasks: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) routing: RoutingOptions,
}

#[derive(Debug, Args)]
pub(crate) struct Race {
    /// Tasks, each as AGENT=TASK
    #[arg(required_unless_present = "tasks", value_name = "AGENT=TASK", value_parser = parse_pair)]
    pub(crate) entries: Vec<Pair>,
    /// A file with one JSON object per line: agent, task and any option; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "entries")]
    pub(crate) tasks: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) routing: RoutingOptions,
}

#[derive(Debug, Args)]
pub(crate) struct Map {
    /// The agent to ask
    pub(crate) agent: String,
    /// What it should do with each input; {input} stands for it
    pub(crate) task: String,
    /// The inputs
    #[arg(required_unless_present = "file", value_name = "INPUT")]
    pub(crate) inputs: Vec<String>,
    /// A file with one input per line; - is standard input
    #[arg(long = "inputs", value_name = "FILE", conflicts_with = "inputs")]
    pub(crate) file: Option<PathBuf>,
    /// How many run at once
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) concurrency: u32,
    #[command(flatten)]
    pub(crate) options: TaskOptions,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// The task; all that were not collected if left out
    pub(crate) task_id: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct WaitArgs {
    /// The tasks; all unfinished ones if left out
    pub(crate) task_ids: Vec<String>,
    /// Return when the first of them has ended
    #[arg(long)]
    pub(crate) any: bool,
    /// Seconds to wait at most
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct TaskArgs {
    /// The task
    pub(crate) task_id: String,
}

#[derive(Debug, Args)]
pub(crate) struct ResultArgs {
    /// The task
    pub(crate) task_id: String,
    /// First character to show
    #[arg(long)]
    pub(crate) offset: Option<usize>,
    /// Characters to show; everything if left out
    #[arg(long)]
    pub(crate) limit: Option<usize>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ContextVerb {
    /// List the keys
    List,
    /// Print a value
    Read {
        /// The key
        key: String,
    },
    /// Print several values; keys that are not there are named
    ReadBatch {
        /// The keys
        #[arg(required = true)]
        keys: Vec<String>,
    },
    /// Set a value; - reads it from standard input
    Write(ContextWriteArgs),
    /// Remove a value
    Delete {
        /// The key
        key: String,
        /// Refuse unless this version is there
        #[arg(long, value_name = "VERSION")]
        expected_version: Option<u64>,
    },
    /// Show what a key held, newest first, also after it was deleted
    History {
        /// The key
        key: String,
        /// How many; 20 are kept
        #[arg(long, value_name = "N")]
        versions: Option<usize>,
    },
    /// Keep all values under a label
    Snapshot {
        /// The label; what was kept under it is replaced
        label: String,
    },
    /// List the snapshots
    Snapshots,
    /// Bring back what was kept under a label; other keys are deleted
    Restore {
        /// The label
        label: String,
    },
    /// Show, make, archive or delete sessions of the project
    #[command(subcommand)]
    Session(SessionVerb),
}

#[derive(Debug, Args)]
pub(crate) struct ContextWriteArgs {
    /// The key
    pub(crate) key: String,
    /// The value
    pub(crate) value: String,
    /// Refuse unless this version is there; 0: the key must not exist
    #[arg(long, value_name = "VERSION")]
    pub(crate) expected_version: Option<u64>,
    /// Seconds until the value expires
    #[arg(long, value_name = "SECONDS")]
    pub(crate) ttl: Option<u64>,
    /// Who may read it, for example subagent:researcher:*; several times for several
    #[arg(long, value_name = "PATTERN")]
    pub(crate) readable_by: Vec<String>,
    /// Who may write it
    #[arg(long, value_name = "PATTERN")]
    pub(crate) writable_by: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionVerb {
    /// List the sessions
    List,
    /// Make a session
    Create {
        /// Its id
        id: String,
    },
    /// Make a session read-only
    Archive {
        /// Its id
        id: String,
    },
    /// Delete a session with its shared context, agents, tasks and logs
    Delete {
        /// Its id
        id: String,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
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
