//! Git in the sandbox: commands read the repository of a project and of a worktree, and change neither.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::commands::{LEVELS, bash, is_possible};
use crate::home::Home;

/// Somebody who owns nothing.
const NOBODY: u32 = 65_534;

/// What a model is told that wants to change a repository.
const REFUSED: &str = "[git: commands read the repository here and cannot change it";

fn git(directory: &Path, verb: &[&str]) {
    let output = Command::new("git")
        .args(["-c", "user.name=Tester", "-c", "user.email=tester@localhost"])
        .args(verb)
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "git {verb:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A home whose project is a repository with two commits and a change that is not committed.
fn home(user: Option<u32>) -> Home {
    let home = Home::new();
    let project = home.project();
    std::fs::remove_dir_all(project.join(".git")).unwrap();
    git(&project, &["init", "-q", "-b", "main"]);
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-q", "-m", "first"]);
    home.write("README.md", "# Clock\n\nTells the hour.\n");
    git(&project, &["commit", "-q", "-a", "-m", "second"]);
    std::fs::create_dir_all(home.root().join("agents")).unwrap();
    std::fs::create_dir_all(home.locum_home()).unwrap();
    match user {
        Some(user) => home.given_to(user),
        None => home,
    }
}

/// Every file of the repository with what is in it.
fn repository(home: &Home) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut open = vec![home.project().join(".git")];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => open.push(path),
                false => found.push((path.clone(), std::fs::read(&path).unwrap())),
            }
        }
    }
    found.sort();
    found
}

