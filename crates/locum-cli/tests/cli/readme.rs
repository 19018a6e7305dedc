//! What the README promises: its commands and snippets work as they are written.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::home::{Home, run};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn readme() -> String {
    std::fs::read_to_string(repository().join("README.md")).unwrap()
}

/// The blocks of the README that are marked as this language.
fn blocks(language: &str) -> Vec<String> {
    let readme = readme();
    let mut blocks = Vec::new();
    let mut rest = readme.as_str();
    while let Some((_, after)) = rest.split_once("```") {
        let (block, after) = after.split_once("```").unwrap();
        let (name, text) = block.split_once('\n').unwrap();
        if name == language {
            blocks.push(text.to_owned());
        }
        rest = after;
    }
    blocks
}

/// Everything in an answer that looks like `path:line`. What is indented is quoted from files.
fn references(text: &str) -> Vec<(String, usize)> {
    let text: String = text.lines().filter(|line| !line.starts_with(' ')).map(|line| format!("{line}\n")).collect();
    let is_part = |c: char| c.is_alphanumeric() || "._-/:".contains(c);
    let word = |word: &str| {
        let (path, line) = word.trim_end_matches(['.', ':']).rsplit_once(':')?;
        (path.contains('.') && !path.contains(':')).then_some((path.to_owned(), line.parse().ok()?))
    };
    text.split(|c| !is_part(c)).filter_map(word).collect()
}

#[test]
fn the_first_command_answers_from_a_fresh_clone_without_a_key_or_a_network() {
    let block = blocks("sh").into_iter().find(|block| block.starts_with("cargo run")).unwrap();
    let (cargo, rest) = block.trim().split_once(" -- ").unwrap();
    assert_eq!(cargo, "cargo run");
    let (words, question) = rest.split_once('"').unwrap();
    let arguments: Vec<&str> = words.split_whitespace().chain([question.trim_end_matches('"')]).collect();
    assert_eq!(&arguments[..2], ["run", "explore"]);

    let home = Home::new();
    let mut command = home.command(&arguments);
    command.current_dir(repository());
    let ran = run(command, b"");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    // Nothing but the built-in model could answer.
    assert!(ran.stderr.contains(" · offline · "), "{}", ran.stderr);
    let references = references(&ran.stdout);
    assert!(!references.is_empty(), "{}", ran.stdout);
    for (path, line) in &references {
        let text = std::fs::read_to_string(repository().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        assert!((1..=text.lines().count()).contains(line), "{path}:{line}");
    }
    // The README shows where the answer is; lines move with every edit, files seldom do.
    for (path, _) in blocks("text").iter().flat_map(|block| self::references(block)) {
        assert!(references.iter().any(|(found, _)| *found == path), "{path}: {references:?}");
    }
}

#[test]
fn the_agent_and_its_script_work_together() {
    let home = Home::new();
    let agent = blocks("markdown").into_iter().next().unwrap();
    home.write("agents/sql-reviewer.md", &agent);
    let script = blocks("json").into_iter().find(|block| block.contains("tool_calls")).unwrap();
    let script = home.write("script.json", &script);
    let model = format!("scripted:{}", script.display());
    let ran = home.locum(&["--agents", "agents", "run", "sql-reviewer", "Check it", "--json", "--model", &model]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(answer["result"], "No migrations: Check it");
    let usage = &answer["usage"];
    assert_eq!((&usage["tool_calls"], &usage["denials"]), (&json!(1), &json!(0)), "the agent lacks a tool: {answer}");
}

#[test]
fn the_host_entry_starts_this_server() {
    let entry = blocks("json").into_iter().find(|block| block.contains("mcpServers")).unwrap();
    let entry: Value = serde_json::from_str(&entry).unwrap();
    assert_eq!(entry, json!({"mcpServers": {"locum": {"command": "locum", "args": ["mcp"]}}}));
}

#[test]
fn every_verb_at_the_shell_exists() {
    let home = Home::new();
    let shell: Vec<String> = blocks("sh").into_iter().filter(|block| block.contains("locum ")).collect();
    let mut checked = 0;
    for line in shell.iter().flat_map(|block| block.lines()) {
        let commands = line.split("locum ").skip(1).map(|rest| rest.split_whitespace().next().unwrap());
        for verb in commands.filter(|verb| !verb.starts_with('-')) {
            assert_eq!(home.locum(&[verb, "--help"]).code, Some(0), "{line}");
            checked += 1;
        }
    }
    assert!(checked >= 9, "{checked}");
}
