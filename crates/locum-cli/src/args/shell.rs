//! What is said to have locum known to a shell and to `man`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// A shell that completes command lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
    Elvish,
    Powershell,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: Shell,
}

#[derive(Debug, Args)]
pub(crate) struct CompleteArgs {
    /// The words of the line; the last one is being typed
    #[arg(last = true, value_name = "WORD")]
    pub(crate) words: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct HelpArgs {
    /// The verb, for example run or agents new; all of them if left out
    #[arg(value_name = "VERB")]
    pub(crate) verbs: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The directory to write a page for each verb to, made if it is not there; the first page is printed if left out
    pub(crate) dir: Option<PathBuf>,
}
