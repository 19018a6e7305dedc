//! `agents show`: every value of an agent and where it is written; agents that are not waited for.

use serde_json::{Value, json};

use crate::home::Home;

fn write_home(home: &Home, path: &str, text: &str) {
    let path = home.root().join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn said(home: &Home, arguments: &[&str]) -> String {
    let ran = home.locum(arguments);
    format!("{}{}[{}]", ran.stdout, ran.stderr, ran.code.unwrap()).replace(&home.root().display().to_string(), "ROOT")
}

#[test]
fn every_value_is_shown_with_the_line_that_says_it() {
    let home = Home::new();
    write_home(&home, "home/config/agents/_defaults.md", "---\ntimeout: 90\n---\n");
    let base = "---\nname: base\ndescription: The base\ntools: Read, Teleport\ncolor: red\n---\nYou are base.\n";
    write_home(&home, ".claude/agents/base.md", base);
    let leaf = "---\nextends: base\ndescription: A le\u{202e}af\nmaxTurns: 99\nhooks: {stop: x}\n---\nAnd leaf.\n";
    home.write(".locum/agents/leaf.md", leaf);
    home.write(".locum/agents/looker.md", "---\nextends: explore\ndescription: Looks\n---\nLook twice.\n");
    write_home(&home, ".tallow/agents/leaf.md", "---\ndescription: The user's\n---\nYou are the user's.\n");
    insta::assert_snapshot!("untrusted", said(&home, &["agents", "show", "leaf"]));
    assert_eq!(home.locum(&["agents", "trust", "--yes"]).code, Some(0));
    insta::assert_snapshot!("trusted", said(&home, &["agents", "show", "Leaf"]));
    insta::assert_snapshot!("json", said(&home, &["agents", "show", "leaf", "--json"]));
    let looker = said(&home, &["agents", "show", "looker"]);
    assert!(
        looker.contains("readonly    true  [agent ROOT/project/.locum/agents/looker.md, extends explore]"),
        "{looker}"
    );
    insta::assert_snapshot!(said(&home, &["agents", "show", "leef"]), @r"
    error: no agent is called `leef` (AGENT_NOT_FOUND)
    hint: did you mean leaf? `locum agents list` shows all
    [1]
    ");
}

/// An agent may say that nobody waits for it; whoever asks may say otherwise.
#[test]
fn an_agent_of_the_background_is_waited_for_only_where_the_call_says_so() {
    let home = Home::new();
    home.write("agents/slow.md", "---\ndescription: d\ntools: ls\nbackground: true\n---\nYou are slow.\n");
    home.write("agents/quick.md", "---\ndescription: d\ntools: ls\n---\nYou are quick.\n");
    let script = home.script(&json!({"*": [{"text": "Done: {{task}}"}]}));
    let home = home.with("LOCUM_MODEL", &script);
    let run = |arguments: &[&str]| {
        let ran = home.locum(&[&["run"], arguments, &["Go.", "--agents", "agents"]].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.stdout
    };
    assert_eq!(run(&["slow"]), "t_01\n");
    assert_eq!(run(&["slow", "--wait"]), "Done: Go.\n");
    assert_eq!(run(&["quick"]), "Done: Go.\n");
    assert_eq!(run(&["quick", "--background"]), "t_04\n");
    assert_eq!(run(&["slow", "--json"]), "{\"task_ids\":[\"t_05\"]}\n");
    // What was left goes on without the command.
    for id in ["t_01", "t_04", "t_05"] {
        assert_eq!(home.locum(&["wait", id]).code, Some(0));
        assert_eq!(home.locum(&["collect", id]).stdout, "Done: Go.\n");
    }
    let call = |input: Value| {
        let ran = home.locum(&["call", "subagent", &input.to_string(), "--agents", "agents", "--session", "called"]);
        let answer: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
        answer
    };
    let asked = json!({"action": "run", "agent": "slow", "task": "Go.", "idempotency_key": "k"});
    assert_eq!(call(asked.clone())["task_ids"], json!(["t_01"]));
    assert_eq!(call(asked)["task_ids"], json!(["t_01"]), "the same request has the same answer");
    let waited = call(json!({"action": "run", "agent": "slow", "task": "Go.", "background": false}));
    assert_eq!(waited["result"], "Done: Go.");
    // Those who ask several at once, or in turn, wait for what they asked for.
    let chained = call(
        json!({"action": "chain", "tasks": [{"agent": "slow", "task": "a"}, {"agent": "quick", "task": "{previous}!"}]}),
    );
    assert_eq!(chained["result"], "Done: Done: a!");
    assert_eq!(home.locum(&["wait", "--session", "called"]).code, Some(0));
}
