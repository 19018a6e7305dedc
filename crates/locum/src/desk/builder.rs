//! Building an engine and the first desk of it. Who answers is said in `models`, how much is allowed in `limits`.

mod limits;
mod models;
mod servers;

use std::path::PathBuf;
use std::sync::Arc;

use locum_core::agent::{AgentSpec, Roster};
use locum_core::ids::{InvalidName, SessionId, SessionKey};
use locum_core::limits::Limits;
use locum_core::liveness::Patience;
use locum_core::permission::{Permissions, Rule};
use locum_core::routing::{ModelEntry, RoutingRules};
use locum_core::usage::Price;
use locum_models::{Access, Model, Registry};

use super::Desk;
use super::storm::StatusCalls;
use crate::agents::Search;
use crate::agents::staff::Staff;
use crate::asking::Asker;
use crate::clock::{Clock, SystemClock};
use crate::context_changes::ContextHub;
use crate::ears::Ears;
use crate::engine::{Engine, Executor, Rules};
use crate::faces::FaceSettings;
use crate::hands::{Hands, Toolbox};
use crate::jobs::Jobs;
use crate::launch::Launcher;
use crate::mcp_servers::{McpServer, McpServers, Network};
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
use crate::traces::{Collector, Traces};
use crate::waits::Waits;
use crate::web::Dialer;
use crate::worker::Worker;
use crate::writers::{Others, Writers};

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
/// | what they can do | [`tool`](Self::tool), [`standard_tools`](Self::standard_tools), [`mcp_servers`](Self::mcp_servers) | nothing but talk |
/// | who answers | [`model`](Self::model), [`access`](Self::access), [`session_model`](Self::session_model) | the offline model |
/// | who answers otherwise | [`known_models`](Self::known_models), [`routing`](Self::routing), [`fallback_models`](Self::fallback_models) | the built-in catalogue, nobody |
/// | where tasks are kept | [`store`](Self::store) | in memory |
/// | where they belong | [`root`](Self::root), [`session`](Self::session) | the working directory, `main` |
/// | where worktrees are kept | [`worktrees`](Self::worktrees) | nowhere |
/// | how much is allowed | [`limits`](Self::limits), [`patience`](Self::patience), [`enabled`](Self::enabled), [`strict`](Self::strict) | see [`Limits`], [`Patience`] |
/// | how other programs' tools behave | [`faces`](Self::faces) | as those programs do |
/// | what is kept secret | [`redact`](Self::redact) | nothing is known to be |
/// | what is logged | [`log`](Self::log) | nothing |
/// | who hears tasks of other processes | [`ears`](Self::ears) | nobody |
/// | what models answer | [`recorder`](Self::recorder) | is not recorded |
/// | what tools may be used for | [`rules`](Self::rules) | everything but protected names |
/// | who agrees where a rule asks | [`asker`](Self::asker) | nobody |
/// | what commands are shut into | [`sandbox`](Self::sandbox) | commands are refused |
/// | who runs tasks apart | [`apart`](Self::apart), [`worker_program`](Self::worker_program) | this program, if asked to |
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
    others: Option<Others>,
    tools: Vec<Arc<dyn Tool>>,
    roster: Roster,
    search: Option<Search>,
    access: Access,
    models: Vec<(String, Arc<dyn Model>)>,
    everyone: Option<Arc<dyn Model>>,
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
    strict: bool,
    apart: bool,
    namespaces: bool,
    faces: FaceSettings,
    executor: Executor,
    life: Life,
    launcher: Option<Launcher>,
    worker_program: Option<PathBuf>,
    clock: Arc<dyn Clock>,
    patience: Patience,
    log: OperationLog,
    ears: Option<PathBuf>,
    redactor: Redactor,
    recorder: Option<Recorder>,
    collector: Option<Collector>,
    asker: Option<Arc<dyn Asker>>,
    dialer: Arc<Dialer>,
    sandbox: Option<Sandbox>,
    permissions: Permissions,
    servers: Vec<McpServer>,
    left_out_servers: Vec<(String, String)>,
    pins: Option<PathBuf>,
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
            everyone: None,
            prices: Vec::new(),
            model: None,
            known_models: None,
            fallback: Vec::new(),
            routing: RoutingRules::default(),
            session: "main".to_owned(),
            root: None,
            worktrees: None,
            others: None,
            limits: Limits::default(),
            enabled: true,
            strict: false,
            apart: false,
            namespaces: false,
            faces: FaceSettings::default(),
            executor: Executor::InProcess,
            life: Life::Door,
            launcher: None,
            worker_program: None,
            clock: Arc::new(SystemClock),
            patience: Patience::default(),
            log: OperationLog::default(),
            ears: None,
            redactor: Redactor::default(),
            recorder: None,
            collector: None,
            asker: None,
            dialer: Arc::default(),
            sandbox: None,
            permissions: Permissions::default(),
            servers: Vec::new(),
            left_out_servers: Vec::new(),
            pins: None,
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
    /// Tasks should run in processes of their own, and this program cannot be started again as one.
    #[error("tasks cannot have processes of their own here: call locum::launch::intercept() first in main")]
    NoWorker,
    /// The collector of traces cannot be reached in the way that was asked for.
    #[error("traces cannot be sent: {0}")]
    Traces(String),
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

    /// The tools that come with locum: the reading tools, `write`, `edit`, `bash`, `job`, `web_fetch`, `shared_context`,
    /// `manage_tasks` and `subagent`.
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

    /// Lets keys of the shared context have a `name:` before them.
    #[must_use]
    pub fn namespaces(mut self, namespaces: bool) -> Self {
        self.namespaces = namespaces;
        self
    }

    /// What the faces of other programs need to know; see [`faces`](crate::faces).
    #[must_use]
    pub fn faces(mut self, faces: FaceSettings) -> Self {
        self.faces = faces;
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

    /// The directory in which processes of the user listen to what tasks of others say while they say it; nobody hears
    /// it if this is left out. See [`Desk::overhear`].
    #[must_use]
    pub fn ears(mut self, directory: impl Into<PathBuf>) -> Self {
        self.ears = Some(directory.into());
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

    /// Who is told in spans what tasks did.
    #[must_use]
    pub(crate) fn collector(mut self, collector: Collector) -> Self {
        self.collector = Some(collector);
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

    /// Who is asked where a rule wants a person to agree; see [`asking`](crate::asking). Without one, such calls are
    /// denied.
    #[must_use]
    pub fn asker(mut self, asker: Arc<dyn Asker>) -> Self {
        self.asker = Some(asker);
        self
    }

    /// What commands of agents are shut into; see [`sandbox`](crate::sandbox). Without one, tools that run commands
    /// refuse to.
    #[must_use]
    pub fn sandbox(mut self, sandbox: Sandbox) -> Self {
        self.sandbox = Some(sandbox);
        self
    }

    /// The program that is started with `__worker` to work on a task that asks for `isolation: process`; this one, if
    /// it [intercepts](crate::launch::intercept) that, when left out.
    #[must_use]
    pub fn worker_program(mut self, program: impl Into<PathBuf>) -> Self {
        self.worker_program = Some(program.into());
        self
    }

    /// Lets every task run in a process of its own, unless it or its agent asks for something else. The process works
    /// for this one, has no keys, and ends with it; see [`launch`](crate::launch).
    #[must_use]
    pub fn apart(mut self, apart: bool) -> Self {
        self.apart = apart;
        self
    }

    /// Who works on accepted tasks; this process if it is left out. [`Executor::Detached`] needs a launcher.
    #[must_use]
    pub fn executor(mut self, executor: Executor) -> Self {
        self.executor = executor;
        self
    }

    /// What opens connections for commands.
    #[must_use]
    pub(crate) fn dialer(mut self, dialer: Arc<Dialer>) -> Self {
        self.dialer = dialer;
        self
    }

    /// Whether this process lives for its tasks alone.
    #[must_use]
    pub(crate) fn life(mut self, life: Life) -> Self {
        self.life = life;
        self
    }

    /// Builds the engine and the first desk of it. The process's own limit of open files is raised as far as it may, so
    /// that a crowd of tasks has connections.
    ///
    /// # Errors
    ///
    /// The session's name is not one, the session's model is not known or cannot be used, or an agent's name holds a
    /// secret. A mistake is told here, not by the first task.
    pub fn build(self) -> Result<Desk, BuildError> {
        process::raise_descriptor_limit();
        let root = self.root.unwrap_or_else(|| PathBuf::from("."));
        let root = root.canonicalize().unwrap_or(root).to_string_lossy().into_owned();
        let session = SessionKey { project: root.as_str().into(), id: SessionId::parse(&self.session)? };
        let worker_program = self.worker_program.or_else(crate::launch::intercepting_program);
        if self.apart && worker_program.is_none() {
            return Err(BuildError::NoWorker);
        }
        let network = Network::of(&self.access, &self.dialer);
        let others = self.others.unwrap_or_else(|| Others::in_store(self.store.as_ref()));
        let store = self.store.unwrap_or_else(|| Arc::new(MemoryStore::new()));
        let traces = self.collector.map(|collector| traces(&collector, &network, &store, &self.clock)).transpose()?;
        let mut registry = Registry::new(self.access);
        if let Some(everyone) = self.everyone {
            registry = registry.answered_by(everyone);
        }
        self.models.into_iter().for_each(|(name, model)| registry.register(&name, model));
        if let Some(known) = self.known_models {
            registry.know(known);
        }
        let catalogue = super::models::catalogue(&registry, self.model, &self.fallback, self.routing)?;
        let catalogue = models::priced(catalogue, &self.prices)?;
        let staff = Staff::new(cleaned(&self.roster, &self.redactor)?, self.search, self.redactor.clone());
        let servers =
            Arc::new(McpServers::new(self.servers, self.left_out_servers, self.pins, self.sandbox.clone(), network));
        let engine = Engine {
            hands: Hands {
                store,
                models: registry,
                tools: Toolbox::new(self.tools, Arc::clone(&servers)),
                clock: self.clock,
                pool: Arc::new(Pool::default()),
                jobs: Arc::new(Jobs::new(self.sandbox, self.dialer)),
                servers,
                worktrees: self.worktrees,
                writers: Arc::new(Writers::among(others)),
                seals: Arc::default(),
                hub: Hub::new(self.ears.map(Ears::in_directory)),
                redactor: self.redactor,
                log: self.log,
                patience: self.patience,
                waits: Waits::default(),
                recorder: self.recorder,
                traces,
                asker: self.asker,
            },
            worker: Worker::new(process::this_process(self.life)),
            staff,
            rules: Rules {
                catalogue,
                limits: self.limits,
                root,
                enabled: self.enabled,
                strict: self.strict,
                apart: self.apart,
                namespaces: self.namespaces,
                faces: self.faces,
                permissions: self.permissions,
            },
            executor: self.executor,
            launcher: self.launcher,
            worker_program,
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

fn traces(
    collector: &Collector,
    network: &Network,
    store: &Arc<dyn Store>,
    clock: &Arc<dyn Clock>,
) -> Result<Arc<Traces>, BuildError> {
    let way = (&network.proxy, network.ca_file.as_deref());
    let traces = Traces::to(collector, way, Arc::clone(store), Arc::clone(clock));
    traces.map(Arc::new).map_err(BuildError::Traces)
}
