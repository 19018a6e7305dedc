//! Which projects the user trusts: a list in the user's own state, each with its path and a hash of everything that
//! acts once it is trusted. A change of any of it asks again. Nothing in a project can write here.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use locum_core::ids::Timestamp;
use locum_core::limits;
use serde::{Deserialize, Serialize};

use crate::{private_file, turn};

/// The version of the list that this binary writes.
const VERSION: u32 = 1;

/// How a project stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// It has nothing that would need trust.
    Nothing,
    /// It is trusted as it is now.
    Trusted,
    /// It is not trusted.
    Untrusted,
    /// It was trusted, and has changed since.
    Changed,
}

impl Trust {
    /// Whether what the project says is in force.
    pub fn is_in_force(self) -> bool {
        matches!(self, Self::Nothing | Self::Trusted)
    }

    /// The word for it in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Nothing => "nothing to trust",
            Self::Trusted => "trusted",
            Self::Untrusted => "untrusted",
            Self::Changed => "changed since it was trusted",
        }
    }
}

/// A project that is trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustedProject {
    /// Its root.
    pub root: PathBuf,
    /// What it was when it was trusted.
    pub hash: String,
    /// When that was.
    pub trusted_at: Timestamp,
}

/// The list as it is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Kept {
    version: u32,
    projects: Vec<TrustedProject>,
}

/// Why the list cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the list of trusted projects, {path}: {why}")]
pub struct TrustError {
    path: PathBuf,
    why: String,
}

/// The list of trusted projects.
#[derive(Debug, Clone)]
pub struct TrustList {
    path: PathBuf,
}

impl TrustList {
    /// The list in this file, which need not exist.
    pub fn at(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// Every trusted project, by path.
    ///
    /// # Errors
    ///
    /// The list cannot be read, or was written by a newer version.
    pub fn all(&self) -> Result<Vec<TrustedProject>, TrustError> {
        let text = match std::fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(self.failed(error)),
        };
        let kept: Kept = serde_json::from_str(&text).map_err(|error| self.failed(error))?;
        if kept.version != VERSION {
            return Err(self.failed(format!("version {} was written by another locum", kept.version)));
        }
        Ok(kept.projects)
    }

    /// How a project with this hash stands.
    pub(crate) fn judge(&self, root: &Path, hash: &str) -> Result<Trust, TrustError> {
        let known = self.all()?.into_iter().find(|project| project.root == root);
        Ok(match known {
            Some(project) if project.hash == hash => Trust::Trusted,
            Some(_) => Trust::Changed,
            None => Trust::Untrusted,
        })
    }

    /// Trusts a project as it is now, in the place of what was trusted of it before.
    pub(crate) fn add(&self, project: TrustedProject) -> Result<(), TrustError> {
        self.change(|projects| {
            projects.retain(|known| known.root != project.root);
            projects.push(project);
            projects.sort_by(|a, b| a.root.cmp(&b.root));
        })
    }

    /// Trusts a project no longer; whether it was trusted.
    ///
    /// # Errors
    ///
    /// The list cannot be read or written.
    pub fn revoke(&self, root: &Path) -> Result<bool, TrustError> {
        let mut was_there = false;
        self.change(|projects| {
            let before = projects.len();
            projects.retain(|known| known.root != root);
            was_there = projects.len() != before;
        })?;
        Ok(was_there)
    }

    fn change(&self, change: impl FnOnce(&mut Vec<TrustedProject>)) -> Result<(), TrustError> {
        let _lock = self.lock()?;
        let mut projects = self.all()?;
        change(&mut projects);
        if projects.len() > limits::TRUSTED_PROJECTS_MAX {
            return Err(self.failed("it is full: revoke what you no longer use"));
        }
        let text =
            serde_json::to_string_pretty(&Kept { version: VERSION, projects }).map_err(|error| self.failed(error))?;
        private_file::replace(&self.path, &text).map_err(|error| self.failed(error))
    }

    /// Held while the list is changed, so that two commands do not lose each other's change.
    fn lock(&self) -> Result<File, TrustError> {
        if let Some(directory) = self.path.parent() {
            private_file::make_directory(directory).map_err(|error| self.failed(error))?;
        }
        let path = self.path.with_extension("lock");
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path);
        let file = file.map_err(|error| self.failed(error))?;
        turn::take(&file, &path, turn::PATIENCE).map_err(|error| self.failed(error))?;
        Ok(file)
    }

    fn failed(&self, why: impl std::fmt::Display) -> TrustError {
        TrustError { path: self.path.clone(), why: why.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(root: &str, hash: &str) -> TrustedProject {
        TrustedProject { root: root.into(), hash: hash.to_owned(), trusted_at: Timestamp::from_millis(0) }
    }

    #[test]
    fn trust_is_for_one_path_with_one_content() {
        let directory = tempfile::tempdir().unwrap();
        let list = TrustList::at(&directory.path().join("deep/trust.json"));
        let judge = |root: &str, hash: &str| list.judge(Path::new(root), hash).unwrap();
        assert_eq!(judge("/a", "1"), Trust::Untrusted);
        list.add(project("/b", "9")).unwrap();
        list.add(project("/a", "1")).unwrap();
        assert_eq!(judge("/a", "1"), Trust::Trusted);
        assert_eq!(judge("/a", "2"), Trust::Changed);
        assert_eq!(judge("/a/b", "1"), Trust::Untrusted);
        list.add(project("/a", "2")).unwrap();
        assert_eq!(judge("/a", "1"), Trust::Changed);
        assert_eq!(judge("/a", "2"), Trust::Trusted);
        assert_eq!(list.all().unwrap().len(), 2);
        assert!(list.revoke(Path::new("/a")).unwrap());
        assert!(!list.revoke(Path::new("/a")).unwrap());
        assert_eq!(judge("/a", "2"), Trust::Untrusted);
        assert_eq!(judge("/b", "9"), Trust::Trusted);
    }

    #[test]
    fn a_list_that_makes_no_sense_trusts_nothing_and_is_not_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trust.json");
        for text in ["", "{}", "[", r#"{"version": 2, "projects": []}"#] {
            std::fs::write(&path, text).unwrap();
            let list = TrustList::at(&path);
            assert!(list.judge(Path::new("/a"), "1").is_err(), "{text}");
            assert!(list.add(project("/a", "1")).is_err(), "{text}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }
}
