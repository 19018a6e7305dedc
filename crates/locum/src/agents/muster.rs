//! All agents as they are at one moment: those that come with locum, those in every place, in order, and what could
//! not be read. A project's are among those that may run only if the project is trusted.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use locum_core::admission::receipt::agent_origin;
use locum_core::agent::fallbacks::FallbackLayer;
use locum_core::agent::{AgentSpec, Fallbacks, Roster};
use serde::{Deserialize, Serialize};

use super::files::{Walked, read_directory};
use super::gathering::{FoundAgent, FoundDefaults, Gathering, Standing};
use super::places::{Place, PlaceKind, Search};
use super::project::{ProjectFiles, SETTINGS_FILE};
use super::stamps::Stamps;
use super::trust::{Trust, TrustList};
use super::written::WrittenFields;
use super::{FileProblem, bundled, problem};
use crate::redact::Redactor;

/// The agents as they were at one moment.
#[derive(Debug, Clone, Default)]
pub struct Muster {
    /// Who can be asked, who is not trusted, and who is in another one's shadow.
    pub roster: Roster,
    /// The files that could not be read. They do not affect the others.
    pub problems: Vec<FileProblem>,
    /// The project and how it stands; none where no files were looked for.
    pub project: Option<ProjectStanding>,
    /// The fallbacks in force.
    pub fallbacks: Fallbacks,
    /// Where what a receipt says is from an agent or a `_defaults.md` is written, by the receipt's word for it.
    pub origins: BTreeMap<String, Arc<WrittenFields>>,
    /// What was looked at, so that a change can be noticed.
    pub(crate) stamps: Stamps,
}

/// A project and how it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectStanding {
    /// Its root.
    pub root: PathBuf,
    /// Whether what it says is in force.
    pub trust: Trust,
    /// What it is, as one number.
    pub hash: String,
}

impl Muster {
    /// Exactly these agents, without looking at files.
    pub(crate) fn of(roster: Roster) -> Self {
        Self { roster, ..Self::default() }
    }

    /// Looks at every place, on top of the agents of an application.
    pub(crate) fn look(search: &Search, application: &Roster, redactor: &Redactor) -> Self {
        let mut looking = Looking { gathering: Gathering::default(), paths: Vec::new() };
        let mut muster = Self::of(application.clone());
        if search.bundled {
            for agent in bundled() {
                muster.roster.insert(agent);
            }
        }
        for agent in muster.roster.iter() {
            looking.gathering.know(AgentSpec::clone(agent));
        }
        for place in &search.user {
            looking.take(place, read_directory(&place.directory, None), Standing::MayRun);
        }
        muster.project = Some(looking.take_project(search));
        for place in &search.named {
            if !place.directory.is_dir() {
                looking.gathering.complain(problem(&place.directory, "no such directory".to_owned()));
            }
            looking.take(place, read_directory(&place.directory, None), Standing::MayRun);
        }
        looking.paths.push(search.trust_file.clone());
        muster.stamps = Stamps::of(looking.paths);
        muster.settle(looking.gathering, redactor);
        muster
    }

    /// Takes over what was gathered. What an agent is becomes part of every task's log: secrets are taken out here.
    fn settle(&mut self, gathering: Gathering, redactor: &Redactor) {
        let (agents, defaults, problems) = gathering.resolve();
        self.problems = problems;
        for FoundAgent { agent, standing, written } in agents {
            let path = agent.source.path().map(PathBuf::from).unwrap_or_default();
            self.origins.insert(agent_origin(&agent), written);
            match (redactor.value(agent), standing) {
                (Ok(agent), Standing::MayRun) => self.roster.insert(agent),
                (Ok(agent), Standing::Untrusted) => self.roster.insert_untrusted(agent),
                (Err(_), _) => self.problems.push(problem(&path, "the agent's name holds a secret".to_owned())),
            }
        }
        for FoundDefaults { kind, path, defaults, written } in defaults {
            let whose = match kind {
                PlaceKind::Project => "project",
                PlaceKind::User | PlaceKind::Package | PlaceKind::Named => "user",
            };
            let origin = format!("{whose} {}", path.display());
            self.origins.insert(origin.clone(), Arc::new(written));
            self.fallbacks.push(FallbackLayer { origin, defaults });
        }
    }
}

struct Looking {
    gathering: Gathering,
    /// Everything that was looked at, whether it is there or not.
    paths: Vec<PathBuf>,
}

impl Looking {
    fn take_project(&mut self, search: &Search) -> ProjectStanding {
        let files = ProjectFiles::read(search);
        self.paths.push(search.root.join(SETTINGS_FILE));
        let trust = judge(&files, &search.trust_file).unwrap_or_else(|problem| {
            self.gathering.complain(problem);
            Trust::Untrusted
        });
        let standing = if trust.is_in_force() { Standing::MayRun } else { Standing::Untrusted };
        for (place, walked) in files.places {
            if search.is_named_by_user(&place) {
                continue;
            }
            self.take(&place, walked, standing);
        }
        ProjectStanding { root: files.root, trust, hash: files.hash }
    }

    fn take(&mut self, place: &Place, walked: Walked, standing: Standing) {
        self.paths.push(place.directory.clone());
        self.paths.extend(walked.directories.iter().cloned());
        self.paths.extend(walked.defaults.iter().chain(&walked.agents).map(|file| file.path.clone()));
        self.gathering.take(place, walked, standing);
    }
}

/// How a project with these files stands.
pub(crate) fn judge(files: &ProjectFiles, trust_file: &Path) -> Result<Trust, FileProblem> {
    if files.is_empty() {
        return Ok(Trust::Nothing);
    }
    let judged = TrustList::at(trust_file).judge(&files.root, &files.hash);
    judged.map_err(|error| problem(trust_file, error.to_string()))
}
