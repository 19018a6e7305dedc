//! Who can be asked.

use crate::admission::{Premises, tools};
use crate::protocol::FaceDefaults;
use crate::protocol::response::{AgentLine, Agents};
use crate::routing::{self, Wish};
use crate::session::SessionView;

/// Every agent, with the values that a task of it would have now.
pub fn list_agents(premises: &Premises<'_>, face: &FaceDefaults, view: &SessionView) -> Agents {
    let depth_left = premises.depth_left().unwrap_or(0);
    let line = |agent: &std::sync::Arc<crate::agent::AgentSpec>| {
        let wish = Wish { agent: agent.model.as_deref(), ..Wish::default() };
        let model = routing::choose(&wish, premises.catalogue);
        let defined = view.defined.iter().any(|defined| defined.name == agent.name);
        AgentLine {
            name: agent.name.clone(),
            description: agent.description.clone(),
            model: model
                .map_or_else(|_| premises.catalogue.session.name.to_string(), |choice| choice.receipt.effective),
            max_turns: premises.turns_of(agent).0,
            tools: tools::grant(agent, face.tools, premises, depth_left).receipt.effective,
            source: agent.source.as_str().to_owned(),
            version: defined.then_some(agent.version),
        }
    };
    Agents { agents: premises.roster_of(view).iter().map(line).collect() }
}
