//! What an engine is built from. Who answers is said in `models`, how much is allowed in `limits`; `assembly` puts it
//! together.

mod assembly;
mod limits;
mod models;
mod servers;

pub use assembly::BuildError;

use std::path::PathBuf;
use std::sync::Arc;

use locum_core::agent::{AgentSpec, Roster};
use locum_core::limits::Limits;
use locum_core::liveness::Patience;
use locum_core::permission::{Permissions, Rule};
use locum_core::routing::{ModelEntry, RoutingRules};
use locum_core::usage::Price;
use locum_models::{Access, Model};

use crate::agents::Search;
use crate::asking::Asker;
use crate::clock::{Clock, SystemClock};
use crate::engine::Executor;
use crate::faces::FaceSettings;
use crate::launch::Launcher;
use crate::mcp_servers::McpServer;
use crate::operation_log::OperationLog;
use crate::process::Life;
use crate::recorder::Recorder;
use crate::redact::Redactor;
use crate::sandbox::Sandbox;
use crate::store::Store;
use crate::tools::Tool;
use crate::traces::Collector;
use crate::web::Dialer;
use crate::writers::Others;

/// Builds an engine and the first [`Desk`](crate::Desk) of it.
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
    /// it if this is left out. See [`Desk::overhear`](crate::Desk::overhear).
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
}
