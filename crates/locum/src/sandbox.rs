//! The sandbox: what a command that an agent runs can see, change and reach.
//!
//! A command never runs in locum's own process. Locum starts its launcher (this program again, see
//! [`launch`](crate::launch)), which shuts itself in and only then becomes the command. Three levels exist:
//!
//! | level | files | processes | network |
//! |---|---|---|---|
//! | `full` | the project and a private temporary directory are writable, the system and toolchains readable, the home hidden, names that programs act on protected | only its own | none, or the hosts that the agent names, through a proxy |
//! | `landlock` | the same rules, enforced by Landlock alone: names inside the project are not protected, that a file exists can be seen, and modes cannot be changed | others are visible, but cannot be signalled | none |
//! | `none` | everything that the user may do | all of the user's | all |
//!
//! How many processes a command may have is limited at the level `full` alone, and not for root where the kernel is older
//! than 6.14: without a namespace of its own a command's processes are counted together with all others of its user.
//!
//! There is no way from a level to a weaker one but the user's own setting or flag: what a level needs and the system
//! does not have is a refusal.

mod hiding;
mod order;
mod repository;
mod run;
mod toolchains;
mod variables;

#[cfg(target_os = "linux")]
mod command;
#[cfg(target_os = "linux")]
mod entrance;
#[cfg(target_os = "linux")]
mod file_rules;
#[cfg(target_os = "linux")]
mod namespaces;
#[cfg(target_os = "linux")]
mod protected;
#[cfg(target_os = "linux")]
mod raw;
#[cfg(target_os = "linux")]
mod rlimits;
#[cfg(target_os = "linux")]
mod sentry;
#[cfg(target_os = "linux")]
mod system_calls;
#[cfg(target_os = "linux")]
mod trail;
#[cfg(target_os = "linux")]
mod view;
#[cfg(target_os = "linux")]
mod watch;

pub(crate) mod launcher;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::settings::Places;
use crate::settings::environment::Environment;
pub(crate) use hiding::OUTPUTS;
pub(crate) use order::{ENTRANCE_PORT, End, Order, Report, StandardFiles};
pub(crate) use run::{OutputTo, Running, make_private};

/// How far a command is shut in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Not at all.
    None,
    /// By Landlock and a filter of system calls, without namespaces.
    Landlock,
    /// By namespaces, Landlock and a filter of system calls.
    Full,
}

impl Level {
    /// Every level, the strongest first.
    pub const ALL: [Self; 3] = [Self::Full, Self::Landlock, Self::None];

    /// As users write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Landlock => "landlock",
            Self::None => "none",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Level {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|level| level.as_str() == text);
        known.ok_or_else(|| format!("there is no sandbox `{text}`; it may be full, landlock or none"))
    }
}

/// What commands are shut into, and who does it.
///
/// A program that embeds locum begins its `main` with [`launch::intercept`](crate::launch::intercept) and hands a
/// sandbox to its [`DeskBuilder`](crate::desk::DeskBuilder::sandbox); without both, tools that run commands refuse to.
// It is part of what a worker process is told; both are the same program.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Sandbox {
    level: Level,
    launcher: Option<PathBuf>,
    private: PathBuf,
    hidden: Vec<PathBuf>,
    home: Option<PathBuf>,
    toolchains: Vec<PathBuf>,
    variables: BTreeMap<String, String>,
}

impl Sandbox {
    /// A sandbox of this level. Commands inherit a short list of variables from the environment, see the toolchains in
    /// its home, and never see locum's own places.
    pub fn new(level: Level, environment: &Environment, places: &Places) -> Self {
        let home = environment.home().and_then(|home| home.canonicalize().ok());
        let home = home.filter(|home| home.parent().is_some());
        let toolchains = toolchains::find(home.as_deref(), |name| environment.get(name));
        let credentials = environment
            .get("CARGO_HOME")
            .map(PathBuf::from)
            .into_iter()
            .flat_map(|place| toolchains::CREDENTIALS.iter().map(move |name| place.join(name)));
        let own = [&places.config, &places.data, &places.state].map(|path| resolved(path));
        Self {
            level,
            launcher: crate::launch::intercepting_program(),
            private: resolved(&places.state).join("private"),
            hidden: own.into_iter().chain(credentials).collect(),
            home,
            toolchains,
            variables: variables::inherited(environment),
        }
    }

    /// The program that is started with `__launch` to shut a command in; this one, if it intercepts that, when left
    /// out.
    #[must_use]
    pub fn launcher(mut self, program: impl Into<PathBuf>) -> Self {
        self.launcher = Some(program.into());
        self
    }

    /// How far commands are shut in.
    pub fn level(&self) -> Level {
        self.level
    }

    /// Where the private directories of tasks are.
    pub(crate) fn private(&self) -> &Path {
        &self.private
    }

