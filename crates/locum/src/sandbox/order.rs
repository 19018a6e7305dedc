//! What a launcher is told, and what it answers: one JSON object each way, between two runs of the same program.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Level;
use super::hiding::OUTPUTS;

/// The name of the pipe for complaints.
const COMPLAINTS: &str = "complaints";

/// The port in a command's network at which connections to the outside arrive: the usual one of proxies.
pub(crate) const ENTRANCE_PORT: u16 = 3128;

/// What to run and what to shut it into. It travels through the launcher's standard input, its length before it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) level: Level,
    /// The program and its arguments.
    pub(crate) program: Vec<String>,
    /// Its whole environment.
    pub(crate) variables: Vec<(String, String)>,
    /// What it may change.
    pub(crate) root: PathBuf,
    /// What git reads of the project that is elsewhere: its repository, and objects that this borrows.
    #[serde(default)]
    pub(crate) repository: Vec<PathBuf>,
    /// Where it starts.
    pub(crate) directory: PathBuf,
    /// The task's private directory, as the system outside calls it; see [`Order::temporary`] and its neighbours.
    pub(crate) private: PathBuf,
    /// The home directory, which it sees empty.
    pub(crate) home: Option<PathBuf>,
    /// Toolchains in it, which it may read.
    pub(crate) toolchains: Vec<PathBuf>,
    /// What it must not see, wherever it is.
    pub(crate) hidden: Vec<PathBuf>,
    /// How long it may take to end when it is asked to.
    pub(crate) grace_ms: u64,
    /// Whether its network has an entrance; only at the level `full`.
    #[serde(default)]
    pub(crate) has_entrance: bool,
    /// Whether protected names that appear while it runs are moved away; only at the level `full`.
    #[serde(default)]
    pub(crate) has_sentry: bool,
    /// What its standard files are.
    pub(crate) files: StandardFiles,
}

/// What the standard files of a command are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StandardFiles {
    /// Nothing to read, and both outputs in one stream.
    Output,
    /// One stream for both directions, and a pipe with a name for complaints.
    Conversation,
}

impl Order {
    /// The temporary directory of the task's commands.
    pub(crate) fn temporary(&self) -> PathBuf {
        self.private.join("tmp")
    }

    /// The whole output of the task's commands; they may read it.
    pub(crate) fn outputs(&self) -> PathBuf {
        self.private.join("output")
    }

    /// The pipe that a conversation's complaints go to, as the system outside calls it.
    pub(crate) fn complaints(&self) -> PathBuf {
        self.outputs().join(COMPLAINTS)
    }

    /// The same as the command knows it.
    pub(crate) fn complaints_inside(&self) -> PathBuf {
        match self.level {
            Level::Full => PathBuf::from(OUTPUTS).join(COMPLAINTS),
            Level::Landlock | Level::None => self.complaints(),
        }
    }

    /// An empty directory, on which the command's view of all files is built.
    pub(crate) fn view(&self) -> PathBuf {
        self.private.join("view")
    }
}

/// How it went, as one line on the launcher's standard output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Report {
    /// How the command ended.
    pub(crate) end: End,
    /// What else there is to know about it, each in a sentence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) notes: Vec<String>,
}

impl From<End> for Report {
    fn from(end: End) -> Self {
        Self { end, notes: Vec::new() }
    }
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum End {
    /// Nothing ran, because of this.
    Refused(String),
    /// It ended with this code.
    Exit(i32),
    /// It was ended by this signal.
    Signal(i32),
}
