//! What is known about a model: its names, what it costs, what it can do and how well.

use serde::{Deserialize, Serialize};

use crate::task::plan::ModelName;
use crate::usage::Price;

/// A model that is known by name. What is not known about it is left out, never guessed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelEntry {
    /// The model.
    pub name: ModelName,
    /// Short names for it.
    pub aliases: Vec<String>,
    /// Tokens of the longest conversation that it takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// What it costs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// How good it is; a model without ratings is never chosen by routing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratings: Option<Ratings>,
    /// What it supports.
    pub supports: Supports,
}

impl ModelEntry {
    /// A model of which nothing but its name is known.
    pub fn named(name: ModelName) -> Self {
        Self {
            name,
            aliases: Vec::new(),
            context_window: None,
            price: None,
            ratings: None,
            supports: Supports::default(),
        }
    }

    /// Whether a text is one of its names.
    pub fn is_called(&self, text: &str) -> bool {
        self.name.is_called(text) || self.aliases.iter().any(|alias| alias == text)
    }
}

/// How good a model is at each type of task, from 1 to 5.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ratings {
    /// Reading, writing and changing programs.
    pub code: u8,
    /// Looking at images; 0 for a model that cannot see.
    pub vision: u8,
    /// Everything that is said in words.
    pub text: u8,
}

/// What a model supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "four independent facts, each a row of the catalogue")]
pub struct Supports {
    /// Calling tools.
    pub tools: bool,
    /// Reading images.
    pub vision: bool,
    /// Thinking before it answers.
    pub thinking: bool,
    /// Whether it is asked for tool calls as structured output, because its own tool calls cannot be relied on.
    pub tools_as_schema: bool,
}

impl Default for Supports {
    /// What nearly every model can do; a row of the catalogue says otherwise.
    fn default() -> Self {
        Self { tools: true, vision: false, thinking: false, tools_as_schema: false }
    }
}
