//! Command lines that are being typed: what locum offers, and what a shell makes of it.

use std::io::Write as _;

use serde_json::json;

use crate::home::{Home, run};
use crate::pages::{program, project, shell};
use crate::terminal::Terminal;

/// What is offered for the last of these words, without what it is.
fn offered(home: &Home, words: &[&str]) -> Vec<String> {
    let ran = home.locum(&[&["__complete", "--", "locum"], words].concat());
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{words:?}");
    ran.stdout.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
}

/// A home with two tasks that have ended, one of them collected, one task on the board, and an agent of the user's.
fn furnished() -> Home {
    let home = project();
    let model = home.script(&json!({"*": [{"text": "Done."}]}));
    std::fs::create_dir_all(home.root().join("more")).unwrap();
    let agent = "---\nname: harbour-scout\ndescription: Scouts harbours\n---\nYou scout.\n";
    std::fs::write(home.root().join("more/harbour-scout.md"), agent).unwrap();
    for arguments in [
        &["run", "explore", "t", "--model", &model][..],
        &["spawn", "explore", "t", "--model", &model, "--label", "harbour"],
        &["wait", "t_02"],
        &["board", "add", "Write the tables"],
        &["run", "explore", "t", "--session", "other", "--model", &model],
    ] {
        let ran = home.locum(arguments);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    home
}

#[test]
fn what_there_is_can_be_named() {
    let home = furnished();
    let more = home.root().join("more").display().to_string();
    let cases: [(&[&str], &[&str]); 19] = [
        (&["wat"], &["watch"]),
        (&["board", "comp"], &["complete", "complete-all"]),
        (&["run", "arch"], &["architect"]),
        (&["run", "harb"], &[]),
        (&["--agents", &more, "run", "harb"], &["harbour-scout"]),
        (&["run", "--agents", &more, "harb"], &["harbour-scout"]),
        (&["parallel", "arch"], &["architect="]),
        (&["agents", "show", "arch"], &["architect"]),
        (&["logs", ""], &["t_02", "t_01"]),
        (&["collect", ""], &["t_02"]),
        (&["cancel", ""], &[]),
        (&["--session", "other", "logs", ""], &["t_01"]),
        (&["logs", "", "--session=oth"], &["--session=other"]),
        (&["run", "explore", "t", "--session", ""], &["main", "other"]),
        (&["board", "claim", ""], &["b_01"]),
        (&["call", "sub"], &["subagent"]),
        (&["--model", "offl"], &["offline"]),
        (&["run", "--isol"], &["--isolation"]),
        (&["run", "--isolation", "w"], &["worktree"]),
    ];
    for (words, names) in cases {
        assert_eq!(offered(&home, words), names, "{words:?}");
    }
    let ran = home.locum(&["__complete", "--", "locum", "logs", "t_02"]);
    assert_eq!(ran.stdout.trim_end(), "t_02\t@explore completed: harbour", "and what it is");
}

#[test]
fn nothing_is_said_where_nothing_is_known_and_nothing_is_made_by_looking() {
    let home = Home::new();
    assert!(offered(&home, &["run", "arch"]).contains(&"architect".to_owned()), "agents need no database");
    assert_eq!(offered(&home, &["logs", ""]), [""; 0]);
    assert!(!home.locum_home().exists(), "somebody typed a line, and nothing else");
    std::fs::create_dir_all(home.locum_home().join("config")).unwrap();
    std::fs::create_dir_all(home.locum_home().join("data")).unwrap();
    let cases = [("config/config.toml", "this is no setting"), ("data/locum.db", "this is no database")];
    for (path, text) in cases {
        std::fs::write(home.locum_home().join(path), text).unwrap();
        assert_eq!(offered(&home, &["logs", ""]), [""; 0], "{path}");
        assert_eq!(offered(&home, &["wat"]), ["watch"], "{path}");
    }
    let lines: [&[&str]; 5] = [
        &[],
        &["nothing", "at", ""],
        &["--", ""],
        &["--server", "http://127.0.0.1:1", "logs", ""],
        &["run", "é\u{1b}"],
    ];
    for words in lines {
        let ran = home.locum(&[&["__complete", "--", "locum"], words].concat());
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{words:?}");
    }
}

/// Lines that are typed, with tabs, and what they become.
const TYPED: [(&str, &str); 6] = [
    ("locum agents show archi\t", "locum agents show architect "),
    ("locum logs t_02\t", "locum logs t_02 "),
    // What bash takes apart at = and : is put together again.
    ("locum parallel archi\t'a task'", "locum parallel architect='a task'"),
    ("locum logs --session=oth\t", "locum logs --session=other "),
    ("locum --session other logs t_0\t", "locum --session other logs t_01 "),
    ("locum run --isolation worktree arch\t", "locum run --isolation worktree architect "),
];

/// Takes the whole line back: it is not run, only looked at.
const FORGET: &str = "\u{5}\u{15}";

/// A shell at a terminal, in which completion is set up with these lines, completes what is typed.
fn completes(mut terminal: Terminal, setup: &str) {
    terminal.shows("ready> ");
    terminal.types(setup);
    for (typed, line) in TYPED {
        terminal.presses(typed);
        terminal.shows(line);
        terminal.presses(FORGET);
    }
    terminal.presses("locum board comp\t\t\t");
    terminal.shows("complete-all");
    terminal.presses(FORGET);
    terminal.types("PATH=/nowhere");
    terminal.presses("locum run arch\t");
    terminal.presses(FORGET);
    terminal.types("exit 7");
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(7), "{screen}");
    assert!(!screen.contains("not found"), "a locum that is gone says nothing:\n{screen}");
}

