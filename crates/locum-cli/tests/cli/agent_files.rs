//! Agent files at the command line: what is said about broken ones, what other programs would lose, and new ones.

use serde_json::{Value, json};

use crate::home::Home;

const GOOD: &str = "---\ndescription: Good\n---\nBe good.\n";

fn home_with(files: &[(&str, &str)]) -> Home {
    let home = Home::new();
    for (path, text) in files {
        home.write(path, text);
    }
    home
}

/// Standard output, standard error and the exit code of a command, without the paths of this run.
fn said(home: &Home, arguments: &[&str]) -> String {
    let ran = home.locum(arguments);
    assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
    let root = home.root().display().to_string();
    format!("{}{}[{}]", ran.stdout, ran.stderr, ran.code.unwrap()).replace(&root, "ROOT")
}

#[test]
fn lint_says_where_what_and_what_to_do() {
    let home = home_with(&[
        ("agents/good.md", GOOD),
        ("agents/typo.md", "---\nname: typo\ndescription: Use when: tired\nmaxTurn: 3\ntools: Raed\n---\nType.\n"),
        ("agents/broken.md", "---\nname: Broken One\ndescription: [\n---\nBreak.\n"),
        ("agents/wrong.md", "---\ndescription: d\nmaxTurns: many\nreadonly: perhaps\n---\nBe wrong.\n"),
        ("agents/lost.md", "---\ndescription: d\nextends: explorre\n---\nBe lost.\n"),
        ("agents/inner/good.md", GOOD),
        ("agents/_defaults.md", "---\nmaxTurns: 5\ncolor: red\n---\n"),
    ]);
    insta::assert_snapshot!(said(&home, &["agents", "lint", "agents"]));
    insta::assert_snapshot!(said(&home, &["agents", "lint", "agents/inner"]));
    insta::assert_snapshot!(said(&home, &["agents", "lint", "agents/typo.md", "--strict"]));
    insta::assert_snapshot!(said(&home, &["agents", "lint", "nowhere.md"]));
}

#[test]
fn lint_looks_at_every_place() {
    let home = home_with(&[
        (".claude/agents/a.md", "---\nname: a\ndescription: d\nhooks: {}\n---\nBe a.\n"),
        (".acai/subagents/b.md", "---\nname: other\ndescription: d\n---\nBe b.\n"),
        (".locum/agents/c.md", GOOD),
    ]);
    insta::assert_snapshot!(said(&home, &["agents", "lint"]));
}

#[test]
fn lint_says_what_other_programs_would_lose() {
    let file = "---\nname: all\ndescription: d\nmodel: auto-cheap\ntools: [read, Bash, tree, mcp__github__search]\n\
                disallowed_tools: write\nsteps: 3\ntimeout_mins: 2\nmcpServers: [{name: a}]\nisolation: process\n\
                readonly: true\nthinking: high\nhooks: {}\nextends: explore\nlocum: {max_depth: 0}\n---\nDo {{task}}.\n";
    let home = home_with(&[("agents/all.md", file), ("agents/nameless.md", GOOD)]);
    for program in ["claude", "tallow", "acai", "pi", "native"] {
        insta::assert_snapshot!(program, said(&home, &["agents", "lint", "agents", "--for", program]));
    }
}

#[test]
fn lint_answers_programs() {
    let home = home_with(&[("agents/typo.md", "---\ndescription: d\nmaxTurn: 3\n---\nType.\n")]);
    let ran = home.locum(&["agents", "lint", "agents", "--json"]);
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, &answer["errors"], &answer["warnings"]), (Some(0), &0.into(), &1.into()));
    let file = &answer["files"][0];
    assert_eq!(file["agent"], "typo");
    assert!(file["path"].as_str().unwrap().ends_with("agents/typo.md"));
    let note = &file["notes"][0];
    assert_eq!((&note["line"], &note["column"]), (&3.into(), &1.into()));
    assert_eq!((&note["severity"], &note["topic"]), (&"warning".into(), &"unknown_key".into()));
}

