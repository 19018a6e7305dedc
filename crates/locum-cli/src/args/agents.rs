//! The verbs of `locum agents`, as they are said.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub(crate) enum Agents {
    /// List the agents
    List,
    /// Show one agent with everything it has
    Show {
        /// The agent
        name: String,
    },
    /// Say what is wrong with agent files, and what other programs would make of them
    Lint(LintArgs),
    /// Write a file for a new agent
    New(NewArgs),
    /// Trust this project as it is now: its agents and settings act from then on
    Trust(TrustArgs),
}

#[derive(Debug, Args)]
pub(crate) struct LintArgs {
    /// A file, or a directory with agent files; every place with agents if left out
    pub(crate) path: Option<PathBuf>,
    /// Say too what this program would honour, spell differently or lose
    #[arg(long = "for", value_name = "PROGRAM", value_enum)]
    pub(crate) program: Option<Program>,
}

/// A program that reads agent files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Program {
    Claude,
    Tallow,
    Acai,
    Pi,
    Native,
}

#[derive(Debug, Args)]
pub(crate) struct NewArgs {
    /// Its name: a-z, 0-9, _ and -
    pub(crate) name: String,
    /// An agent to copy
    #[arg(long, value_name = "AGENT")]
    pub(crate) from: Option<String>,
    /// The directory to write it to; .locum/agents of the project if left out
    #[arg(long, value_name = "DIR", conflicts_with = "user")]
    pub(crate) dir: Option<PathBuf>,
    /// Write it to your own directory, for all projects
    #[arg(long)]
    pub(crate) user: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TrustArgs {
    /// Do not ask
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// List the projects that are trusted
    #[arg(long, conflicts_with_all = ["yes", "revoke"])]
    pub(crate) list: bool,
    /// Trust a project no longer; this one if none is named
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = ".", conflicts_with = "yes")]
    pub(crate) revoke: Option<PathBuf>,
}
