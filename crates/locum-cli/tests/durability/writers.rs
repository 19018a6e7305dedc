//! Two tasks that write one file: the second one is refused with the first one's name, whichever processes they run in.

use std::fs;

use serde_json::{Value, json};

use crate::home::{Home, until, whole_lines};

/// `ann` writes a file and goes on until `bob` has tried to; `bob` has read it before.
fn home() -> Home {
    let bash = |command: &str| json!({"tool_calls": [{"name": "bash", "input": {"command": command}}]});
    let until_there = |name: &str| bash(&format!("until test -e {name}; do sleep 0.02; done"));
    let write =
        |content: &str| json!({"tool_calls": [{"name": "write", "input": {"path": "b.txt", "content": content}}]});
    let read = json!({"tool_calls": [{"name": "read", "input": {"path": "b.txt"}}]});
    let mut home = Home::scripted(&json!({
        "ann": [write("ann"), until_there("tried"), {"text": "done"}],
        "bob": [until_there("b.txt"), read, write("bob"), bash("touch tried"), {"text": "done"}],
    }));
    home.set("LOCUM_SANDBOX", "none");
    home.set("LOCUM_SESSION", "s");
    for name in ["ann", "bob"] {
        home.agent(name, "tools: bash, read, write", "You write.");
    }
    home
}

/// What the calls of a task were answered.
fn told(home: &Home, task: &str) -> Vec<String> {
    let log = whole_lines(&home.output(&["logs", task, "--json"]).stdout);
    log.iter().filter_map(|record| Some(record["event"]["output"]["text"].as_str()?.to_owned())).collect()
}

fn check(home: &Home, place: &str) {
    let refused = "`b.txt` is being written by subagent:ann:t_01, which has not ended; leave this file to it";
    let bob = told(home, "t_02");
    assert!(bob.iter().any(|text| text == refused), "{place}: {bob:?}");
    assert_eq!(fs::read_to_string(home.project().join("b.txt")).unwrap(), "ann", "{place}");
}

#[test]
fn worker_processes_of_one_parent_do_not_write_one_file() {
    for (ann, bob) in [("process", "process"), ("none", "process"), ("process", "none")] {
        let home = home();
        let tasks = json!([
            {"agent": "ann", "task": "a", "isolation": ann},
            {"agent": "bob", "task": "b", "isolation": bob},
        ]);
        let lines: Vec<String> = tasks.as_array().unwrap().iter().map(Value::to_string).collect();
        let path = home.own().join("tasks.jsonl");
        fs::write(&path, lines.join("\n")).unwrap();
        let answer = home.json(&["parallel", "--tasks", path.to_str().unwrap()]);
        assert_eq!(answer["completed"], 2, "{answer}");
        check(&home, &format!("{ann} {bob}"));
    }
}

#[test]
fn processes_that_know_nothing_of_each_other_do_not_write_one_file() {
    let home = home();
    home.json(&["spawn", "ann", "a"]);
    home.json(&["spawn", "bob", "b"]);
    for task in ["t_01", "t_02"] {
        until("the end of a task", || (home.answer(&["wait", task, "--timeout", "5"]).1 == 0).then_some(()));
    }
    check(&home, "detached");
}
