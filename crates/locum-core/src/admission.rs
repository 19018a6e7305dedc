//! What may happen: pure decisions over a session, taken inside the transaction that writes what they allow.

pub mod define;
pub mod errand;
mod finding;
mod isolation;
pub mod listing;
mod money;
mod prompt;
pub mod receipt;
pub mod servers;
pub mod spawn;
mod tools;

use crate::agent::{AgentSpec, Fallbacks, Roster};
use crate::budget::Purse;
use crate::ids::{Identity, SessionKey, Timestamp, Uid};
use crate::limits::Limits;
use crate::permission::{HostPattern, Permissions};
use crate::protocol::{Code, FaceDefaults, Refusal};
use crate::routing::Catalogue;
use crate::session::SessionView;
use crate::task::plan::GrantedTool;

pub use define::define;
pub use listing::list_agents;
pub use servers::KnownServer;
pub use spawn::{Admitted, Order, admit};

/// What admission may look at besides the session: the world outside of it, as plain values.
#[derive(Debug, Clone, Copy)]
pub struct Premises<'a> {
    /// The session.
    pub session: &'a SessionKey,
    /// The agents from files, bundles and the application.
    pub roster: &'a Roster,
    /// What agents get that do not say otherwise.
    pub fallbacks: &'a Fallbacks,
    /// Every tool that exists here.
    pub tools: &'a [GrantedTool],
    /// The MCP servers that tools can be borrowed from, as far as they are known.
    pub servers: &'a [KnownServer],
    /// The models.
    pub catalogue: &'a Catalogue,
    /// The limits in force.
    pub limits: &'a Limits,
    /// The project's root directory.
    pub root: &'a str,
    /// The commands that tools run.
    pub commands: Commands<'a>,
    /// Whether a task can have a worktree of its own.
    pub worktrees: Worktrees,
    /// Whether a task can have a process of its own.
    pub processes: Processes,
    /// What the settings say about the use of tools.
    pub permissions: &'a Permissions,
    /// Who asks.
    pub caller: &'a Caller,
    /// The time.
    pub now: Timestamp,
}

/// Which tools run commands, and what those are shut into.
#[derive(Debug, Clone, Copy, Default)]
pub struct Commands<'a> {
    /// The names of the tools.
    pub tools: &'a [String],
    /// The sandbox; none where commands are refused.
    pub sandbox: Option<&'a str>,
}

/// Whether a task can have a git worktree of its own, as far as that is seen without running git.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Worktrees {
    /// The project is a git repository, and there is a place for its worktrees.
    Possible,
    /// The project has no `.git`.
    NoRepository,
    /// Nobody said where worktrees are kept.
    NoPlace,
}

/// Whether a task can have a process of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Processes {
    /// Nobody starts any here.
    NoProgram,
    /// It has one if it asks for it.
    Possible,
    /// It has one unless it asks for something else.
    Usual,
}

/// Who asks, and how far it may delegate.
#[derive(Debug, Clone, PartialEq)]
pub struct Caller {
    /// Who it is.
    pub identity: Identity,
    /// What the asking task itself was granted; absent for the orchestrator.
    pub parent: Option<ParentTask>,
}

impl Caller {
    /// Whoever stands behind a door.
    pub fn orchestrator() -> Self {
        Self { identity: Identity::Orchestrator, parent: None }
    }
}

/// A task that delegates. Its child is never wider than itself.
#[derive(Debug, Clone, PartialEq)]
pub struct ParentTask {
    /// The task.
    pub uid: Uid,
    /// Its depth.
    pub depth: u32,
    /// How many levels it may delegate below itself.
    pub depth_left: u32,
    /// The names of its tools.
    pub tools: Vec<String>,
    /// The directory that its tools cannot leave, where that is not the project's root.
    pub root: Option<String>,
    /// What it spends from, its own purse included; so does everything below it.
    pub purses: Vec<Purse>,
    /// What bounds the use of its tools.
    pub permissions: Permissions,
}

