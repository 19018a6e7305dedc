//! The fields of an agent file as a table: how each is written here and elsewhere, and what becomes of it.

/// A field, whatever it is called in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    /// Its name.
    Name,
    /// When to delegate to it.
    Description,
    /// Its model.
    Model,
    /// The tools it may use.
    Tools,
    /// The tools it may not use.
    DisallowedTools,
    /// Its turns.
    MaxTurns,
    /// Its wall clock.
    Timeout,
    /// The MCP servers it may use.
    McpServers,
    /// How its tasks are set apart.
    Isolation,
    /// Only reading tools.
    Readonly,
    /// Whether its tasks are not waited for.
    Background,
    /// How hard the model thinks.
    Effort,
    /// The sampling temperature.
    Temperature,
    /// The longest single reply.
    MaxTokens,
    /// The agent that it builds upon.
    Extends,
    /// The colour in which it is shown.
    Color,
    /// Skills of other programs.
    Skills,
    /// Memory of other programs.
    Memory,
    /// Hooks of other programs.
    Hooks,
    /// Permissions of other programs.
    PermissionMode,
    /// The first prompt of other programs.
    InitialPrompt,
    /// What is ours alone.
    Locum,
    /// What happens where an agent is not found; in `_defaults.md`.
    MissingAgentBehavior,
    /// Who stands in where an agent is not found; in `_defaults.md`.
    FallbackAgent,
}

/// In which files a field has a meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Home {
    /// In agents only.
    Agent,
    /// In `_defaults.md` only.
    Defaults,
    /// In both.
    Both,
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// The field.
    pub field: Field,
    /// Its spellings; the first is the one that locum uses.
    pub spellings: &'static [&'static str],
    /// Where it has a meaning.
    pub home: Home,
    /// Why it has no effect, for those that are only kept.
    pub kept: Option<&'static str>,
}

const fn row(field: Field, spellings: &'static [&'static str], home: Home) -> Row {
    Row { field, spellings, home, kept: None }
}

const fn kept(field: Field, spellings: &'static [&'static str], why: &'static str) -> Row {
    Row { field, spellings, home: Home::Agent, kept: Some(why) }
}

/// Every field.
pub const FIELDS: [Row; 24] = [
    row(Field::Name, &["name"], Home::Agent),
    row(Field::Description, &["description"], Home::Agent),
    row(Field::Model, &["model"], Home::Both),
    row(Field::Tools, &["tools"], Home::Both),
    row(Field::DisallowedTools, &["disallowedTools", "disallowed_tools"], Home::Both),
    row(Field::MaxTurns, &["maxTurns", "max_turns", "steps"], Home::Both),
    row(Field::Timeout, &["timeout", "timeout_mins", "timeoutMins", "timeoutMs", "timeout_ms"], Home::Both),
    row(Field::McpServers, &["mcpServers", "mcp_servers"], Home::Both),
    row(Field::Isolation, &["isolation"], Home::Both),
    row(Field::Readonly, &["readonly"], Home::Both),
    row(Field::Background, &["background", "is_background"], Home::Both),
    row(Field::Effort, &["effort", "thinking"], Home::Both),
    row(Field::Temperature, &["temperature"], Home::Both),
    row(Field::MaxTokens, &["max_tokens", "maxTokens"], Home::Both),
    row(Field::Extends, &["extends"], Home::Agent),
    row(Field::Color, &["color"], Home::Agent),
    kept(Field::Skills, &["skills"], "locum has no skills yet"),
    kept(Field::Memory, &["memory"], "locum's agents have no memory of their own yet"),
    kept(Field::Hooks, &["hooks"], "locum runs no hooks yet"),
    kept(Field::PermissionMode, &["permissionMode", "permission_mode"], "`tools` and `readonly` say what is allowed"),
    kept(Field::InitialPrompt, &["initialPrompt", "initial_prompt"], "a task is the first thing an agent is told"),
    row(Field::Locum, &["locum"], Home::Both),
    row(Field::MissingAgentBehavior, &["missingAgentBehavior", "missing_agent_behavior"], Home::Defaults),
    row(Field::FallbackAgent, &["fallbackAgent", "fallback_agent"], Home::Defaults),
];

/// The row of a key, in any of its spellings.
pub fn find(key: &str) -> Option<&'static Row> {
    FIELDS.iter().find(|row| row.spellings.contains(&key))
}

impl Field {
    /// The name that locum uses for it.
    pub fn as_str(self) -> &'static str {
        FIELDS.iter().find(|row| row.field == self).map_or("", |row| row.spellings[0])
    }
}

/// Every spelling that has a meaning in such a file.
pub(super) fn spellings(home: Home) -> impl Iterator<Item = &'static &'static str> {
    let fits = move |row: &&Row| row.home == Home::Both || row.home == home;
    FIELDS.iter().filter(fits).flat_map(|row| row.spellings)
}

/// Keys of other programs that mean something else or nothing here, with what to do.
pub(super) const ELSEWHERE: [(&str, &str); 9] = [
    ("prompt", "the text below the second `---` is the prompt"),
    ("system_prompt", "the text below the second `---` is the prompt"),
    ("systemPrompt", "the text below the second `---` is the prompt"),
    ("instructions", "the text below the second `---` is the prompt"),
    ("allowed-tools", "locum calls it `tools`"),
    ("allowedTools", "locum calls it `tools`"),
    ("allowed_tools", "locum calls it `tools`"),
    ("budget", "it belongs below `locum:`, as `locum: {budget: {max_cost_usd: 1}}`"),
    ("mode", "every agent file is an agent to delegate to"),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_field_has_one_row_and_every_spelling_one_field() {
        let spellings: Vec<&str> = FIELDS.iter().flat_map(|row| row.spellings).copied().collect();
        let different: BTreeSet<&str> = spellings.iter().copied().collect();
        assert_eq!(different.len(), spellings.len());
        let fields: BTreeSet<Field> = FIELDS.iter().map(|row| row.field).collect();
        assert_eq!(fields.len(), FIELDS.len());
        assert!(ELSEWHERE.iter().all(|(key, _)| find(key).is_none()));
    }
}
