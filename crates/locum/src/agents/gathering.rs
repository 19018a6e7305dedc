//! From files to agents: what each place holds is read in order, then agents that build upon others are completed. A
//! file that cannot be used is named and harms no other.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use locum_core::agent::defaults::AgentDefaults;
use locum_core::agent::markdown::Reading;
use locum_core::agent::note::{Broken, Place as At};
use locum_core::agent::{AgentSpec, Origins, Source, defaults, extends, markdown};
use locum_core::ids::AgentName;

use super::files::{FileRead, Walked};
use super::places::{Place, PlaceKind};
use super::{FileProblem, problem};

/// Whether what a place holds is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    MayRun,
    Untrusted,
}

/// An agent of a file, complete.
#[derive(Debug, Clone)]
pub(crate) struct FoundAgent {
    pub(crate) agent: AgentSpec,
    pub(crate) standing: Standing,
    /// Where each field was written.
    pub(crate) origins: Origins,
}

/// What a `_defaults.md` says.
#[derive(Debug, Clone)]
pub(crate) struct FoundDefaults {
    pub(crate) kind: PlaceKind,
    pub(crate) path: PathBuf,
    pub(crate) defaults: AgentDefaults,
}

/// Everything that was read so far, lowest first.
#[derive(Debug, Default)]
pub(crate) struct Gathering {
    /// Agents that may be built upon, as they are said; later ones of a name replace earlier ones.
    known: BTreeMap<AgentName, Arc<AgentSpec>>,
    /// The same among those of a project that is not trusted, which only its own may build upon.
    untrusted: BTreeMap<AgentName, Arc<AgentSpec>>,
    read: Vec<(Reading, Standing)>,
    defaults: Vec<FoundDefaults>,
    problems: Vec<FileProblem>,
}

impl Gathering {
    /// An agent that did not come from a file.
    pub(crate) fn know(&mut self, agent: AgentSpec) {
        self.known.insert(agent.name.clone(), Arc::new(agent));
    }

    /// Something that could not be used.
    pub(crate) fn complain(&mut self, problem: FileProblem) {
        self.problems.push(problem);
    }

    /// What a place holds. Fallbacks of a project that is not trusted are not read at all.
    pub(crate) fn take(&mut self, place: &Place, walked: Walked, standing: Standing) {
        self.problems.extend(walked.unread.into_iter().map(|(path, why)| problem(&path, why)));
        if let Some(file) = walked.defaults.filter(|_| standing == Standing::MayRun) {
            match read_defaults(&file) {
                Ok(defaults) => self.defaults.push(FoundDefaults { kind: place.kind, path: file.path, defaults }),
                Err(problem) => self.problems.push(problem),
            }
        }
        for file in walked.agents {
            match read_agent(&file, place) {
                Ok(reading) => self.take_agent(reading, standing),
                Err(problem) => self.problems.push(problem),
            }
        }
    }

    fn take_agent(&mut self, mut reading: Reading, standing: Standing) {
        let agent = &mut reading.agent;
        // One that builds upon its own name means the one in whose place it is.
        if agent.extends.as_ref() == Some(&agent.name)
            && let Some(lower) = self.find(&agent.name, standing)
        {
            *agent = AgentSpec { extends: lower.extends.clone(), ..extends::inherit(agent.clone(), &lower) };
        }
        let known = match standing {
            Standing::MayRun => &mut self.known,
            Standing::Untrusted => &mut self.untrusted,
        };
        known.insert(agent.name.clone(), Arc::new(agent.clone()));
        self.read.push((reading, standing));
    }

    fn find(&self, name: &AgentName, standing: Standing) -> Option<Arc<AgentSpec>> {
        let own = match standing {
            Standing::MayRun => None,
            Standing::Untrusted => self.untrusted.get(name),
        };
        own.or_else(|| self.known.get(name)).cloned()
    }

    /// Completes the agents that build upon others.
    pub(crate) fn resolve(mut self) -> (Vec<FoundAgent>, Vec<FoundDefaults>, Vec<FileProblem>) {
        let mut agents = Vec::with_capacity(self.read.len());
        for (reading, standing) in std::mem::take(&mut self.read) {
            match extends::resolve(&reading.agent, |name| self.find(name, standing)) {
                Ok(agent) => agents.push(FoundAgent { agent, standing, origins: reading.origins }),
                Err(error) => {
                    let at = reading.origins.get("extends").map_or(At::START, |origin| origin.at);
                    let file = reading.agent.source.path().map(PathBuf::from).unwrap_or_default();
                    let message = error.to_string();
                    self.problems.push(FileProblem { file, line: at.line, column: at.column, message });
                }
            }
        }
        (agents, self.defaults, self.problems)
    }
}

/// One agent of a file that was read.
pub(crate) fn read_agent(file: &FileRead, place: &Place) -> Result<Reading, FileProblem> {
    let path = &file.path;
    let bytes = file.bytes.as_ref().map_err(|why| problem(path, why.clone()))?;
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let shown = path.to_string_lossy().into_owned();
    let source = match place.kind {
        PlaceKind::Package => Source::Package(shown),
        PlaceKind::User => Source::User(shown),
        PlaceKind::Project => Source::Project(shown),
        PlaceKind::Named => Source::Directory(shown),
    };
    markdown::read(bytes, &stem, source, place.dialect).map_err(|broken| located(path, &broken))
}

/// The fallbacks of a file that was read.
pub(crate) fn read_defaults(file: &FileRead) -> Result<AgentDefaults, FileProblem> {
    let bytes = file.bytes.as_ref().map_err(|why| problem(&file.path, why.clone()))?;
    let reading = defaults::read(bytes).map_err(|broken| located(&file.path, &broken))?;
    Ok(reading.defaults)
}

fn located(path: &Path, broken: &Broken) -> FileProblem {
    let first = broken.first();
    FileProblem { file: path.to_owned(), line: first.at.line, column: first.at.column, message: first.message.clone() }
}
