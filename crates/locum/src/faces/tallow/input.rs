//! From what tallow's callers send to the entries of a native request.

use locum_core::agent::Isolation;
use locum_core::protocol::SpawnEntry;
use locum_core::protocol::face::AgentScope;
use locum_core::protocol::request::{CostPreference, TaskType};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::tools::input;

/// What is said where not exactly one mode is named.
pub(super) const ONE_MODE: &str = "Invalid parameters. Provide exactly one mode.";

/// The input of `subagent`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct SubagentInput {
    /// Single: the agent to ask
    agent: Option<String>,
    /// Single: what it should do
    task: Option<String>,
    /// Parallel: {agent, task} and more for each
    tasks: Option<Vec<Step>>,
    /// Centipede: {agent, task} and more for each step
    centipede: Option<Vec<Step>>,
    /// Return at once; single and parallel
    background: Option<bool>,
    /// Directory to work in, within the project
    cwd: Option<String>,
    /// Model for the task
    model: Option<String>,
    /// A git worktree of its own
    isolation: Option<Apart>,
    /// Whose agents: user, project or both (default)
    agent_scope: Option<AgentScope>,
    /// Session to work in
    session: Option<String>,
    /// Routing hint
    cost_preference: Option<CostPreference>,
    /// Routing hint
    task_type: Option<TaskType>,
    /// Routing hint: 1 to 5
    complexity: Option<u8>,
    /// Routing hint: part of the model's name
    model_scope: Option<String>,
}

/// One of several tasks.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Step {
    agent: String,
    task: String,
    cwd: Option<String>,
    model: Option<String>,
    isolation: Option<Apart>,
}

/// How a task is set apart.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Apart {
    Worktree,
}

/// The input of `subagent_status`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct StatusInput {
    /// Id from subagent
    pub(super) task_id: Option<String>,
}

/// A call of `subagent` that makes sense.
pub(super) struct Call {
    pub(super) mode: Mode,
    pub(super) background: bool,
    pub(super) scope: AgentScope,
    pub(super) session: Option<String>,
}

/// What is asked for, as entries of native requests.
pub(super) enum Mode {
    Single(Box<SpawnEntry>),
    Parallel(Vec<SpawnEntry>),
    Centipede(Vec<SpawnEntry>),
}

impl Mode {
    pub(super) fn as_str(&self) -> &'static str {
        match self {
            Self::Single(_) => "single",
            Self::Parallel(_) => "parallel",
            Self::Centipede(_) => "centipede",
        }
    }
}

impl Call {
    /// Reads an input, or says what is wrong with it.
    pub(super) fn read(input: Value, root: &str) -> Result<Self, String> {
        let said: SubagentInput =
            input::parse(lists_from_text(input)?).map_err(|output| format!("Invalid parameters. {}", output.text))?;
        let background = said.background.unwrap_or(false);
        let (scope, session) = (said.agent_scope.unwrap_or_default(), said.session.clone());
        let mode = said.into_mode(root)?;
        if background && matches!(mode, Mode::Centipede(_)) {
            return Err("Invalid parameters. `background` is for single and parallel mode.".to_owned());
        }
        Ok(Self { mode, background, scope, session })
    }
}

impl SubagentInput {
    fn into_mode(mut self, root: &str) -> Result<Mode, String> {
        let one_mode = || ONE_MODE.to_owned();
        // An empty list is no mode, and neither is half of a single one.
        let tasks = self.tasks.take().filter(|tasks| !tasks.is_empty());
        let steps = self.centipede.take().filter(|steps| !steps.is_empty());
        let all = |steps: Vec<Step>, said: &Self| steps.into_iter().map(|step| said.entry(step, root)).collect();
        match (self.agent.take(), self.task.take(), tasks, steps) {
            (Some(agent), Some(task), None, None) => {
                let step = Step { agent, task, cwd: None, model: None, isolation: None };
                Ok(Mode::Single(Box::new(self.entry(step, root))))
            }
            (None, None, Some(tasks), None) => Ok(Mode::Parallel(all(tasks, &self))),
            (None, None, None, Some(steps)) => Ok(Mode::Centipede(all(steps, &self))),
            _ => Err(one_mode()),
        }
    }

    /// What a task says itself comes before what is said for all.
    fn entry(&self, step: Step, root: &str) -> SpawnEntry {
        SpawnEntry {
            agent: step.agent,
            task: step.task,
            model: step.model.or_else(|| self.model.clone()),
            cwd: step.cwd.or_else(|| self.cwd.clone()).map(|path| below(&path, root)),
            isolation: step.isolation.or(self.isolation).map(|Apart::Worktree| Isolation::Worktree),
            cost_preference: self.cost_preference,
            task_type: self.task_type,
            complexity: self.complexity,
            model_scope: self.model_scope.clone(),
            ..SpawnEntry::default()
        }
    }
}

/// A directory relative to the project's root where it is within; admission refuses what is not.
fn below(path: &str, root: &str) -> String {
    let relative = std::path::Path::new(path).strip_prefix(root);
    relative.map_or_else(|_| path.to_owned(), |path| path.to_string_lossy().into_owned())
}

/// Models write lists as texts now and then.
fn lists_from_text(mut input: Value) -> Result<Value, String> {
    for name in ["tasks", "centipede"] {
        let Some(field) = input.get_mut(name) else { continue };
        if let Value::String(text) = field {
            *field = match serde_json::from_str(text) {
                Ok(list @ Value::Array(_)) => list,
                Ok(_) | Err(_) => return Err(format!("Invalid parameters. `{name}` is not a list of tasks.")),
            };
        }
    }
    Ok(input)
}
