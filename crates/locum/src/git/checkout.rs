//! One checkout of a repository, and what is done in it.
//!
//! The directories are always named: a `.git` that somebody put into a worktree meanwhile is not looked at. Nothing
//! here recurses into repositories within the checkout, whose configuration was not overridden.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::surroundings;
use super::{Git, GitError};
use crate::process::capture::{Bounds, Program, Said, capture};

/// Bytes of git's output that are kept: the names of some hundred thousand files.
const OUTPUT_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Characters of a complaint that are repeated.
const COMPLAINT_CHARS_MAX: usize = 400;

/// How long one verb may take: a large repository is written in minutes, and nothing that takes longer is waited for.
const WITHIN: Duration = Duration::from_secs(300);

/// Which repository git works in, as its environment says it.
pub(super) trait Whereabouts {
    fn variables(&self) -> Vec<(OsString, OsString)>;
    fn directory(&self) -> &Path;
}

/// No repository at all.
pub(super) struct Nowhere;

impl Whereabouts for Nowhere {
    fn variables(&self) -> Vec<(OsString, OsString)> {
        Vec::new()
    }

    fn directory(&self) -> &Path {
        Path::new("/")
    }
}

/// A checkout: the repository's directory and the files.
#[derive(Debug, Clone)]
pub(crate) struct Checkout {
    git: Git,
    git_dir: PathBuf,
    common_dir: PathBuf,
    work_tree: PathBuf,
    /// Another index than the checkout's own.
    index: Option<PathBuf>,
    settings: Vec<(OsString, OsString)>,
    stop: CancellationToken,
}

impl Whereabouts for Checkout {
    fn variables(&self) -> Vec<(OsString, OsString)> {
        let mut variables = self.settings.clone();
        variables.push(("GIT_DIR".into(), self.git_dir.clone().into()));
        variables.push(("GIT_WORK_TREE".into(), self.work_tree.clone().into()));
        variables.extend(self.index.clone().map(|index| ("GIT_INDEX_FILE".into(), index.into())));
        variables
    }

    fn directory(&self) -> &Path {
        &self.work_tree
    }
}

/// A checkout as `git worktree list` knows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) path: PathBuf,
    pub(crate) head: String,
    pub(crate) branch: Option<String>,
    pub(crate) locked: bool,
    /// Why git would forget it.
    pub(crate) prunable: bool,
}

impl Checkout {
    /// The checkout at a project's root.
    pub(crate) fn open(root: &Path, stop: &CancellationToken) -> Result<Self, GitError> {
        let git_dir = root.join(".git");
        if !git_dir.exists() {
            return Err(GitError::NoRepository(root.to_owned()));
        }
        let git = Git::find(root, stop)?;
        let mut checkout = Self {
            git,
            common_dir: git_dir.clone(),
            git_dir,
            work_tree: root.to_owned(),
            index: None,
            settings: surroundings::settings(std::iter::empty()),
            stop: stop.clone(),
        };
        // Reading the configuration runs nothing, whatever it says.
        let keys = checkout.records(&["config", "--list", "--name-only", "-z"])?;
        if keys.len() > surroundings::SETTINGS_MAX {
            return Err(GitError::TooManySettings(surroundings::SETTINGS_MAX));
        }
        let texts: Vec<String> = keys.iter().map(|key| String::from_utf8_lossy(key).into_owned()).collect();
        checkout.settings = surroundings::settings(texts.iter().map(String::as_str));
        let common = checkout.line(&["rev-parse", "--path-format=absolute", "--git-common-dir"])?;
        checkout.common_dir = PathBuf::from(OsStr::from_bytes(&common));
        Ok(checkout)
    }

    /// Another checkout of the same repository, whose own directory in it is known.
    pub(crate) fn elsewhere(&self, work_tree: &Path, git_dir: &Path) -> Self {
        Self { git_dir: git_dir.to_owned(), work_tree: work_tree.to_owned(), index: None, ..self.clone() }
    }

    /// The same checkout with another index, so that its own is not touched.
    pub(crate) fn with_index(&self, index: &Path) -> Self {
        Self { index: Some(index.to_owned()), ..self.clone() }
    }

    pub(crate) fn work_tree(&self) -> &Path {
        &self.work_tree
    }

    pub(crate) fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// The directory that all checkouts of the repository share.
    pub(crate) fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    /// The index of the checkout.
    pub(crate) fn index_file(&self) -> Result<PathBuf, GitError> {
        let line = self.line(&["rev-parse", "--path-format=absolute", "--git-path", "index"])?;
        Ok(PathBuf::from(OsStr::from_bytes(&line)))
    }

    /// The commit that is checked out.
    pub(crate) fn head(&self) -> Result<String, GitError> {
        self.commit("HEAD")?.ok_or(GitError::NoCommit)
    }

    /// The commit that a name stands for.
    pub(crate) fn commit(&self, name: &str) -> Result<Option<String>, GitError> {
        let said =
            self.say(&["rev-parse", "--verify", "--quiet", "--end-of-options", &format!("{name}^{{commit}}")])?;
        let text = String::from_utf8_lossy(&said.output).trim().to_owned();
        Ok(Some(text).filter(|text| said.code == Some(0) && !text.is_empty()))
    }