    /// What a launcher is told.
    pub(crate) fn order(&self, level: Level, root: &Path, private: &Path) -> Result<Order, String> {
        self.check_root(level, root)?;
        let mut variables = self.variables.clone();
        let temporary = match level {
            Level::Full => PathBuf::from("/tmp"),
            Level::Landlock | Level::None => private.join("tmp"),
        };
        variables.insert("TMPDIR".to_owned(), temporary.to_string_lossy().into_owned());
        Ok(Order {
            level,
            program: Vec::new(),
            variables: variables.into_iter().collect(),
            root: root.to_owned(),
            repository: self.repository(level, root),
            directory: root.to_owned(),
            private: private.to_owned(),
            home: self.home.clone(),
            toolchains: self.toolchains.clone(),
            hidden: self.hidden.clone(),
            grace_ms: locum_core::limits::COMMAND_GRACE_MS,
            has_entrance: false,
            has_sentry: false,
            files: StandardFiles::Output,
        })
    }

    /// What git reads of a project that is outside of it.
    fn repository(&self, level: Level, root: &Path) -> Vec<PathBuf> {
        let mut found = repository::elsewhere(root, level);
        found.retain(|found| !self.hidden.iter().any(|hidden| found.starts_with(hidden)));
        found
    }

    /// A root around everything that must be hidden would hide nothing.
    fn check_root(&self, level: Level, root: &Path) -> Result<(), String> {
        let around = hiding::SYSTEM.iter().chain(&["/tmp", "/var/tmp", "/proc", "/dev", "/sys"]).map(PathBuf::from);
        let mut around = around.chain(self.home.clone());
        match around.find(|path| level != Level::None && path.starts_with(root)) {
            Some(path) => Err(format!(
                "the project's root {} is or holds {}, which commands must not change: work in a directory below it",
                root.display(),
                path.display()
            )),
            None => Ok(()),
        }
    }

    /// Which levels this system can do: for each, nothing or the sentence with which commands would be refused.
    /// Dropping the future ends what was tried.
    pub async fn probe(&self) -> Vec<(Level, Option<String>)> {
        let mut found = Vec::new();
        for level in Level::ALL {
            found.push((level, self.try_level(level).await.err()));
        }
        found
    }

    async fn try_level(&self, level: Level) -> Result<(), String> {
        let place = self.private.join(format!("probe-{}", ulid::Ulid::generate()));
        let tried = async {
            run::make_private(&place).map_err(|error| format!("{}: {error}", place.display()))?;
            // An empty project, which is not inside what is hidden.
            let root = place.join("tmp");
            let mut order = self.order(level, &root, &place)?;
            order.hidden.clear();
            order.program = vec!["/bin/true".to_owned()];
            match Running::start(self, &order, run::OutputTo::Nowhere).await?.report().await.end {
                End::Exit(0) => Ok(()),
                End::Refused(why) => Err(why),
                End::Exit(code) | End::Signal(code) => Err(format!("a command that does nothing ended with {code}")),
            }
        };
        let tried = tried.await;
        // A directory that cannot be removed is empty, and private.
        std::fs::remove_dir_all(&place).ok();
        tried
    }
}

/// Removes the empty directories that commands which were killed left in a project, and says how many.
pub(crate) fn clear_left(root: &Path) -> usize {
    #[cfg(target_os = "linux")]
    let count = protected::clear_left(root);
    // Nothing is launched on other systems.
    #[cfg(not(target_os = "linux"))]
    let count = root.components().count().min(0);
    count
}

/// A path without links, also where its end does not exist yet.
fn resolved(path: &Path) -> PathBuf {
    match (path.canonicalize(), path.parent(), path.file_name()) {
        (Ok(path), _, _) => path,
        (Err(_), Some(parent), Some(name)) => resolved(parent).join(name),
        (Err(_), _, _) => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sandbox() -> Sandbox {
        let environment = Environment::new([("HOME".to_owned(), "/usr/share".to_owned())], "/".into());
        Sandbox::new(Level::Full, &environment, &Places::below(Path::new("/nowhere")))
    }

    #[test]
    fn a_root_around_everything_is_refused_unless_there_is_no_sandbox() {
        for root in ["/", "/usr", "/etc", "/tmp", "/usr/share"] {
            let error = sandbox().order(Level::Full, Path::new(root), Path::new("/p")).unwrap_err();
            assert!(error.contains("work in a directory below it"), "{error}");
            assert!(sandbox().order(Level::None, Path::new(root), Path::new("/p")).is_ok());
        }
        for root in ["/srv/project", "/usr/share/project", "/tmp/project"] {
            assert!(sandbox().order(Level::Full, Path::new(root), Path::new("/p")).is_ok(), "{root}");
        }
    }

    #[test]
    fn levels_are_read_as_they_are_written() {
        for level in Level::ALL {
            assert_eq!(level.to_string().parse(), Ok(level));
        }
        assert!("off".parse::<Level>().unwrap_err().contains("full, landlock or none"));
    }
}
