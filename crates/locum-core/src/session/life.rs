//! The life of a session: made, active, archived, removed. People and the orchestrating program decide about it;
//! no tool does.

use crate::ids::SessionId;
use crate::protocol::{Code, Refusal};
use crate::session::{SessionChange, SessionView};

/// What may be done with a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Make it.
    Create,
    /// Make it read-only.
    Archive,
    /// Remove it with everything in it.
    Delete,
}

impl Step {
    /// The step as the operation log names it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "session.create",
            Self::Archive => "session.archive",
            Self::Delete => "session.delete",
        }
    }
}

/// Decides about a step; none if there is nothing to do.
pub fn decide(step: Step, id: &SessionId, view: &SessionView) -> Result<Option<SessionChange>, Refusal> {
    match step {
        Step::Create if view.exists => {
            Err(Refusal::invalid(format!("there is a session `{id}` already")).hint("choose another id"))
        }
        Step::Create => Ok(Some(SessionChange::Create)),
        Step::Archive | Step::Delete if !view.exists => {
            Err(Refusal::new(Code::SessionNotFound, format!("there is no session `{id}` in this project"))
                .hint("`locum context session list` shows them"))
        }
        Step::Archive => Ok((!view.archived).then_some(SessionChange::Archive)),
        Step::Delete if view.unfinished > 0 => {
            let message = format!("the session `{id}` has unfinished tasks: {}", view.unfinished);
            Err(Refusal::invalid(message).hint("cancel them or wait for them, then delete it"))
        }
        Step::Delete => Ok(Some(SessionChange::Delete)),
    }
}
