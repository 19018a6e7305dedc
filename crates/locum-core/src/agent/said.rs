//! What an agent says, field by field, under the names that files use.

use serde_json::{Value as Json, json};

use super::AgentSpec;
use super::fields::{FIELDS, Field};

/// Every field that the agent sets, in the order of the table of fields, with its value.
pub fn said(agent: &AgentSpec) -> Vec<(&'static str, Json)> {
    let mut said: Vec<(&'static str, Json)> = Vec::new();
    let mut say = |field: Field, value: Option<Json>| said.extend(value.map(|value| (field.as_str(), value)));
    say(Field::Model, agent.model.as_ref().map(|model| json!(model)));
    say(Field::Tools, agent.tools.as_ref().map(|tools| json!(tools)));
    say(Field::DisallowedTools, agent.denied_tools.as_ref().map(|tools| json!(tools)));
    say(Field::MaxTurns, agent.max_turns.map(|turns| json!(turns)));
    say(Field::Timeout, agent.timeout_s.map(|seconds| json!(seconds)));
    say(Field::McpServers, agent.mcp_servers.as_ref().map(|servers| json!(servers)));
    say(Field::Isolation, agent.isolation.map(|isolation| json!(isolation)));
    say(Field::Readonly, agent.readonly.map(|readonly| json!(readonly)));
    say(Field::Background, agent.background.map(|background| json!(background)));
    say(Field::Effort, agent.sampling.effort.as_ref().map(|effort| json!(effort)));
    say(Field::Temperature, agent.sampling.temperature.map(|temperature| json!(temperature)));
    say(Field::MaxTokens, agent.sampling.max_tokens.map(|tokens| json!(tokens)));
    say(Field::Extends, agent.extends.as_ref().map(|base| json!(base)));
    say(Field::Color, agent.color.as_ref().map(|color| json!(color)));
    for field in [Field::Skills, Field::Memory, Field::Hooks, Field::PermissionMode, Field::InitialPrompt] {
        say(field, agent.kept.get(field.as_str()).cloned());
    }
    said.extend(agent.locum.said());
    said
}

/// What the agent says and locum does not do yet, each with why.
pub fn unhonoured(agent: &AgentSpec) -> Vec<(&'static str, &'static str)> {
    let kept = FIELDS.iter().filter_map(|row| Some((row.field.as_str(), row.kept?)));
    let kept = kept.filter(|(name, _)| agent.kept.contains_key(*name));
    kept.chain(agent.locum.unhonoured()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::{Dialect, Source, markdown};

    #[test]
    fn every_field_of_a_file_is_said_under_its_own_name() {
        let text = "---\nname: whole\ndescription: d\nmodel: m\ntools: read\ndisallowedTools: bash\nmaxTurns: 3\n\
                    timeout: 60\nmcpServers: github\nisolation: worktree\nreadonly: true\nbackground: true\n\
                    effort: high\ntemperature: 0.5\nmax_tokens: 100\nextends: base\ncolor: red\nskills: a\n\
                    memory: user\nhooks: {}\npermissionMode: plan\ninitialPrompt: Hi\nlocum:\n  \
                    budget: {max_cost_usd: 1}\n  write_scope: [src]\n  output_schema: {type: object}\n  \
                    fallback_models: [n]\n  max_depth: 1\n  network: false\n  include_dirty: true\n---\nBody.\n";
        let reading = markdown::read(text.as_bytes(), "whole", Source::Application, Dialect::Native).unwrap();
        let names: Vec<&str> = said(&reading.agent).into_iter().map(|(name, _)| name).collect();
        let mut sorted = names.clone();
        sorted.sort_unstable();
        // The name and the description are not values that a task has; `locum` is said key by key.
        let written: Vec<&str> = reading.origins.keys().map(String::as_str).collect();
        let expected: Vec<&str> =
            written.into_iter().filter(|name| !["name", "description", "locum"].contains(name)).collect();
        assert_eq!(sorted, expected);
        let unhonoured: Vec<&str> = unhonoured(&reading.agent).into_iter().map(|(name, _)| name).collect();
        assert!(unhonoured.starts_with(&["skills", "memory", "hooks", "permissionMode", "initialPrompt"]));
        assert!(unhonoured.iter().all(|name| names.contains(name)), "{unhonoured:?}");
    }
}
