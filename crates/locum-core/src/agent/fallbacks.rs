//! What agents get that do not say otherwise: the `_defaults.md` files in force, and from which of them a value comes.

use crate::agent::said::said;
use crate::agent::{AgentDefaults, AgentSpec, MissingAgent};
use crate::ids::AgentName;

/// The fallbacks in force.
#[derive(Debug, Clone, Default)]
pub struct Fallbacks {
    /// Lowest first: the user's, then the project's.
    layers: Vec<FallbackLayer>,
}

/// One `_defaults.md`.
#[derive(Debug, Clone)]
pub struct FallbackLayer {
    /// Whose it is and where, for people.
    pub origin: String,
    /// What it says.
    pub defaults: AgentDefaults,
}

/// An agent with its fallbacks, and where each value that it did not say itself came from.
#[derive(Debug, Clone)]
pub struct Completed {
    /// The agent.
    pub agent: AgentSpec,
    /// The fields that came from a fallback: their names, as files write them, and the fallback's origin.
    pub origins: Vec<(&'static str, String)>,
}

impl Completed {
    /// Where a field came from, if it came from a fallback.
    pub fn origin(&self, field: &str) -> Option<&str> {
        self.origins.iter().find(|(name, _)| *name == field).map(|(_, origin)| origin.as_str())
    }
}

impl Fallbacks {
    /// Adds a layer on top of the others.
    pub fn push(&mut self, layer: FallbackLayer) {
        self.layers.push(layer);
    }

    /// What happens when nobody has the name that was asked for, if one of them says so.
    pub fn missing_agent(&self) -> Option<MissingAgent> {
        self.layers.iter().rev().find_map(|layer| layer.defaults.missing_agent)
    }

    /// Who answers when nobody is found.
    pub fn fallback_agent(&self) -> Option<&AgentName> {
        self.layers.iter().rev().find_map(|layer| layer.defaults.fallback_agent.as_ref())
    }

    /// Gives an agent what it does not say itself.
    pub fn complete(&self, agent: &AgentSpec) -> Completed {
        let mut completed = Completed { agent: agent.clone(), origins: Vec::new() };
        for layer in self.layers.iter().rev() {
            let before = said(&completed.agent);
            layer.defaults.apply(&mut completed.agent);
            let is_new = |field: &&'static str| before.iter().all(|(known, _)| known != field);
            let gained = said(&completed.agent).into_iter().map(|(field, _)| field);
            let origin = |field| (field, layer.origin.clone());
            completed.origins.extend(gained.filter(is_new).map(origin));
        }
        completed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::defaults::read;

    #[test]
    fn higher_fallbacks_come_first_and_what_an_agent_says_stays() {
        let mut fallbacks = Fallbacks::default();
        for (origin, text) in [
            ("user", "---\nmaxTurns: 3\ntimeout: 60\ntools: read\nfallbackAgent: helper\n---\n"),
            ("project", "---\nmaxTurns: 5\nreadonly: true\nmissingAgentBehavior: match\n---\n"),
        ] {
            let defaults = read(text.as_bytes()).unwrap().defaults;
            fallbacks.push(FallbackLayer { origin: origin.to_owned(), defaults });
        }
        let agent = AgentSpec::new(AgentName::parse("a").unwrap(), "d", "p");
        let completed = fallbacks.complete(&agent);
        assert_eq!(completed.agent.tools, Some(Vec::new()));
        assert_eq!((completed.agent.max_turns, completed.agent.timeout_s), (Some(5), Some(60)));
        assert_eq!(completed.agent.readonly, Some(true));
        assert_eq!(completed.origin("maxTurns"), Some("project"));
        assert_eq!(completed.origin("timeout"), Some("user"));
        assert_eq!(completed.origin("tools"), None);
        assert_eq!(fallbacks.missing_agent(), Some(MissingAgent::Match));
        assert_eq!(fallbacks.fallback_agent().map(AgentName::as_str), Some("helper"));
    }
}
