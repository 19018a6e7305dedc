//! Building an engine and the first desk of it.

use std::path::PathBuf;
use std::sync::Arc;

use locum_core::agent::{AgentSpec, Roster};
use locum_core::ids::{InvalidName, SessionId, SessionKey};
use locum_core::limits::Limits;
use locum_core::liveness::Patience;
use locum_core::permission::{Permissions, Rule};
use locum_core::routing::{Catalogue, ModelEntry, RoutingRules};
use locum_core::usage::Price;
use locum_models::{Access, Model, Registry};

use super::storm::StatusCalls;
use super::{Desk, models};
use crate::agents::Search;
use crate::agents::staff::Staff;
use crate::clock::{Clock, SystemClock};
use crate::context_changes::ContextHub;
use crate::engine::{Engine, Executor, Rules};
use crate::hands::{Hands, Toolbox};
use crate::jobs::Jobs;
use crate::launch::Launcher;
use crate::operation_log::OperationLog;
use crate::pool::Pool;
use crate::process::{self, Life};
use crate::progress::Hub;
use crate::recorder::Recorder;
use crate::redact::Redactor;
use crate::sandbox::Sandbox;
use crate::store::Store;
use crate::store::memory::MemoryStore;
use crate::tools::Tool;
use crate::waits::Waits;
use crate::worker::Worker;

/// Builds an engine and the first [`Desk`] of it.
///
/// Everything has a default, and the order of the calls matters only among those for one name: a later agent, tool or
/// model replaces an earlier one. Without any of them there is a store in memory, the session `main`, the working
/// directory as the project, the built-in offline model, and neither agents nor tools: nothing reads the environment,
/// a file or the network behind the application's back. What a program wants from these it says here, or leaves it to
/// [`setup`](crate::setup), which does what the `locum` program does.
///
/// | what | with | default |
/// |---|---|---|
/// | who can be asked | [`agent`](Self::agent), [`bundled_agents`](Self::bundled_agents), [`agent_files`](Self::agent_files) | nobody |
/// | what they can do | [`tool`](Self::tool), [`standard_tools`](Self::standard_tools) | nothing but talk |
/// | who answers | [`model`](Self::model), [`access`](Self::access), [`session_model`](Self::session_model) | the offline model |
/// | who answers otherwise | [`known_models`](Self::known_models), [`routing`](Self::routing), [`fallback_models`](Self::fallback_models) | the built-in catalogue, nobody |
/// | where tasks are kept | [`store`](Self::store) | in memory |
/// | where they belong | [`root`](Self::root), [`session`](Self::session) | the working directory, `main` |
/// | where worktrees are kept | [`worktrees`](Self::worktrees) | nowhere |
/// | how much is allowed | [`limits`](Self::limits), [`patience`](Self::patience), [`enabled`](Self::enabled) | see [`Limits`], [`Patience`] |
/// | what is kept secret | [`redact`](Self::redact) | nothing is known to be |
/// | what is logged | [`log`](Self::log) | nothing |
/// | what models answer | [`recorder`](Self::recorder) | is not recorded |
/// | what tools may be used for | [`rules`](Self::rules) | everything but protected names |
/// | what commands are shut into | [`sandbox`](Self::sandbox) | commands are refused |
/// | who goes on after the end | [`launcher`](Self::launcher), [`executor`](Self::executor) | whoever opens the store next |
///
/// ```
/// use locum::{AgentName, AgentSpec, Desk};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let helper = AgentSpec::new(AgentName::parse("helper")?, "Helps with anything", "You help.");
/// let desk = Desk::builder().agent(helper).session("docs").build()?;
/// assert_eq!(desk.session().id.as_str(), "docs");
/// assert_eq!(desk.session_model().0, "offline");
/// # Ok(())
/// # }
/// ```
pub struct DeskBuilder {
    store: Option<Arc<dyn Store>>,
    tools: Vec<Arc<dyn Tool>>,
    roster: Roster,
    search: Option<Search>,
    access: Access,
    models: Vec<(String, Arc<dyn Model>)>,
    prices: Vec<(String, Price)>,
    model: Option<(String, String)>,
    known_models: Option<Vec<ModelEntry>>,
    fallback: Vec<String>,
    routing: RoutingRules,
    session: String,
    root: Option<PathBuf>,
    worktrees: Option<PathBuf>,
    limits: Limits,
    enabled: bool,
    namespaces: bool,
    executor: Executor,
    life: Life,
    launcher: Option<Launcher>,
    clock: Arc<dyn Clock>,
    patience: Patience,
    log: OperationLog,
    redactor: Redactor,
    recorder: Option<Recorder>,
    sandbox: Option<Sandbox>,
    permissions: Permissions,
}

