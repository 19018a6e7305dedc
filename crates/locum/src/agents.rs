//! Loading agents: those that come with locum, and those in directories.
//!
//! ```
//! use locum::Desk;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! let file = "---\nname: poet\ndescription: Writes poems\ntools: []\n---\nYou write poems.\n";
//! std::fs::write(directory.path().join("poet.md"), file)?;
//! let (agents, problems) = locum::agents::in_directory(directory.path());
//! assert!(problems.is_empty());
//! let desk = agents.into_iter().fold(Desk::builder(), |builder, agent| builder.agent(agent)).build()?;
//! assert!(desk.agent("poet").is_some());
//! # Ok(())
//! # }
//! ```

mod create;
mod lint;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use locum_core::agent::markdown::Reading;
use locum_core::agent::note::{Broken, Place};
use locum_core::agent::{AgentSpec, Dialect, Source, extends, markdown};
use locum_core::ids::AgentName;
use locum_core::limits;

pub use create::{CreateError, create};
pub use lint::{Lint, LintedFile, dialect_of};

macro_rules! bundled {
    ($($name:literal),* $(,)?) => {
        /// The agents that come with locum: name and text.
        const BUNDLED: &[(&str, &str)] = &[$(($name, include_str!(concat!("agents/", $name, ".md")))),*];
    };
}

bundled!(
    "architect",
    "code-reviewer",
    "debug",
    "explore",
    "explorer",
    "locum-expert",
    "planner",
    "refactor",
    "researcher",
    "reviewer",
    "scout",
    "test-writer",
    "worker",
    "writer",
);

/// An agent file that could not be read: the others are not affected.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct FileProblem {
    /// The file.
    pub file: PathBuf,
    /// Where in it, from 1.
    pub line: usize,
    /// Where in the line, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
}

/// The agents that come with locum.
pub fn bundled() -> Vec<AgentSpec> {
    BUNDLED.iter().filter_map(|(name, text)| read_bundled(name, text).ok()).collect()
}

/// The agents in a directory and its subdirectories, by path, and what could not be read. Files that begin with `_`
/// or `.` are not agents.
pub fn in_directory(directory: &Path) -> (Vec<AgentSpec>, Vec<FileProblem>) {
    let mut readings = Vec::new();
    let mut problems = Vec::new();
    for entry in ignore::WalkBuilder::new(directory)
        .standard_filters(false)
        .max_depth(Some(8))
        .sort_by_file_name(Ord::cmp)
        .build()
    {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                problems.push(problem(directory, error.to_string()));
                continue;
            }
        };
        let path = entry.path();
        let name = entry.file_name().to_string_lossy();
        if !name.ends_with(".md") || name.starts_with(['_', '.']) {
            continue;
        }
        match read(path) {
            Ok(reading) => readings.push((path.to_owned(), reading)),
            Err(problem) => problems.push(problem),
        }
    }
    let agents = resolve(readings, &mut problems);
    (agents, problems)
}

/// Gives agents that build upon others what they leave out: upon those of the same directory, else upon bundled ones.
fn resolve(readings: Vec<(PathBuf, Reading)>, problems: &mut Vec<FileProblem>) -> Vec<AgentSpec> {
    if readings.iter().all(|(_, reading)| reading.agent.extends.is_none()) {
        return readings.into_iter().map(|(_, reading)| reading.agent).collect();
    }
    let known: BTreeMap<AgentName, Arc<AgentSpec>> = bundled()
        .into_iter()
        .chain(readings.iter().map(|(_, reading)| reading.agent.clone()))
        .map(|agent| (agent.name.clone(), Arc::new(agent)))
        .collect();
    let mut agents = Vec::new();
    for (path, reading) in readings {
        match extends::resolve(&reading.agent, |name| known.get(name).cloned()) {
            Ok(agent) => agents.push(agent),
            Err(error) => {
                let at = reading.origins.get("extends").map_or(Place::START, |origin| origin.at);
                let (line, column) = (at.line, at.column);
                problems.push(FileProblem { file: path, line, column, message: error.to_string() });
            }
        }
    }
    agents
}

