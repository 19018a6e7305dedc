//! What can be said after `locum mcp`.

use clap::{Args, Subcommand};

use super::FaceArgs;
use crate::install::Host;

#[derive(Debug, Args)]
pub(crate) struct McpArgs {
    #[command(flatten)]
    pub(crate) face: FaceArgs,
    #[command(subcommand)]
    pub(crate) verb: Option<McpVerb>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum McpVerb {
    /// List the MCP servers of your settings, their tools, and what has changed
    #[command(alias = "list")]
    Servers {
        /// Reach each of them first
        #[arg(long)]
        connect: bool,
    },
    /// Show what makes a host start locum, or put it into the host's settings
    Install(InstallArgs),
    /// Take tools that have changed since they were first seen as they are now
    Accept {
        /// The server
        #[arg(value_name = "SERVER")]
        name: String,
        /// The tools; all that have changed if left out
        tools: Vec<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct InstallArgs {
    /// The program that is to start locum
    pub(crate) host: Host,
    /// Put it into the host's file; everything else there stays as it is
    #[arg(long)]
    pub(crate) write: bool,
    /// For this project, in place of all of yours
    #[arg(long)]
    pub(crate) project: bool,
    /// What the host calls the server
    #[arg(long, default_value = "locum", value_parser = server_name)]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) face: FaceArgs,
}

/// A name that every host takes.
fn server_name(text: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match !text.is_empty() && text.len() <= 64 && text.chars().all(fits) {
        true => Ok(text.to_owned()),
        false => Err("letters, digits, - and _, at most 64 of them".to_owned()),
    }
}