impl Premises<'_> {
    /// What bounds a task of this agent in the use of its tools: what its parent, the settings and its own file allow
    /// together.
    fn permissions_of(&self, agent: &AgentSpec) -> Permissions {
        let write_scopes = agent.locum.write_scope.iter().cloned().collect();
        let own = Permissions { write_scopes, ..Permissions::default() };
        let permissions = match &self.caller.parent {
            None => self.permissions.clone().and(&own),
            Some(parent) => parent.permissions.clone().and(self.permissions).and(&own),
        };
        Permissions { network: self.network_of(agent), ..permissions }
    }

    /// The hosts that commands of this agent's task may reach: those that its file names, where the task that delegates
    /// may reach them too.
    fn network_of(&self, agent: &AgentSpec) -> Vec<Vec<HostPattern>> {
        let own = agent.locum.network.as_ref().filter(|hosts| !hosts.is_empty());
        let above = self.caller.parent.as_ref().map(|parent| &parent.permissions.network);
        match (above, own) {
            (_, None) => Vec::new(),
            (None, Some(own)) => vec![own.clone()],
            (Some(above), Some(_)) if above.is_empty() => Vec::new(),
            (Some(above), Some(own)) => {
                let mut lists = above.clone();
                if !lists.contains(own) {
                    lists.push(own.clone());
                }
                lists
            }
        }
    }

    /// Why an agent's commands do not reach the hosts that its file names, or more than these.
    fn about_network(&self, agent: &AgentSpec) -> Option<String> {
        agent.locum.network.as_ref().filter(|hosts| !hosts.is_empty())?;
        if self.network_of(agent).is_empty() {
            return Some("the hosts of `network` are not reached: the task that delegates reaches none".to_owned());
        }
        match self.commands.sandbox? {
            "landlock" => {
                Some("the hosts of `network` are not reached: the sandbox `landlock` has no network".to_owned())
            }
            "none" => Some("`network` is not enforced: without a sandbox, commands reach everything".to_owned()),
            _ => None,
        }
    }

    /// The agents of files and application, with those of the session on top.
    fn roster_of(&self, view: &SessionView) -> Roster {
        let mut roster = self.roster.clone();
        for agent in &view.defined {
            roster.insert(agent.clone());
        }
        roster
    }

    /// The agents that can be asked through a face, its own on top.
    fn roster_for(&self, face: &FaceDefaults, view: &SessionView) -> Roster {
        let mut roster = self.roster_of(view).within(face.scope);
        if let Some(agent) = &face.agent {
            roster.insert(AgentSpec::clone(agent));
        }
        roster
    }

    /// How many levels a new task of this caller may delegate below itself; none where the caller may not delegate.
    fn depth_left(&self, face: &FaceDefaults) -> Option<u32> {
        let left = match &self.caller.parent {
            Some(parent) => parent.depth_left,
            None => self.limits.max_depth.unwrap_or(face.bounds.depth).min(Limits::DEPTH_CAP),
        };
        left.checked_sub(1)
    }

    /// The turns of a task of this agent, and what to say if the agent asks for others.
    fn turns_of(&self, agent: &AgentSpec, face: &FaceDefaults) -> (u32, Option<String>) {
        let (turns, warning) = self.clamp_turns(agent.max_turns.map(i64::from));
        (turns.unwrap_or_else(|| face.bounds.turns.min(self.turns_cap())), warning)
    }

    /// The most turns that a task may have; a setting of 0 leaves one, because no task can end in less.
    fn turns_cap(&self) -> u32 {
        self.limits.max_turns.max(1)
    }

    /// Turns within the allowed range, and what to say if they were not.
    fn clamp_turns(&self, turns: Option<i64>) -> (Option<u32>, Option<String>) {
        let Some(asked) = turns else { return (None, None) };
        let most = self.turns_cap();
        let clamped = u32::try_from(asked.clamp(1, i64::from(most))).unwrap_or(most);
        let warning = (i64::from(clamped) != asked)
            .then(|| format!("max_turns {asked} was set to {clamped}; it may be 1 to {most}"));
        (Some(clamped), warning)
    }
}

/// The agents that a session can ask: those of files and application, with its own on top.
pub fn roster(premises: &Premises<'_>, view: &SessionView) -> Roster {
    premises.roster_of(view)
}

/// A refusal for an agent that nobody knows.
pub fn agent_not_found(name: &str, roster: &Roster) -> Refusal {
    let shown: String = name.chars().take(80).collect();
    let near: Vec<&str> = roster.nearest(name).into_iter().map(crate::ids::AgentName::as_str).collect();
    let hint = if near.is_empty() {
        let all: Vec<&str> =
            roster.iter().take(20).map(|agent: &std::sync::Arc<AgentSpec>| agent.name.as_str()).collect();
        format!("the agents are {}", all.join(", "))
    } else {
        format!("did you mean {}? list_agents shows all", near.join(" or "))
    };
    Refusal::new(Code::AgentNotFound, format!("no agent is called `{shown}`")).hint(hint)
}
