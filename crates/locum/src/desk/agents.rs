//! Who is there: agents with the values that a task of them would have now, and what stands in their way.

use std::path::PathBuf;
use std::sync::Arc;

use locum_core::admission::{self, Premises};
use locum_core::agent::{AgentSpec, Roster};
use locum_core::ids::AgentName;
use locum_core::protocol::response::AgentLine;
use locum_core::protocol::{Code, FaceDefaults, Refusal, Response};
use locum_core::session::{Lookup, SessionView};
use locum_core::task::plan::ValueReceipt;
use serde::{Deserialize, Serialize};

use super::Desk;
use crate::agents::Muster;
use crate::engine::Engine;

/// An agent in a list for people: also one that cannot be asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ListedAgent {
    /// What it is and has.
    #[serde(flatten)]
    pub line: AgentLine,
    /// Its file, where it came from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// Why it cannot be asked, if it cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<Mark>,
}

/// An agent with everything that a task of it would have.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ShownAgent {
    /// The agent.
    pub agent: ListedAgent,
    /// Each value, by its name in files, with where it comes from.
    pub values: Vec<ShownValue>,
    /// Those of the same name that are not asked, with why.
    pub others: Vec<ListedAgent>,
    /// Its instructions.
    pub prompt: String,
}

/// A value that a task of an agent would have.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ShownValue {
    /// Its name in files.
    pub field: &'static str,
    /// What is asked for, what a task gets, and who says so.
    #[serde(flatten)]
    pub value: ValueReceipt,
    /// The file in which it is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// The line of that file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The agent that it is taken from by `extends`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extends: Option<AgentName>,
}

/// Why an agent that is there cannot be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
        let servers = self.engine.hands.servers.known();
        let lookup = Lookup { agents: true, ..Lookup::default() };
        let (_, agents) = self
            .engine
            .decide(&self.session, lookup, move |engine, view| {
                let premises = engine.premises(&session, &caller, (&muster, &servers), now);
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
        let servers = self.engine.hands.servers.known();
        let lookup = Lookup { agents: true, ..Lookup::default() };
        let listing = move |engine: &Engine, view: &SessionView| {
            let premises = engine.premises(&session, &caller, (&muster, &servers), now);
            let roster = admission::roster(&premises, view);
            let all = marked(&roster).into_iter();
            Ok((Vec::new(), all.map(|(agent, mark)| listed(agent, mark, &premises, &face)).collect()))
        };
        Ok(self.engine.decide(&self.session, lookup, listing).await?.1)
    }

    /// The agent that a name finds, with each value that a task of it would have and where that comes from, and the
    /// others of its name.
    ///
    /// # Errors
    ///
    /// There is no such agent, or the store failed.
    ///
    /// # Cancel safety
    ///
    /// It only reads: it may be dropped at any time.
    pub async fn show_agent(&self, name: &str, face: &FaceDefaults) -> Result<ShownAgent, Refusal> {
        let (caller, session, face) = (self.caller.clone(), self.session.clone(), face.clone());
        let (now, muster) = (self.engine.hands.clock.now(), self.engine.staff.now());
        let servers = self.engine.hands.servers.known();
        let lookup = Lookup { agents: true, ..Lookup::default() };
        let requested = name.to_owned();
        let showing = move |engine: &Engine, view: &SessionView| {
            let premises = engine.premises(&session, &caller, (&muster, &servers), now);
            let roster = admission::roster(&premises, view);
            let untrusted = roster.find_untrusted(&requested).map(|agent| agent.name.clone());
            let found = untrusted.or_else(|| roster.find(&requested).map(|found| found.agent.name.clone()));
            let name = found.ok_or_else(|| admission::agent_not_found(&requested, &roster))?;
            let mut same = marked(&roster).into_iter().filter(|(agent, _)| agent.name == name);
            let (agent, mark) = same.next().ok_or_else(|| admission::agent_not_found(&requested, &roster))?;
            let values = admission::listing::explain(agent, &premises, &face)?;
            let shown = ShownAgent {
                agent: listed(agent, mark, &premises, &face),
                values: values.into_iter().map(|(field, value)| located(field, value, &muster)).collect(),
                others: same.map(|(agent, mark)| listed(agent, mark, &premises, &face)).collect(),
                prompt: agent.prompt.clone(),
            };
            Ok((Vec::new(), shown))
        };
        let shown = self.engine.decide(&self.session, lookup, showing).await;
        Ok(shown.map_err(|refusal| self.explained(name, refusal))?.1)
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

/// Every agent of a roster, by name; of one name the one that answers comes first.
fn marked(roster: &Roster) -> Vec<(&Arc<AgentSpec>, Option<Mark>)> {
    let active = roster.iter().map(|agent| (agent, None));
    let untrusted = roster.untrusted().map(|agent| (agent, Some(Mark::Untrusted)));
    let shadowed = roster.shadowed().map(|agent| (agent, Some(Mark::Shadowed)));
    let mut all: Vec<_> = active.chain(untrusted).chain(shadowed).collect();
    all.sort_by(|(one, _), (other, _)| one.name.cmp(&other.name));
    all
}

fn listed(agent: &AgentSpec, mark: Option<Mark>, premises: &Premises<'_>, face: &FaceDefaults) -> ListedAgent {
    let line = admission::listing::line(agent, premises, face);
    ListedAgent { line, path: agent.source.path().map(PathBuf::from), mark }
}

/// A value with the place in a file where it is written.
fn located(field: &'static str, value: ValueReceipt, muster: &Muster) -> ShownValue {
    let written = muster.origins.get(&value.from).and_then(|fields| fields.get(field));
    let place = written.and_then(|written| written.place.as_ref());
    ShownValue {
        field,
        file: place.map(|(file, _)| file.to_path_buf()),
        line: place.map(|(_, at)| at.line),
        extends: written.and_then(|written| written.base.clone()),
        value,
    }
}
