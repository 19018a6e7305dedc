//! Who can be asked.

use crate::admission::receipt::Given;
use crate::admission::{Premises, tools};
use crate::agent::{AgentSpec, Isolation};
use crate::protocol::response::{AgentLine, Agents};
use crate::protocol::{FaceDefaults, Refusal, SpawnEntry};
use crate::routing::{self, Wish};
use crate::session::SessionView;
use crate::task::plan::ValueReceipt;

/// Every agent that can be asked, with the values that a task of it would have now.
pub fn list_agents(premises: &Premises<'_>, face: &FaceDefaults, view: &SessionView) -> Agents {
    Agents { agents: premises.roster_for(face, view).iter().map(|agent| line(agent, premises, face)).collect() }
}

/// What a task of this agent would have if the call said nothing, value by value with where it comes from; by the names
/// that files use.
pub fn explain(
    agent: &AgentSpec,
    premises: &Premises<'_>,
    face: &FaceDefaults,
) -> Result<Vec<(&'static str, ValueReceipt)>, Refusal> {
    let completed = premises.fallbacks.complete(agent);
    let agent = &completed.agent;
    let granted = tools::grant(agent, face, premises, premises.depth_left(face).unwrap_or(0));
    let wish = Wish {
        agent: agent.model.as_deref(),
        agent_fallback: completed.origin("model"),
        tools: !granted.tools.is_empty(),
        ..Wish::default()
    };
    let choice = routing::choose(&wish, premises.catalogue)?;
    let (max_turns, clamped) = premises.turns_of(agent, face);
    let given = Given {
        entry: &SpawnEntry::default(),
        completed: &completed,
        choice: &choice,
        granted: &granted,
        max_turns,
        clamped: clamped.as_deref(),
        isolation: agent.isolation.unwrap_or(Isolation::None),
        timeout_s: face.bounds.timeout_s(agent.timeout_s),
    };
    Ok(given.explained())
}

/// One agent with the values that a task of it would have now.
pub fn line(agent: &AgentSpec, premises: &Premises<'_>, face: &FaceDefaults) -> AgentLine {
    let depth_left = premises.depth_left(face).unwrap_or(0);
    let agent = &premises.fallbacks.complete(agent).agent;
    let wish = Wish { agent: agent.model.as_deref(), ..Wish::default() };
    let model = routing::choose(&wish, premises.catalogue);
    AgentLine {
        name: agent.name.clone(),
        description: agent.description.clone(),
        model: model.map_or_else(|_| premises.catalogue.session.name.to_string(), |choice| choice.receipt.effective),
        max_turns: premises.turns_of(agent, face).0,
        tools: tools::grant(agent, face, premises, depth_left).receipt.effective,
        source: agent.source.as_str().to_owned(),
        version: (agent.source == crate::agent::Source::Defined).then_some(agent.version),
    }
}
