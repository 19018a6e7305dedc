//! What faces need to know besides what is asked.

use std::path::PathBuf;

/// What faces need to know besides what is asked. The default says nothing about files and changes nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FaceSettings {
    /// Whether agents of the pi face may be given tools that change something.
    pub allow_write: bool,
    /// What tallow's `subagent_status` remembers.
    pub retention: Retention,
    /// Where the pi face writes what was said in a task; nowhere if this is left out.
    pub transcripts: Option<PathBuf>,
    /// The user's home directory, which the pi face does not show.
    pub home: Option<PathBuf>,
}

/// What tallow's `subagent_status` remembers of tasks that have ended. Their results and logs are kept much longer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retention {
    /// Minutes after their end in which they are listed.
    pub minutes: u64,
    /// Their last messages that are shown.
    pub tail_messages: usize,
    /// Whether all messages are shown.
    pub full_history: bool,
}

impl Retention {
    /// How many of the last messages are shown.
    pub(crate) fn shown_messages(&self) -> usize {
        if self.full_history { usize::MAX } else { self.tail_messages }
    }
}

impl Default for Retention {
    fn default() -> Self {
        Self { minutes: 30, tail_messages: 24, full_history: false }
    }
}
