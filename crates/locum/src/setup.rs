//! From an environment and a few flags to a working desk: what every door of a locum program does first.
//!
//! Use it where a program should share settings, agents and tasks with the `locum` command; use
//! [`Desk::builder`] where it should stand alone.
//!
//! ```
//! use locum::settings::environment::{Environment, LOCUM_HOME};
//! use locum::setup::Setup;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let home = tempfile::tempdir()?;
//! # let home = home.path().to_string_lossy().into_owned();
//! // `Environment::of_process()` is what the command uses.
//! let environment = Environment::new([(LOCUM_HOME.to_owned(), home)], std::env::current_dir()?);
//! let opened = Setup::new(environment).open()?;
//! assert_eq!(opened.desk.session_model().0, "offline");
//! assert!(opened.places.database().exists());
//! # Ok(())
//! # }
//! ```

mod access;
mod mcp_servers;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use locum_core::limits::Limits;
use locum_core::protocol::face::FaceBounds;
use locum_core::routing::{ModelEntry, SessionModel};
use locum_models::{Access, catalogue, providers};

use crate::agents::muster::judge;
use crate::agents::project::{ProjectFiles, SETTINGS_FILE};
use crate::agents::{Review, Search, Trust, TrustList};
use crate::asking::Asker;
use crate::clock::{Clock, SystemClock};
use crate::desk::{BuildError, Desk};
use crate::engine::Executor;
use crate::faces::FaceSettings;
use crate::launch::{LaunchError, Launcher};
use crate::operation_log::OperationLog;
use crate::process::Life;
use crate::recorder::Recorder;
use crate::redact::Redactor;
use crate::sandbox::Sandbox;
use crate::settings::environment::{Environment, LOCUM_SESSION, LOCUM_TOKEN};
use crate::settings::{Origin, Places, Settings, SettingsError, SettingsFile, project_root, table};
use crate::store;
use crate::store::sqlite::SqliteStore;
use crate::tools::{CommandTool, WebFetch, WebSearch};
use crate::traces::Collector;
use crate::web::{Client, Dialer};

/// What a door was told.
#[derive(Clone)]
pub struct Setup {
    /// The environment.
    pub environment: Environment,
    /// Flags that are settings: the flag, the setting, the value.
    pub flags: Vec<(&'static str, &'static str, String)>,
    /// Further directories with agents.
    pub agents: Vec<PathBuf>,
    /// Where the answers of models are recorded.
    pub record: Option<PathBuf>,
    /// Which session.
    pub session: SessionChoice,
    /// Who works on accepted tasks.
    pub executor: Executor,
    /// Who can be asked where a rule wants a person to agree.
    pub asker: Option<Arc<dyn Asker>>,
    /// Whether this process lives for its tasks alone.
    pub(crate) life: Life,
}

/// Which session a door works in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionChoice {
    /// The one of this name.
    Named(String),
    /// The one that the environment names, else the project's `main`.
    Shared,
    /// The one that the environment names, else a new one.
    New,
}

/// A desk and what was found on the way to it.
pub struct Opened {
    /// The desk.
    pub desk: Desk,
    /// The settings with their origins.
    pub settings: Settings,
    /// Locum's own directories.
    pub places: Places,
}

/// Why there is no desk.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// Locum's own directories are not known.
    #[error("{0}")]
    Places(String),
    /// A file could not be read.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The user's catalogue of models cannot be used.
    #[error("{path}:{problem}")]
    Catalogue {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        #[source]
        problem: catalogue::Problem,
    },
    /// A setting cannot be used.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A variable about traces cannot be followed.
    #[error("{0}")]
    Traces(String),
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The engine cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// Workers could not be started from here.
    #[error(transparent)]
    Launch(#[from] LaunchError),
}

impl Setup {
    /// A setup for this environment, with nothing further said.
    pub fn new(environment: Environment) -> Self {
        Self {
            environment,
            flags: Vec::new(),
            agents: Vec::new(),
            record: None,
            session: SessionChoice::Shared,
            executor: Executor::InProcess,
            asker: None,
            life: Life::Door,
        }
    }

    /// Makes room for an orchestrator among the tasks: what [`Desk::define_orchestrator`] defines is a task itself, so
    /// what it delegates lies one level deeper than the settings say.
    ///
    /// # Errors
    ///
    /// As [`Setup::settings`].
    pub fn lead(&mut self) -> Result<(), SetupError> {
        let depth = self.settings()?.0.limits().max_depth.unwrap_or(FaceBounds::default().depth);
        let deeper = depth.saturating_add(1).min(Limits::DEPTH_CAP);
        self.flags.push(("an orchestrator", "limits.max_depth", deeper.to_string()));
        Ok(())
    }

    /// The flags that a worker was told, as far as this version knows their settings.
    pub(crate) fn known_flags(flags: Vec<(String, String)>) -> Vec<(&'static str, &'static str, String)> {
        let known = |(name, value): (String, String)| {
            let key = table::KEYS.iter().find(|key| key.name == name)?;
            Some(("flag", key.name, value))
        };
        flags.into_iter().filter_map(known).collect()
    }

