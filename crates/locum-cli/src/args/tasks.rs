//! One task on a command line: what it is given, and how it is named afterwards.

use clap::{Args, ValueEnum};

use super::RoutingOptions;

/// A whole number.
pub(super) fn whole(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "write a whole number, for example 600".to_owned())
}

/// What a task is given beside its text.
#[derive(Debug, Clone, Args)]
pub(crate) struct TaskOptions {
    /// Shown beside the task
    #[arg(long)]
    pub(crate) label: Option<String>,
    /// Seconds until the task is stopped; what its agent says if left out
    #[arg(long, value_name = "SECONDS", value_parser = whole, allow_negative_numbers = true)]
    pub(crate) timeout: Option<u64>,
    /// Input tokens that the task may use
    #[arg(long, value_name = "TOKENS", value_parser = whole, allow_negative_numbers = true)]
    pub(crate) max_input_tokens: Option<u64>,
    /// Output tokens that the task may use
    #[arg(long, value_name = "TOKENS", value_parser = whole, allow_negative_numbers = true)]
    pub(crate) max_output_tokens: Option<u64>,
    /// US dollars that the task may cost, where the model's price is known
    #[arg(long = "max-cost", value_name = "USD", allow_negative_numbers = true)]
    pub(crate) max_cost_usd: Option<f64>,
    /// Directory to work in, below the project's root
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(crate) cwd: Option<String>,
    /// Work apart: worktree makes a git worktree and a branch for the task, process a
    /// process without keys, and none neither of them, whatever its agent says
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
    /// Start only after this task has completed, with its result handed on; several times for several
    #[arg(long = "after", value_name = "TASK")]
    pub(crate) depends_on: Vec<String>,
    /// Wait for a place when all are taken, instead of being refused
    #[arg(long)]
    pub(crate) queue: bool,
    /// The same key and request give the same task
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// The task, for example t_01; all that were not collected if left out
    #[arg(value_name = "TASK")]
    pub(crate) task_id: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct WaitArgs {
    /// The tasks, for example t_01 t_02; all unfinished ones if left out
    #[arg(value_name = "TASK")]
    pub(crate) task_ids: Vec<String>,
    /// Return when the first of them has ended
    #[arg(long)]
    pub(crate) any: bool,
    /// Seconds to wait at most
    #[arg(long, value_name = "SECONDS", value_parser = whole, allow_negative_numbers = true)]
    pub(crate) timeout: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct TaskArgs {
    /// The task, for example t_01
    #[arg(value_name = "TASK")]
    pub(crate) task_id: String,
}

#[derive(Debug, Args)]
pub(crate) struct ResultArgs {
    /// The task, for example t_01
    #[arg(value_name = "TASK")]
    pub(crate) task_id: String,
    /// First character to show
    #[arg(long, value_name = "N")]
    pub(crate) offset: Option<usize>,
    /// Characters to show; everything if left out
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
}
