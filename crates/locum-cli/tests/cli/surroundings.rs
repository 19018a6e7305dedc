//! What is printed about locum itself: help, tools, prompt, settings, completions.

use serde_json::{Value, json};

use crate::home::Home;

const VERBS: [&str; 17] = [
    "run", "parallel", "chain", "spawn", "status", "wait", "collect", "result", "cancel", "logs", "agents", "context",
    "call", "tools", "prompt", "mcp", "config",
];

/// Runs a command that must succeed and say nothing on standard error.
fn ask(home: &Home, arguments: &[&str]) -> String {
    let ran = home.locum(arguments);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{arguments:?}");
    assert!(!ran.stdout.contains('\u{1b}'), "{arguments:?}");
    ran.stdout
}

#[test]
fn every_verb_has_help() {
    let home = Home::new();
    let all = ask(&home, &["--help"]);
    for verb in VERBS.into_iter().chain(["completions"]) {
        assert!(all.lines().any(|line| line.trim_start().starts_with(verb)), "{verb} is not in the list");
        assert!(ask(&home, &[verb, "--help"]).contains("Usage: locum "), "{verb}");
        assert!(ask(&home, &[verb, "-h"]).contains("Usage: locum "), "{verb}");
    }
    let inner = [
        ["agents", "list"],
        ["agents", "show"],
        ["context", "list"],
        ["context", "read"],
        ["context", "write"],
        ["context", "delete"],
        ["config", "show"],
    ];
    for [verb, inner] in inner {
        assert!(ask(&home, &[verb, inner, "--help"]).contains("Usage: locum "), "{verb} {inner}");
    }
    assert_eq!(ask(&home, &["--version"]), format!("locum {}\n", env!("CARGO_PKG_VERSION")));
    // Help needs no home: nothing was written.
    assert!(!home.locum_home().exists());
}

#[test]
fn wrong_usage_exits_with_2() {
    let home = Home::new();
    let cases: [&[&str]; 9] = [
        &[],
        &["nothing"],
        &["run"],
        &["run", "writer"],
        &["status", "a", "b"],
        &["collect"],
        &["agents"],
        &["wait", "--timeout", "soon"],
        &["completions", "nothing"],
    ];
    for arguments in cases {
        let ran = home.locum(arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{arguments:?}: {}", ran.stderr);
        assert!(!ran.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn tools_are_printed_as_a_model_sees_them() {
    let home = Home::new();
    let printed: Value = serde_json::from_str(&ask(&home, &["tools", "--json"])).unwrap();
    assert_eq!(printed, json!({"tools": locum::protocol::schema::native_tools()}));
    let text = ask(&home, &["tools"]);
    assert!(text.starts_with("subagent\n") && text.contains("\nshared_context\n"), "{text}");
}

#[test]
fn the_prompt_names_the_agents() {
    let home = Home::new();
    let prompt = ask(&home, &["prompt"]);
    assert!(prompt.contains("explore") && prompt.contains("subagent"), "{prompt}");
}

#[test]
fn every_setting_is_shown_with_its_origin() {
    let home = Home::new().with("LOCUM_MAX_RUNNING", "7");
    std::fs::create_dir_all(home.locum_home().join("config")).unwrap();
    let file = home.locum_home().join("config/config.toml");
    std::fs::write(&file, "[limits]\nmax_turns = 30\nmax_running = 6\n").unwrap();
    let printed = ask(&home, &["config", "show", "--json", "--model", "offline"]);
    let shown: Value = serde_json::from_str(&printed).unwrap();
    let setting = |name: &str| {
        let all = shown["settings"].as_array().unwrap();
        all.iter().find(|setting| setting["name"] == name).unwrap_or_else(|| panic!("{name}: {shown}"))
    };
    assert_eq!(
        setting("limits.max_running"),
        &json!({"name": "limits.max_running", "value": 7, "origin": "$LOCUM_MAX_RUNNING"})
    );
    assert_eq!(setting("limits.max_turns"), &json!({"name": "limits.max_turns", "value": 30, "origin": file}));
    assert_eq!(setting("limits.max_depth"), &json!({"name": "limits.max_depth", "value": 1, "origin": "default"}));
    assert_eq!(setting("model"), &json!({"name": "model", "value": "offline", "origin": "--model"}));
    assert_eq!(shown["config_file"], json!(file));
    let table = home.locum(&["config", "show"]);
    assert!(table.stdout.contains("limits.max_running") && table.stdout.contains("$LOCUM_MAX_RUNNING"), "{table:?}");
}

#[test]
fn settings_that_cannot_be_used_are_named_with_their_place() {
    let home = Home::new().with("LOCUM_MAX_TURNS", "many");
    let ran = home.locum(&["status"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    assert!(ran.stderr.contains("$LOCUM_MAX_TURNS"), "{}", ran.stderr);
    let home = Home::new();
    for (model, said) in [("scripted:nowhere.json", "nowhere.json"), ("no-such-model", "no-such-model")] {
        let ran = home.locum(&["call", "subagent", r#"{"action": "status"}"#, "--model", model]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{model}");
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
    }
}

#[test]
fn completions_of_shells_that_ask_nobody_know_every_verb() {
    let home = Home::new();
    for shell in ["elvish", "powershell"] {
        let script = ask(&home, &["completions", shell]);
        for verb in VERBS {
            assert!(script.contains(verb), "{shell}: {verb}");
        }
    }
}
