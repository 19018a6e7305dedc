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
pub(crate) mod files;
mod gathering;
mod lint;
pub(crate) mod muster;
pub(crate) mod places;
pub(crate) mod project;
mod review;
pub(crate) mod staff;
mod stamps;
pub(crate) mod trust;
mod watch;
mod written;

use std::path::{Path, PathBuf};

use locum_core::agent::note::Broken;
use locum_core::agent::{AgentSpec, Dialect, Source, markdown};

use gathering::{Gathering, Standing};
pub use muster::{Muster, ProjectStanding};
pub use places::{Place, PlaceKind, Search};
pub use review::{Review, ReviewedFile};
pub use trust::{Trust, TrustError, TrustList, TrustedProject};
pub use written::{Written, WrittenFields};

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
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
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

impl std::fmt::Display for FileProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file.display(), self.line, self.column, self.message)
    }
}

/// The agents that come with locum.
pub fn bundled() -> Vec<AgentSpec> {
    BUNDLED.iter().filter_map(|(name, text)| read_bundled(name, text).ok()).collect()
}

/// The agents in a directory and its subdirectories, by path, and what could not be read. Files that begin with `_`
/// or `.` are not agents. Those that build upon others find them in the directory, or among the bundled ones.
pub fn in_directory(directory: &Path) -> (Vec<AgentSpec>, Vec<FileProblem>) {
    let mut gathering = Gathering::default();
    for agent in bundled() {
        gathering.know(agent);
    }
    let place = Place { kind: PlaceKind::Named, dialect: Dialect::Native, directory: directory.to_owned() };
    gathering.take(&place, files::read_directory(directory, None), Standing::MayRun);
    let (found, _, problems) = gathering.resolve();
    (found.into_iter().map(|found| found.agent).collect(), problems)
}

fn read_bundled(name: &str, text: &str) -> Result<AgentSpec, Broken> {
    markdown::read(text.as_bytes(), name, Source::Bundled, Dialect::Native).map(|reading| reading.agent)
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
        write("_defaults.md", "---\nmaxTurns: 3\n---\n");
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