impl Default for DeskBuilder {
    fn default() -> Self {
        Self {
            store: None,
            tools: Vec::new(),
            roster: Roster::default(),
            search: None,
            access: Access::default(),
            models: Vec::new(),
            prices: Vec::new(),
            model: None,
            known_models: None,
            fallback: Vec::new(),
            routing: RoutingRules::default(),
            session: "main".to_owned(),
            root: None,
            worktrees: None,
            limits: Limits::default(),
            enabled: true,
            namespaces: false,
            executor: Executor::InProcess,
            life: Life::Door,
            launcher: None,
            clock: Arc::new(SystemClock),
            patience: Patience::default(),
            log: OperationLog::default(),
            redactor: Redactor::default(),
            recorder: None,
            sandbox: None,
            permissions: Permissions::default(),
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
    ///
    /// A [`SqliteStore`](crate::store::sqlite::SqliteStore) keeps them over restarts and shares them with other
    /// processes. See [`store`](crate::store) for one of your own.
    #[must_use]
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.store = Some(store);
        self
    }

    /// A tool that agents may be given. A later one replaces an earlier one of the same name.
    ///
    /// Being here does not grant it to anybody: an agent names the tools that it may use. See [`Tool`] for an example.
    #[must_use]
    pub fn tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.tools.push(tool);
        self
    }

    /// The tools that come with locum: the reading tools, `write`, `edit`, `bash`, `job`, `shared_context` and `subagent`.
    #[must_use]
    pub fn standard_tools(mut self) -> Self {
        self.tools.extend(crate::tools::standard_tools());
        self
    }

    /// An agent that can be asked. A later one replaces an earlier one of the same name.
    ///
    /// [`AgentSpec::new`] makes one without tools; set the fields that differ. [`agents`](crate::agents) reads them
    /// from Markdown files.
    #[must_use]
    pub fn agent(mut self, agent: AgentSpec) -> Self {
        self.roster.insert(agent);
        self
    }

    /// The agents that come with locum, such as `explore` and `reviewer`. They use the standard tools.
    #[must_use]
    pub fn bundled_agents(self) -> Self {
        crate::agents::bundled().into_iter().fold(self, Self::agent)
    }

    /// Looks for agents in files when they are first asked for, on top of those of the application; see
    /// [`Search`]. Nothing of a project acts before the user trusts it.
    #[must_use]
    pub fn agent_files(mut self, search: Search) -> Self {
        self.search = Some(search);
        self
    }

    /// A model of the application's own, known by this name. The first one is the session's model unless
    /// [`DeskBuilder::session_model`] names another. [The guide](crate#a-model-of-your-own) has an example.
    #[must_use]
    pub fn model(mut self, name: &str, model: Arc<dyn Model>) -> Self {
        self.models.push((name.to_owned(), model));
        self.model.get_or_insert_with(|| (name.to_owned(), "registered by the application".to_owned()));
        self
    }

    /// What a model costs, by the name of [`DeskBuilder::model`] or any other. Budgets in money hold where prices are
    /// known.
    #[must_use]
    pub fn price(mut self, model: &str, price: Price) -> Self {
        self.prices.push((model.to_owned(), price));
        self
    }

    /// The session's model by name, such as `openai:gpt-5.4-mini`, `offline` or one that [`DeskBuilder::model`] made
    /// known, and why it is that one: the reason is shown to whoever wonders who answered.
    #[must_use]
    pub fn session_model(mut self, name: &str, why: &str) -> Self {
        self.model = Some((name.to_owned(), why.to_owned()));
        self
    }

    /// The models that are known by name, with what they cost and how good they are; the built-in catalogue
    /// ([`catalogue::models`](crate::models::catalogue::models)) if this is left out.
    #[must_use]
    pub fn known_models(mut self, models: Vec<ModelEntry>) -> Self {
        self.known_models = Some(models);
        self
    }

    /// The models that answer, in this order, in the place of one that cannot be had. Without them, and without a list
    /// of the agent's own, no other model is asked.
    #[must_use]
    pub fn fallback_models(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.fallback = names.into_iter().map(Into::into).collect();
        self
    }

    /// Whether hints of a call choose a model, and what fills those that it leaves out.
    #[must_use]
    pub fn routing(mut self, rules: RoutingRules) -> Self {
        self.routing = rules;
        self
    }

    /// The keys and addresses of model providers; none if this is left out. Nothing is dialled before a task needs
    /// it. Hand the same keys to [`DeskBuilder::redact`], so that they are never stored or shown.
    ///
    /// ```
    /// use locum::Desk;
    /// use locum::models::Access;
    /// use locum::redact::Redactor;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let key = "sk-an-example-key";
    /// let access = Access::default().key("openai", key);
    /// let desk = Desk::builder()
    ///     .access(access)
    ///     .session_model("openai:gpt-5.4-mini", "the application's choice")
    ///     .redact(Redactor::new([key]))
    ///     .build()?;
    /// assert_eq!(desk.session_model().0, "openai:gpt-5.4-mini");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// The session's name; `main` if this is left out. Task ids, defined agents, shared context and limits are its own.
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

    /// Where the git worktrees of tasks are kept that ask for `isolation: worktree`: a directory outside the project.
    /// Without one such a task is refused. It needs the `git` program.
    #[must_use]
    pub fn worktrees(mut self, directory: impl Into<PathBuf>) -> Self {
        self.worktrees = Some(directory.into());
        self
    }

