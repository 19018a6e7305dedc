//! Who can be asked.

use crate::admission::{Premises, tools};
use crate::agent::AgentSpec;
use crate::protocol::FaceDefaults;
use crate::protocol::response::{AgentLine, Agents};
use crate::routing::{self, Wish};
use crate::session::SessionView;

/// Every agent that can be asked, with the values that a task of it would have now.
pub fn list_agents(premises: &Premises<'_>, face: &FaceDefaults, view: &SessionView) -> Agents {
    Agents { agents: premises.roster_of(view).iter().map(|agent| line(agent, premises, face)).collect() }
}

/// One agent with the values that a task of it would have now.
pub fn line(agent: &AgentSpec, premises: &Premises<'_>, face: &FaceDefaults) -> AgentLine {
    let depth_left = premises.depth_left().unwrap_or(0);
    let agent = &premises.fallbacks.complete(agent).agent;
    let wish = Wish { agent: agent.model.as_deref(), ..Wish::default() };
    let model = routing::choose(&wish, premises.catalogue);
    AgentLine {
        name: agent.name.clone(),
        description: agent.description.clone(),
        model: model.map_or_else(|_| premises.catalogue.session.name.to_string(), |choice| choice.receipt.effective),
        max_turns: premises.turns_of(agent).0,
        tools: tools::grant(agent, face.tools, premises, depth_left).receipt.effective,
        source: agent.source.as_str().to_owned(),
        version: (agent.source == crate::agent::Source::Defined).then_some(agent.version),
    }
}
