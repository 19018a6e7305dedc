//! Names at a project's root that programs outside act on: commands read what is there, cannot change where it leads,
//! and what they make there is moved away and kept.

use std::os::unix::fs::symlink;
use std::path::Path;

use crate::commands::{answers, bash, is_possible};
use crate::home::Home;

/// Somebody who owns nothing.
const NOBODY: u32 = 65_534;

/// Calls in one task, each in a turn of its own.
const TURNS: usize = 8;

/// How the note about a moved name begins.
const NOTE: &str = "[protected: `";

/// What is in the project before: a file with this text, or a link with `-> target`.
type Made = (&'static str, &'static str);

fn home(made: &[Made], user: Option<u32>) -> Home {
    let home = Home::new();
    for (path, text) in made {
        match text.strip_prefix("-> ") {
            Some(target) => symlink(target, home.project().join(path)).unwrap(),
            None => drop(home.write(path, text)),
        }
    }
    match user {
        Some(user) => home.given_to(user),
        None => home,
    }
}

/// What is at a path of the project: a file's text, a link's target, or nothing.
fn found(project: &Path, path: &str) -> Option<String> {
    let path = project.join(path);
    let target = std::fs::read_link(&path).map(|target| format!("-> {}", target.display()));
    target.or_else(|_| std::fs::read_to_string(&path)).ok()
}

fn users() -> Vec<Option<u32>> {
    if nix::unistd::getuid().is_root() { vec![None, Some(NOBODY)] } else { vec![None] }
}

/// Runs commands at the level `full`, each in a call of its own, and returns the answers.
fn run(made: &[Made], commands: &[&str], user: Option<u32>) -> Option<(Home, Vec<String>)> {
    let home = home(made, user);
    if !is_possible(&home, "full") {
        return None;
    }
    home.give();
    let calls: Vec<Vec<_>> = commands.iter().map(|command| vec![bash(command)]).collect();
    let said: Vec<String> = calls.chunks(TURNS).flat_map(|some| answers(&home, "full", some)).collect();
    assert_eq!(said.len(), commands.len(), "{said:?}");
    Some((home, said))
}

#[test]
fn links_at_protected_names_keep_leading_where_they_lead() {
    let made: [Made; 9] = [
        ("conf/cursor/mcp.json", "mine"),
        (".cursor", "-> conf/cursor"),
        ("tasks/real", "mine"),
        ("tasks/link", "-> real"),
        (".envrc", "-> tasks/link"),
        (".mcp.json", "-> ../outside.json"),
        (".codex", "-> later/codex"),
        (".claude", "-> conf/claude"),
        ("conf/claude/settings.json", "mine"),
    ];
    let refused = [
        // Replacing the link.
        "rm -f .cursor && mkdir .cursor",
        "ln -sfn other .cursor",
        "mv .cursor .cursor2",
        "mkdir other; mv -T other .cursor",
        "ln -sfn x .envrc",
        "echo '{}' > new.json; mv new.json .mcp.json",
        "rm .codex",
        "ln -sfn /tmp .claude",
        // Writing through it, and to what it leads to.
        "echo evil > .cursor/mcp.json",
        "echo evil > conf/cursor/mcp.json",
        "echo evil > conf/cursor/new.json",
        "echo evil > .envrc",
        "echo evil >> tasks/real",
        "echo evil > .claude/settings.json",
        "echo evil > conf/claude/settings.json",
        // What is outside is the command's own there, and gone with it.
        "echo evil > .mcp.json; false",
        // Changing something on the way.
        "mv conf conf2",
        "rm -rf conf",
        "mv conf/cursor conf/cursor2",
        "ln -sf evil tasks/link",
        "rm tasks/link",
        "mv tasks tasks2",
        "ln conf/cursor/mcp.json hard && echo evil > hard",
    ];
    let failing: Vec<String> = refused.iter().map(|command| format!("{{ {command}; }} && echo DONE; true")).collect();
    let mut commands: Vec<&str> =
        vec!["cat .cursor/mcp.json .envrc .claude/settings.json", "echo x > conf/free && cat conf/free"];
    commands.extend(failing.iter().map(String::as_str));
    for user in users() {
        let Some((home, said)) = run(&made, &commands, user) else { return };
        assert_eq!((said[0].as_str(), said[1].as_str()), ("mineminemine", "x"), "{user:?}: what is there can be read");
        for (command, said) in refused.iter().zip(&said[2..]) {
            assert!(!said.contains("DONE"), "{user:?}: {command}: {said}");
        }
        for (path, text) in made {
            assert_eq!(found(&home.project(), path).as_deref(), Some(text), "{user:?}: {path}");
        }
        assert!(!home.root().join("outside.json").exists());
    }
}

#[test]
fn what_a_dangling_link_leads_to_is_moved_away_when_it_is_made() {
    let made: [Made; 2] = [(".codex", "-> later/codex"), (".envrc", "-> .envrc.local")];
    let commands =
        ["mkdir -p later/codex && echo evil > later/codex/x; true", "echo evil > .envrc.local", "echo evil > .envrc"];
    for user in users() {
        let Some((home, said)) = run(&made, &commands, user) else { return };
        assert!(said.iter().all(|said| said.contains(NOTE)), "{said:?}");
        for path in ["later/codex", ".envrc.local"] {
            assert_eq!(found(&home.project(), path), None, "{path}");
        }
        assert_eq!(found(&home.project(), ".envrc.local.locum-kept-2").as_deref(), Some("evil\n"));
    }
}

