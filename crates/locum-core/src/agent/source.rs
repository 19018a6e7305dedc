//! Where an agent came from. It is shown in lists and receipts; what it may do does not depend on it, except that a
//! project's agents run only when the project is trusted.

use serde::{Deserialize, Serialize};

/// Where an agent came from; files with their path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Shipped with locum.
    Bundled,
    /// A file of a package that the user's settings name.
    Package(String),
    /// A file of the user.
    User(String),
    /// A file of the project.
    Project(String),
    /// A file in a directory that was named with `--agents` or `LOCUM_AGENT_PATH`.
    Directory(String),
    /// Registered by the application that embeds the library.
    Application,
    /// Made in the session by `define`.
    Defined,
    /// Made for one task, because nobody has the name that was asked for.
    Ephemeral,
}

impl Source {
    /// The word for it in answers.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Bundled => "bundled",
            Self::Package(_) => "package",
            Self::User(_) => "user",
            Self::Project(_) => "project",
            Self::Directory(_) => "directory",
            Self::Application => "application",
            Self::Defined => "defined",
            Self::Ephemeral => "ephemeral",
        }
    }

    /// The file, where it came from one.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Package(path) | Self::User(path) | Self::Project(path) | Self::Directory(path) => Some(path),
            Self::Bundled | Self::Application | Self::Defined | Self::Ephemeral => None,
        }
    }
}
