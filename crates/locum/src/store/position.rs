//! The order in which the tasks of a store wrote: every record has a place in it, so that who has read up to one can go
//! on there, in another process and after any restart.

use std::fmt;
use std::str::FromStr;

use locum_core::ids::{AgentName, Seq, TaskId, Uid};
use locum_core::task::Record;
use serde::Serialize;

/// The place of a record among those of all tasks. The default is before the first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Which append it came with, of all that the store took.
    pub append: u64,
    /// Its number in its task's log.
    pub seq: Seq,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.append, self.seq)
    }
}

/// A text is not a position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a position looks like 12.3")]
pub struct NoPosition;

impl FromStr for Position {
    type Err = NoPosition;

    fn from_str(text: &str) -> Result<Self, NoPosition> {
        let (append, seq) = text.split_once('.').ok_or(NoPosition)?;
        let number = |text: &str| text.parse().map_err(|_| NoPosition);
        Ok(Self { append: number(append)?, seq: number(seq)? })
    }
}

/// A record with its place and its task.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlacedRecord {
    /// Where it stands.
    #[serde(skip)]
    pub position: Position,
    /// The task.
    pub uid: Uid,
    /// Its id in the session.
    pub task_id: TaskId,
    /// The agent that works on it.
    pub agent: AgentName,
    /// What happened.
    #[serde(flatten)]
    pub record: Record,
}

/// A part of what the tasks of a session wrote.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tail {
    /// In the order of their positions.
    pub records: Vec<PlacedRecord>,
    /// Up to where was looked: nothing of the session is missing before it.
    pub until: Position,
    /// Whether there is more to look at now.
    pub has_more: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_read_as_they_are_written() {
        let position = Position { append: 12, seq: 3 };
        assert_eq!(position.to_string(), "12.3");
        assert_eq!("12.3".parse(), Ok(position));
        for wrong in ["", "12", "12.", ".3", "12.3.4", "-1.3", "a.b", "99999999999999999999.1"] {
            assert_eq!(wrong.parse::<Position>(), Err(NoPosition), "{wrong}");
        }
    }
}
