//! Building an engine and the first desk of it.

use std::path::PathBuf;
use std::sync::Arc;

use locum_core::agent::{AgentSpec, Roster};
use locum_core::ids::{InvalidName, SessionId, SessionKey};
use locum_core::limits::Limits;
use locum_core::liveness::Patience;
use locum_core::routing::{Catalogue, SessionModel};
use locum_models::{Access, Model, ModelError, Registry};

use super::Desk;
use super::storm::StatusCalls;
use crate::clock::{Clock, SystemClock};
use crate::engine::{Engine, Executor, Rules};
use crate::hands::{Hands, Toolbox};
use crate::launch::Launcher;
use crate::operation_log::OperationLog;
use crate::pool::Pool;
use crate::process::{self, Life};
use crate::progress::Hub;
use crate::redact::Redactor;
use crate::store::Store;
use crate::store::memory::MemoryStore;
use crate::tools::Tool;
use crate::worker::Worker;

/// Builds an engine. Everything has a default: a store in memory, no agents, no tools, the offline model.
///
/// ```
/// use locum::{AgentName, AgentSpec, Desk};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let runtime = tokio::runtime::Runtime::new()?;
/// let _entered = runtime.enter();
/// let helper = AgentSpec::new(AgentName::parse("helper")?, "Helps with anything", "You help.");
/// let desk = Desk::builder().agent(helper).build()?;
/// assert_eq!(desk.session().id.as_str(), "main");
/// # Ok(())
/// # }
/// ```
pub struct DeskBuilder {
    store: Option<Arc<dyn Store>>,
    tools: Vec<Arc<dyn Tool>>,
    roster: Roster,
    models: Registry,
    model: Option<(String, String)>,
    session: String,
    root: Option<PathBuf>,
    limits: Limits,
    enabled: bool,
    executor: Executor,
    life: Life,
    launcher: Option<Launcher>,
    clock: Arc<dyn Clock>,
    patience: Patience,
    log: OperationLog,
    redactor: Redactor,
}

impl Default for DeskBuilder {
    fn default() -> Self {
        Self {
            store: None,
            tools: Vec::new(),
            roster: Roster::default(),
            models: Registry::new(Access::default()),
            model: None,
            session: "main".to_owned(),
            root: None,
            limits: Limits::default(),
            enabled: true,
            executor: Executor::InProcess,
            life: Life::Door,
            launcher: None,
            clock: Arc::new(SystemClock),
            patience: Patience::default(),
            log: OperationLog::default(),
            redactor: Redactor::default(),
        }
    }
}

