//! What git reads of a project that is not in it. A worktree has a file `.git` that says where its repository is, and
//! so has a submodule; a repository may borrow objects from others. Commands may read these places, so that
//! `git status`, `log` and `diff` work; they cannot change them.
//!
//! The file `.git` lies among files that anybody may have written. What it says counts only if the repository says the
//! same: otherwise a project could have any directory shown to its commands. A place that objects are borrowed from
//! knows nothing of the borrower; it counts only if there is nothing in it but objects.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::Level;

/// Bytes of a file that is read here: a path, or the settings of a repository.
const FILE_BYTES_MAX: u64 = 256 * 1024;

/// Places that a repository may borrow from, and those that these borrow from.
const BORROWED_MAX: usize = 16;

/// Entries of a directory of objects: one for each first byte of their names, and some that are being written.
const OBJECT_ENTRIES_MAX: usize = 1_000;

/// Everything outside of `root` that git reads of the checkout there, as far as commands may read it at this level.
pub(super) fn elsewhere(root: &Path, level: Level) -> Vec<PathBuf> {
    let repository = of_checkout(root);
    let lenders = match (&repository, level) {
        (_, Level::None) => return Vec::new(),
        (Some(repository), Level::Full | Level::Landlock) => borrowed(repository, root),
        (None, Level::Full) => borrowed(&root.join(".git"), root),
        // A command can write there what the next one would be shown.
        (None, Level::Landlock) => Vec::new(),
    };
    repository.into_iter().chain(lenders).collect()
}

/// The directories that a repository borrows objects from. What is in the project is seen with it.
fn borrowed(repository: &Path, root: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut asked = vec![repository.join("objects")];
    while let Some(objects) = asked.pop() {
        let said = text(&objects.join("info/alternates")).unwrap_or_default();
        for line in said.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let Some(place) = objects.join(line).canonicalize().ok().filter(|place| holds_objects(place)) else {
                continue;
            };
            if found.len() < BORROWED_MAX && !found.contains(&place) && !root.starts_with(&place) {
                found.push(place.clone());
                asked.push(place);
            }
        }
    }
    found.retain(|place| !place.starts_with(root));
    found
}

/// Whether there is nothing in a directory but the objects of a repository, of this user or the system.
fn holds_objects(place: &Path) -> bool {
    let owned = |path: &Path| {
        let found = fs::symlink_metadata(path).ok()?;
        let is_ours = [nix::unistd::geteuid().as_raw(), 0].contains(&found.uid());
        Some(found).filter(|_| is_ours)
    };
    let is_directory = |path: &Path| owned(path).is_some_and(|found| found.is_dir());
    let Some(repository) = place.parent().filter(|_| place.ends_with("objects") && is_directory(place)) else {
        return false;
    };
    let is_repository =
        is_directory(&repository.join("refs")) && owned(&repository.join("HEAD")).is_some_and(|found| found.is_file());
    let Ok(entries) = fs::read_dir(place) else { return false };
    let mut entries = entries.take(OBJECT_ENTRIES_MAX + 1).enumerate();
    is_repository
        && entries.all(|(number, entry)| number < OBJECT_ENTRIES_MAX && entry.is_ok_and(|entry| is_of_objects(&entry)))
}

/// Whether git keeps such an entry among objects.
fn is_of_objects(entry: &fs::DirEntry) -> bool {
    let (name, Ok(kind)) = (entry.file_name(), entry.file_type()) else { return false };
    let name = name.to_string_lossy();
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_first_byte = name.len() == 2 && name.bytes().all(is_hex);
    match kind.is_dir() {
        true => is_first_byte || ["info", "pack"].contains(&&*name),
        // What is being written.
        false => kind.is_file() && name.starts_with("tmp_"),
    }
}

