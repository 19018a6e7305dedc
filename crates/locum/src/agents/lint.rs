//! Looking at agent files without running anything: one file, a directory, or every place where agents are looked for.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use locum_core::agent::lint::{self, Linted, Question};
use locum_core::agent::note::{Note, Place as At, Severity, Topic};
use locum_core::agent::{AgentSpec, Dialect, extends, roster};
use locum_core::ids::AgentName;
use serde::Serialize;

use super::bundled;
use super::files::{self, DEFAULTS_FILE, FileRead};
use super::places::{PlaceKind, Search};

/// What is asked about files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lint {
    /// The program whose view is wanted beside locum's own.
    pub target: Option<Dialect>,
    /// Whether warnings count as errors.
    pub strict: bool,
    /// Tools that exist beside locum's own.
    pub tools: Vec<String>,
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

/// A file and whose conventions it follows.
type Candidate = (FileRead, Dialect);

impl Lint {
    /// Looks at every place where agents are looked for.
    pub fn places(&self, search: &Search) -> Vec<LintedFile> {
        self.look(in_places(search), search)
    }

    /// Looks at one file, or at the files of a directory. Those that it builds upon may be anywhere.
    ///
    /// # Errors
    ///
    /// There is nothing at the path.
    pub fn path(&self, path: &Path, search: &Search) -> Result<Vec<LintedFile>, String> {
        if path.is_dir() {
            return Ok(self.look(in_directory(path, None, dialect_of), search));
        }
        if path.symlink_metadata().is_err() {
            return Err(format!("{}: there is no such file", path.display()));
        }
        let file = FileRead { path: path.to_owned(), bytes: files::read_file(path) };
        Ok(self.look(vec![(file, dialect_of(path))], search))
    }

    fn look(&self, candidates: Vec<Candidate>, search: &Search) -> Vec<LintedFile> {
        let mut all: Vec<(PathBuf, Linted)> = candidates.into_iter().map(|candidate| self.file(candidate)).collect();
        note_namesakes(&mut all);
        check_bases(&mut all, search);
        let finish = |(path, mut linted): (PathBuf, Linted)| {
            lint::know_tools(&mut linted.notes, &self.tools);
            if self.strict {
                lint::be_strict(&mut linted.notes);
            }
            linted.notes.sort_by_key(|note| (note.at, note.severity));
            LintedFile { path, agent: linted.name().cloned(), notes: linted.notes }
        };
        all.into_iter().map(finish).collect()
    }

    fn file(&self, (FileRead { path, bytes }, dialect): Candidate) -> (PathBuf, Linted) {
        let linted = match bytes {
            Err(why) => Linted { reading: None, notes: vec![Note::error(At::START, Topic::File, why)] },
            Ok(bytes) if is_defaults(&path) => lint::defaults_file(&bytes, self.target),
            Ok(bytes) => lint::agent(&bytes, &stem_of(&path), Question { dialect, target: self.target }),
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

/// The files of every place, as those who load agents read them.
fn in_places(search: &Search) -> Vec<Candidate> {
    let mut all = Vec::new();
    for place in search.all() {
        let within = (place.kind == PlaceKind::Project).then_some(search.root.as_path());
        if place.kind == PlaceKind::Named && !place.directory.is_dir() {
            all.push((unread(place.directory.clone(), "no such directory".to_owned()), place.dialect));
        }
        all.extend(in_directory(&place.directory, within, |_| place.dialect));
    }
    all
}

fn in_directory(directory: &Path, within: Option<&Path>, dialect: impl Fn(&Path) -> Dialect) -> Vec<Candidate> {
    let walked = files::read_directory(directory, within);
    let unread = walked.unread.into_iter().map(|(path, why)| unread(path, why));
    let files = walked.defaults.into_iter().chain(walked.agents).chain(unread);
    let with_dialect = |file: FileRead| {
        let dialect = dialect(&file.path);
        (file, dialect)
    };
    files.map(with_dialect).collect()
}

fn unread(path: PathBuf, why: String) -> FileRead {
    FileRead { path, bytes: Err(why) }
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
            let at = reading.and_then(|reading| reading.origins.get("name")).map_or(At::START, |origin| origin.at);
            linted.notes.push(Note::warning(at, Topic::Value, message));
        }
    }
}

/// Whether what agents build upon is there: among these files, in the places where agents are, or bundled.
fn check_bases(files: &mut [(PathBuf, Linted)], search: &Search) {
    let extending = |linted: &Linted| linted.reading.as_ref().is_some_and(|reading| reading.agent.extends.is_some());
    if !files.iter().any(|(_, linted)| extending(linted)) {
        return;
    }
    let plain = Lint::default();
    let elsewhere: Vec<(PathBuf, Linted)> =
        in_places(search).into_iter().map(|candidate| plain.file(candidate)).collect();
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
        let at = reading.origins.get("extends").map_or(At::START, |origin| origin.at);
        linted.notes.push(Note::error(at, Topic::Value, format!("{error}{hint}")));
    }
}
