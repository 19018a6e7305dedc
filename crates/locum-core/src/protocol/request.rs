//! What a door may ask.

mod board;
mod shared_context;

use serde::{Deserialize, Serialize};

use crate::agent::Isolation;
use crate::protocol::FaceDefaults;

pub use board::{
    BoardAction, BoardAdd, BoardClaim, BoardClear, BoardCompleteAll, BoardEntry, BoardId, BoardList, BoardUpdate,
};
pub use shared_context::{
    ContextAction, ContextBatch, ContextDelete, ContextHistory, ContextKey, ContextLabel, ContextWrite, ListKeys,
    ListSnapshots,
};

/// One request: a tool's action, under the terms of the face through which it came.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// What is asked.
    pub tool: ToolRequest,
    /// The terms.
    pub face: FaceDefaults,
}

impl Request {
    /// A request through the native tools.
    pub fn native(tool: ToolRequest) -> Self {
        Self { tool, face: FaceDefaults::native() }
    }

    /// A request typed by a person.
    pub fn person(tool: ToolRequest) -> Self {
        Self { tool, face: FaceDefaults::person() }
    }
}

impl From<SubagentAction> for Request {
    fn from(action: SubagentAction) -> Self {
        Self::native(ToolRequest::Subagent(action))
    }
}

impl From<ContextAction> for Request {
    fn from(action: ContextAction) -> Self {
        Self::native(ToolRequest::SharedContext(action))
    }
}

impl From<BoardAction> for Request {
    fn from(action: BoardAction) -> Self {
        Self::native(ToolRequest::ManageTasks(action))
    }
}

/// A request to one of the tools.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolRequest {
    /// Delegation.
    Subagent(SubagentAction),
    /// Shared state.
    SharedContext(ContextAction),
    /// The task board.
    ManageTasks(BoardAction),
}

/// An action of the tool `subagent`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubagentAction {
    /// Who can be asked.
    ListAgents(ListAgents),
    /// Make an agent.
    Define(Define),
    /// Start a task.
    Spawn(SpawnEntry),
    /// How a task, or every task, stands.
    Status(Status),
    /// Wait for ends.
    Wait(Wait),
    /// Take a finished task's result.
    Collect(Collect),
    /// Read a result page by page.
    Result(ResultPage),
    /// Stop a task.
    Cancel(Cancel),
    /// Start a task, wait, collect.
    Run(Run),
    /// Start several at once, wait for all, collect.
    Parallel(Many),
    /// Start several, each with the result of the one before.
    Chain(Many),
    /// Start several; the first that completes wins, and the others are cancelled.
    Race(Many),
    /// Start one agent over many inputs, wait for all, collect.
    Map(MapOver),
}

/// `list_agents` has no fields.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListAgents {}

/// The fields of `define`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Define {
    /// [a-z0-9_-], at most 64 characters.
    pub name: String,
    /// One line: when to use it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its instructions, at most 4000 tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Tools it may use; none if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Model; the session's if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// 1 to 25, default 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<i64>,
    /// Agent whose fields are inherited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extends: Option<String>,
    /// Added after the inherited prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt_append: Option<String>,
    /// Replace the agent of this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replace: Option<bool>,
}

/// The fields of `spawn`, and of each entry of `parallel`, `chain` and `race`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SpawnEntry {
    /// Agent to ask.
    pub agent: String,
    /// What it should do, at most 1000 tokens.
    pub task: String,
    /// Tasks that must complete first; their results are handed on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depends_on: Option<Vec<String>>,
    /// Queue instead of refusing when all places are taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<bool>,
    /// Shown beside the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Model for this task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Directory to work in, within the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// How the task is set apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    /// Seconds of wall clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
    /// Input token budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_input_tokens: Option<u64>,
    /// Output token budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// Budget in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost_usd: Option<f64>,
    /// The same key and request answer the same task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// Routing hint; with any, locum picks the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_preference: Option<CostPreference>,
    /// Routing hint: kind of task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_type: Option<TaskType>,
    /// Routing hint, 1 to 5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complexity: Option<u8>,
    /// Routing hint: part of the model's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_scope: Option<String>,
}

/// What matters more where a model is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CostPreference {
    /// The cheapest that can do it.
    Eco,
    /// The best fit, then the cheapest.
    Balanced,
    /// The most capable.
    Premium,
}

impl CostPreference {
    /// The words for them.
    pub const WORDS: [&'static str; 3] = ["eco", "balanced", "premium"];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Eco => "eco",
            Self::Balanced => "balanced",
            Self::Premium => "premium",
        }
    }

    /// Reads the word for it.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Eco, Self::Balanced, Self::Premium].into_iter().find(|preference| preference.as_str() == text)
    }
}

/// What kind of task a model is chosen for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskType {
    /// Programs.
    Code,
    /// Images.
    Vision,
    /// Words.
    Text,
}

impl TaskType {
    /// The words for them.
    pub const WORDS: [&'static str; 3] = ["code", "vision", "text"];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Vision => "vision",
            Self::Text => "text",
        }
    }

    /// Reads the word for it.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Code, Self::Vision, Self::Text].into_iter().find(|task_type| task_type.as_str() == text)
    }
}

/// The fields of `run`: a spawn that is waited for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// What to start.
    pub entry: SpawnEntry,
    /// Answer at once with the ids; where it is left out, the agent says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<bool>,
}

/// The fields of `parallel`, `chain` and `race`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Many {
    /// Entries with agent, task and any spawn field.
    pub tasks: Vec<SpawnEntry>,
    /// Answer at once with task ids.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<bool>,
}

/// The fields of `map`: a spawn for each input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MapOver {
    /// What to start; `{input}` in its task stands for the input.
    pub entry: SpawnEntry,
    /// The inputs.
    pub inputs: Vec<String>,
    /// Answer at once with the ids.
    pub background: bool,
}

/// The fields of `map` beyond those of `spawn`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MapInputs {
    /// map: one task each, for {input}.
    pub inputs: Vec<String>,
    /// Answer at once with task ids.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<bool>,
}

/// The field of `run` beyond those of `spawn`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Background {
    /// Answer at once with task ids.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<bool>,
}

/// The fields of `status`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Status {
    /// Id from spawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
}

/// Which ends `wait` waits for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitMode {
    /// One is enough.
    Any,
    /// Every one.
    #[default]
    All,
}

/// The fields of `wait`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Wait {
    /// Tasks to wait for; all unfinished ones if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_ids: Option<Vec<String>>,
    /// Wait for any or all (default).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<WaitMode>,
    /// Default 30000, at most 45000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// The fields of `collect`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Collect {
    /// Id from spawn.
    pub task_id: String,
}

/// The fields of `cancel`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cancel {
    /// Id from spawn.
    pub task_id: String,
}

/// The fields of `result`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResultPage {
    /// Id from spawn.
    pub task_id: String,
    /// First character of the page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<usize>,
    /// Characters of the page, default 4000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}
