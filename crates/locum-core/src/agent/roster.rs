//! The agents that a session can delegate to, and how a name finds one.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::agent::AgentSpec;
use crate::ids::AgentName;

/// Agents by name. Later ones replace earlier ones of the same name.
#[derive(Debug, Clone, Default)]
pub struct Roster {
    agents: BTreeMap<AgentName, Arc<AgentSpec>>,
}

impl Roster {
    /// Adds an agent, in the place of one of the same name.
    pub fn insert(&mut self, agent: AgentSpec) {
        self.agents.insert(agent.name.clone(), Arc::new(agent));
    }

    /// The agent of exactly this name.
    pub fn get(&self, name: &str) -> Option<&Arc<AgentSpec>> {
        // A text that is not a name has no agent.
        AgentName::parse(name).ok().and_then(|name| self.agents.get(&name))
    }

    /// All agents, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<AgentSpec>> {
        self.agents.values()
    }

    /// Finds the agent that a caller means: exactly, else with the same letters ignoring case, `-` and `_`.
    pub fn find(&self, name: &str) -> Option<Found> {
        if let Some(agent) = self.get(name) {
            return Some(Found { agent: Arc::clone(agent), how: How::Exact });
        }
        let wanted = fold(name);
        let mut same = self.agents.values().filter(|agent| fold(agent.name.as_str()) == wanted);
        let agent = same.next()?;
        // Two agents with the same letters: the caller must say which.
        same.next().is_none().then(|| Found { agent: Arc::clone(agent), how: How::Folded })
    }

    /// The names nearest to one that was not found, best first.
    pub fn nearest(&self, name: &str) -> Vec<&AgentName> {
        nearest(name, self.agents.keys(), AgentName::as_str)
    }
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
}

impl How {
    /// The word for it in a receipt.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Folded => "folded",
        }
    }
}

fn fold(name: &str) -> String {
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
    fn a_missing_name_suggests_its_nearest() {
        let roster = roster(&["reviewer", "researcher", "writer"]);
        let names: Vec<&str> = roster.nearest("reveiwer").into_iter().map(AgentName::as_str).collect();
        assert_eq!(names[0], "reviewer");
        assert!(roster.nearest("zzzz").is_empty());
        assert!(roster.nearest(&"x".repeat(1_000_000)).is_empty());
    }
}
