//! The repository of a project that is not in it: a worktree has a file `.git` that says where it is, and so has a
//! submodule. Commands may read it there, so that `git status`, `log` and `diff` work; they cannot change it.
//!
//! That file lies among files that anybody may have written. What it says counts only if the repository says the same:
//! otherwise a project could have any directory shown to its commands.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Bytes of a file that is read here: a path, or the settings of a repository.
const FILE_BYTES_MAX: u64 = 256 * 1024;

/// The directory of the repository that the checkout at `root` belongs to, if it is elsewhere.
pub(super) fn elsewhere(root: &Path) -> Option<PathBuf> {
    let link = root.join(".git");
    let said = text(&link)?;
    let own = root.join(said.strip_prefix("gitdir: ")?.trim_end_matches('\n')).canonicalize().ok()?;
    let common = match text(&own.join("commondir")) {
        Some(said) => of_worktree(&own, &link, said.trim_end())?,
        None => of_submodule(own, root)?,
    };
    let is_repository = common.join("objects").is_dir() && common.join("HEAD").is_file();
    // What is in the project is seen with it.
    (is_repository && !common.starts_with(root)).then_some(common)
}

/// The repository of a worktree whose own directory in it is known: it keeps the worktree's place there.
fn of_worktree(own: &Path, link: &Path, common: &str) -> Option<PathBuf> {
    let common = own.join(common).canonicalize().ok()?;
    let kept = text(&own.join("gitdir"))?;
    let known = own.join(kept.trim_end_matches('\n')).canonicalize().ok()? == link.canonicalize().ok()?;
    (known && own.parent() == Some(&common.join("worktrees"))).then_some(common)
}

/// A repository that says which checkout is its own.
fn of_submodule(own: PathBuf, root: &Path) -> Option<PathBuf> {
    let settings = text(&own.join("config"))?;
    let named = settings.lines().find_map(|line| {
        let (name, value) = line.split_once('=')?;
        (name.trim().eq_ignore_ascii_case("worktree")).then(|| value.trim().trim_matches('"').to_owned())
    })?;
    (own.join(named).canonicalize().ok()? == root.canonicalize().ok()?).then_some(own)
}

/// What a plain file says.
fn text(path: &Path) -> Option<String> {
    if !fs::symlink_metadata(path).ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    File::open(path).ok()?.take(FILE_BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory with these files; those that end with `/` are directories.
    fn place(files: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        for (name, text) in files {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            match name.ends_with('/') {
                true => fs::create_dir_all(&path).unwrap(),
                false => fs::write(&path, text.replace("ROOT", root.to_str().unwrap())).unwrap(),
            }
        }
        (directory, root)
    }

    const WORKTREE: [(&str, &str); 5] = [
        ("tree/.git", "gitdir: ROOT/main/.git/worktrees/tree\n"),
        ("main/.git/HEAD", "ref: refs/heads/main\n"),
        ("main/.git/objects/", ""),
        ("main/.git/worktrees/tree/commondir", "../..\n"),
        ("main/.git/worktrees/tree/gitdir", "ROOT/tree/.git\n"),
    ];

    const SUBMODULE: [(&str, &str); 4] = [
        ("super/sub/.git", "gitdir: ../.git/modules/sub\n"),
        ("super/.git/modules/sub/HEAD", "ref: refs/heads/main\n"),
        ("super/.git/modules/sub/objects/", ""),
        ("super/.git/modules/sub/config", "[core]\n\tbare = false\n\tworktree = ../../../sub\n"),
    ];

    #[test]
    fn the_repository_of_a_worktree_and_of_a_submodule_is_found() {
        let (_kept, root) = place(&WORKTREE);
        assert_eq!(elsewhere(&root.join("tree")), Some(root.join("main/.git")));
        let (_kept, root) = place(&SUBMODULE);
        assert_eq!(elsewhere(&root.join("super/sub")), Some(root.join("super/.git/modules/sub")));
        let (_kept, root) = place(&[("plain/.git/HEAD", "")]);
        assert_eq!(elsewhere(&root.join("plain")), None);
    }

    #[test]
    fn a_project_cannot_have_any_directory_shown() {
        let secret = [("secret/HEAD", ""), ("secret/objects/", "")];
        let hostile: [&[(&str, &str)]; 6] = [
            &[("tree/.git", "gitdir: ROOT/secret\n")],
            &[("tree/.git", "gitdir: ROOT/tree/fake\n"), ("tree/fake/commondir", "ROOT/secret\n")],
            &[
                ("tree/.git", "gitdir: ROOT/tree/fake/worktrees/x\n"),
                ("tree/fake/worktrees/x/commondir", "ROOT/secret\n"),
                ("tree/fake/worktrees/x/gitdir", "ROOT/tree/.git\n"),
            ],
            // A repository that has another worktree, and not this one.
            &[
                ("tree/.git", "gitdir: ROOT/secret/worktrees/x\n"),
                ("secret/worktrees/x/commondir", "../..\n"),
                ("secret/worktrees/x/gitdir", "ROOT/other/.git\n"),
                ("other/.git", ""),
            ],
            &[
                ("tree/.git", "gitdir: ROOT/secret\n"),
                ("secret/config", "[core]\nworktree = ../other\n"),
                ("other/", ""),
            ],
            &[("tree/.git", "ROOT/secret\n")],
        ];
        for files in hostile {
            let all: Vec<(&str, &str)> = secret.iter().chain(files).copied().collect();
            let (_kept, root) = place(&all);
            assert_eq!(elsewhere(&root.join("tree")), None, "{files:?}");
        }
    }

    #[test]
    fn a_link_in_the_place_of_the_file_is_not_followed() {
        let (_kept, root) = place(&WORKTREE);
        fs::rename(root.join("tree/.git"), root.join("file")).unwrap();
        std::os::unix::fs::symlink("../file", root.join("tree/.git")).unwrap();
        assert_eq!(elsewhere(&root.join("tree")), None);
    }
}
