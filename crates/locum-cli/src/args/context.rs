//! What can be said after `locum context`.

use clap::{Args, Subcommand};

use super::tasks::whole;

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
    #[arg(long, value_name = "SECONDS", value_parser = whole, allow_negative_numbers = true)]
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
