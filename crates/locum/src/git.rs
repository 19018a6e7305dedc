//! Git, and the one place that runs it.
//!
//! A repository can name programs in its configuration and attributes, and git runs them: hooks, filters, monitors,
//! editors, helpers. A project is not trusted with that. So git is the absolute program outside the project, with an
//! environment of its own and without the user's and the system's configuration; what the repository's own
//! configuration names is overridden ([`surroundings`]), and [`checkout`] uses verbs that need nothing of it. Only what
//! describes the contents, such as line endings, stays in force.

pub(crate) mod checkout;
pub(crate) mod merging;
mod surroundings;

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tokio_util::sync::CancellationToken;

use crate::process::capture::CaptureError;

pub(crate) use checkout::Checkout;

/// The first version that lets the environment override the configuration and merges without a checkout.
const VERSION_MIN: (u32, u32) = (2, 38);

/// Where git is looked for after the directories of `PATH`.
const USUAL: [&str; 3] = ["/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"];

/// Why git did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GitError {
    #[error("git was not found")]
    Missing,
    #[error("git is too old ({0})")]
    TooOld(String),
    #[error("{} is not a git repository", .0.display())]
    NoRepository(PathBuf),
    #[error("the repository has no commit yet")]
    NoCommit,
    #[error("git {verb} failed: {message}")]
    Failed { verb: String, message: String },
    #[error("git {verb}: {source}")]
    Run {
        verb: String,
        #[source]
        source: CaptureError,
    },
    #[error("the repository's configuration has more than {0} entries")]
    TooManySettings(usize),
}

impl GitError {
    /// What to do about it, where that is known.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Missing => Some("install git 2.38 or later, outside the project"),
            Self::TooOld(_) => Some("install git 2.38 or later"),
            Self::NoRepository(_) => Some("run `git init` and commit in the project, or leave `isolation` out"),
            Self::NoCommit => Some("commit something first: a worktree begins at a commit"),
            Self::Failed { .. } | Self::Run { .. } | Self::TooManySettings(_) => None,
        }
    }

    /// Whether it was told to stop, which is nobody's fault.
    pub(crate) fn is_stop(&self) -> bool {
        matches!(self, Self::Run { source: CaptureError::Stopped, .. })
    }
}

/// The git that is used.
#[derive(Debug, Clone)]
pub(crate) struct Git {
    program: PathBuf,
}

impl Git {
    /// Finds git by its absolute path, outside the project: what a project brings along is not run.
    pub(crate) fn find(project: &Path, stop: &CancellationToken) -> Result<Self, GitError> {
        let path = crate::settings::environment::process_variables(&["PATH"]).pop().map(|(_, value)| value);
        let named: Vec<PathBuf> = path.iter().flat_map(std::env::split_paths).collect();
        let usual = USUAL.iter().map(PathBuf::from);
        let program = first_outside(named.into_iter().chain(usual), project).ok_or(GitError::Missing)?;
        let git = Self { program };
        git.check_version(stop)?;
        Ok(git)
    }

    fn check_version(&self, stop: &CancellationToken) -> Result<(), GitError> {
        let said = checkout::run(self, &["version"].map(OsString::from), &checkout::Nowhere, b"", stop)?;
        let text = String::from_utf8_lossy(&said.output).trim().to_owned();
        if version(&text).is_some_and(|version| version >= VERSION_MIN) { Ok(()) } else { Err(GitError::TooOld(text)) }
    }
}

/// Where the git is that would be used for a project, if there is one.
pub(crate) fn program(project: &Path) -> Result<PathBuf, GitError> {
    Git::find(project, &CancellationToken::new()).map(|git| git.program)
}

/// Major and minor number, from `git version 2.47.3`.
fn version(text: &str) -> Option<(u32, u32)> {
    let numbers = text.strip_prefix("git version ")?;
    let mut parts = numbers.split(['.', ' ', '-']);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn first_outside(directories: impl Iterator<Item = PathBuf>, project: &Path) -> Option<PathBuf> {
    let project = project.canonicalize().unwrap_or_else(|_| project.to_owned());
    let is_program =
        |path: &PathBuf| path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0);
    directories
        .filter(|directory| directory.is_absolute())
        .filter_map(|directory| directory.join("git").canonicalize().ok())
        .find(|path| !path.starts_with(&project) && is_program(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        assert_eq!(version("git version 2.47.3"), Some((2, 47)));
        assert_eq!(version("git version 2.39.5 (Apple Git-154)"), Some((2, 39)));
        assert_eq!(version("git version 2.50-rc1"), Some((2, 50)));
        assert_eq!(version("gut version 2.50"), None);
    }

    #[test]
    fn git_is_never_the_projects_own() {
        let project = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        for directory in [&project, &outside] {
            let path = directory.path().join("git");
            std::fs::write(&path, "#!/bin/sh\n").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        std::os::unix::fs::symlink(project.path(), outside.path().join("link")).unwrap();
        let places =
            [PathBuf::from("."), project.path().to_owned(), outside.path().join("link"), outside.path().to_owned()];
        let found = first_outside(places.into_iter(), project.path()).unwrap();
        assert_eq!(found, outside.path().canonicalize().unwrap().join("git"));
    }
}
