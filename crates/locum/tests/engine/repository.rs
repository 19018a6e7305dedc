//! A git repository to give to a desk, and what can be asked about it. Nothing of the surrounding git is seen.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A project under git, and a place for the worktrees of its tasks.
pub(crate) struct Repository {
    directory: TempDir,
}

impl Repository {
    /// A repository with one commit: `a.txt`, `src/lib.rs`, and `*.log` is ignored.
    pub(crate) fn new() -> Self {
        let repository = Self::without_commit();
        repository.write("a.txt", "one\ntwo\nthree\n");
        repository.write("src/lib.rs", "fn main() {}\n");
        repository.write(".gitignore", "*.log\n");
        repository.git(&["add", "-A"]);
        repository.git(&["commit", "-q", "-m", "first"]);
        repository
    }

    pub(crate) fn without_commit() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("project")).unwrap();
        let repository = Self { directory };
        repository.git(&["init", "-q", "-b", "main"]);
        repository
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join("project")
    }

    /// A path beside the project.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn worktrees(&self) -> PathBuf {
        self.beside("worktrees")
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// What git says in the project.
    pub(crate) fn git(&self, verb: &[&str]) -> String {
        git_in(&self.root(), verb)
    }

    /// A file of a branch.
    pub(crate) fn file_on(&self, branch: &str, path: &str) -> String {
        self.git(&["show", &format!("{branch}:{path}")])
    }

    /// Everything in the checkout with its bytes, the index and the branch that is checked out included.
    pub(crate) fn everything(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut all = BTreeMap::new();
        gather(&self.root(), &mut all);
        let git_dir = self.root().join(".git");
        all.retain(|path, _| !path.starts_with(&git_dir));
        for name in ["index", "HEAD", "config", "refs/heads/main"] {
            all.insert(git_dir.join(name), fs::read(git_dir.join(name)).unwrap_or_default());
        }
        all
    }
}

fn gather(directory: &Path, all: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let found = path.symlink_metadata().unwrap();
        if found.is_dir() {
            gather(&path, all);
        } else if found.is_file() {
            all.insert(path.clone(), fs::read(&path).unwrap());
        } else {
            all.insert(path, b"something else".to_vec());
        }
    }
}

/// What git says in a directory.
pub(crate) fn git_in(directory: &Path, verb: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=Tester", "-c", "user.email=tester@localhost"])
        .args(verb)
        .current_dir(directory)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {verb:?}: {told}");
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}
