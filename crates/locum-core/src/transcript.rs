//! The conversation of a task: what the model is told, what it answers, what tools return.
//!
//! These types are provider-neutral. What a provider needs kept intact and nobody else understands (signed thinking
//! blocks, for example) rides along in [`Reply::opaque`].

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::AgentName;
use crate::usage::TokenCount;

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// The task, or what the system tells the model.
    User(String),
    /// What the model answered.
    Assistant(Reply),
    /// What one tool call returned.
    Tool {
        /// The call that this answers.
        call_id: String,
        /// The tool's name.
        name: String,
        /// What it returned.
        output: ToolOutput,
    },
}

/// One answer of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// The text; may be empty beside tool calls.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The tool calls, in the order in which the model made them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// Why the model stopped.
    pub stop: Stop,
    /// The tokens of this call, if the API reported them.
    #[serde(default)]
    pub tokens: TokenCount,
    /// The provider's own blocks, to be sent back unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Value>,
}

/// Why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// It was done.
    End,
    /// It wants tools to be called.
    ToolUse,
    /// It reached the output limit: the text is cut.
    Length,
    /// It, or a filter before it, refused to answer.
    Refused(String),
}

/// A tool call that a model asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The provider's id of this call; unique within the reply.
    pub id: String,
    /// The tool's name as the model wrote it.
    pub name: String,
    /// The input. A string where the model wrote something that is not JSON: the tool layer tells it so.
    pub input: Value,
}

/// What a tool call returned. A failure is output that the model reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolOutput {
    /// What the model reads.
    pub text: String,
    /// How it went.
    #[serde(default, skip_serializing_if = "ToolEnd::is_ok")]
    pub end: ToolEnd,
    /// The files that were read or written. Not for the model: whoever wants to change one must know what is in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileMark>,
    /// Why it was not allowed, where the rules of the user say so. Whoever delegated is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forbidden: Option<String>,
}

/// What a tool call knows of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileMark {
    /// Its path from the root.
    pub path: String,
    /// The hash of its content.
    pub hash: String,
    /// How it is known.
    pub by: FileUse,
}

/// How a file came to be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileUse {
    /// It was read.
    Read,
    /// It was written.
    Written,
}

/// What a call is about to do to a file. It is on disk before the call acts, so that after a crash it can be told
/// whether it acted: the file holds what was before, or what should be after, or somebody else changed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    /// The file's path from the root.
    pub path: String,
    /// The hash of its content before; absent where there is no file yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The hash of its content after.
    pub after: String,
}

/// How a tool call went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolEnd {
    /// It did what it was asked.
    #[default]
    Ok,
    /// It failed; the text says how.
    Failed,
    /// The agent may not do this.
    Denied,
    /// The process ended while an unrepeatable call was under way.
    Unknown,
}

impl ToolEnd {
    /// Whether the call did what it was asked.
    pub fn is_ok(&self) -> bool {
        matches!(self, Self::Ok)
    }
}

impl ToolOutput {
    /// A call that did what it was asked.
    pub fn ok(text: impl Into<String>) -> Self {
        Self { text: text.into(), end: ToolEnd::Ok, files: Vec::new(), forbidden: None }
    }

    /// A call that failed.
    pub fn failed(text: impl Into<String>) -> Self {
        Self { text: text.into(), end: ToolEnd::Failed, files: Vec::new(), forbidden: None }
    }

    /// A call that is not allowed.
    pub fn denied(text: impl Into<String>) -> Self {
        Self { text: text.into(), end: ToolEnd::Denied, files: Vec::new(), forbidden: None }
    }

    /// A call that the rules do not allow.
    pub fn forbidden(tool: &str, why: &str) -> Self {
        let text = format!("Not allowed: {why}.");
        Self { forbidden: Some(format!("{tool} was denied: {why}")), ..Self::denied(text) }
    }

    /// A call of which nobody knows whether it had an effect.
    pub fn unknown(text: impl Into<String>) -> Self {
        Self { text: text.into(), end: ToolEnd::Unknown, files: Vec::new(), forbidden: None }
    }
}

/// Whether a tool call whose outcome is unknown may be made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Repeat {
    /// It reads, or writes the same again: repeat it.
    Safe,
    /// It changes a file as its [`Intent`] says: repeat it where the file still is what it was before.
    Guarded,
    /// It acts on the world: never repeat it unasked.
    Unsafe,
}

/// What a model is told about a tool, and what the engine must know of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// The name that a model calls.
    pub name: String,
    /// When and how to use it.
    pub description: String,
    /// The JSON schema of its input object.
    pub input_schema: Value,
    /// Whether a call in doubt may be repeated.
    pub repeat: Repeat,
}

/// Whether the model may call tools in this turn. The tool list is sent either way, for the provider's cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolUse {
    /// It may.
    Allowed,
    /// It must answer in text.
    Forbidden,
}

/// One request to a model. It borrows the task; [`Prompt::messages`] only ever grows between two calls of a task, so
/// a provider may keep what it has encoded.
#[derive(Debug, Clone)]
pub struct Prompt<'a> {
    /// The agent that speaks; only test models care.
    pub agent: &'a AgentName,
    /// The task as it was given; only test models care.
    pub task: &'a str,
    /// The model's id at its provider.
    pub model: &'a str,
    /// The system prompt.
    pub system: &'a str,
    /// The conversation so far.
    pub messages: &'a [Message],
    /// Said to the model after the conversation, in this call only.
    pub notice: Option<&'a str>,
    /// The tools that the agent has.
    pub tools: &'a Arc<[ToolSpec]>,
    /// Whether it may call them now.
    pub tool_use: ToolUse,
    /// What is left of the output budget, or the agent's own limit.
    pub max_output_tokens: Option<u64>,
    /// The sampling temperature, where the agent names one.
    pub temperature: Option<f64>,
    /// How hard the model should think, in the agent's words, where it names that.
    pub effort: Option<&'a str>,
    /// Which call of this task it is, from 0, failed ones counted.
    pub call: u32,
}
