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
    /// The project's directories, which trust is about.
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
        Self {
            bundled: replaced.is_none(),
            project: project_places(environment, places, root),
            user,
            root: root.to_owned(),
            named: named.iter().map(|path| named_place(here(path))).collect(),
            trust_file: places.trust_file(),
        }
    }

    /// Every place, lowest first.
    pub fn all(&self) -> impl Iterator<Item = &Place> {
        self.user.iter().chain(&self.project).chain(&self.named)
    }

    /// Whether a place of the project is read as one that the user named.
    pub(crate) fn is_named_by_user(&self, place: &Place) -> bool {
        self.user.iter().any(|user| is_same(user, place))
    }
}

fn user_places(environment: &Environment, places: &Places, packages: &[String]) -> Vec<Place> {
    let package = |path: &String| Place {
        kind: PlaceKind::Package,
        dialect: Dialect::Native,
        directory: from_home(path, environment, &places.config).join("agents"),
    };
    packages.iter().map(package).chain(own_places(environment, places)).collect()
}

/// The user's own directories.
fn own_places(environment: &Environment, places: &Places) -> Vec<Place> {
    let user = |(directory, dialect)| Place { kind: PlaceKind::User, dialect, directory };
    let in_home = environment.home().into_iter().flat_map(|home| USER.map(|(path, of)| (home.join(path), of)));
    in_home.chain([(places.config.join("agents"), Dialect::Native)]).map(user).collect()
}

/// The directories of a project, lowest first, without those that are the user's own because the project is the home
/// directory. What trust is about must be the same whoever asks, so it depends on nothing else.
fn project_places(environment: &Environment, places: &Places, root: &Path) -> Vec<Place> {
    let own = own_places(environment, places);
    let all = PROJECT.map(|(path, dialect)| Place { kind: PlaceKind::Project, dialect, directory: root.join(path) });
    all.into_iter().filter(|place| !own.iter().any(|own| is_same(own, place))).collect()
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