/// The directory of the repository that the checkout at `root` belongs to, if it is elsewhere.
fn of_checkout(root: &Path) -> Option<PathBuf> {
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
        assert_eq!(of_checkout(&root.join("tree")), Some(root.join("main/.git")));
        let (_kept, root) = place(&SUBMODULE);
        assert_eq!(of_checkout(&root.join("super/sub")), Some(root.join("super/.git/modules/sub")));
        let (_kept, root) = place(&[("plain/.git/HEAD", "")]);
        assert_eq!(of_checkout(&root.join("plain")), None);
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
            assert_eq!(of_checkout(&root.join("tree")), None, "{files:?}");
        }
    }

    #[test]
    fn a_link_in_the_place_of_the_file_is_not_followed() {
        let (_kept, root) = place(&WORKTREE);
        fs::rename(root.join("tree/.git"), root.join("file")).unwrap();
        std::os::unix::fs::symlink("../file", root.join("tree/.git")).unwrap();
        assert_eq!(of_checkout(&root.join("tree")), None);
    }

    const BORROWER: [(&str, &str); 7] = [
        ("main/.git/HEAD", ""),
        ("main/.git/objects/info/alternates", "# a remark\n\nROOT/lender/.git/objects\n../../../bare.git/objects\n"),
        ("lender/.git/HEAD", ""),
        ("lender/.git/refs/", ""),
        ("lender/.git/objects/ab/0123", ""),
        ("lender/.git/objects/pack/", ""),
        ("lender/.git/objects/info/alternates", "ROOT/bare.git/objects\nROOT/lender/.git/objects\n"),
    ];

    const BARE: [(&str, &str); 3] = [("bare.git/HEAD", ""), ("bare.git/refs/", ""), ("bare.git/objects/", "")];

    fn files(parts: &[&[(&'static str, &'static str)]]) -> Vec<(&'static str, &'static str)> {
        parts.concat()
    }

    #[test]
    fn borrowed_objects_are_found() {
        let (_kept, root) = place(&files(&[&BORROWER, &BARE]));
        let expected = vec![root.join("bare.git/objects"), root.join("lender/.git/objects")];
        let sorted = |project: &str| {
            let mut found = elsewhere(&root.join(project), Level::Full);
            found.sort();
            found
        };
        assert_eq!(sorted("main"), expected);
        for level in [Level::Landlock, Level::None] {
            assert_eq!(
                elsewhere(&root.join("main"), level),
                Vec::<PathBuf>::new(),
                "commands can write the list there"
            );
        }
        // What is in the project is seen with it.
        assert_eq!(elsewhere(&root, Level::Full), Vec::<PathBuf>::new());
        let (_kept, root) =
            place(&files(&[&WORKTREE, &BARE, &[("main/.git/objects/info/alternates", "ROOT/bare.git/objects")]]));
        assert_eq!(
            elsewhere(&root.join("tree"), Level::Landlock),
            [root.join("main/.git"), root.join("bare.git/objects")]
        );
    }

    #[test]
    fn a_repository_cannot_have_any_directory_shown() {
        let borrowing = |place: &'static str| ("main/.git/objects/info/alternates", place);
        let hostile: [&[(&str, &str)]; 8] = [
            &[borrowing("ROOT/home/.ssh"), ("home/.ssh/id_rsa", ""), ("home/HEAD", ""), ("home/refs/", "")],
            // Called like objects, and something else is in it.
            &[borrowing("ROOT/home/objects"), ("home/objects/id_rsa", ""), ("home/HEAD", ""), ("home/refs/", "")],
            &[borrowing("ROOT/home/objects"), ("home/objects/.ssh/id", ""), ("home/HEAD", ""), ("home/refs/", "")],
            &[borrowing("ROOT/home/objects"), ("home/objects/AB/id", ""), ("home/HEAD", ""), ("home/refs/", "")],
            // No repository is around it.
            &[borrowing("ROOT/home/objects"), ("home/objects/ab/0123", "")],
            &[borrowing("ROOT/home/objects"), ("home/objects/ab", ""), ("home/HEAD", ""), ("home/refs/", "")],
            &[borrowing("ROOT/home\0/objects")],
            &[borrowing("/"), ("HEAD", "")],
        ];
        for made in hostile {
            let (_kept, root) = place(made);
            assert_eq!(elsewhere(&root.join("main"), Level::Full), Vec::<PathBuf>::new(), "{made:?}");
        }
        // A link is judged by what it leads to.
        let lender = [("home/HEAD", ""), ("home/refs/", ""), ("home/.ssh/id_rsa", "")];
        let (_kept, root) = place(&files(&[&[borrowing("ROOT/home/objects")], &lender]));
        std::os::unix::fs::symlink(".ssh", root.join("home/objects")).unwrap();
        assert_eq!(elsewhere(&root.join("main"), Level::Full), Vec::<PathBuf>::new());
        let (_kept, root) = place(&files(&[&[borrowing("ROOT/home/objects"), ("home/objects/", "")], &lender]));
        std::os::unix::fs::symlink("../.ssh", root.join("home/objects/pack")).unwrap();
        assert_eq!(elsewhere(&root.join("main"), Level::Full), Vec::<PathBuf>::new());
    }

    #[test]
    fn borrowing_has_an_end() {
        let (_kept, root) = place(&[("main/.git/HEAD", "")]);
        let mut lines = String::new();
        for number in 0..BORROWED_MAX + 5 {
            let lender = root.join(format!("lender-{number}.git"));
            fs::create_dir_all(lender.join("refs")).unwrap();
            fs::create_dir_all(lender.join("objects")).unwrap();
            fs::write(lender.join("HEAD"), "").unwrap();
            lines += &format!("{}\n", lender.join("objects").display());
        }
        fs::create_dir_all(root.join("main/.git/objects/info")).unwrap();
        fs::write(root.join("main/.git/objects/info/alternates"), lines).unwrap();
        assert_eq!(elsewhere(&root.join("main"), Level::Full).len(), BORROWED_MAX);
    }
}
