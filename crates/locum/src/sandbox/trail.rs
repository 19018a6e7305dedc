//! Where a protected name leads: to what is at its place, or through links to something else. Whoever could change a
//! link or a directory on the way would change the name, so all of the way is held.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use super::protected::Use;

/// Links that are followed: as many as the kernel follows.
const LINKS_MAX: usize = 40;

/// What a name goes by in the project, and its end.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Trail {
    /// What must stay as it is.
    pub(super) held: Vec<(PathBuf, Use)>,
    /// Where nothing is yet, below the root: whoever makes it makes the name.
    pub(super) vacant: Option<PathBuf>,
}

/// Follows a name from a project's root, which has no links in it. What is outside of the project needs no holding.
pub(super) fn follow(root: &Path, name: &str) -> Result<Trail, String> {
    let failed = |path: &Path, error: io::Error| format!("{} cannot be protected: {error}", path.display());
    let is_inside = |path: &Path| path != root && path.starts_with(root);
    let mut trail = Trail::default();
    let (mut place, mut links) = (root.to_owned(), 0);
    let mut ahead = steps(Path::new(name));
    while let Some(step) = ahead.pop() {
        if step == ".." {
            place.pop();
            continue;
        }
        let path = place.join(step);
        let found = match fs::symlink_metadata(&path) {
            Ok(found) => found,
            Err(error) if is_inside(&path) && error.kind() == io::ErrorKind::NotFound => {
                trail.vacant = vacant(root, &path, ahead);
                // Directories on the way may be moved: the name is looked for from the root.
                trail.held.retain(|(_, allowed)| *allowed == Use::Follow);
                return Ok(trail);
            }
            Err(error) if is_inside(&path) => return Err(failed(&path, error)),
            // It leads to where this user finds nothing.
            Err(_) => return Ok(trail),
        };
        if found.is_symlink() {
            links += 1;
            if links > LINKS_MAX {
                return Ok(trail);
            }
            ahead.extend(steps(&fs::read_link(&path).map_err(|error| failed(&path, error))?));
            hold(&mut trail, path, Use::Follow, is_inside);
        } else if found.is_dir() || ahead.is_empty() {
            hold(&mut trail, path.clone(), Use::Stay, is_inside);
            place = path;
        } else {
            // There is nothing below a file.
            return Ok(trail);
        }
    }
    if place == root {
        let path = root.join(name);
        return Err(format!("{} cannot be protected: it is a link to the whole project; remove it", path.display()));
    }
    trail.held.retain(|(path, _)| *path != place);
    hold(&mut trail, place, Use::Read, is_inside);
    Ok(trail)
}

fn hold(trail: &mut Trail, path: PathBuf, allowed: Use, is_inside: impl Fn(&Path) -> bool) {
    if is_inside(&path) {
        trail.held.push((path, allowed));
    }
}

/// The steps of a path, the first one last.
fn steps(path: &Path) -> Vec<OsString> {
    let parts = path.components().filter(|part| !matches!(part, Component::CurDir));
    parts.rev().map(|part| part.as_os_str().to_owned()).collect()
}

/// What would have to be made for the name to lead somewhere.
fn vacant(root: &Path, path: &Path, ahead: Vec<OsString>) -> Option<PathBuf> {
    let below = path.strip_prefix(root).ok()?;
    // A step back from what is not there cannot be foreseen; nothing leads on before the first step is made.
    let is_straight =
        ahead.iter().all(|step| matches!(Path::new(step).components().next(), Some(Component::Normal(_))));
    match is_straight {
        true => Some(ahead.into_iter().rev().fold(below.to_owned(), |path, step| path.join(step))),
        false => Some(below.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Follows `.name` in a project with these links, directories (`d/`) and files.
    fn check(made: &[(&str, &str)], name: &str, expected: &[(&str, Use)], vacant: Option<&str>) {
        let directory = tempfile::tempdir().unwrap();
        let around = directory.path().canonicalize().unwrap();
        let root = around.join("project");
        fs::create_dir_all(around.join("outside/deep")).unwrap();
        symlink("../project/conf", around.join("outside/back")).unwrap();
        fs::create_dir(&root).unwrap();
        for (path, target) in made {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            match *target {
                "" if path.ends_with('/') => fs::create_dir_all(root.join(path)).unwrap(),
                "" => fs::write(root.join(path), "").unwrap(),
                target => symlink(target.replace("ROOT", root.to_str().unwrap()), root.join(path)).unwrap(),
            }
        }
        let trail = follow(&root, name).unwrap();
        let held: Vec<(&str, Use)> = trail
            .held
            .iter()
            .map(|(path, allowed)| (path.strip_prefix(&root).unwrap().to_str().unwrap(), *allowed))
            .collect();
        assert_eq!((held.as_slice(), trail.vacant.as_deref()), (expected, vacant.map(Path::new)), "{made:?}");
    }

    #[test]
    fn names_are_followed_to_where_they_lead() {
        use Use::{Follow, Read, Stay};
        check(&[(".n/", "")], ".n", &[(".n", Read)], None);
        check(&[(".n", "")], ".n", &[(".n", Read)], None);
        check(&[], ".n", &[], Some(".n"));
        check(&[], ".c/n", &[], Some(".c/n"));
        check(&[(".c/", "")], ".c/n", &[], Some(".c/n"));
        check(&[(".c/n", "")], ".c/n", &[(".c", Stay), (".c/n", Read)], None);
        check(&[(".c", "")], ".c/n", &[], None);
        check(&[(".n", "conf"), ("conf/", "")], ".n", &[(".n", Follow), ("conf", Read)], None);
        check(
            &[(".n", "./a/b"), ("a", "ROOT/c"), ("c/b", "")],
            ".n",
            &[(".n", Follow), ("a", Follow), ("c", Stay), ("c/b", Read)],
            None,
        );
        check(&[(".n", "elsewhere")], ".n", &[(".n", Follow)], Some("elsewhere"));
        check(&[(".n", "a/b/c"), ("a/", "")], ".n", &[(".n", Follow)], Some("a/b/c"));
        check(&[(".n", "a/../b")], ".n", &[(".n", Follow)], Some("a"));
        check(&[(".n", "../outside")], ".n", &[(".n", Follow)], None);
        check(&[(".n", "../outside/missing")], ".n", &[(".n", Follow)], None);
        check(
            &[(".n", "../outside/back/x"), ("conf/x", "")],
            ".n",
            &[(".n", Follow), ("conf", Stay), ("conf/x", Read)],
            None,
        );
        check(&[(".n", "../outside/deep/../../project/new")], ".n", &[(".n", Follow)], Some("new"));
        check(&[(".c", "conf"), ("conf/n", "")], ".c/n", &[(".c", Follow), ("conf", Stay), ("conf/n", Read)], None);
    }

    #[test]
    fn a_circle_leads_nowhere_and_the_whole_project_cannot_be_protected() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        symlink(".a", root.join(".a")).unwrap();
        let trail = follow(&root, ".a").unwrap();
        assert!(trail.vacant.is_none() && trail.held.iter().all(|held| *held == (root.join(".a"), Use::Follow)));
        symlink("x/..", root.join(".b")).unwrap();
        fs::create_dir(root.join("x")).unwrap();
        let error = follow(&root, ".b").unwrap_err();
        assert!(error.ends_with(".b cannot be protected: it is a link to the whole project; remove it"), "{error}");
    }
}