    /// The settings alone, for those who only look at them.
    ///
    /// # Errors
    ///
    /// There is no home directory, the user's file cannot be read, or a setting in it, in a variable or in a flag
    /// cannot be used.
    pub fn settings(&self) -> Result<(Settings, Places), SetupError> {
        let places = Places::find(&self.environment).map_err(SetupError::Places)?;
        let path = places.config_file();
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(source) => return Err(SetupError::File { path, source }),
        };
        let user = text.as_deref().map(|text| SettingsFile { origin: Origin::File(path), text });
        let project = self.project_settings(&places);
        let project = project.as_ref().map(|(path, text)| SettingsFile { origin: Origin::Project(path.clone()), text });
        let files: Vec<SettingsFile<'_>> = user.into_iter().chain(project).collect();
        Ok((Settings::resolve(&files, &self.environment, &self.flags)?, places))
    }

    /// The settings of the project, if it has any and is trusted. They are judged together with its agents, so all of
    /// these are read, but only where there are settings.
    fn project_settings(&self, places: &Places) -> Option<(PathBuf, String)> {
        let root = self.project();
        root.join(SETTINGS_FILE).symlink_metadata().ok()?;
        let files = ProjectFiles::read(&self.search(places, &[]));
        // A list of trusted projects that cannot be read trusts nothing; whoever looks at agents is told why.
        let trust = judge(&files, &places.trust_file()).unwrap_or(Trust::Untrusted);
        let file = files.settings.filter(|_| trust.is_in_force())?;
        Some((file.path, String::from_utf8_lossy(&file.bytes.ok()?).into_owned()))
    }

    /// What of the project would act if it were trusted.
    ///
    /// # Errors
    ///
    /// There is no home directory.
    pub fn review(&self) -> Result<Review, SetupError> {
        let places = Places::find(&self.environment).map_err(SetupError::Places)?;
        Ok(Review::of(&self.search(&places, &[])))
    }

    /// The list of trusted projects.
    ///
    /// # Errors
    ///
    /// There is no home directory.
    pub fn trust_list(&self) -> Result<TrustList, SetupError> {
        let places = Places::find(&self.environment).map_err(SetupError::Places)?;
        Ok(TrustList::at(&places.trust_file()))
    }

    /// The project around the working directory.
    pub fn project(&self) -> PathBuf {
        project_root(self.environment.working_directory().unwrap_or(std::path::Path::new(".")))
    }

    /// Where agents are looked for: by a desk, and by those who only look at files.
    ///
    /// # Errors
    ///
    /// As [`Setup::settings`], which name the packages.
    pub fn agent_places(&self) -> Result<Search, SetupError> {
        let (settings, places) = self.settings()?;
        Ok(self.search(&places, &settings.packages()))
    }

    fn search(&self, places: &Places, packages: &[String]) -> Search {
        Search::of(&self.environment, places, &self.project(), packages, &self.agents)
    }

    /// Opens the store and builds the desk. Agent files are read when they are first needed; those that cannot be read
    /// are no error: they are among the problems of [`Desk::muster`].
    ///
    /// # Errors
    ///
    /// As [`Setup::settings`]; or the store or the log cannot be opened, or the session's model cannot be used.
    pub fn open(&self) -> Result<Opened, SetupError> {
        let (settings, places) = self.settings()?;
        let store = SqliteStore::open(&places.database())?;
        let access = access::find(&settings, &self.environment);
        let dialer = Arc::new(Dialer::new(access.proxy.clone(), access.ca_file.clone()));
        let client = Arc::new(Client::new(Arc::clone(&dialer)));
        let engine = settings.search_engine(&self.environment)?;
        let servers = mcp_servers::find(&settings, &self.environment);
        let redactor = self.redactor(&settings);
        let collector = Collector::named_by(&self.environment).map_err(SetupError::Traces)?;
        let log = open_log(&places, &settings, &redactor)?;
        let recorder = self.record.as_deref().map(|path| self.open_recorder(path, &redactor)).transpose()?;
        let (name, why) = self.session_model(&settings, &access);
        let root = self.project();
        let mut builder = Desk::builder()
            .store(Arc::new(store))
            .session_model(&name, &why)
            .standard_tools()
            .tool(Arc::new(WebFetch::new(Arc::clone(&client))))
            .agent_files(self.search(&places, &settings.packages()))
            .root(root)
            .worktrees(places.worktrees())
            .session(&self.session_id())
            .known_models(self.known_models(&places, &access)?)
            .fallback_models(settings.fallback_models().into_iter().map(|name| self.model_name(name)))
            .routing(settings.routing())
            .access(access)
            .limits(settings.limits())
            .patience(settings.patience())
            .enabled(settings.subagents_enabled())
            .strict(settings.strict())
            .namespaces(settings.namespaces())
            .faces(FaceSettings {
                transcripts: Some(places.transcripts()),
                home: self.environment.home().map(Path::to_owned),
                ..settings.faces()
            })
            .log(log)
            .ears(places.ears())
            .redact(redactor)
            .rules(settings.permission_rules())
            .rules(settings.project_rules())
            .mcp_servers(servers.usable, places.mcp_servers())
            .left_out_servers(servers.left_out)
            .sandbox(Sandbox::new(settings.sandbox_level(), &self.environment, &places))
            .dialer(dialer)
            .executor(self.executor)
            .apart(settings.runs_in_processes())
            .life(self.life)
            .launcher(Launcher::this_program(&self.naming(&settings), &places)?);
        if let Some(recorder) = recorder {
            builder = builder.recorder(recorder);
        }
        if let Some(collector) = collector {
            builder = builder.collector(collector);
        }
        if let Some(engine) = engine {
            builder = builder.tool(Arc::new(WebSearch::new(client, engine)));
        }
        for tool in settings.command_tools() {
            builder = builder.tool(Arc::new(CommandTool::new(tool)));
        }
        if let Some(asker) = &self.asker {
            builder = builder.asker(Arc::clone(asker));
        }
        Ok(Opened { desk: builder.build()?, settings, places })
    }

    /// The models of the built-in catalogue with the user's own over them.
    fn known_models(&self, places: &Places, access: &Access) -> Result<Vec<ModelEntry>, SetupError> {
        let path = places.catalogue_file();
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(source) => return Err(SetupError::File { path, source }),
        };
        let merged = catalogue::merge(catalogue::models(), &text, &access.provider_names());
        merged.map_err(|problem| SetupError::Catalogue { path, problem })
    }

    /// The same setup, with the variables that settings name: a worker is told them too.
    fn naming(&self, settings: &Settings) -> Self {
        let environment = self.environment.clone().naming(settings.named_variables());
        Self { environment, ..self.clone() }
    }

    /// A recording is named relative to where the command was given.
    fn open_recorder(&self, path: &Path, redactor: &Redactor) -> Result<Recorder, SetupError> {
        let path = self.environment.working_directory().map_or_else(|| path.to_owned(), |base| base.join(path));
        Recorder::open(&path, redactor.clone()).map_err(|source| SetupError::File { path, source })
    }

    /// Whether somebody said which session it is.
    pub fn names_session(&self) -> bool {
        matches!(self.session, SessionChoice::Named(_)) || self.environment.get(LOCUM_SESSION).is_some()
    }

    /// The session that is worked in.
    pub fn session_id(&self) -> String {
        let named = self.environment.get(LOCUM_SESSION).map(str::to_owned);
        match &self.session {
            SessionChoice::Named(name) => name.clone(),
            SessionChoice::Shared => named.unwrap_or_else(|| "main".to_owned()),
            SessionChoice::New => named.unwrap_or_else(|| crate::desk::fresh_session().to_string()),
        }
    }

    /// What takes known secrets out of everything that is stored or shown: keys, passwords and headers.
    pub fn redactor(&self, settings: &Settings) -> Redactor {
        let access = access::find(settings, &self.environment);
        let of_servers = mcp_servers::find(settings, &self.environment).secrets;
        // A key that another one outranks is a secret all the same.
        let rows = providers::all().iter().flat_map(|row| &row.key_variables);
        let named = settings.named_variables();
        let variables = rows.chain(&named);
        let keys = variables.filter_map(|variable| self.environment.get(variable)).map(str::trim);
        let token = self.environment.get(LOCUM_TOKEN);
        let of_servers = of_servers.iter().map(String::as_str);
        let collector = Collector::named_by(&self.environment).ok().flatten();
        let of_collector = collector.iter().flat_map(Collector::secrets);
        Redactor::new(access.secrets().chain(keys).chain(of_servers).chain(of_collector).chain(token))
    }

    /// The session's model and why: what was asked for, else the first provider that can be reached, else the
    /// built-in one.
    fn session_model(&self, settings: &Settings, access: &Access) -> (String, String) {
        match settings.model() {
            Some((name, origin)) => (self.model_name(name), format!("set by {origin}")),
            None => {
                let SessionModel { name, why } = access.first_model();
                (name.to_string(), why)
            }
        }
    }

    /// A script is named relative to where the command was given; a worker has no such place.
    pub fn model_name(&self, name: &str) -> String {
        match (locum_models::script_path(name), self.environment.working_directory()) {
            (Some((head, path)), Some(directory)) => format!("{head}{}", directory.join(path).display()),
            _ => name.to_owned(),
        }
    }
}

fn open_log(places: &Places, settings: &Settings, redactor: &Redactor) -> Result<OperationLog, SetupError> {
    let directory = places.logs();
    let log = OperationLog::open(&directory, SystemClock.now(), settings.log_payloads(), redactor.clone());
    log.map_err(|source| SetupError::File { path: directory, source })
}
