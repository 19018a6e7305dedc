//! The one place that reads the environment. Everything else is handed plain values.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use locum_models::providers;

use crate::traces;

/// Moves all of locum's own directories below one.
pub const LOCUM_HOME: &str = "LOCUM_HOME";
/// Names the session that a verb works in.
pub const LOCUM_SESSION: &str = "LOCUM_SESSION";
/// The MCP servers that may be reached, with commas between them, where that is not all of them.
pub const LOCUM_MCP_SERVERS: &str = "LOCUM_MCP_SERVERS";
/// The same, as other programs say it.
pub const PI_MCP_SERVERS: &str = "PI_MCP_SERVERS";
/// The server that verbs go to, in the place of a desk in their own process.
pub const LOCUM_SERVER: &str = "LOCUM_SERVER";
/// The token for that server, in the place of the one in locum's own directories.
pub const LOCUM_TOKEN: &str = "LOCUM_TOKEN";
/// Directories with agents, with colons between them, in the place of those of the user and of locum itself.
pub const LOCUM_AGENT_PATH: &str = "LOCUM_AGENT_PATH";

/// The environment, as it was when it was read.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    variables: BTreeMap<String, String>,
    working_directory: Option<PathBuf>,
    home: Option<PathBuf>,
    /// Further variables that locum reads, because its settings name them.
    named: BTreeSet<String>,
}

impl Environment {
    /// The environment of this process. Variables that are not text are left out.
    pub fn of_process() -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self {
            variables: std::env::vars_os().filter_map(text).collect(),
            working_directory: std::env::current_dir().ok(),
            home: etcetera::home_dir().ok(),
            named: BTreeSet::new(),
        }
    }

    /// An environment made of these variables, for tests and embedders.
    pub fn new(variables: impl IntoIterator<Item = (String, String)>, working_directory: PathBuf) -> Self {
        let variables: BTreeMap<String, String> = variables.into_iter().collect();
        let home = variables.get("HOME").map(PathBuf::from);
        Self { variables, working_directory: Some(working_directory), home, named: BTreeSet::new() }
    }

    /// The same environment, in which locum also reads these variables.
    #[must_use]
    pub(crate) fn naming(mut self, variables: impl IntoIterator<Item = String>) -> Self {
        self.named.extend(variables);
        self
    }

    /// A variable; an empty one counts as not set.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// A variable, also an empty one: for lists, where empty means none.
    pub fn get_list(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// The variables that locum reads, for a worker that has no environment of its own.
    pub(crate) fn known_to_locum(&self) -> BTreeMap<String, String> {
        let standard = ["HOME", LOCUM_HOME, LOCUM_AGENT_PATH, "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"];
        let settings = super::table::KEYS.iter().map(|key| key.variable);
        let known = standard.into_iter().chain(settings).chain(providers::variables()).chain(traces::VARIABLES);
        let known = known.map(str::to_owned);
        let names = known.chain(self.named.iter().cloned());
        names
            .filter_map(|name| {
                let value = self.get(&name)?.to_owned();
                Some((name, value))
            })
            .chain([LOCUM_MCP_SERVERS, PI_MCP_SERVERS].into_iter().filter_map(|name| {
                let value = self.get_list(name)?;
                Some((name.to_owned(), value.to_owned()))
            }))
            .collect()
    }

    /// The directory that the process was started in.
    pub fn working_directory(&self) -> Option<&std::path::Path> {
        self.working_directory.as_deref()
    }

    /// The user's home directory.
    pub fn home(&self) -> Option<&std::path::Path> {
        self.home.as_deref()
    }
}

/// The named variables of this process, for a process that it starts.
pub(crate) fn process_variables(names: &[&str]) -> Vec<(String, std::ffi::OsString)> {
    names.iter().filter_map(|name| std::env::var_os(name).map(|value| ((*name).to_owned(), value))).collect()
}

/// The program that this process runs.
pub(crate) fn this_program() -> std::io::Result<PathBuf> {
    std::env::current_exe()
}
