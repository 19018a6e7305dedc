//! The agents that a session can delegate to, and how a name finds one.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::agent::{AgentSpec, Source};
use crate::ids::AgentName;
use crate::protocol::face::AgentScope;

/// Agents by name. Later ones replace earlier ones of the same name; what was replaced is kept to be shown.
#[derive(Debug, Clone, Default)]
pub struct Roster {
    agents: BTreeMap<AgentName, Arc<AgentSpec>>,
    /// Those of a project that is not trusted: they are shown, and asking for one is refused.
    untrusted: BTreeMap<AgentName, Arc<AgentSpec>>,
    shadowed: Vec<Arc<AgentSpec>>,
}

impl Roster {
    /// Adds an agent, in the place of one of the same name.
    pub fn insert(&mut self, agent: AgentSpec) {
        let name = agent.name.clone();
        self.shadowed.extend(self.agents.insert(name, Arc::new(agent)));
    }

    /// Adds an agent that may be shown and must not run. It takes no other one's place.
    pub fn insert_untrusted(&mut self, agent: AgentSpec) {
        let name = agent.name.clone();
        self.shadowed.extend(self.untrusted.insert(name, Arc::new(agent)));
    }

    /// The agents of one scope: what is in the shadow of an agent outside of it comes to light.
    #[must_use]
    pub fn within(self, scope: AgentScope) -> Self {
        let is_of_project = |agent: &Arc<AgentSpec>| matches!(agent.source, Source::Project(_));
        match scope {
            AgentScope::Both => self,
            AgentScope::Project => {
                let agents = self.agents.into_iter().filter(|(_, agent)| is_of_project(agent)).collect();
                Self { agents, untrusted: self.untrusted, shadowed: Vec::new() }
            }
            // What is not trusted is the project's, in the shadow or not.
            AgentScope::User => {
                let mut roster = Self::default();
                let all = self.shadowed.into_iter().chain(self.agents.into_values());
                for agent in all.filter(|agent| !is_of_project(agent)) {
                    roster.shadowed.extend(roster.agents.insert(agent.name.clone(), agent));
                }
                roster
            }
        }
    }

    /// The agent of exactly this name.
    pub fn get(&self, name: &str) -> Option<&Arc<AgentSpec>> {
        // A text that is not a name has no agent.
        AgentName::parse(name).ok().and_then(|name| self.agents.get(&name))
    }

    /// All agents that may run, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<AgentSpec>> {
        self.agents.values()
    }

    /// Those that may not run because their project is not trusted, by name.
    pub fn untrusted(&self) -> impl Iterator<Item = &Arc<AgentSpec>> {
        self.untrusted.values()
    }

    /// Those in whose place another one of the same name is, in the order in which they were added.
    pub fn shadowed(&self) -> impl Iterator<Item = &Arc<AgentSpec>> {
        self.shadowed.iter()
    }

    /// Finds the agent that a caller means: exactly, else with the same letters ignoring case, `-` and `_`.
    pub fn find(&self, name: &str) -> Option<Found> {
        if let Some(agent) = self.get(name) {
            return Some(Found { agent: Arc::clone(agent), how: How::Exact });
        }
        folded(&self.agents, name).map(|agent| Found { agent: Arc::clone(agent), how: How::Folded })
    }

    /// The agent that a caller would mean if the project were trusted. One that may run and is called exactly so comes
    /// before it.
    pub fn find_untrusted(&self, name: &str) -> Option<&Arc<AgentSpec>> {
        if self.get(name).is_some() {
            return None;
        }
        let exact = AgentName::parse(name).ok().and_then(|name| self.untrusted.get(&name));
        match exact {
            Some(agent) => Some(agent),
            None if folded(&self.agents, name).is_some() => None,
            None => folded(&self.untrusted, name),
        }
    }

    /// Whether an agent of this name waits for the project to be trusted.
    pub fn is_untrusted(&self, name: &AgentName) -> bool {
        self.untrusted.contains_key(name)
    }

    /// The names nearest to one that was not found, best first.
    pub fn nearest(&self, name: &str) -> Vec<&AgentName> {
        let untrusted = self.untrusted.keys().filter(|name| !self.agents.contains_key(*name));
        nearest(name, self.agents.keys().chain(untrusted), AgentName::as_str)
    }
}

/// The one agent with the same letters. Of two, the caller must say which.
fn folded<'a>(agents: &'a BTreeMap<AgentName, Arc<AgentSpec>>, name: &str) -> Option<&'a Arc<AgentSpec>> {
    let wanted = fold(name);
    let mut same = agents.values().filter(|agent| fold(agent.name.as_str()) == wanted);
    let agent = same.next()?;
    same.next().is_none().then_some(agent)
}

/// An agent that was found, and how.
#[derive(Debug, Clone)]
pub struct Found {
    /// The agent.
    pub agent: Arc<AgentSpec>,
    /// How the name led to it.
    pub how: How,
}

/// How a name led to an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// Letter by letter.
    Exact,
    /// With the same letters, ignoring case, `-` and `_`.
    Folded,
    /// By likeness: no agent has the name, and one is clearly nearest to it.
    Match,
    /// Nobody has the name, and the defaults say who answers then.
    Fallback,
    /// Nobody has the name, and an agent was made for the task.
    Ephemeral,
}