#[test]
fn protected_names_that_a_command_makes_are_moved_away_and_kept() {
    // The command, what it was, and where it is now with what is in it.
    let cases: [(&str, &str, &str, Option<&str>); 9] = [
        ("echo evil > .mcp.json", ".mcp.json", ".mcp.json.locum-kept", Some("evil\n")),
        ("echo more > .mcp.json", ".mcp.json", ".mcp.json.locum-kept-2", Some("more\n")),
        ("echo evil > x && mv x .bashrc", ".bashrc", ".bashrc.locum-kept", Some("evil\n")),
        ("ln -s /etc/passwd .npmrc", ".npmrc", ".npmrc.locum-kept", Some("-> /etc/passwd")),
        (
            "mkdir v && echo evil > v/tasks.json && mv v .vscode",
            ".vscode",
            ".vscode.locum-kept/tasks.json",
            Some("evil\n"),
        ),
        (
            "mkdir .config && mkdir c && echo evil > c/config && mv c .config/git",
            ".config/git",
            ".config/git.locum-kept/config",
            Some("evil\n"),
        ),
        ("mkdir d && echo evil > d/config && mv d .cargo", ".cargo/config", ".cargo/config.locum-kept", Some("evil\n")),
        ("mkfifo .envrc", ".envrc", ".envrc.locum-kept", None),
        ("(echo evil > y && sleep 0.2 && mv y .zshrc) & wait", ".zshrc", ".zshrc.locum-kept", Some("evil\n")),
    ];
    let commands: Vec<&str> = cases.iter().map(|(command, ..)| *command).collect();
    for user in users() {
        let Some((home, said)) = run(&[], &commands, user) else { return };
        for ((command, name, kept, text), said) in cases.iter().zip(&said) {
            let place = format!("{user:?}: {command}: {said}");
            assert!(said.contains(&format!("{NOTE}{name}` was made while the command ran.")), "{place}");
            assert!(home.project().join(name).symlink_metadata().is_err(), "{place}");
            if let Some(text) = text {
                assert_eq!(found(&home.project(), kept).as_deref(), Some(*text), "{place}");
            }
        }
    }
}

#[test]
fn a_repository_is_not_made_at_the_root_by_a_command() {
    let home = Home::new();
    if !is_possible(&home, "full") {
        return;
    }
    std::fs::remove_dir_all(home.project().join(".git")).unwrap();
    let said = answers(
        &home,
        "full",
        &[vec![bash("git init -q . ; true"), bash("mkdir sub && git init -q sub && ls -d sub/.git")]],
    );
    assert!(said[0].contains("[protected: `.git` was made"), "{said:?}");
    assert_eq!(said[1], "sub/.git");
    assert!(!home.project().join(".git").exists() && home.project().join(".git.locum-kept").exists());
}

#[test]
fn a_command_that_goes_on_making_protected_names_is_ended() {
    let endless = "while :; do mkdir .vscode .idea .cursor 2>/dev/null; done";
    let Some((home, said)) = run(&[], &[endless], None) else { return };
    assert!(said[0].contains("the command did not stop making protected names and was ended"), "{said:?}");
    assert!(said[0].ends_with("[ended by signal 9]"), "{said:?}");
    for name in [".vscode", ".idea", ".cursor"] {
        assert!(!home.project().join(name).exists(), "{name}");
    }
}

#[test]
fn a_job_is_watched_until_its_end() {
    let home = Home::new();
    if !is_possible(&home, "full") {
        return;
    }
    let job = serde_json::json!({"name": "bash", "input": {"command": "touch .mcp.json; while [ -e .mcp.json ]; do :; done; touch gone; sleep 1000", "background": true}});
    let look = serde_json::json!({"name": "job", "input": {"job": 1, "stop": true}});
    let said = answers(
        &home,
        "full",
        &[vec![job], vec![bash("until [ -e gone ]; do sleep 0.01; done; ls -A | grep mcp")], vec![look]],
    );
    assert!(said[1].starts_with(".mcp.json.locum-kept"), "it is moved while the job still runs: {said:?}");
    // Both commands had a sentry, and one of them was faster.
    assert!(said[1..].iter().any(|said| said.contains(NOTE)), "{said:?}");
}

#[test]
fn without_namespaces_names_in_the_project_are_not_protected() {
    for level in ["landlock", "none"] {
        let home = home(&[(".envrc", "mine"), ("conf/x", ""), (".cursor", "-> conf")], None);
        if !is_possible(&home, level) {
            continue;
        }
        let said =
            answers(&home, level, &[vec![bash("echo evil > .envrc; echo evil > .mcp.json; rm .cursor; echo ok")]]);
        assert_eq!(said, ["ok"], "{level}");
        assert_eq!(found(&home.project(), ".mcp.json").as_deref(), Some("evil\n"), "{level}");
    }
}
