//! Who is there: agents with the values that a task of them would have now, and what stands in their way.

use std::path::PathBuf;
use std::sync::Arc;

use locum_core::admission;
use locum_core::agent::AgentSpec;
use locum_core::protocol::response::AgentLine;
use locum_core::protocol::{Code, FaceDefaults, Refusal, Response};
use locum_core::session::Lookup;
use serde::Serialize;

use super::Desk;
use crate::agents::Muster;

/// An agent in a list for people: also one that cannot be asked.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ListedAgent {
    /// What it is and has.
    #[serde(flatten)]
    pub line: AgentLine,
    /// Its file, where it came from one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// Why it cannot be asked, if it cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mark: Option<Mark>,
    /// Its instructions.
    #[serde(skip)]
    pub prompt: String,
}

/// Why an agent that is there cannot be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// Another one of the same name is in its place.
    Shadowed,
    /// Its project is not trusted.
    Untrusted,
}

impl Mark {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Shadowed => "shadowed",
            Self::Untrusted => "untrusted",
        }
    }
}

impl Desk {
    pub(super) async fn list_agents(&self, face: &FaceDefaults) -> Result<Response, Refusal> {
        let (caller, session, face) = (self.caller.clone(), self.session.clone(), face.clone());
        let (now, muster) = (self.engine.hands.clock.now(), self.engine.staff.now());
        let lookup = Lookup { agents: true, ..Lookup::default() };
        let (_, agents) = self
            .engine
            .decide(&self.session, lookup, move |engine, view| {
                let premises = engine.premises(&session, &caller, &muster, now);
                Ok((Vec::new(), admission::list_agents(&premises, &face, view)))
            })
            .await?;
        Ok(Response::Agents(agents))
    }

    /// Every agent, also those that cannot be asked, by name; of one name the one that answers comes first.
    ///
    /// # Errors
    ///
    /// The store failed.
    ///
    /// # Cancel safety
    ///
    /// It only reads: it may be dropped at any time.
    pub async fn all_agents(&self, face: &FaceDefaults) -> Result<Vec<ListedAgent>, Refusal> {
        let (caller, session, face) = (self.caller.clone(), self.session.clone(), face.clone());
        let (now, muster) = (self.engine.hands.clock.now(), self.engine.staff.now());
        let lookup = Lookup { agents: true, ..Lookup::default() };
        let listing = move |engine: &crate::engine::Engine, view: &locum_core::session::SessionView| {
            let premises = engine.premises(&session, &caller, &muster, now);
            let roster = admission::roster(&premises, view);
            let listed = |agent: &Arc<AgentSpec>, mark: Option<Mark>| ListedAgent {
                line: admission::listing::line(agent, &premises, &face),
                path: agent.source.path().map(PathBuf::from),
                mark,
                prompt: agent.prompt.clone(),
            };
            let active = roster.iter().map(|agent| listed(agent, None));
            let untrusted = roster.untrusted().map(|agent| listed(agent, Some(Mark::Untrusted)));
            let shadowed = roster.shadowed().map(|agent| listed(agent, Some(Mark::Shadowed)));
            let mut all: Vec<ListedAgent> = active.chain(untrusted).chain(shadowed).collect();
            all.sort_by(|a, b| a.line.name.cmp(&b.line.name));
            Ok((Vec::new(), all))
        };
        Ok(self.engine.decide(&self.session, lookup, listing).await?.1)
    }

    /// The agents from files, bundles and the application as they are now, with what could not be read. Files are
    /// read when this or anything else first needs them.
    pub fn muster(&self) -> Arc<Muster> {
        self.engine.staff.now()
    }

    /// An agent from a file, a bundle or the application; not one that was defined in the session.
    pub fn agent(&self, name: &str) -> Option<Arc<AgentSpec>> {
        self.muster().roster.get(name).cloned()
    }

    /// From now on changes of agent files are noticed: what is asked after one sees the agents as they are then. Tasks
    /// that were accepted keep theirs. A program that stays calls this when it starts.
    pub fn follow_agent_files(&self) {
        self.engine.staff.follow_changes();
    }

    /// Looks at agent files again, for a program that knows of a change: that the project is trusted now.
    pub fn look_at_agents_again(&self) {
        self.engine.staff.forget();
    }

    /// A refusal for a missing agent says so if there is a file for it that cannot be read.
    pub(super) fn explained(&self, requested: &str, refusal: Refusal) -> Refusal {
        if refusal.code != Code::AgentNotFound {
            return refusal;
        }
        let muster = self.muster();
        let broken =
            muster.problems.iter().find(|problem| problem.file.file_stem().is_some_and(|stem| stem == requested));
        match broken {
            Some(problem) => refusal.hint(format!("its file cannot be used: {problem}")),
            None => refusal,
        }
    }
}
