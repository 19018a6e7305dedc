//! Looking at agent files without running anything: one file, a directory, or every place.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use locum_core::agent::lint::{self, Linted, Question};
use locum_core::agent::note::{Note, Place, Severity, Topic};
use locum_core::agent::{AgentSpec, Dialect, extends, roster};
use locum_core::ids::AgentName;
use serde::Serialize;

use super::{bundled, files};

/// The name of the file with fallbacks for every agent.
const DEFAULTS_FILE: &str = "_defaults.md";

/// How deep directories with agents are looked into: people sort agents into folders, and no deeper.
const DEPTH_MAX: usize = 8;

/// What is asked about files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lint {
    /// The program whose view is wanted beside locum's own.
    pub target: Option<Dialect>,
    /// Whether warnings count as errors.
    pub strict: bool,
}

/// One file and everything worth saying about it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LintedFile {
    /// The file.
    pub path: PathBuf,
    /// The agent, if the file is one.
    pub agent: Option<AgentName>,
    /// What there is to say, by place.
    pub notes: Vec<Note>,
}

impl LintedFile {
    /// How many of its notes matter this much.
    pub fn count(&self, severity: Severity) -> usize {
        self.notes.iter().filter(|note| note.severity == severity).count()
    }
}

impl Lint {
    /// Looks at directories; those that do not exist are empty.
    pub fn places(self, directories: &[PathBuf]) -> Vec<LintedFile> {
        let files = directories.iter().flat_map(|directory| files_in(directory)).collect();
        self.look(files, directories)
    }

    /// Looks at one file, or at the files of a directory. Those that it builds upon may be in `directories`.
    ///
    /// # Errors
    ///
    /// There is nothing at the path.
    pub fn path(self, path: &Path, directories: &[PathBuf]) -> Result<Vec<LintedFile>, String> {
        if path.is_dir() {
            return Ok(self.look(files_in(path), directories));
        }
        if path.symlink_metadata().is_err() {
            return Err(format!("{}: there is no such file", path.display()));
        }
        Ok(self.look(vec![path.to_owned()], directories))
    }

    fn look(self, paths: Vec<PathBuf>, directories: &[PathBuf]) -> Vec<LintedFile> {
        let mut all: Vec<(PathBuf, Linted)> = paths.into_iter().map(|path| self.file(path)).collect();
        note_namesakes(&mut all);
        check_bases(&mut all, directories);
        let finish = |(path, mut linted): (PathBuf, Linted)| {
            if self.strict {
                lint::be_strict(&mut linted.notes);
            }
            linted.notes.sort_by_key(|note| (note.at, note.severity));
            LintedFile { path, agent: linted.name().cloned(), notes: linted.notes }
        };
        all.into_iter().map(finish).collect()
    }

    fn file(self, path: PathBuf) -> (PathBuf, Linted) {
        let linted = match files::read_file(&path) {
            Err(why) => Linted { reading: None, notes: vec![Note::error(Place::START, Topic::File, why)] },
            Ok(bytes) if is_defaults(&path) => lint::defaults_file(&bytes, self.target),
            Ok(bytes) => {
                let question = Question { dialect: dialect_of(&path), target: self.target };
                lint::agent(&bytes, &stem_of(&path), question)
            }
        };
        (path, linted)
    }
}

/// Whose conventions the files around a path follow, by the names of its directories.
pub fn dialect_of(path: &Path) -> Dialect {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let names: Vec<String> = path.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let below = |first: &str, second: &str| names.windows(2).any(|pair| pair[0] == first && pair[1] == second);
    match () {
        () if below(".acai", "subagents") => Dialect::Acai,
        () if below(".claude", "agents") => Dialect::Claude,
        () if below(".tallow", "agents") => Dialect::Tallow,
        () if below(".pi", "agents") || below(".pi", "agent") => Dialect::Pi,
        () => Dialect::Native,
    }
}

/// The agent files and defaults of a directory and those below it, by path.
fn files_in(directory: &Path) -> Vec<PathBuf> {
    let walk = ignore::WalkBuilder::new(directory)
        .standard_filters(false)
        .max_depth(Some(DEPTH_MAX))
        .sort_by_file_name(Ord::cmp)
        .build();
    let is_wanted = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        is_defaults(path) || (name.ends_with(".md") && !name.starts_with(['_', '.']))
    };
    // What cannot be looked at is not there for whoever loads agents either, who says so.
    walk.filter_map(Result::ok)
        .map(ignore::DirEntry::into_path)
        .filter(|path| !path.is_dir())
        .filter(is_wanted)
        .collect()
}

fn is_defaults(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == DEFAULTS_FILE)
}

fn stem_of(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Two files of one directory that claim the same name: only the later one is ever asked.
fn note_namesakes(files: &mut [(PathBuf, Linted)]) {
    let mut seen: BTreeMap<(PathBuf, AgentName), PathBuf> = BTreeMap::new();
    for (path, linted) in files.iter_mut() {
        let Some(name) = linted.name().cloned() else { continue };
        let directory = path.parent().unwrap_or(path).to_owned();
        if let Some(earlier) = seen.insert((directory, name.clone()), path.clone()) {
            let message =
                format!("`{name}` is also the name of the agent in {}, which this one hides", earlier.display());
            let reading = linted.reading.as_ref();
            let at = reading.and_then(|reading| reading.origins.get("name")).map_or(Place::START, |origin| origin.at);
            linted.notes.push(Note::warning(at, Topic::Value, message));
        }
    }
}

/// Whether what agents build upon is there: among these files, in the directories, or bundled.
fn check_bases(files: &mut [(PathBuf, Linted)], directories: &[PathBuf]) {
    let extending = |linted: &Linted| linted.reading.as_ref().is_some_and(|reading| reading.agent.extends.is_some());
    if !files.iter().any(|(_, linted)| extending(linted)) {
        return;
    }
    let plain = Lint::default();
    let elsewhere: Vec<(PathBuf, Linted)> =
        directories.iter().flat_map(|directory| files_in(directory)).map(|path| plain.file(path)).collect();
    let read = |linted: &Linted| linted.reading.as_ref().map(|reading| reading.agent.clone());
    let known: BTreeMap<AgentName, Arc<AgentSpec>> = bundled()
        .into_iter()
        .chain(elsewhere.iter().chain(files.iter()).filter_map(|(_, linted)| read(linted)))
        .map(|agent| (agent.name.clone(), Arc::new(agent)))
        .collect();
    for (_, linted) in files.iter_mut() {
        let Some(reading) = &linted.reading else { continue };
        // An agent that builds upon its own name means the one that it hides.
        if reading.agent.extends.as_ref() == Some(&reading.agent.name) {
            continue;
        }
        let Err(error) = extends::resolve(&reading.agent, |name| known.get(name).cloned()) else { continue };
        let hint = match &error {
            extends::ExtendsError::Unknown(name) => {
                let near = roster::nearest(name.as_str(), known.keys(), AgentName::as_str);
                near.first().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
            }
            extends::ExtendsError::Circle(_) | extends::ExtendsError::TooLong(_) => String::new(),
        };
        let at = reading.origins.get("extends").map_or(Place::START, |origin| origin.at);
        linted.notes.push(Note::error(at, Topic::Value, format!("{error}{hint}")));
    }
}
