//! Branches beside each other: what they have in common, how they differ, and what becomes of both together.

use super::GitError;
use super::checkout::Checkout;

/// Two commits merged, where nobody sees it.
#[derive(Debug, Clone)]
pub(crate) struct Merged {
    /// The tree, with conflicts written into the files.
    pub(crate) tree: String,
    /// The files that conflict.
    pub(crate) conflicts: Vec<String>,
}

/// A file that differs.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) path: Vec<u8>,
    /// Whether the first side does not have it.
    pub(crate) is_new: bool,
}

impl Change {
    pub(crate) fn shown(&self) -> String {
        String::from_utf8_lossy(&self.path).into_owned()
    }
}

/// Options of every comparison: nothing that the repository names is run.
const PLAIN: [&str; 6] = ["diff-tree", "-r", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames"];

impl Checkout {
    /// The branches below a name, each with its commit.
    pub(crate) fn branches(&self, below: &str) -> Result<Vec<(String, String)>, GitError> {
        let text =
            self.text(&["for-each-ref", "--format=%(objectname) %(refname)", "--", &format!("refs/heads/{below}")])?;
        let line = |line: &str| {
            let (commit, name) = line.split_once(' ')?;
            Some((name.strip_prefix("refs/heads/")?.to_owned(), commit.to_owned()))
        };
        Ok(text.lines().filter_map(line).collect())
    }

    /// Whether another branch, tag or remote has a commit of this branch.
    pub(crate) fn is_elsewhere(&self, branch: &str, commit: &str) -> Result<bool, GitError> {
        let contains = format!("--contains={commit}");
        let places = ["refs/heads", "refs/remotes", "refs/tags"];
        let text =
            self.text(&[&["for-each-ref", "--format=%(refname)", "--count=2", &contains, "--"], &places[..]].concat())?;
        let ours = format!("refs/heads/{branch}");
        Ok(text.lines().any(|name| name != ours))
    }

    /// The last commit that two have in common.
    pub(crate) fn common_ancestor(&self, one: &str, other: &str) -> Result<Option<String>, GitError> {
        let said = self.say(&["merge-base", one, other])?;
        let text = String::from_utf8_lossy(&said.output).trim().to_owned();
        Ok(Some(text).filter(|text| said.code == Some(0) && !text.is_empty()))
    }

    /// Merges two commits. Nothing but objects is written.
    pub(crate) fn merge(&self, one: &str, other: &str) -> Result<Merged, GitError> {
        let verb = [
            "merge-tree",
            "--write-tree",
            "--name-only",
            "--no-messages",
            "--allow-unrelated-histories",
            "-z",
            one,
            other,
        ];
        let said = self.say(&verb)?;
        if !matches!(said.code, Some(0 | 1)) {
            return Err(self.failure(&verb, &said));
        }
        let mut records =
            said.output.split(|byte| *byte == 0).map(|record| String::from_utf8_lossy(record).into_owned());
        let tree = records.next().unwrap_or_default().trim().to_owned();
        let mut conflicts: Vec<String> = records.filter(|name| !name.is_empty()).collect();
        if said.code == Some(0) {
            conflicts.clear();
        }
        Ok(Merged { tree, conflicts })
    }

    /// How one tree becomes another, as a patch, and whether there is more than is kept.
    pub(crate) fn patch(&self, from: &str, to: &str) -> Result<(String, bool), GitError> {
        let verb = [&PLAIN[..], &["-p", "--end-of-options", from, to]].concat();
        let said = self.say(&verb)?;
        if said.code != Some(0) {
            return Err(self.failure(&verb, &said));
        }
        Ok((String::from_utf8_lossy(&said.output).into_owned(), said.cut))
    }

    /// Which files make one tree another.
    pub(crate) fn changes(&self, from: &str, to: &str) -> Result<Vec<Change>, GitError> {
        let verb = [&PLAIN[..], &["--name-status", "-z", "--end-of-options", from, to]].concat();
        let records = self.records(&verb)?;
        let pairs = records.chunks_exact(2);
        Ok(pairs.map(|pair| Change { path: pair[1].clone(), is_new: pair[0].starts_with(b"A") }).collect())
    }

    /// How many files differ, and which, for people.
    pub(crate) fn summary(&self, from: &str, to: &str, lines_max: u32) -> Result<(u64, String), GitError> {
        let lines = format!("--stat-count={lines_max}");
        let text = self.text(&[&PLAIN[..], &["--stat=100", &lines, "--end-of-options", from, to]].concat())?;
        let last = text.lines().last().unwrap_or_default().trim();
        let count = last.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0);
        Ok((count, text))
    }

    /// Writes a tree into the checkout and its index, in the place of the commit that is checked out. Git refuses where
    /// something would be written over.
    pub(crate) fn write_merge(&self, head: &str, tree: &str) -> Result<(), GitError> {
        // Files that only look changed, because their times are, must not stand in the way.
        self.say(&["update-index", "-q", "--refresh"])?;
        self.text(&["read-tree", "-m", "-u", head, tree]).map(drop)
    }
}