/// Whoever lints sees the files that whoever asks an agent sees: packages, what was named, nothing behind a link out of
/// the project.
#[test]
fn lint_looks_where_agents_are_looked_for() {
    let home = Home::new();
    let broken = "---\nmaxTurns: many\n---\nBody.\n";
    let write = |path: &str| {
        let path = home.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, broken).unwrap();
    };
    for path in [
        "pack/agents/a.md",
        ".pi/agent/agents/b.md",
        "home/config/agents/c.md",
        "project/.acai/subagents/d.md",
        "top/deep/e.md",
    ] {
        write(path);
    }
    std::fs::write(home.locum_home().join("config/config.toml"), "[agents]\npackages = [\"~/pack\"]\n").unwrap();
    std::fs::create_dir_all(home.project().join(".claude")).unwrap();
    std::os::unix::fs::symlink(home.root().join("top"), home.project().join(".claude/agents")).unwrap();
    let places = ["--agents", "../top", "--agents", "nowhere", "--json"];
    let linted: Value = serde_json::from_str(&home.locum(&[&["agents", "lint"][..], &places].concat()).stdout).unwrap();
    let listed: Value = serde_json::from_str(&home.locum(&[&["agents", "list"][..], &places].concat()).stdout).unwrap();
    let paths = |all: &Value, key: &str| {
        let mut paths: Vec<String> =
            all.as_array().unwrap().iter().map(|file| file[key].as_str().unwrap().to_owned()).collect();
        paths.sort();
        paths
    };
    assert_eq!(paths(&linted["files"], "path"), paths(&listed["problems"], "file"));
    assert_eq!(linted["files"].as_array().unwrap().len(), 7, "{linted}");
}

#[test]
fn any_agent_with_a_file_may_be_copied() {
    let home = Home::new();
    let path = home.root().join(".claude/agents/mine.md");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, "---\nname: mine\ndescription: Mine\n---\nBe mine.\n").unwrap();
    let ran = home.locum(&["agents", "new", "yours", "--from", "mine"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let copy = std::fs::read_to_string(home.project().join(".locum/agents/yours.md")).unwrap();
    assert!(copy.contains("name: yours") && copy.contains("Be mine."), "{copy}");
}

#[test]
fn one_broken_file_is_listed_and_the_others_work() {
    let home = home_with(&[
        ("agents/good.md", "---\ndescription: Good\n---\nBe good.\n"),
        ("agents/broken.md", "---\ndescription: d\nmaxTurns: many\n---\nBreak.\n"),
    ]);
    let model = home.script(&serde_json::json!({"good": [{"text": "well"}]}));
    let ran = home.locum(&["run", "good", "how?", "--agents", "agents", "--model", &model]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "well\n"), "{}", ran.stderr);
    let listed = home.locum(&["agents", "list", "--agents", "agents"]);
    let all = format!("{}{}", listed.stdout, listed.stderr);
    assert!(
        all.contains("agents/broken.md:3:11: `maxTurns` takes a whole number, for example 10; found `many`"),
        "{all}"
    );
    assert!(listed.stdout.contains("good"), "{all}");
}

