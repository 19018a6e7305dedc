//! From files to agents: what each place holds is read in order, then agents that build upon others are completed. A
//! file that cannot be used is named and harms no other.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use locum_core::agent::defaults::{AgentDefaults, DefaultsReading};
use locum_core::agent::markdown::Reading;
use locum_core::agent::note::{Broken, Place as At};
use locum_core::agent::{AgentSpec, Source, defaults, extends, markdown};
use locum_core::ids::AgentName;

use super::files::{FileRead, Walked};
use super::places::{Place, PlaceKind};
use super::written::{self, WrittenFields};
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
    /// Where each field is written.
    pub(crate) written: Arc<WrittenFields>,
}

/// What a `_defaults.md` says.
#[derive(Debug, Clone)]
pub(crate) struct FoundDefaults {
    pub(crate) kind: PlaceKind,
    pub(crate) path: PathBuf,
    pub(crate) defaults: AgentDefaults,
    /// Where each field is written.
    pub(crate) written: WrittenFields,
}

/// Everything that was read so far, lowest first.
#[derive(Debug, Default)]
pub(crate) struct Gathering {
    /// Agents that may be built upon, as they are said; later ones of a name replace earlier ones.
    known: BTreeMap<AgentName, Known>,
    /// The same among those of a project that is not trusted, which only its own may build upon.
    untrusted: BTreeMap<AgentName, Known>,
    read: Vec<(Known, Standing)>,
    defaults: Vec<FoundDefaults>,
    problems: Vec<FileProblem>,
}

/// An agent as it is said.
#[derive(Debug, Clone)]
struct Known {
    agent: Arc<AgentSpec>,
    /// Where its fields are written; none for an agent that did not come from a file.
    written: Option<Arc<WrittenFields>>,
}

impl Known {
    fn written(&self) -> Arc<WrittenFields> {
        match &self.written {
            Some(fields) => Arc::clone(fields),
            None => Arc::new(written::without_file(&self.agent)),
        }
    }
}

impl Gathering {
    /// An agent that did not come from a file.
    pub(crate) fn know(&mut self, agent: AgentSpec) {
        self.known.insert(agent.name.clone(), Known { agent: Arc::new(agent), written: None });
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
                Ok(DefaultsReading { defaults, origins, .. }) => {
                    let written = written::in_file(&file.path, &origins);
                    self.defaults.push(FoundDefaults { kind: place.kind, path: file.path, defaults, written });
                }
                Err(problem) => self.problems.push(problem),
            }
        }
        for file in walked.agents {
            match read_agent(&file, place) {
                Ok(reading) => self.take_agent(&file.path, reading, standing),
                Err(problem) => self.problems.push(problem),
            }
        }
    }

    fn take_agent(&mut self, path: &Path, reading: Reading, standing: Standing) {
        let Reading { mut agent, origins, .. } = reading;
        let mut fields = written::in_file(path, &origins);
        // One that builds upon its own name means the one in whose place it is.
        if agent.extends.as_ref() == Some(&agent.name)
            && let Some(lower) = self.find(&agent.name, standing)
        {
            written::inherit(&mut fields, &agent.name, &lower.written());
            let lower = &lower.agent;
            agent = AgentSpec { extends: lower.extends.clone(), ..extends::inherit(agent, lower) };
        }
        let read = Known { agent: Arc::new(agent), written: Some(Arc::new(fields)) };
        let known = match standing {
            Standing::MayRun => &mut self.known,
            Standing::Untrusted => &mut self.untrusted,
        };
        known.insert(read.agent.name.clone(), read.clone());
        self.read.push((read, standing));
    }

    fn find(&self, name: &AgentName, standing: Standing) -> Option<Known> {
        let own = match standing {
            Standing::MayRun => None,
            Standing::Untrusted => self.untrusted.get(name),
        };
        own.or_else(|| self.known.get(name)).cloned()
    }

    /// Completes the agents that build upon others.
    pub(crate) fn resolve(mut self) -> (Vec<FoundAgent>, Vec<FoundDefaults>, Vec<FileProblem>) {
        let mut agents = Vec::with_capacity(self.read.len());
        for (read, standing) in std::mem::take(&mut self.read) {
            match extends::resolve(&read.agent, |name| self.find(name, standing).map(|known| known.agent)) {
                Ok(agent) => agents.push(FoundAgent { agent, standing, written: self.written(&read, standing) }),
                Err(error) => {
                    let at = read.written().get("extends").and_then(|written| written.place.clone());
                    let file = read.agent.source.path().map(PathBuf::from).unwrap_or_default();
                    let (file, at) = at.map_or((file, At::START), |(file, at)| (file.to_path_buf(), at));
                    let message = error.to_string();
                    self.problems.push(FileProblem { file, line: at.line, column: at.column, message });
                }
            }
        }
        (agents, self.defaults, self.problems)
    }

    /// Where the fields of an agent are written whose way to its last base is known to end.
    fn written(&self, read: &Known, standing: Standing) -> Arc<WrittenFields> {
        let mut fields = read.written();
        let mut next = read.agent.extends.clone();
        while let Some(base) = next.and_then(|name| self.find(&name, standing)) {
            written::inherit(Arc::make_mut(&mut fields), &base.agent.name, &base.written());
            next = base.agent.extends.clone();
        }
        fields
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
pub(crate) fn read_defaults(file: &FileRead) -> Result<DefaultsReading, FileProblem> {
    let bytes = file.bytes.as_ref().map_err(|why| problem(&file.path, why.clone()))?;
    defaults::read(bytes).map_err(|broken| located(&file.path, &broken))
}

fn located(path: &Path, broken: &Broken) -> FileProblem {
    let first = broken.first();
    FileProblem { file: path.to_owned(), line: first.at.line, column: first.at.column, message: first.message.clone() }
}
