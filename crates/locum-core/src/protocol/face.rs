//! The terms under which a request is admitted, as data: what each face sets. Admission and the task apply them; a face
//! has no code of its own in the engine.

use serde::{Deserialize, Serialize};

use crate::agent::{AgentSpec, MissingAgent, Sampling, Source};
use crate::ids::AgentName;
use crate::limits;

/// What a face sets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FaceDefaults {
    /// The longest task description, in characters.
    pub task_chars_max: usize,
    /// The longest result in an answer, in characters.
    pub result_chars_max: usize,
    /// What an agent that names no tools gets.
    pub tools: DefaultTools,
    /// What a turn is.
    pub turns: TurnRule,
    /// Whose request it is: it decides which caps count per session and which per command.
    pub caller: CallerKind,
    /// How many of one `parallel` run at once, where the caller may say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// What happens when nobody has the name that was asked for, where no `_defaults.md` says it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub missing_agent: MissingAgent,
    /// Refuse a task that would not get all that was asked for, instead of saying so in its receipt.
    #[serde(default, skip_serializing_if = "is_default")]
    pub strict: bool,
    /// What bounds a task where neither the call nor its agent does.
    #[serde(default, skip_serializing_if = "is_default")]
    pub bounds: FaceBounds,
    /// Which agents can be asked.
    #[serde(default, skip_serializing_if = "is_default")]
    pub scope: AgentScope,
    /// Only tools that change nothing, unless the settings allow more.
    #[serde(default, skip_serializing_if = "is_default")]
    pub read_only: bool,
    /// An agent of the face's own, for requests that name none. It is among those that can be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Box<AgentSpec>>,
}

impl FaceDefaults {
    /// The Subagent Tool Specification's own terms.
    pub fn native() -> Self {
        Self {
            task_chars_max: limits::TASK_TOKENS_MAX * limits::CHARS_PER_TOKEN,
            result_chars_max: limits::RESULT_TOKENS_MAX * limits::CHARS_PER_TOKEN,
            tools: DefaultTools::Reading,
            turns: TurnRule::ModelCalls,
            caller: CallerKind::Model,
            concurrency: None,
            missing_agent: MissingAgent::Error,
            strict: false,
            bounds: FaceBounds::default(),
            scope: AgentScope::Both,
            read_only: false,
            agent: None,
        }
    }

    /// The terms for a verb typed by a person.
    pub fn person() -> Self {
        Self { task_chars_max: limits::TASK_CHARS_MAX_PERSON, caller: CallerKind::Person, ..Self::native() }
    }

    /// The terms that the other systems have in common: long tasks, whole results, and no bound on turns but the
    /// highest that is allowed.
    fn foreign() -> Self {
        Self {
            task_chars_max: limits::TASK_CHARS_MAX_PERSON,
            result_chars_max: limits::REPLY_BYTES_MAX,
            bounds: FaceBounds { turns: limits::TURNS_DEFAULT_FOREIGN, ..FaceBounds::default() },
            ..Self::native()
        }
    }

    /// The terms as a plan keeps them: the face's own agent is the plan's agent, where it was asked.
    pub(crate) fn in_plan(&self) -> Self {
        Self { agent: None, ..self.clone() }
    }

    /// The terms of the tallow face.
    pub fn tallow() -> Self {
        Self {
            tools: DefaultTools::Working,
            turns: TurnRule::ToolReplies,
            missing_agent: MissingAgent::MatchOrEphemeral,
            ..Self::foreign()
        }
    }

    /// The terms of the pi face.
    pub fn pi() -> Self {
        let foreign = Self::foreign();
        let bounds = FaceBounds {
            timeout_s: Some(limits::PI_SECONDS_MAX),
            timeout_s_max: Some(limits::PI_SECONDS_MAX),
            idle_s: Some(limits::PI_IDLE_SECONDS_MAX),
            ..foreign.bounds
        };
        Self { bounds, read_only: true, ..foreign }
    }

    /// The terms of the acai face.
    pub fn acai() -> Self {
        let foreign = Self::foreign();
        let bounds = FaceBounds { depth: 2, timeout_s: Some(limits::ACAI_SECONDS_DEFAULT), ..foreign.bounds };
        Self { tools: DefaultTools::Everything, bounds, ..foreign }
    }

    /// The terms of the picoclaw face, with the one agent that answers there.
    pub fn picoclaw() -> Self {
        let foreign = Self::foreign();
        let bounds = FaceBounds { depth: 2, turns: limits::TURNS_DEFAULT, ..foreign.bounds };
        let agent = picoclaw_agent().map(Box::new);
        Self { tools: DefaultTools::Everything, bounds, agent, ..foreign }
    }
}

/// The name under which the agent of the picoclaw face is asked.
pub const PICOCLAW_AGENT: &str = "subagent";

fn picoclaw_agent() -> Option<AgentSpec> {
    let name = AgentName::parse(PICOCLAW_AGENT).ok()?;
    let prompt =
        "You are a subagent. Complete the given task independently and provide a clear, concise result.".to_owned();
    let mut agent = AgentSpec::new(name, "Does one task alone", prompt);
    agent.source = Source::Bundled;
    agent.tools = None;
    agent.model = Some("inherit".to_owned());
    agent.max_turns = Some(limits::TURNS_DEFAULT);
    agent.sampling = Sampling { temperature: Some(0.7), max_tokens: Some(4096), effort: None };
    Some(agent)
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// What bounds a task where neither the call nor its agent does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FaceBounds {
    /// How deep delegation goes, where the settings do not say.
    pub depth: u32,
    /// Its turns.
    pub turns: u32,
    /// Its wall clock, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<u64>,
    /// The longest wall clock, whoever asks for more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_s_max: Option<u64>,
    /// How long it may be silent, whatever it does, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_s: Option<u64>,
}

impl FaceBounds {
    /// The wall clock of a task that asks for this one, or for none.
    pub fn timeout_s(&self, asked: Option<u64>) -> Option<u64> {
        let seconds = asked.or(self.timeout_s)?;
        Some(seconds.min(self.timeout_s_max.unwrap_or(seconds)))
    }
}

impl Default for FaceBounds {
    fn default() -> Self {
        Self { depth: 1, turns: limits::TURNS_DEFAULT, timeout_s: None, timeout_s_max: None, idle_s: None }
    }
}

/// Which agents can be asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentScope {
    /// All but the project's.
    User,
    /// The project's.
    Project,
    /// All.
    #[default]
    Both,
}

impl AgentScope {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Both => "both",
        }
    }
}

/// What an agent that names no tools gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DefaultTools {
    /// The reading tools.
    Reading,
    /// What reads and changes files and runs commands.
    Working,
    /// Everything that the session grants.
    Everything,
}

/// What counts as a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnRule {
    /// Each model call; the last one may not call tools.
    ModelCalls,
    /// Each reply that calls tools; there is no extra turn after the last.
    ToolReplies,
}

/// Whose request it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallerKind {
    /// A model that orchestrates: spawn caps count over its session.
    Model,
    /// A person at a shell: caps count per command.
    Person,
}