#[test]
fn a_pipe_among_the_files_does_not_hold_anything_up() {
    let home = home_with(&[("agents/good.md", GOOD)]);
    nix::unistd::mkfifo(&home.project().join("agents/pipe.md"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let ran = home.locum(&["agents", "list", "--agents", "agents"]);
    assert_eq!(ran.code, Some(0));
    assert!(format!("{}{}", ran.stdout, ran.stderr).contains("not a regular file"), "{ran:?}");
    assert!(said(&home, &["agents", "lint", "agents"]).contains("agents/pipe.md:1:1: error: "));
}

#[test]
fn a_new_agent_is_written_where_it_is_said_and_takes_no_place() {
    let home = Home::new();
    insta::assert_snapshot!(said(&home, &["agents", "new", "sql-reviewer"]));
    let path = home.project().join(".locum/agents/sql-reviewer.md");
    assert!(std::fs::read_to_string(&path).unwrap().starts_with("---\nname: sql-reviewer\n"));
    std::fs::write(&path, "mine").unwrap();
    insta::assert_snapshot!(said(&home, &["agents", "new", "sql-reviewer"]));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
    insta::assert_snapshot!(said(&home, &["agents", "new", "SQL Reviewer"]));
    insta::assert_snapshot!(said(&home, &["agents", "new", "a", "--from", "nobody"]));
    insta::assert_snapshot!(said(&home, &["agents", "new", "a", "--user", "--dir", "x"]).lines().next().unwrap());
}

#[test]
fn a_new_agent_may_be_a_copy() {
    let home = Home::new();
    insta::assert_snapshot!(said(&home, &["agents", "new", "looker", "--from", "explore", "--dir", "agents"]));
    let copy = std::fs::read_to_string(home.project().join("agents/looker.md")).unwrap();
    assert!(copy.starts_with("---\nname: looker\ndescription: \"Cheap"), "{copy}");
    let agents = ["--agents", "agents"];
    let again = ["agents", "new", "second", "--from", "looker", "--user", agents[0], agents[1]];
    insta::assert_snapshot!(said(&home, &again));
    insta::assert_snapshot!(said(&home, &["agents", "lint"]));
    let shown = home.locum(&["agents", "show", "looker", agents[0], agents[1]]);
    assert!(shown.stdout.contains("looker: Cheap"), "{}", shown.stdout);
}

#[test]
fn strict_refuses_what_would_be_left_out_and_nothing_is_written() {
    let home = Home::new();
    let script = home.script(&json!({"*": [{"text": "Done."}]}));
    let home = home.with("LOCUM_MODEL", &script);
    let cases = [
        ("toolless", "tools: ls, Teleport", "the tool `Teleport`"),
        ("endless", "tools: ls\nmaxTurns: 99", "99"),
        ("modelless", "tools: ls\nmodel: nobodys-model", "`nobodys-model` is not known"),
        ("hooked", "tools: ls\nhooks: {stop: rm}", "`hooks`: locum runs no hooks yet"),
        ("serverless", "tools: ls\nmcpServers: github", "the agent's MCP server `github` is not reached"),
    ];
    for (name, fields, loss) in cases {
        home.write(&format!("agents/{name}.md"), &format!("---\ndescription: d\n{fields}\n---\nYou help.\n"));
        for verb in [&["run", name, "Go."][..], &["spawn", name, "Go."], &["chain", &format!("{name}=Go.")]] {
            let strict = [verb, &["--strict", "--json", "--agents", "agents"]].concat();
            let ran = home.locum(&strict);
            let refused: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
            assert_eq!((ran.code, &refused["error"]), (Some(1), &json!("INVALID_REQUEST")), "{refused}");
            assert!(refused["message"].as_str().unwrap().contains(loss), "{refused}");
        }
        let ran = home.locum(&["run", name, "Go.", "--json", "--agents", "agents"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    let ids: Vec<String> = (1..=cases.len()).map(|number| format!("t_{number:02}")).collect();
    let last = home.locum(&["result", ids.last().unwrap(), "--json"]);
    assert_eq!(last.code, Some(0), "a refusal took an id: {last:?}");
    home.write("agents/whole.md", "---\ndescription: d\ntools: ls\n---\nYou help.\n");
    let ran = home.locum(&["run", "whole", "Go.", "--strict", "--agents", "agents"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

/// Of two, one before and one behind the verb, only the last was kept.
#[test]
fn directories_before_and_behind_the_verb_both_count() {
    let home = Home::new();
    for name in ["one", "two", "three"] {
        home.write(&format!("{name}/{name}.md"), &format!("---\nname: {name}\ndescription: The {name}.\n---\nWork.\n"));
    }
    let ran = home.locum(&["--agents", "one", "agents", "--agents", "two", "list", "--agents", "three", "--json"]);
    let listed: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    let names: Vec<&str> =
        listed["agents"].as_array().unwrap().iter().filter_map(|agent| agent["name"].as_str()).collect();
    for name in ["one", "two", "three"] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
}