    /// The branch that is checked out, if it is one.
    pub(crate) fn branch(&self) -> Result<Option<String>, GitError> {
        let said = self.say(&["symbolic-ref", "--quiet", "HEAD"])?;
        let text = String::from_utf8_lossy(&said.output).trim().to_owned();
        Ok(text.strip_prefix("refs/heads/").map(str::to_owned))
    }

    /// The tree of a commit.
    pub(crate) fn tree_of(&self, commit: &str) -> Result<String, GitError> {
        self.text(&["rev-parse", "--verify", "--end-of-options", &format!("{commit}^{{tree}}")])
    }

    /// Whether everything of one commit is in another.
    pub(crate) fn contains(&self, commit: &str, older: &str) -> Result<bool, GitError> {
        Ok(self.say(&["merge-base", "--is-ancestor", older, commit])?.code == Some(0))
    }

    /// How many files of the checkout are not as its commit has them; files that are ignored do not count.
    pub(crate) fn dirty_files(&self) -> Result<Vec<Vec<u8>>, GitError> {
        let mut names = Vec::new();
        let entries = self.records(&[
            "status",
            "--porcelain=v1",
            "-z",
            "--untracked-files=all",
            "--ignore-submodules=all",
            "--no-renames",
        ])?;
        for entry in entries {
            names.extend(entry.get(3..).map(<[u8]>::to_vec));
        }
        Ok(names)
    }

