//! Building upon another agent: what is left out is taken from it, and its prompt comes first. `extends` in a file and
//! in `define` mean the same, and defaults are the same without a prompt.

use std::sync::Arc;

use super::AgentSpec;
use crate::ids::AgentName;
use crate::limits;

/// Why an agent cannot build upon another one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExtendsError {
    /// Nobody has the name.
    #[error("`extends` names `{0}`, and no agent is called that")]
    Unknown(AgentName),
    /// The way leads back.
    #[error("`extends` leads in a circle: {0}")]
    Circle(String),
    /// The way is too long.
    #[error("`extends` leads over more than {most} agents: {0}", most = limits::EXTENDS_MAX)]
    TooLong(String),
}

/// Takes from another agent what is left out. Name, description and prompt stay.
pub fn fill(agent: &mut AgentSpec, from: &AgentSpec) {
    fn take<T: Clone>(own: &mut Option<T>, other: &Option<T>) {
        if own.is_none() {
            own.clone_from(other);
        }
    }
    take(&mut agent.model, &from.model);
    take(&mut agent.tools, &from.tools);
    take(&mut agent.denied_tools, &from.denied_tools);
    take(&mut agent.readonly, &from.readonly);
    take(&mut agent.background, &from.background);
    take(&mut agent.max_turns, &from.max_turns);
    take(&mut agent.timeout_s, &from.timeout_s);
    take(&mut agent.isolation, &from.isolation);
    take(&mut agent.mcp_servers, &from.mcp_servers);
    take(&mut agent.sampling.temperature, &from.sampling.temperature);
    take(&mut agent.sampling.max_tokens, &from.sampling.max_tokens);
    take(&mut agent.sampling.effort, &from.sampling.effort);
    take(&mut agent.color, &from.color);
    agent.locum.fill(&from.locum);
    for (key, value) in &from.kept {
        agent.kept.entry(key.clone()).or_insert_with(|| value.clone());
    }
}

/// An agent with what it leaves out taken from its base, and its prompt below that of the base.
pub fn inherit(mut agent: AgentSpec, base: &AgentSpec) -> AgentSpec {
    fill(&mut agent, base);
    if agent.description.is_empty() {
        agent.description.clone_from(&base.description);
    }
    agent.prompt = match (base.prompt.trim_end(), agent.prompt.as_str()) {
        (base, "") => base.to_owned(),
        ("", own) => own.to_owned(),
        (base, own) => format!("{base}\n\n{own}"),
    };
    agent
}

/// An agent with everything that it takes from others; `find` knows each by its exact name, as its own file says it.
pub fn resolve(
    agent: &AgentSpec,
    find: impl Fn(&AgentName) -> Option<Arc<AgentSpec>>,
) -> Result<AgentSpec, ExtendsError> {
    let mut way: Vec<Arc<AgentSpec>> = Vec::new();
    let path = |way: &[Arc<AgentSpec>], last: &AgentName| {
        let names = std::iter::once(&agent.name).chain(way.iter().map(|base| &base.name)).chain([last]);
        names.map(AgentName::as_str).collect::<Vec<_>>().join(" → ")
    };
    let mut next = agent.extends.clone();
    while let Some(name) = next {
        if name == agent.name || way.iter().any(|base| base.name == name) {
            return Err(ExtendsError::Circle(path(&way, &name)));
        }
        if way.len() >= limits::EXTENDS_MAX {
            return Err(ExtendsError::TooLong(path(&way, &name)));
        }
        let base = find(&name).ok_or(ExtendsError::Unknown(name))?;
        next = base.extends.clone();
        way.push(base);
    }
    let mut whole: Option<AgentSpec> = None;
    for step in way.iter().rev().map(|base| AgentSpec::clone(base)).chain([agent.clone()]) {
        whole = Some(match whole {
            None => step,
            Some(base) => inherit(step, &base),
        });
    }
    Ok(whole.unwrap_or_else(|| agent.clone()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn agent(name: &str, extends: Option<&str>) -> AgentSpec {
        let mut agent = AgentSpec::new(AgentName::parse(name).unwrap(), "", format!("I am {name}."));
        agent.tools = None;
        agent.extends = extends.map(|name| AgentName::parse(name).unwrap());
        agent
    }

    fn resolved(name: &str, agents: &[AgentSpec]) -> Result<AgentSpec, ExtendsError> {
        let known: BTreeMap<_, _> = agents.iter().map(|agent| (agent.name.clone(), Arc::new(agent.clone()))).collect();
        let own = &known[&AgentName::parse(name).unwrap()];
        resolve(own, |name| known.get(name).cloned())
    }

    #[test]
    fn what_is_left_out_comes_from_the_nearest_and_prompts_are_joined_from_the_base_on() {
        let mut base = agent("base", None);
        base.description = "The base".to_owned();
        base.tools = Some(vec!["read".to_owned()]);
        base.readonly = Some(true);
        base.max_turns = Some(3);
        base.sampling.temperature = Some(0.5);
        let mut middle = agent("middle", Some("base"));
        middle.max_turns = Some(7);
        let mut leaf = agent("leaf", Some("middle"));
        leaf.readonly = Some(false);
        let whole = resolved("leaf", &[base, middle, leaf]).unwrap();
        assert_eq!(whole.prompt, "I am base.\n\nI am middle.\n\nI am leaf.");
        assert_eq!(whole.description, "The base");
        assert_eq!(whole.tools, Some(vec!["read".to_owned()]));
        assert_eq!((whole.readonly, whole.max_turns), (Some(false), Some(7)));
        assert_eq!(whole.sampling.temperature, Some(0.5));
        assert_eq!(whole.name.as_str(), "leaf");
    }

    #[test]
    fn a_way_that_does_not_end_at_a_base_is_said() {
        let said = |name: &str, agents: &[AgentSpec]| resolved(name, agents).unwrap_err().to_string();
        assert_eq!(said("a", &[agent("a", Some("nobody"))]), "`extends` names `nobody`, and no agent is called that");
        assert_eq!(said("a", &[agent("a", Some("a"))]), "`extends` leads in a circle: a → a");
        let circle = [agent("a", Some("b")), agent("b", Some("c")), agent("c", Some("b"))];
        assert_eq!(said("a", &circle), "`extends` leads in a circle: a → b → c → b");
        let long: Vec<AgentSpec> =
            (0..20).map(|n| agent(&format!("a{n}"), (n > 0).then(|| format!("a{}", n - 1)).as_deref())).collect();
        assert!(said("a19", &long).starts_with("`extends` leads over more than 8 agents: a19 → a18"));
        assert!(resolved("a8", &long).is_ok());
    }
}