/// Why an engine cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The session's name is not one.
    #[error(transparent)]
    Session(#[from] InvalidName),
    /// What an agent is cannot be kept without a secret.
    #[error("an agent cannot be used: its name holds a secret")]
    Secret(#[from] serde_json::Error),
    /// The session's model is not known, or cannot be used.
    #[error("the model `{name}` cannot be used: {why}")]
    Model {
        /// What was asked for.
        name: String,
        /// Why not.
        why: String,
    },
}

impl DeskBuilder {
    /// Where tasks are kept; in memory if this is left out.
    #[must_use]
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.store = Some(store);
        self
    }

    /// A tool that agents may be given. A later one replaces an earlier one of the same name.
    #[must_use]
    pub fn tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.tools.push(tool);
        self
    }

    /// The tools that come with locum: the reading tools, `shared_context` and `subagent`.
    #[must_use]
    pub fn standard_tools(mut self) -> Self {
        self.tools.extend(crate::tools::standard_tools());
        self
    }

    /// An agent. A later one replaces an earlier one of the same name.
    #[must_use]
    pub fn agent(mut self, agent: AgentSpec) -> Self {
        self.roster.insert(agent);
        self
    }

    /// The agents that come with locum.
    #[must_use]
    pub fn bundled_agents(self) -> Self {
        crate::agents::bundled().into_iter().fold(self, Self::agent)
    }

    /// A model of the application's own, known by this name. The first one is the session's model unless
    /// [`DeskBuilder::session_model`] names another.
    #[must_use]
    pub fn model(mut self, name: &str, model: Arc<dyn Model>) -> Self {
        self.models.register(name, model);
        self.model.get_or_insert_with(|| (name.to_owned(), "registered by the application".to_owned()));
        self
    }

    /// The session's model by name, and why it is that.
    #[must_use]
    pub fn session_model(mut self, name: &str, why: &str) -> Self {
        self.model = Some((name.to_owned(), why.to_owned()));
        self
    }

    /// The keys and addresses of model providers. Call it before [`DeskBuilder::model`].
    #[must_use]
    pub fn access(mut self, access: Access) -> Self {
        self.models = Registry::new(access);
        self
    }

    /// The session's name; `main` if this is left out.
    #[must_use]
    pub fn session(mut self, id: &str) -> Self {
        id.clone_into(&mut self.session);
        self
    }

    /// The project's root: file tools cannot leave it, and sessions belong to it. The working directory if this is
    /// left out.
    #[must_use]
    pub fn root(mut self, root: impl Into<PathBuf>) -> Self {
        self.root = Some(root.into());
        self
    }

    /// The limits in force.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// How long a task may be silent.
    #[must_use]
    pub fn patience(mut self, patience: Patience) -> Self {
        self.patience = patience;
        self
    }

    /// Switches delegation on or off.
    #[must_use]
    pub fn enabled(mut self, enabled: bool) -> Self {
        self.enabled = enabled;
        self
    }

    /// The time of day.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Where operations are logged; nowhere if this is left out.
    #[must_use]
    pub fn log(mut self, log: OperationLog) -> Self {
        self.log = log;
        self
    }

    /// What must never be stored or shown.
    #[must_use]
    pub fn redact(mut self, redactor: Redactor) -> Self {
        self.redactor = redactor;
        self
    }

    /// How processes that go on with unfinished tasks are started.
    #[must_use]
    pub fn launcher(mut self, launcher: Launcher) -> Self {
        self.launcher = Some(launcher);
        self
    }

    /// Who works on accepted tasks; this process if it is left out.
    #[must_use]
    pub fn executor(mut self, executor: Executor) -> Self {
        self.executor = executor;
        self
    }

    /// Whether this process lives for its tasks alone.
    #[must_use]
    pub fn life(mut self, life: Life) -> Self {
        self.life = life;
        self
    }

    /// Builds the engine and the first desk of it.
    pub fn build(self) -> Result<Desk, BuildError> {
        let root = self.root.unwrap_or_else(|| PathBuf::from("."));
        let root = root.canonicalize().unwrap_or(root).to_string_lossy().into_owned();
        let session = SessionKey { project: root.clone(), id: SessionId::parse(&self.session)? };
        let catalogue = catalogue(&self.models, self.model)?;
        let roster = cleaned(&self.roster, &self.redactor)?;
        let engine = Engine {
            hands: Hands {
                store: self.store.unwrap_or_else(|| Arc::new(MemoryStore::new())),
                models: self.models,
                tools: Toolbox::new(self.tools),
                clock: self.clock,
                pool: Arc::new(Pool::default()),
                hub: Hub::default(),
                redactor: self.redactor,
                log: self.log,
                patience: self.patience,
            },
            worker: Worker::new(process::this_process(self.life)),
            rules: Rules { roster, catalogue, limits: self.limits, root, enabled: self.enabled },
            executor: self.executor,
            launcher: self.launcher,
            storm: StatusCalls::default(),
            closed: tokio_util::sync::CancellationToken::new(),
        };
        Ok(Desk::of_engine(Arc::new(engine), session))
    }
}

/// The agents without secrets: what an agent is becomes part of every task's log.
fn cleaned(roster: &Roster, redactor: &Redactor) -> Result<Roster, serde_json::Error> {
    let mut cleaned = Roster::default();
    for agent in roster.iter() {
        cleaned.insert(redactor.value(AgentSpec::clone(agent))?);
    }
    Ok(cleaned)
}

/// The models that are there, with the session's own. A model that cannot be opened is refused now, not in the first
/// task.
fn catalogue(models: &Registry, asked: Option<(String, String)>) -> Result<Catalogue, BuildError> {
    let unusable = |name: &str, error: ModelError| BuildError::Model { name: name.to_owned(), why: error.message };
    let mut catalogue = models.catalogue();
    if let Some((name, why)) = asked {
        let model = catalogue.resolve(&name).ok_or_else(|| BuildError::Model {
            name: name.clone(),
            why: catalogue.not_found(&name).hint.unwrap_or_default(),
        })?;
        catalogue.session = SessionModel { name: model, why };
    }
    let session = &catalogue.session.name;
    models.open(session).map_err(|error| unusable(&session.to_string(), error))?;
    Ok(catalogue)
}
