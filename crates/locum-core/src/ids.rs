//! Names and ids, parsed once at the edge. A value of one of these types is well formed.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::limits;

/// Why a text is not a name: it is shown to whoever wrote the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a valid {what}: {why}")]
pub struct InvalidName {
    /// The kind of name that was expected.
    pub what: &'static str,
    /// What was given, shortened for display.
    pub text: String,
    /// The rule that it breaks.
    pub why: &'static str,
}

impl InvalidName {
    fn new(what: &'static str, text: &str, why: &'static str) -> Self {
        let text = text.chars().take(80).collect();
        Self { what, text, why }
    }
}

fn check_slug(what: &'static str, text: &str) -> Result<(), InvalidName> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
    if text.is_empty() {
        return Err(InvalidName::new(what, text, "it is empty"));
    }
    if !text.chars().all(allowed) {
        return Err(InvalidName::new(what, text, "only a-z, 0-9, `_` and `-` are allowed"));
    }
    if text.len() > limits::NAME_CHARS_MAX {
        return Err(InvalidName::new(what, text, "it is longer than 64 characters"));
    }
    Ok(())
}

macro_rules! text_newtype {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks the text and makes a name of it.
            pub fn parse(text: &str) -> Result<Self, InvalidName> {
                check_slug($what, text)?;
                Ok(Self(Arc::from(text)))
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidName;
            fn try_from(text: String) -> Result<Self, InvalidName> {
                check_slug($what, &text)?;
                Ok(Self(Arc::from(text)))
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.as_str().to_owned()
            }
        }
    };
}

text_newtype!(
    /// The name of an agent: `[a-z0-9_-]{1,64}`.
    AgentName,
    "agent name"
);
text_newtype!(
    /// The name of a session within its project: `[a-z0-9_-]{1,64}`.
    SessionId,
    "session id"
);
text_newtype!(
    /// A task's globally unique id, used wherever ids leave the session.
    Uid,
    "task uid"
);

/// A session is scoped by the project it belongs to: two projects may both have a `main`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SessionKey {
    /// The project's root directory, as text.
    pub project: Arc<str>,
    /// The session's name within the project.
    pub id: SessionId,
}

macro_rules! numbered_id {
    ($(#[$doc:meta])* $name:ident, $what:literal, $prefix:literal, $form:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(u32);

        impl $name {
            /// The id with this number; numbers start at 1.
            pub fn new(number: u32) -> Self {
                Self(number)
            }

            /// The counter behind the id.
            pub fn number(self) -> u32 {
                self.0
            }

            /// Reads an id. Exactly the spelling that [`fmt::Display`] writes is accepted.
            pub fn parse(text: &str) -> Result<Self, InvalidName> {
                let invalid = || InvalidName::new($what, text, $form);
                let digits = text.strip_prefix($prefix);
                let number = digits.and_then(|digits| digits.parse::<u32>().ok()).ok_or_else(invalid)?;
                let id = Self(number);
                if number == 0 || id.to_string() != text {
                    return Err(invalid());
                }
                Ok(id)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{:02}"), self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidName;
            fn try_from(text: String) -> Result<Self, InvalidName> {
                Self::parse(&text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.to_string()
            }
        }
    };
}

numbered_id!(
    /// A task's id within its session: `t_01`, `t_02`, … Never reused.
    TaskId,
    "task id",
    "t_",
    "a task id looks like t_01"
);
numbered_id!(
    /// The id of a task on the board of its session: `b_01`, `b_02`, … Never reused.
    BoardTaskId,
    "board task id",
    "b_",
    "a board task id looks like b_01"
);

/// Who acts in a session. It is set by the system and never by a request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Identity {
    /// Whoever delegates: the program, model or person behind a door.
    Orchestrator,
    /// A task that runs as this agent.
    Subagent {
        /// The agent's name.
        agent: AgentName,
        /// The task's id in the session.
        task_id: TaskId,
    },
}

impl Identity {
    /// Reads what [`fmt::Display`] writes; none for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        if text == "orchestrator" {
            return Some(Self::Orchestrator);
        }
        let (agent, task_id) = text.strip_prefix("subagent:")?.split_once(':')?;
        Some(Self::Subagent { agent: AgentName::parse(agent).ok()?, task_id: TaskId::parse(task_id).ok()? })
    }

    /// The task that acts, if it is one.
    pub fn task_id(&self) -> Option<TaskId> {
        match self {
            Self::Orchestrator => None,
            Self::Subagent { task_id, .. } => Some(*task_id),
        }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Orchestrator => f.write_str("orchestrator"),
            Self::Subagent { agent, task_id } => write!(f, "subagent:{agent}:{task_id}"),
        }
    }
}

/// A moment, in milliseconds since 1970 in UTC; written as RFC 3339.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Timestamp(i64);

impl Timestamp {
    /// The moment this many milliseconds after 1970.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since 1970.
    pub fn millis(self) -> i64 {
        self.0
    }

    /// How long after `earlier` this is; zero if a clock went backwards.
    pub fn millis_since(self, earlier: Self) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(moment) => write!(f, "{moment:.3}"),
            Err(_) => write!(f, "@{}ms", self.0),
        }
    }
}

impl TryFrom<String> for Timestamp {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        let moment: jiff::Timestamp = text.parse().map_err(|error| format!("`{text}` is not a time: {error}"))?;
        Ok(Self(moment.as_millisecond()))
    }
}

impl From<Timestamp> for String {
    fn from(moment: Timestamp) -> String {
        moment.to_string()
    }
}

/// A position in a task's log, from 1. Progress can be read from any number on.
pub type Seq = u64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_ids_have_one_spelling() {
        assert_eq!(TaskId::new(1).to_string(), "t_01");
        assert_eq!(TaskId::new(123).to_string(), "t_123");
        assert_eq!(TaskId::parse("t_07"), Ok(TaskId::new(7)));
        for wrong in ["t_7", "t_007", "t_00", "t_", "x", "", "t_-1", "t_+1", "T_01", "t_99999999999"] {
            assert!(TaskId::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn identities_are_read_as_they_are_written() {
        let agent = AgentName::parse("writer").unwrap();
        for identity in [Identity::Orchestrator, Identity::Subagent { agent, task_id: TaskId::new(3) }] {
            assert_eq!(Identity::parse(&identity.to_string()), Some(identity));
        }
        for wrong in ["", "Orchestrator", "subagent:writer", "subagent:writer:t_3", "subagent::t_03", "expiry"] {
            assert_eq!(Identity::parse(wrong), None, "{wrong}");
        }
        assert_eq!(BoardTaskId::new(7).to_string(), "b_07");
        assert!(BoardTaskId::parse("t_07").is_err());
    }

    #[test]
    fn agent_names_are_bounded_at_64() {
        assert!(AgentName::parse(&"a".repeat(64)).is_ok());
        assert!(AgentName::parse(&"a".repeat(65)).is_err());
        assert!(AgentName::parse("").is_err());
        assert!(AgentName::parse("Über").is_err());
    }

    #[test]
    fn timestamps_are_rfc_3339() {
        let moment = Timestamp::from_millis(1_700_000_000_123);
        assert_eq!(moment.to_string(), "2023-11-14T22:13:20.123Z");
        assert_eq!(Timestamp::try_from(moment.to_string()), Ok(moment));
    }
}
