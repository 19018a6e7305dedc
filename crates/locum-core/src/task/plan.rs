//! Everything that a task may use, frozen when it is admitted. What happens to agents, settings or models afterwards
//! does not touch a running task.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::agent::{AgentSpec, Isolation};
use crate::budget::Purse;
use crate::ids::{Identity, SessionKey, TaskId, Timestamp, Uid};
use crate::permission::Permissions;
use crate::protocol::FaceDefaults;
use crate::task::errand::Errand;
use crate::transcript::Repeat;
use crate::usage::{Budget, Price};

/// The version of the log that this binary writes. Older ones are read.
pub const LOG_VERSION: u32 = 1;

/// What a task is and may do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The version of the log that begins with this plan.
    pub log_version: u32,
    /// Its id everywhere.
    pub uid: Uid,
    /// Its id in the session.
    pub task_id: TaskId,
    /// The session.
    pub session: SessionKey,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// Who it is and who asked.
    pub lineage: Lineage,
    /// The agent, as it was at admission.
    pub agent: AgentSpec,
    /// What it is asked to do.
    pub assignment: Assignment,
    /// The model that answers.
    pub model: ModelName,
    /// What it costs, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// The models that answer in its place if it cannot, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallback: Vec<PricedModel>,
    /// Its turns and budget.
    pub bounds: Bounds,
    /// What it may touch.
    pub grants: Grants,
    /// What must happen before it starts.
    pub start: StartRule,
    /// The terms of the face through which it came.
    pub face: FaceDefaults,
    /// What was requested, what it got, and why.
    pub receipt: Receipt,
    /// What was changed in the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// What was asked for together, if this is the first of it and its answer is to be had later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errand: Option<Errand>,
}

/// Who a task is and who asked for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Lineage {
    /// The task's own identity.
    pub identity: Identity,
    /// Who delegated.
    pub caller: Identity,
    /// The task that delegated, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Uid>,
    /// 1 for a task of the orchestrator, one more for each level below.
    pub depth: u32,
}

/// What a task is asked to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    /// The task as it was given; `{previous}` is replaced when it starts.
    pub task: String,
    /// What its caller calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The assembled system prompt; `{{task}}` is replaced when it starts.
    pub system_prompt: String,
}

/// A model: who serves it and what it is called there.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ModelName {
    /// Who serves it.
    pub provider: String,
    /// Its id there.
    pub id: String,
}

impl ModelName {
    /// Whether a text is its whole name or its id.
    pub fn is_called(&self, text: &str) -> bool {
        self.id == text || self.to_string() == text || self.to_string() == text.replacen('/', ":", 1)
    }
}

impl std::fmt::Display for ModelName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.id.is_empty() { f.write_str(&self.provider) } else { write!(f, "{}:{}", self.provider, self.id) }
    }
}

/// A model with what it costs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PricedModel {
    /// The model.
    pub model: ModelName,
    /// What it costs, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
}

/// A task's turns and budget.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bounds {
    /// Its turns, already clamped.
    pub max_turns: u32,
    /// Its tokens, money and wall clock.
    pub budget: Budget,
    /// What it spends from together with others: its session or command, the tasks above it, and its own if it may
    /// delegate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub purses: Vec<Purse>,
}

/// What a task may touch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Grants {
    /// The tools that it has, in the order in which the model sees them. Empty means none.
    pub tools: Vec<GrantedTool>,
    /// The directory that file tools cannot leave.
    pub root: String,
    /// Where it works within the root, relative to it; empty for the root itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cwd: String,
    /// How it is set apart.
    pub isolation: Isolation,
    /// How many levels it may delegate below itself.
    pub depth_left: u32,
    /// What bounds the use of its tools.
    #[serde(default, skip_serializing_if = "Permissions::is_empty")]
    pub permissions: Permissions,
}

impl Grants {
    /// Characters of what a model is told about the tools, in every request.
    pub fn tool_chars(&self) -> usize {
        tool_chars(&self.tools)
    }
}

/// Characters of what a model is told about these tools.
pub fn tool_chars(tools: &[GrantedTool]) -> usize {
    tools.iter().map(|tool| tool.chars).fold(0, usize::saturating_add)
}

/// A tool that a task has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantedTool {
    /// Its name.
    pub name: String,
    /// Whether a call in doubt may be made again.
    pub repeat: Repeat,
    /// Characters of what a model is told about it, in every request.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub chars: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// What must happen before a task starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartRule {
    /// These must have completed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<TaskId>,
    /// How their results reach the task.
    pub hand_on: HandOn,
    /// Fewer than this many must be running, counted over `among`.
    pub running_max: u32,
    /// Where running tasks are counted.
    pub among: Among,
    /// The race that it runs in, known by its first task: when one of them completes, the others are cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub race: Option<Uid>,
}

/// How the results of what a task waited for reach it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HandOn {
    /// As blocks after its task.
    Blocks,
    /// In the place of `{previous}`.
    Previous,
}

/// Where running tasks are counted before another one starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Among {
    /// Over the whole session.
    Session,
    /// Over the tasks of one command, known by its first task.
    Group(Uid),
}

/// What was requested at launch, what was given, and why they differ.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    /// Which agent.
    pub agent: AgentReceipt,
    /// Which model.
    pub model: ModelReceipt,
    /// Which tools.
    pub tools: ToolsReceipt,
    /// How many turns.
    pub max_turns: u32,
    /// How it is set apart.
    pub isolation: Isolation,
    /// Which sandbox its commands run in; null where it has none that run commands.
    pub sandbox: Option<String>,
    /// Which MCP servers it reaches.
    pub mcp_servers: Vec<String>,
    /// What those are shut into that are programs here, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub mcp_sandboxes: BTreeMap<String, String>,
    /// Who said each of these, by name, and what was asked for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub origins: BTreeMap<String, ValueReceipt>,
    /// What the agent's file asks for and locum does not do yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_honoured: Vec<Dropped>,
}

/// One value of a task: what was asked for, what it is, and who said so.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ValueReceipt {
    /// What was asked for; absent where nobody asked, or where it is said beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested: Option<serde_json::Value>,
    /// What the task has; absent where it has nothing of it, or where it is said beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effective: Option<serde_json::Value>,
    /// Who said so: `call`, `agent` or `project` or `user` with a file, `session`, or `built-in`.
    pub from: String,
    /// Why it is not what was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// How the agent was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentReceipt {
    /// The name in the request.
    pub requested: String,
    /// The agent's name.
    pub resolved: String,
    /// How one led to the other.
    pub how: String,
    /// Where the agent came from.
    pub source: String,
}

/// How the model was chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelReceipt {
    /// What the call or the agent asked for.
    pub requested: Option<String>,
    /// What answers.
    pub effective: String,
    /// Why.
    pub why: String,
}

/// Which tools were granted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolsReceipt {
    /// What the agent names; null where it names none and gets the default.
    pub requested: Option<Vec<String>>,
    /// What it has.
    pub effective: Vec<String>,
    /// What it does not get.
    pub dropped: Vec<Dropped>,
}

/// Something that was requested and not given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Dropped {
    /// Its name.
    pub name: String,
    /// Why not.
    pub why: String,
}
