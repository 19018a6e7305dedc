//! What can be said after `locum worktree`.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum WorktreeVerb {
    /// List what tasks left, and what does not go together
    List,
    /// Show what a worktree changes
    Diff {
        /// The task, the branch, or the beginning of the uid
        name: String,
        /// Compare it with another worktree instead of its base, and name conflicts
        #[arg(long, value_name = "NAME")]
        against: Option<String>,
    },
    /// Take what a worktree changes into your checkout, without a commit
    Apply {
        /// The task, the branch, or the beginning of the uid
        name: String,
    },
    /// Remove a worktree's directory; a branch stays that no other one has the work of
    Drop {
        /// The task, the branch, or the beginning of the uid
        name: String,
        /// Also if its work is on its own branch alone
        #[arg(long, short)]
        yes: bool,
    },
    /// Find what lost processes left behind, and say what to do
    Fsck,
}
