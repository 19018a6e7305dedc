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

use std::io::Read;
use std::path::{Path, PathBuf};

use locum_core::agent::{AgentSpec, Source, markdown};
use locum_core::limits;

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
    BUNDLED.iter().filter_map(|(name, text)| markdown::parse(text, name, Source::Bundled).ok()).collect()
}

/// The agents in a directory and its subdirectories, by path, and what could not be read. Files that begin with `_`
/// or `.` are not agents.
pub fn in_directory(directory: &Path) -> (Vec<AgentSpec>, Vec<FileProblem>) {
    let mut agents = Vec::new();
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
            Ok(agent) => agents.push(agent),
            Err(problem) => problems.push(problem),
        }
    }
    (agents, problems)
}

fn read(path: &Path) -> Result<AgentSpec, FileProblem> {
    let told = |message: String| problem(path, message);
    let metadata = path.symlink_metadata().map_err(|error| told(error.to_string()))?;
    // Opening a pipe would wait for a writer that never comes.
    if !metadata.is_file() {
        return Err(told("not a regular file".to_owned()));
    }
    let file = std::fs::File::open(path).map_err(|error| told(error.to_string()))?;
    let mut bytes = Vec::new();
    file.take(limits::AGENT_FILE_BYTES_MAX as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| told(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| told("the file is not UTF-8".to_owned()))?;
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let source = Source::Directory(path.to_string_lossy().into_owned());
    markdown::parse(&text, &stem, source).map_err(|error| FileProblem {
        file: path.to_owned(),
        line: error.line,
        column: error.column,
        message: error.message,
    })
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
            let agent = markdown::parse(text, name, Source::Bundled).unwrap_or_else(|error| panic!("{name}: {error}"));
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
}