impl How {
    /// The word for it in a receipt.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Folded => "folded",
            Self::Match => "match",
            Self::Fallback => "fallback",
            Self::Ephemeral => "ephemeral",
        }
    }
}

/// A name without case, `-` and `_`.
pub(super) fn fold(name: &str) -> String {
    name.chars().filter(|c| *c != '-' && *c != '_').flat_map(char::to_lowercase).collect()
}

/// Up to three names that resemble a given one, best first: the suggestion behind every "not found".
pub fn nearest<'a, T>(name: &str, known: impl Iterator<Item = &'a T>, text: impl Fn(&T) -> &str) -> Vec<&'a T> {
    const LIKENESS_MIN: f64 = 0.7;
    const SUGGESTIONS_MAX: usize = 3;
    // A likeness is quadratic in its lengths; nothing longer than a few names resembles a name.
    let name: String = name.chars().take(crate::limits::NAME_CHARS_MAX * 2).flat_map(char::to_lowercase).collect();
    let mut scored: Vec<(f64, &T)> = known
        .map(|item| (strsim::jaro_winkler(&name, &text(item).to_lowercase()), item))
        .filter(|(score, _)| *score >= LIKENESS_MIN)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.into_iter().take(SUGGESTIONS_MAX).map(|(_, item)| item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roster(names: &[&str]) -> Roster {
        let mut roster = Roster::default();
        for name in names {
            roster.insert(AgentSpec::new(AgentName::parse(name).unwrap(), "d", "p"));
        }
        roster
    }

    #[test]
    fn names_are_found_exactly_then_folded_and_a_tie_is_refused() {
        let roster = roster(&["code-reviewer", "a_b", "a-b"]);
        assert_eq!(roster.find("code-reviewer").unwrap().how, How::Exact);
        assert_eq!(roster.find("Code_Reviewer").unwrap().how, How::Folded);
        assert_eq!(roster.find("a_b").unwrap().how, How::Exact);
        assert!(roster.find("AB").is_none());
        assert!(roster.find("").is_none());
    }

    #[test]
    fn an_untrusted_agent_is_found_only_where_no_other_one_is_meant() {
        let mut roster = roster(&["explore", "code-reviewer"]);
        for name in ["explore", "deploy", "codereviewer"] {
            roster.insert_untrusted(AgentSpec::new(AgentName::parse(name).unwrap(), "d", "p"));
        }
        let untrusted = |name: &str| roster.find_untrusted(name).map(|agent| agent.name.to_string());
        assert_eq!(untrusted("explore"), None);
        assert_eq!(untrusted("Explore"), None);
        assert_eq!(untrusted("deploy").as_deref(), Some("deploy"));
        assert_eq!(untrusted("De-Ploy").as_deref(), Some("deploy"));
        assert_eq!(untrusted("codereviewer").as_deref(), Some("codereviewer"));
        assert_eq!(untrusted("Code_Reviewer"), None);
        assert!(roster.find("deploy").is_none());
        assert_eq!(roster.shadowed().count(), 0);
    }

    #[test]
    fn what_was_replaced_is_kept_to_be_shown() {
        let roster = roster(&["a", "b", "a"]);
        let shadowed: Vec<&str> = roster.shadowed().map(|agent| agent.name.as_str()).collect();
        assert_eq!(shadowed, ["a"]);
        assert_eq!(roster.iter().count(), 2);
    }

    #[test]
    fn a_scope_shows_what_the_agents_outside_of_it_shadowed() {
        let mut roster = Roster::default();
        let of = |name: &str, source: Source| AgentSpec {
            source,
            ..AgentSpec::new(AgentName::parse(name).unwrap(), "d", "p")
        };
        roster.insert(of("a", Source::Bundled));
        roster.insert(of("a", Source::User("u/a.md".to_owned())));
        roster.insert(of("a", Source::Project("p/a.md".to_owned())));
        roster.insert(of("b", Source::Project("p/b.md".to_owned())));
        roster.insert(of("c", Source::Bundled));
        roster.insert_untrusted(of("d", Source::Project("p/d.md".to_owned())));
        roster.insert_untrusted(of("d", Source::Project("q/d.md".to_owned())));
        let shown = |scope: AgentScope| {
            let roster = roster.clone().within(scope);
            let agents = roster.iter().map(|agent| format!("{} {}", agent.name, agent.source.as_str()));
            agents.chain(roster.untrusted().map(|agent| format!("{} untrusted", agent.name))).collect::<Vec<_>>()
        };
        assert_eq!(shown(AgentScope::Both), ["a project", "b project", "c bundled", "d untrusted"]);
        assert_eq!(shown(AgentScope::Project), ["a project", "b project", "d untrusted"]);
        assert_eq!(shown(AgentScope::User), ["a user", "c bundled"]);
    }

    #[test]
    fn a_missing_name_suggests_its_nearest() {
        let roster = roster(&["reviewer", "researcher", "writer"]);
        let names: Vec<&str> = roster.nearest("reveiwer").into_iter().map(AgentName::as_str).collect();
        assert_eq!(names[0], "reviewer");
        assert!(roster.nearest("zzzz").is_empty());
        assert!(roster.nearest(&"x".repeat(1_000_000)).is_empty());
    }
}
