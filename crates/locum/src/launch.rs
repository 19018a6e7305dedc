//! Processes that go on with tasks after the one that accepted them has ended.
//!
//! The program is locum's own binary, started again with [`WORKER_ARGUMENT`]. What it must know, keys included,
//! reaches it once, through its standard input: never through arguments or the environment, where others can read it.
//!
//! A task that asks for `isolation: process` has such a process to itself, which is *attached*: it works for the one
//! that started it, is given no keys, and ends with it.
//!
//! The same program is also the *launcher* of the commands that agents run: started with another argument, it shuts
//! itself in and becomes the command; see [`sandbox`](mod@crate::sandbox).
//!
//! A program of your own that wants either begins its `main` like this:
//!
//! ```no_run
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     if let Some(done) = locum::launch::intercept() {
//!         return Ok(done?);
//!     }
//!     // What the program is for.
//!     Ok(())
//! }
//! ```

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};

use locum_core::ids::Uid;
use serde::{Deserialize, Serialize};

use crate::attached;
use crate::process::{self, Life};
use crate::sandbox;
use crate::settings::Places;
use crate::settings::environment::{Environment, this_program};
use crate::setup::{Setup, SetupError};

/// The argument with which a worker is started.
pub const WORKER_ARGUMENT: &str = "__worker";

/// Whether this program hands its first argument to [`intercept`].
static INTERCEPTS: AtomicBool = AtomicBool::new(false);

/// The longest order that a worker reads.
const ORDER_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// What a worker is told.
#[derive(Serialize, Deserialize)]
struct WorkerOrder {
    /// The variables that locum reads, keys included.
    environment: BTreeMap<String, String>,
    /// Where the command was given.
    working_directory: PathBuf,
    /// The flags that are settings.
    flags: Vec<(String, String)>,
    /// Further directories with agents.
    agents: Vec<PathBuf>,
    /// Where the answers of models are recorded.
    #[serde(default)]
    record: Option<PathBuf>,
    /// The tasks to work on.
    tasks: Vec<Uid>,
}

/// Starts workers: processes that live for the tasks they are given and end with them.
#[derive(Clone)]
pub struct Launcher {
    program: PathBuf,
    setup: Setup,
    logs: PathBuf,
}

/// Why a worker could not be started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The program could not be started or told what to do.
    #[error("a worker could not be started: {0}")]
    Start(#[from] std::io::Error),
    /// The order could not be written down.
    #[error("a worker could not be told what to do: {0}")]
    Order(#[from] serde_json::Error),
    /// The store did not say what is left to do.
    #[error("{0}")]
    Store(String),
}

impl Launcher {
    /// A launcher that starts this very program again. An embedding program must call [`intercept`] before anything
    /// else in its `main`; see the [module](self).
    ///
    /// # Errors
    ///
    /// It is not known where this program is.
    pub fn this_program(setup: &Setup, places: &Places) -> Result<Self, LaunchError> {
        Ok(Self { program: this_program()?, setup: setup.clone(), logs: places.logs() })
    }

    /// Starts one worker for these tasks, and returns its process id.
    pub(crate) fn launch(&self, tasks: &[Uid]) -> Result<u32, LaunchError> {
        let working_directory = self.setup.environment.working_directory().unwrap_or(&self.logs);
        let order = WorkerOrder {
            environment: self.setup.environment.known_to_locum(),
            working_directory: working_directory.to_owned(),
            flags: self.setup.flags.iter().map(|(_, name, value)| ((*name).to_owned(), value.clone())).collect(),
            // They were named relative to where the command was given; a worker stands elsewhere.
            agents: self.setup.agents.iter().map(|directory| working_directory.join(directory)).collect(),
            record: self.setup.record.as_ref().map(|path| working_directory.join(path)),
            tasks: tasks.to_vec(),
        };
        let order = serde_json::to_vec(&order)?;
        let mut child = process::start_detached(&self.program, WORKER_ARGUMENT, self.complaints())?;
        let pid = child.id();
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(&order)?;
        }
        Ok(pid)
    }

    /// Where a worker that cannot even begin says why.
    pub(crate) fn complaints(&self) -> Stdio {
        let path = self.logs.join("worker.log");
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path);
        file.map_or_else(|_| Stdio::null(), Stdio::from)
    }
}

/// Does what this program was started again for, if it was: it must be the first thing in `main`, before any thread is
/// started. A launcher ends here. After a worker's work this returns how it went, and `main` should return too.
/// Otherwise it returns none, and commands and detached workers can be started from this program.
pub fn intercept() -> Option<Result<(), WorkerError>> {
    let argument = std::env::args_os().nth(1);
    if argument.as_deref() == Some(std::ffi::OsStr::new(sandbox::launcher::ARGUMENT)) {
        sandbox::launcher::run();
        std::process::exit(0);
    }
    INTERCEPTS.store(true, Ordering::Relaxed);
    let is_attached = std::env::args_os().nth(2).as_deref() == Some(std::ffi::OsStr::new(attached::ATTACHED));
    let work = if is_attached { attached::run } else { run_worker };
    (argument.as_deref() == Some(std::ffi::OsStr::new(WORKER_ARGUMENT))).then(work)
}

/// This program, if it is a launcher when it is started as one.
pub(crate) fn intercepting_program() -> Option<PathBuf> {
    // Nothing else is published with this flag.
    INTERCEPTS.load(Ordering::Relaxed).then(|| this_program().ok()).flatten()
}

/// Why a worker did not do its work.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// It was not told what to do.
    #[error("the worker's order cannot be read: {0}")]
    Order(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// It could not set itself up.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] crate::store::Error),
}

/// Does a worker's work: reads its order from standard input, drives its tasks to their end, and returns. It makes a
/// runtime of its own, so it must not be called inside one.
///
/// # Errors
///
/// The order cannot be read, the worker cannot set itself up, or the store failed. The tasks stay in the store.
pub fn run_worker() -> Result<(), WorkerError> {
    process::leave_terminal();
    let mut text = String::new();
    let read = std::io::stdin().lock().take(ORDER_BYTES_MAX).read_to_string(&mut text);
    read.map_err(|error| WorkerError::Order(Box::new(error)))?;
    let order: WorkerOrder = serde_json::from_str(&text).map_err(|error| WorkerError::Order(Box::new(error)))?;
    let environment = Environment::new(order.environment, order.working_directory);
    let setup = Setup {
        flags: Setup::known_flags(order.flags),
        agents: order.agents,
        record: order.record,
        life: Life::Detached,
        ..Setup::new(environment)
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| WorkerError::Order(Box::new(error)))?;
    runtime.block_on(async {
        let opened = setup.open()?;
        let worked = opened.desk.work_on(&order.tasks).await;
        opened.desk.end_mcp_servers().await;
        opened.desk.finish_traces().await;
        worked?;
        Ok(())
    })
}