/// Makes the calls in one task, and returns what each was answered, and the task's receipt.
fn answers(home: &Home, level: &str, isolation: &str, commands: &[&str]) -> Vec<String> {
    let calls: Vec<Value> = commands.iter().map(|command| bash(command)).collect();
    let model = crate::commands::script(home, &[calls]);
    home.give();
    let said = ["run", "sh", "go", "--json", "--sandbox", level, "--isolation", isolation, "--agents", "../agents"];
    let ran = home.locum(&[&said[..], &["--model", &model]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(answer["receipt"]["sandbox"], json!(level));
    let logs = home.locum(&["logs", answer["task_id"].as_str().unwrap(), "--json"]);
    let records = logs.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    records.filter_map(|record| Some(record["event"]["output"]["text"].as_str()?.to_owned())).collect()
}

fn check(level: &str, isolation: &str, user: Option<u32>) {
    if user.is_some() && !nix::unistd::getuid().is_root() {
        return;
    }
    let home = home(user);
    if !is_possible(&home, level) {
        return;
    }
    std::fs::remove_file(home.project().join("ran.txt")).unwrap();
    let before = repository(&home);
    let reading = [
        ("git log --format=%s", "second\nfirst"),
        ("git status --short", "[no output]"),
        ("echo new > new.txt; echo '# Watch' > README.md; git status --short", " M README.md\n?? new.txt"),
        ("git diff --stat | tail -1", " 1 file changed, 1 insertion(+), 3 deletions(-)"),
        ("git show --format=%s --no-patch HEAD~1", "first"),
        ("git rev-parse --is-inside-work-tree", "true"),
    ];
    let changing = [
        "git -c user.name=x -c user.email=x@y commit -q -a -m mine",
        "git add new.txt",
        "git config core.hooksPath /tmp",
        "git branch mine",
        "git stash",
        "d=$(git rev-parse --git-common-dir) && mkdir -p $d/hooks && echo evil > $d/hooks/post-checkout",
        "d=$(git rev-parse --git-common-dir) && echo evil >> $d/config",
    ];
    let commands: Vec<&str> = reading.iter().map(|(command, _)| *command).chain(changing).collect();
    let said = answers(&home, level, isolation, &commands);
    let place = format!("{level} {isolation} {user:?}");
    for ((command, expected), said) in reading.iter().zip(&said) {
        assert_eq!(said, expected, "{place}: {command}");
    }
    // Without namespaces, names inside a project are not protected; the repository of a worktree is outside of it.
    if level == "full" || isolation == "worktree" {
        for (command, said) in changing.iter().zip(&said[reading.len()..]) {
            assert!(said.contains(REFUSED), "{place}: {command}: {said}");
        }
    }
    if level == "full" && isolation == "none" {
        assert!(repository(&home) == before, "{place}: the repository has changed");
    }
    let own = |name: &str| std::fs::read(home.project().join(".git").join(name)).unwrap();
    if isolation == "worktree" {
        for name in ["config", "HEAD", "index", "refs/heads/main"] {
            let kept = before.iter().find(|(path, _)| path.ends_with(format!(".git/{name}"))).unwrap();
            assert!(kept.1 == own(name), "{place}: {name} has changed");
        }
        assert!(!home.project().join(".git/hooks/post-checkout").exists() && !home.project().join("new.txt").exists());
    }
}

#[test]
fn git_reads_the_project_in_the_sandbox() {
    for level in LEVELS {
        check(level, "none", None);
        check(level, "none", Some(NOBODY));
    }
}

#[test]
fn git_reads_the_repository_of_a_worktree_in_the_sandbox() {
    for level in LEVELS {
        check(level, "worktree", None);
        check(level, "worktree", Some(NOBODY));
    }
}

/// A home whose project borrows its objects from another repository of the user.
fn borrowing(user: Option<u32>) -> Home {
    let home = home(None);
    let (project, lender) = (home.project(), home.root().join("lender"));
    std::fs::rename(&project, &lender).unwrap();
    git(&home.root(), &["clone", "-q", "--shared", "lender", "project"]);
    assert!(project.join(".git/objects/info/alternates").exists());
    match user {
        Some(user) => home.given_to(user),
        None => home,
    }
}

#[test]
fn git_reads_objects_that_a_project_borrows() {
    for user in [None, Some(NOBODY)] {
        if user.is_some() && !nix::unistd::getuid().is_root() {
            continue;
        }
        let home = borrowing(user);
        let commands = [
            "git log --format=%s",
            "git diff --stat; git status --short | grep -v ran.txt",
            "cat ../lender/README.md ../lender/.git/HEAD",
            "p=$(cat $(git rev-parse --git-common-dir)/objects/info/alternates); echo evil > $p/evil",
        ];
        for (level, isolation) in [("full", "none"), ("full", "worktree"), ("landlock", "worktree")] {
            if !is_possible(&home, level) {
                continue;
            }
            let said = answers(&home, level, isolation, &commands);
            let place = format!("{level} {isolation} {user:?}: {said:?}");
            assert_eq!(said[0], "second\nfirst", "{place}");
            assert!(said[1].starts_with("[no output]") || said[1].starts_with("[exit code 1]"), "{place}");
            // Nothing but objects is shown, and nothing can be written.
            assert!(!said[2].contains("Clock") && !said[2].contains("refs/heads"), "{place}");
            assert!(!home.root().join("lender/.git/objects/evil").exists(), "{place}");
        }
    }
}

#[test]
fn objects_that_are_not_shown_are_explained_and_a_list_of_them_shows_nothing_else() {
    let home = borrowing(None);
    let secret = home.root().join("keys");
    std::fs::create_dir_all(&secret).unwrap();
    std::fs::write(secret.join("id_canary"), "canary").unwrap();
    let list = home.project().join(".git/objects/info/alternates");
    std::fs::write(&list, format!("{}\n", secret.display())).unwrap();
    for level in LEVELS {
        if !is_possible(&home, level) {
            continue;
        }
        let said = answers(&home, level, "none", &["git log", "cat $(cat .git/objects/info/alternates)/id_canary"]);
        assert!(!said[1].contains("canary\n") && said[1].contains("[exit code 1]"), "{level}: {said:?}");
        if level == "full" {
            assert!(said[0].contains("[git: this repository borrows objects from others."), "{said:?}");
        }
    }
}

#[test]
fn a_person_is_told_where_the_work_of_a_worktree_is() {
    let home = home(None);
    for (level, command, expected) in [("none", "echo new > new.txt", true), ("none", "true", false)] {
        let model = crate::commands::script(&home, &[vec![bash(command)]]);
        let said = ["run", "sh", "go", "--sandbox", level, "--isolation", "worktree", "--agents", "../agents"];
        let ran = home.locum(&[&said[..], &["--model", &model]].concat());
        let told = ran.stderr.lines().find(|line| line.starts_with("1 file changed on the branch locum/"));
        assert_eq!(told.is_some(), expected, "{command}: {ran:?}");
        let advice = told.and_then(|told| told.split('`').nth(1)).unwrap_or("locum worktree list");
        let words: Vec<&str> = advice.split(' ').skip(1).collect();
        assert_eq!(home.locum(&words).code, Some(0), "{advice}");
    }
}

#[test]
fn what_is_left_in_the_files_of_a_worktree_is_committed_at_the_end() {
    let home = home(None);
    if !is_possible(&home, "full") {
        return;
    }
    answers(&home, "full", "worktree", &["echo new > new.txt; git commit -a -m mine"]);
    let list = home.locum(&["worktree", "list", "--json"]);
    let list: Value = serde_json::from_str(&list.stdout).unwrap();
    let line = &list["worktrees"][0];
    assert!(line["files_changed"] == 1 && line["uncommitted"] == 0, "{list}");
}
