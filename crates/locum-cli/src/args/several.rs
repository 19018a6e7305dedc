//! Several tasks on a command line.

use std::path::PathBuf;

use clap::Args;

use super::{RoutingOptions, TaskOptions};

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

/// Several tasks, one after the other on the line or in a file.
#[derive(Debug, Args)]
pub(crate) struct Entries {
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
pub(crate) struct Parallel {
    #[command(flatten)]
    pub(crate) entries: Entries,
    /// How many run at once
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = places)]
    pub(crate) concurrency: u32,
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
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = places)]
    pub(crate) concurrency: u32,
    #[command(flatten)]
    pub(crate) options: TaskOptions,
}

/// How many may run at once.
fn places(text: &str) -> Result<u32, String> {
    let places = text.parse().ok().filter(|places| *places > 0);
    places.ok_or_else(|| "write a number of tasks, 1 or more".to_owned())
}
