//! What can be said after `locum mcp`.

use clap::{Args, Subcommand};

use super::FaceArgs;

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
    Servers {
        /// Reach each of them first
        #[arg(long)]
        connect: bool,
    },
    /// Take tools that have changed since they were first seen as they are now
    Accept {
        /// The server
        #[arg(value_name = "SERVER")]
        name: String,
        /// The tools; all that have changed if left out
        tools: Vec<String>,
    },
}
