//! A specialist as data: a Markdown file, a `define`, or an application's own.

pub mod defaults;
pub mod dialect;
mod draft;
pub mod extends;
pub mod fallbacks;
pub mod fields;
mod findings;
mod frontmatter;
pub mod hidden;
pub mod lint;
mod locum_fields;
pub mod markdown;
pub mod matching;
pub mod note;
mod portability;
pub mod roster;
pub mod said;
mod source;
pub mod template;
mod tool_list;
pub mod tool_names;
mod values;
mod yaml;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::AgentName;

pub use defaults::{AgentDefaults, MissingAgent};
pub use dialect::Dialect;
pub use fallbacks::Fallbacks;
pub use findings::{Origin, Origins};
pub use locum_fields::LocumFields;
pub use roster::Roster;
pub use source::Source;

/// What an agent is: its instructions and what it may use. Everything optional falls back to the face's or the
/// session's default when a task is admitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentSpec {
    /// Its name.
    pub name: AgentName,
    /// One line: when to delegate to it.
    pub description: String,
    /// Its instructions.
    pub prompt: String,
    /// A model, `inherit` or a routing keyword; absent means the session's model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The allow-list of tools. Absent means the face's default set; an empty list means none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Tools taken away whatever else is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denied_tools: Option<Vec<String>>,
    /// Only reading tools, whatever else is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readonly: Option<bool>,
    /// Whether its tasks are not waited for, where the call does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<bool>,
    /// Its turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// Its wall clock, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<u64>,
    /// How its tasks are set apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    /// The names of the MCP servers whose tools it may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_servers: Option<Vec<String>>,
    /// How the model is asked.
    #[serde(default)]
    pub sampling: Sampling,
    /// The colour in which it is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub color: Option<String>,
    /// The agent that it builds upon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extends: Option<AgentName>,
    /// What other programs would do with it and locum does not: fields by name, as they were written.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kept: BTreeMap<String, serde_json::Value>,
    /// What only locum does with it.
    #[serde(default, skip_serializing_if = "LocumFields::is_empty")]
    pub locum: LocumFields,
    /// Where it came from.
    pub source: Source,
    /// 1, and one more with each redefinition in the session.
    #[serde(default = "first_version")]
    pub version: u32,
}

fn first_version() -> u32 {
    1
}

impl AgentSpec {
    /// An agent of an application: no tools, the session's model, default turns. Set the fields that differ.
    pub fn new(name: AgentName, description: impl Into<String>, prompt: impl Into<String>) -> Self {
        Self {
            name,
            description: description.into(),
            prompt: prompt.into(),
            model: None,
            tools: Some(Vec::new()),
            denied_tools: None,
            readonly: None,
            background: None,
            max_turns: None,
            timeout_s: None,
            isolation: None,
            mcp_servers: None,
            sampling: Sampling::default(),
            color: None,
            extends: None,
            kept: BTreeMap::new(),
            locum: LocumFields::default(),
            source: Source::Application,
            version: 1,
        }
    }
}

/// How a model is asked, where it knows these.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sampling {
    /// The sampling temperature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The longest single reply, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// How hard it should think, in the provider's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
}

/// How a task is set apart from the process and the files around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// In the engine's process, in the project's files.
    None,
    /// In a process of its own.
    Process,
    /// In a git worktree of its own.
    Worktree,
}

impl Isolation {
    /// The word for it in files and answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Process => "process",
            Self::Worktree => "worktree",
        }
    }
}