    /// The names of files that the index does not have as they are. One that ends with `/` is a repository of its own.
    pub(crate) fn changed_since_index(&self) -> Result<Vec<Vec<u8>>, GitError> {
        let mut names =
            self.records(&["ls-files", "-z", "--others", "--modified", "--deleted", "--exclude-standard"])?;
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// The files and whole directories that are ignored.
    pub(crate) fn ignored(&self) -> Result<Vec<Vec<u8>>, GitError> {
        self.records(&["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"])
    }

    /// Whether a commit has repositories within it.
    pub(crate) fn has_submodules(&self, commit: &str) -> Result<bool, GitError> {
        let entries = self.records(&["ls-tree", "-r", "-z", "--end-of-options", commit])?;
        Ok(entries.iter().any(|entry| entry.starts_with(b"160000 ")))
    }

    /// Takes files into the index as they are; those that are gone leave it.
    pub(crate) fn take_into_index(&self, names: &[Vec<u8>]) -> Result<(), GitError> {
        if names.is_empty() {
            return Ok(());
        }
        let mut input = Vec::new();
        for name in names {
            input.extend_from_slice(name);
            input.push(0);
        }
        let verb = ["update-index", "--add", "--remove", "--replace", "-z", "--stdin"].map(OsString::from);
        self.ended_well(&verb, run(&self.git, &verb, self, &input, &self.stop)?)?;
        Ok(())
    }

    /// The index, filled from a commit.
    pub(crate) fn fill_index(&self, commit: &str) -> Result<(), GitError> {
        self.text(&["read-tree", commit]).map(drop)
    }

    /// The index as a tree.
    pub(crate) fn write_tree(&self) -> Result<String, GitError> {
        self.text(&["write-tree"])
    }

    /// A commit of a tree. It is on no branch yet.
    pub(crate) fn commit_tree(&self, tree: &str, parents: &[&str], message: &str) -> Result<String, GitError> {
        let mut verb = vec!["commit-tree", "--no-gpg-sign", "-m", message];
        for parent in parents {
            verb.extend(["-p", parent]);
        }
        verb.push(tree);
        self.text(&verb)
    }

    /// Lets a branch point to a commit, if it still points to the one before; to none for a new branch.
    pub(crate) fn move_branch(&self, branch: &str, to: &str, from: Option<&str>) -> Result<(), GitError> {
        let (reference, from) = (format!("refs/heads/{branch}"), from.unwrap_or(""));
        self.text(&["update-ref", "-m", "locum", "--end-of-options", &reference, to, from]).map(drop)
    }

    /// Removes a branch, if it still points to this commit.
    pub(crate) fn remove_branch(&self, branch: &str, at: &str) -> Result<(), GitError> {
        self.text(&["update-ref", "-d", "--end-of-options", &format!("refs/heads/{branch}"), at]).map(drop)
    }

    /// Checks a branch out that points to the same commit: no file changes.
    pub(crate) fn enter_branch(&self, branch: &str) -> Result<(), GitError> {
        self.text(&["symbolic-ref", "-m", "locum", "HEAD", &format!("refs/heads/{branch}")]).map(drop)
    }

    /// Makes a checkout of a commit in a new directory, on no branch.
    pub(crate) fn add_worktree(&self, path: &Path, commit: &str) -> Result<(), GitError> {
        let verb: [&OsStr; 6] = [
            "worktree".as_ref(),
            "add".as_ref(),
            "--detach".as_ref(),
            "--end-of-options".as_ref(),
            path.as_os_str(),
            commit.as_ref(),
        ];
        let verb = verb.map(OsStr::to_owned);
        self.ended_well(&verb, run(&self.git, &verb, self, b"", &self.stop)?)?;
        Ok(())
    }

    /// Removes a checkout. Git refuses where files were changed or added.
    pub(crate) fn remove_worktree(&self, path: &Path) -> Result<(), GitError> {
        let verb: [&OsStr; 4] = ["worktree".as_ref(), "remove".as_ref(), "--end-of-options".as_ref(), path.as_os_str()];
        let verb = verb.map(OsStr::to_owned);
        self.ended_well(&verb, run(&self.git, &verb, self, b"", &self.stop)?)?;
        Ok(())
    }

    /// All checkouts of the repository.
    pub(crate) fn worktrees(&self) -> Result<Vec<Listed>, GitError> {
        let mut all = Vec::new();
        let mut one = Listed::default();
        for line in self.records_with_gaps(&["worktree", "list", "--porcelain", "-z"])? {
            let text = String::from_utf8_lossy(&line).into_owned();
            match text.split_once(' ').unwrap_or((&text, "")) {
                ("worktree", _) => one.path = PathBuf::from(OsStr::from_bytes(&line[b"worktree ".len()..])),
                ("HEAD", commit) => commit.clone_into(&mut one.head),
                ("branch", name) => one.branch = name.strip_prefix("refs/heads/").map(str::to_owned),
                ("locked", _) => one.locked = true,
                ("prunable", _) => one.prunable = true,
                ("", _) if one.path.as_os_str().is_empty() => {}
                ("", _) => all.push(std::mem::take(&mut one)),
                _ => {}
            }
        }
        Ok(all)
    }

    /// What git says, which must end well. Its last line end is left out.
    pub(crate) fn text(&self, verb: &[&str]) -> Result<String, GitError> {
        Ok(String::from_utf8_lossy(&self.line(verb)?).into_owned())
    }

    /// What git says, however it ends.
    pub(crate) fn say(&self, verb: &[&str]) -> Result<Said, GitError> {
        run(&self.git, &owned(verb), self, b"", &self.stop)
    }

    fn line(&self, verb: &[&str]) -> Result<Vec<u8>, GitError> {
        let mut said = self.ended_well(&owned(verb), self.say(verb)?)?;
        while said.output.last().is_some_and(|byte| *byte == b'\n') {
            said.output.pop();
        }
        Ok(said.output)
    }

    /// What git says, record by record.
    pub(super) fn records(&self, verb: &[&str]) -> Result<Vec<Vec<u8>>, GitError> {
        Ok(self.records_with_gaps(verb)?.into_iter().filter(|record| !record.is_empty()).collect())
    }

    fn records_with_gaps(&self, verb: &[&str]) -> Result<Vec<Vec<u8>>, GitError> {
        let said = self.ended_well(&owned(verb), self.say(verb)?)?;
        let mut records: Vec<Vec<u8>> = said.output.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect();
        if said.cut {
            // The last one may be half of one.
            records.pop();
        }
        Ok(records)
    }

    fn ended_well(&self, verb: &[OsString], said: Said) -> Result<Said, GitError> {
        if said.code == Some(0) { Ok(said) } else { Err(failed(verb, &said)) }
    }

    /// What is said of a verb that did not end well.
    pub(super) fn failure(&self, verb: &[&str], said: &Said) -> GitError {
        failed(&owned(verb), said)
    }
}

fn failed(verb: &[OsString], said: &Said) -> GitError {
    let complaint = String::from_utf8_lossy(&said.complaints);
    let message: String = complaint.trim().chars().take(COMPLAINT_CHARS_MAX).collect();
    let message = if message.is_empty() { format!("it ended with {:?}", said.code) } else { message };
    GitError::Failed { verb: shown(verb), message }
}

fn owned(verb: &[&str]) -> Vec<OsString> {
    verb.iter().map(OsString::from).collect()
}

/// The verb without its options, for messages.
fn shown(verb: &[OsString]) -> String {
    let words = verb.iter().map(|word| word.to_string_lossy()).take_while(|word| !word.starts_with('-'));
    words.take(2).collect::<Vec<_>>().join(" ")
}

/// Runs git.
pub(super) fn run(
    git: &Git,
    verb: &[OsString],
    whereabouts: &dyn Whereabouts,
    input: &[u8],
    stop: &CancellationToken,
) -> Result<Said, GitError> {
    let mut environment = surroundings::environment();
    environment.extend(whereabouts.variables());
    let mut arguments = vec![OsString::from("--no-pager")];
    arguments.extend_from_slice(verb);
    let program = Program {
        path: &git.program,
        arguments: &arguments,
        environment: &environment,
        directory: whereabouts.directory(),
        input,
    };
    let bounds = Bounds { output_bytes_max: OUTPUT_BYTES_MAX, within: WITHIN, stop };
    capture(&program, &bounds).map_err(|source| GitError::Run { verb: shown(verb), source })
}