    /// How many tasks may run and be started, how deep delegation may go, and how many turns an agent may have.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// How long a task may be silent before it counts as stalled and is ended.
    #[must_use]
    pub fn patience(mut self, patience: Patience) -> Self {
        self.patience = patience;
        self
    }

    /// Switches delegation on or off. Off, every request that would start a task is refused with
    /// [`SubagentsDisabled`](crate::Code::SubagentsDisabled).
    #[must_use]
    pub fn enabled(mut self, enabled: bool) -> Self {
        self.enabled = enabled;
        self
    }

    /// Lets keys of the shared context have a `name:` before them.
    #[must_use]
    pub fn namespaces(mut self, namespaces: bool) -> Self {
        self.namespaces = namespaces;
        self
    }

    /// The time of day, for tests that must know it. Waiting uses tokio's clock, which tests can pause.
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

    /// What must never be stored or shown: it is taken out of requests, logs, results and progress.
    #[must_use]
    pub fn redact(mut self, redactor: Redactor) -> Self {
        self.redactor = redactor;
        self
    }

    /// Where the answers of models are recorded, to be replayed with the model `replay:FILE`; nowhere if this is left
    /// out.
    #[must_use]
    pub fn recorder(mut self, recorder: Recorder) -> Self {
        self.recorder = Some(recorder);
        self
    }

    /// How processes that go on with unfinished tasks are started; see [`launch`](crate::launch). Without one,
    /// unfinished tasks wait in the store for the next process that opens it.
    #[must_use]
    pub fn launcher(mut self, launcher: Launcher) -> Self {
        self.launcher = Some(launcher);
        self
    }

    /// Rules about the use of tools: in this list the last one that matches decides. Called again, it adds a list, and
    /// the strictest one counts. See [`Rule`].
    #[must_use]
    pub fn rules(mut self, rules: Vec<Rule>) -> Self {
        if !rules.is_empty() {
            self.permissions.rules.push(rules);
        }
        self
    }

    /// What commands of agents are shut into; see [`sandbox`](crate::sandbox). Without one, tools that run commands
    /// refuse to.
    #[must_use]
    pub fn sandbox(mut self, sandbox: Sandbox) -> Self {
        self.sandbox = Some(sandbox);
        self
    }

    /// Who works on accepted tasks; this process if it is left out. [`Executor::Detached`] needs a launcher.
    #[must_use]
    pub fn executor(mut self, executor: Executor) -> Self {
        self.executor = executor;
        self
    }

    /// Whether this process lives for its tasks alone.
    #[must_use]
    pub(crate) fn life(mut self, life: Life) -> Self {
        self.life = life;
        self
    }

    /// Builds the engine and the first desk of it.
    ///
    /// # Errors
    ///
    /// The session's name is not one, the session's model is not known or cannot be used, or an agent's name holds a
    /// secret. A mistake is told here, not by the first task.
    pub fn build(self) -> Result<Desk, BuildError> {
        let root = self.root.unwrap_or_else(|| PathBuf::from("."));
        let root = root.canonicalize().unwrap_or(root).to_string_lossy().into_owned();
        let session = SessionKey { project: root.clone(), id: SessionId::parse(&self.session)? };
        let mut models = Registry::new(self.access);
        for (name, model) in self.models {
            models.register(&name, model);
        }
        if let Some(known) = self.known_models {
            models.know(known);
        }
        let catalogue = models::catalogue(&models, self.model, &self.fallback, self.routing)?;
        let catalogue = priced(catalogue, &self.prices)?;
        let staff = Staff::new(cleaned(&self.roster, &self.redactor)?, self.search, self.redactor.clone());
        let engine = Engine {
            hands: Hands {
                store: self.store.unwrap_or_else(|| Arc::new(MemoryStore::new())),
                models,
                tools: Toolbox::new(self.tools),
                clock: self.clock,
                pool: Arc::new(Pool::default()),
                jobs: Arc::new(Jobs::new(self.sandbox)),
                worktrees: self.worktrees,
                writers: Arc::default(),
                hub: Hub::default(),
                redactor: self.redactor,
                log: self.log,
                patience: self.patience,
                waits: Waits::default(),
                recorder: self.recorder,
            },
            worker: Worker::new(process::this_process(self.life)),
            staff,
            rules: Rules {
                catalogue,
                limits: self.limits,
                root,
                enabled: self.enabled,
                namespaces: self.namespaces,
                permissions: self.permissions,
            },
            executor: self.executor,
            launcher: self.launcher,
            storm: StatusCalls::default(),
            context_hub: ContextHub::default(),
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

/// The models with the prices that the application knows.
fn priced(mut catalogue: Catalogue, prices: &[(String, Price)]) -> Result<Catalogue, BuildError> {
    for (name, price) in prices {
        let unknown =
            || BuildError::Model { name: name.clone(), why: catalogue.not_found(name).hint.unwrap_or_default() };
        let model = catalogue.resolve(name).ok_or_else(unknown)?;
        match catalogue.models.iter_mut().find(|entry| entry.name == model) {
            Some(entry) => entry.price = Some(*price),
            None => catalogue.models.push(ModelEntry { price: Some(*price), ..ModelEntry::named(model) }),
        }
    }
    Ok(catalogue)
}
