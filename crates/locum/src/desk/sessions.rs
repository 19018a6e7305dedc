//! The life of sessions: for people and the orchestrating program, never for a task.

use locum_core::ids::{Identity, SessionId, SessionKey};
use locum_core::protocol::Refusal;
use locum_core::session::Lookup;
use locum_core::session::life::{self, Step};

use super::Desk;
use crate::engine::store_refusal;
use crate::operation_log::Operation;
use crate::store::SessionRow;

/// An id that no session has.
pub(crate) fn fresh_session() -> SessionId {
    let text = format!("s-{}", ulid::Ulid::generate().to_string().to_ascii_lowercase());
    SessionId::parse(&text).expect("letters and digits are a session id")
}

impl Desk {
    /// A desk in a session of its own, which is made by its first change.
    #[must_use]
    pub fn in_new_session(&self) -> Self {
        self.in_session(fresh_session())
    }

    /// The sessions of the project, by id.
    pub async fn sessions(&self) -> Result<Vec<SessionRow>, Refusal> {
        let rows = self.engine.hands.store.sessions(&self.session.project).await;
        rows.map_err(|error| store_refusal(&error))
    }

    /// Makes an empty session. One that is not made is made by its first change.
    ///
    /// Dropped half-way, the session may be there all the same.
    pub async fn create_session(&self, id: &SessionId) -> Result<(), Refusal> {
        self.step(id, Step::Create).await
    }

    /// Makes a session read-only: nothing is started, defined or written in it any more. What runs goes on, and can
    /// be waited for, cancelled, collected and read.
    ///
    /// Dropped half-way, the session may be archived all the same.
    pub async fn archive_session(&self, id: &SessionId) -> Result<(), Refusal> {
        self.step(id, Step::Archive).await
    }

    /// Removes a session with its shared context, its agents, its tasks and their logs. One with unfinished tasks is
    /// refused.
    ///
    /// Dropped half-way, the session may be removed all the same.
    pub async fn delete_session(&self, id: &SessionId) -> Result<(), Refusal> {
        self.step(id, Step::Delete).await
    }

    async fn step(&self, id: &SessionId, step: Step) -> Result<(), Refusal> {
        let answer = self.take_step(id, step).await;
        self.engine.hands.log.write(&Operation {
            timestamp: self.engine.hands.clock.now(),
            session: id.as_str(),
            task: None,
            agent: None,
            action: step.as_str(),
            status: answer.as_ref().map_or_else(|refusal| refusal.code.as_str(), |()| "ok"),
            turns: None,
            change: None,
            payload: None,
        });
        answer
    }

    async fn take_step(&self, id: &SessionId, step: Step) -> Result<(), Refusal> {
        if self.caller.identity != Identity::Orchestrator {
            return Err(Refusal::invalid("a task does not decide about sessions"));
        }
        let key = SessionKey { project: self.session.project.clone(), id: id.clone() };
        let id = id.clone();
        let decided = self.engine.decide(&key, Lookup::default(), move |_, view| {
            Ok((life::decide(step, &id, view)?.into_iter().collect(), ()))
        });
        decided.await.map(|_| ())
    }
}
