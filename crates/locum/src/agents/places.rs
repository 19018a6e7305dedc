//! Where agents are looked for, and in which order: later places win by name. It knows paths and reads nothing.

use std::path::{Path, PathBuf};

use locum_core::agent::Dialect;

use crate::settings::Places;
use crate::settings::environment::{Environment, LOCUM_AGENT_PATH};

/// A directory with agent files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Whose it is.
    pub kind: PlaceKind,
    /// Which system's files are at home there.
    pub dialect: Dialect,
    /// The directory; it need not exist.
    pub directory: PathBuf,
}

/// Whose a directory with agents is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceKind {
    /// A package that the user's settings name.
    Package,
    /// The user's.
    User,
    /// The project's: nothing in it acts before the project is trusted.
    Project,
    /// Named with `--agents` or `LOCUM_AGENT_PATH`.
    Named,
}

/// The directories of other systems in the user's home, lowest first.
const USER: [(&str, Dialect); 4] = [
    (".claude/agents", Dialect::Claude),
    (".acai/subagents", Dialect::Acai),
    (".pi/agent/agents", Dialect::Pi),
    (".tallow/agents", Dialect::Tallow),
];

/// The directories in a project, lowest first.
const PROJECT: [(&str, Dialect); 5] = [
    (".claude/agents", Dialect::Claude),
    (".acai/subagents", Dialect::Acai),
    (".pi/agents", Dialect::Pi),
    (".tallow/agents", Dialect::Tallow),
    (".locum/agents", Dialect::Native),
];

/// Everything that is looked at for agents, lowest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Search {
    /// Whether the agents that come with locum are among them.
    pub bundled: bool,
    /// Packages and the user's own directories, or what `LOCUM_AGENT_PATH` names in their place.
    pub user: Vec<Place>,
    /// The project's root, which trust is about.
    pub root: PathBuf,
    /// The project's directories.
    pub project: Vec<Place>,
    /// The directories that `--agents` names.
    pub named: Vec<Place>,
    /// The list of trusted projects.
    pub trust_file: PathBuf,
}

impl Search {
    /// Where the `locum` command looks: `packages` are those of the user's settings, `named` those of `--agents`.
    pub fn of(environment: &Environment, places: &Places, root: &Path, packages: &[String], named: &[PathBuf]) -> Self {
        let here = |path: &Path| environment.working_directory().map_or_else(|| path.to_owned(), |at| at.join(path));
        let named_place = |path: PathBuf| Place { kind: PlaceKind::Named, dialect: Dialect::Native, directory: path };
        let replaced = environment.get(LOCUM_AGENT_PATH);
        let user = match replaced {
            Some(path) => {
                path.split(':').filter(|part| !part.is_empty()).map(|part| named_place(here(Path::new(part)))).collect()
            }
            None => user_places(environment, places, packages),
        };
        let project = project_places(root).into_iter().filter(|place| !user.iter().any(|user| is_same(user, place)));
        Self {
            bundled: replaced.is_none(),
            project: project.collect(),
            user,
            root: root.to_owned(),
            named: named.iter().map(|path| named_place(here(path))).collect(),
            trust_file: places.trust_file(),
        }
    }
}

fn user_places(environment: &Environment, places: &Places, packages: &[String]) -> Vec<Place> {
    let package = |path: &String| Place {
        kind: PlaceKind::Package,
        dialect: Dialect::Native,
        directory: from_home(path, environment, &places.config).join("agents"),
    };
    let mut all: Vec<Place> = packages.iter().map(package).collect();
    if let Some(home) = environment.home() {
        all.extend(USER.map(|(path, dialect)| Place { kind: PlaceKind::User, dialect, directory: home.join(path) }));
    }
    let own = places.config.join("agents");
    all.push(Place { kind: PlaceKind::User, dialect: Dialect::Native, directory: own });
    all
}

/// The directories of a project, lowest first.
pub(crate) fn project_places(root: &Path) -> Vec<Place> {
    PROJECT.map(|(path, dialect)| Place { kind: PlaceKind::Project, dialect, directory: root.join(path) }).to_vec()
}

/// Whether two places are one directory, as in a home directory that counts as a project.
fn is_same(one: &Place, other: &Place) -> bool {
    one.directory == other.directory
        || matches!((one.directory.canonicalize(), other.directory.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// A path of the user's settings: `~/` is the home directory, and what is relative is so to the settings.
fn from_home(path: &str, environment: &Environment, config: &Path) -> PathBuf {
    match (path.strip_prefix("~/"), environment.home()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => config.join(path),
    }
}
