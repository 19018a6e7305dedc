//! What an orchestrating model is told: how to delegate, and who is there.

use locum_core::protocol::response::Agents;

/// How to delegate and how to share state.
const DISCIPLINE: &str = include_str!("prompt.md");

/// The whole text, with the agents that can be asked.
pub(crate) fn text(agents: &Agents) -> String {
    let mut text = format!("{}\n\nAgents:\n", DISCIPLINE.trim_end());
    for agent in &agents.agents {
        text.push_str(&format!("- {}: {}\n", agent.name, agent.description));
    }
    text
}