fn read(path: &Path) -> Result<Reading, FileProblem> {
    let bytes = bytes_of(path).map_err(|why| problem(path, why))?;
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let source = Source::Directory(path.to_string_lossy().into_owned());
    markdown::read(&bytes, &stem, source, Dialect::Native).map_err(|broken| located(path, &broken))
}

/// The bytes of a regular file, at most one more than an agent file may have.
fn bytes_of(path: &Path) -> Result<Vec<u8>, String> {
    let told = |error: std::io::Error| error.to_string();
    // Opening a pipe would wait for a writer that never comes.
    if !path.symlink_metadata().map_err(told)?.is_file() {
        return Err("not a regular file".to_owned());
    }
    let file = std::fs::File::open(path).map_err(told)?;
    let mut bytes = Vec::new();
    file.take(limits::AGENT_FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(told)?;
    Ok(bytes)
}

fn read_bundled(name: &str, text: &str) -> Result<AgentSpec, Broken> {
    markdown::read(text.as_bytes(), name, Source::Bundled, Dialect::Native).map(|reading| reading.agent)
}

fn located(path: &Path, broken: &Broken) -> FileProblem {
    let first = broken.first();
    FileProblem { file: path.to_owned(), line: first.at.line, column: first.at.column, message: first.message.clone() }
}

fn problem(path: &Path, message: String) -> FileProblem {
    FileProblem { file: path.to_owned(), line: 1, column: 1, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bundled_agent_can_be_read_under_its_own_name() {
        for (name, text) in BUNDLED {
            let agent = read_bundled(name, text).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(agent.name.as_str(), *name);
            assert!(agent.description.chars().count() <= 160, "{name}");
        }
        assert_eq!(bundled().len(), BUNDLED.len());
    }

    #[test]
    fn a_broken_file_is_named_and_does_not_break_the_others() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
        write("good.md", "---\nname: good\ndescription: d\n---\nbody");
        write("broken.md", "---\nname: broken\ndescription: [\n---\nbody");
        write("_defaults.md", "not an agent");
        write("notes.txt", "not an agent");
        std::fs::create_dir(directory.path().join("inner")).unwrap();
        write("inner/deep.md", "---\nname: deep\ndescription: d\n---\nbody");
        let (agents, problems) = in_directory(directory.path());
        let names: Vec<&str> = agents.iter().map(|agent| agent.name.as_str()).collect();
        assert_eq!(names, ["good", "deep"]);
        assert_eq!(problems.len(), 1);
        assert!(problems[0].file.ends_with("broken.md"));
        assert!(problems[0].line >= 3, "{:?}", problems[0]);
    }

    #[test]
    fn an_agent_builds_upon_one_of_its_directory_or_a_bundled_one() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
        write("base.md", "---\ndescription: d\nmaxTurns: 3\n---\nBase.");
        write("leaf.md", "---\nextends: base\n---\nLeaf.");
        write("looker.md", "---\nextends: explore\ndescription: Looks\n---\nLook.");
        write("lost.md", "---\ndescription: d\nextends: nobody\n---\nLost.");
        let (agents, problems) = in_directory(directory.path());
        let names: Vec<&str> = agents.iter().map(|agent| agent.name.as_str()).collect();
        assert_eq!(names, ["base", "leaf", "looker"]);
        assert_eq!((agents[1].prompt.as_str(), agents[1].max_turns), ("Base.\n\nLeaf.", Some(3)));
        assert_eq!(agents[2].model.as_deref(), Some("auto-cheap"));
        assert_eq!((problems.len(), problems[0].line, problems[0].column), (1, 3, 1));
        assert!(problems[0].message.contains("`nobody`"), "{}", problems[0].message);
    }
}
