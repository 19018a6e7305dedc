//! What may be said to `locum board`.

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub(crate) enum BoardVerb {
    /// Put a task on the board
    Add(BoardAddArgs),
    /// List what is on the board
    List {
        /// List what was archived instead
        #[arg(long)]
        archived: bool,
    },
    /// Show one task with everything it has
    #[command(visible_alias = "get")]
    Show {
        /// The task on the board
        id: String,
    },
    /// Change a task, comment on it, or give it back with --status pending
    Update(BoardUpdateArgs),
    /// Take a task and begin with it
    Claim {
        /// The task on the board
        id: String,
        /// The running task that it is for; you if left out
        #[arg(long, value_name = "TASK")]
        owner: Option<String>,
    },
    /// Say that a task is done
    Complete {
        /// The task on the board
        id: String,
    },
    /// Say that every task is done
    CompleteAll,
    /// Archive everything that is on the board
    Clear,
}

#[derive(Debug, Args)]
pub(crate) struct BoardAddArgs {
    /// What is to be done
    #[arg(required = true)]
    pub(crate) subject: Vec<String>,
    #[command(flatten)]
    pub(crate) fields: BoardFields,
}

#[derive(Debug, Args)]
pub(crate) struct BoardUpdateArgs {
    /// The task on the board
    pub(crate) id: String,
    /// What is to be done
    #[arg(long, value_name = "TEXT")]
    pub(crate) subject: Option<String>,
    #[command(flatten)]
    pub(crate) fields: BoardFields,
    /// Give it back, take it, or say that it is done
    #[arg(long, value_enum)]
    pub(crate) status: Option<BoardState>,
    /// Add a comment
    #[arg(long, value_name = "TEXT")]
    pub(crate) comment: Option<String>,
    /// Wait for no other task any more
    #[arg(long, conflicts_with = "blocked_by")]
    pub(crate) unblock: bool,
}

/// What a task on the board has beside its subject.
#[derive(Debug, Args)]
pub(crate) struct BoardFields {
    /// Details; - reads them from standard input
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
    /// What is shown while it is worked on, for example 'Writing tests'
    #[arg(long, value_name = "TEXT")]
    pub(crate) active_form: Option<String>,
    /// A task that must be completed first; several times for several
    #[arg(long, value_name = "ID")]
    pub(crate) blocked_by: Vec<String>,
    /// Anything else, as a JSON object
    #[arg(long, value_name = "JSON")]
    pub(crate) metadata: Option<String>,
}

/// How far a task on the board is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BoardState {
    Pending,
    #[value(name = "in_progress", alias = "in-progress")]
    InProgress,
    Completed,
}