/// Whether a program is there. One that is not is said, beside what tests print, and is a failure where
/// `LOCUM_TEST_PROGRAMS` names it.
pub(crate) fn is_there(program: &str) -> bool {
    let found = std::process::Command::new(program).arg("--version").output();
    let is_there = found.is_ok_and(|output| output.status.success());
    let wanted = std::env::var("LOCUM_TEST_PROGRAMS").unwrap_or_default();
    assert!(is_there || !wanted.split(',').any(|name| name == program), "{program} is wanted and is not there");
    if !is_there {
        writeln!(std::io::stderr(), "\nnot tried: {program} is not installed").ok();
    }
    is_there
}

#[test]
fn bash_completes_what_is_typed() {
    let home = furnished();
    assert_eq!(shell(&home, "locum completions bash > completion").code, Some(0));
    let mut command = program(&home, "bash", &["--norc", "--noprofile", "-i"]);
    command.env("PS1", "ready> ").env("TERM", "dumb").env("INPUTRC", "/dev/null");
    completes(Terminal::run(command), "bind 'set bell-style none'; source completion");
}

#[test]
fn zsh_completes_what_is_typed_where_there_is_one() {
    if !is_there("zsh") {
        return;
    }
    let home = furnished();
    assert_eq!(shell(&home, "locum completions zsh > completion").code, Some(0));
    let mut command = program(&home, "zsh", &["-f", "-i"]);
    command.env("PS1", "ready> ").env("TERM", "dumb");
    completes(Terminal::run(command), "autoload -U compinit; compinit -D; source completion");
}

#[test]
fn fish_completes_what_is_typed_where_there_is_one() {
    if !is_there("fish") {
        return;
    }
    let home = furnished();
    assert_eq!(shell(&home, "locum completions fish > completion").code, Some(0));
    for (typed, offered) in [
        ("locum agents show archi", "architect\t"),
        ("locum logs t_02", "t_02\t@explore completed: harbour"),
        ("locum parallel archi", "architect=\t"),
        ("locum logs --session other t_", "t_01\t"),
        ("locum run --isolation worktree arch", "architect\t"),
        ("locum board comp", "complete-all\t"),
    ] {
        let script = format!("source completion; complete -C '{typed}'");
        let ran = run(program(&home, "fish", &["--no-config", "-c", &script]), b"");
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{typed}");
        assert!(ran.stdout.lines().any(|line| line.starts_with(offered)), "{typed}: {}", ran.stdout);
    }
}

#[test]
fn every_shell_has_a_script_that_asks() {
    let home = Home::new();
    for (shell, asks) in [("bash", true), ("zsh", true), ("fish", true), ("elvish", false), ("powershell", false)] {
        let ran = home.locum(&["completions", shell]);
        assert_eq!((ran.code, ran.stdout.contains("locum __complete -- ")), (Some(0), asks), "{shell}");
    }
}
