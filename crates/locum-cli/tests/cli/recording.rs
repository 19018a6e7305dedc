//! `--record FILE` and `--model replay:FILE`, from outside: a run becomes a test, in the foreground and in a worker.

use serde_json::{Value, json};

use crate::home::Home;

fn home() -> Home {
    let home = Home::new().with("OPENAI_API_KEY", "sk-canary-0123456789");
    home.write("agents/helper.md", "---\nname: helper\ndescription: d\ntools: ls\n---\nYou help.\n");
    home
}

fn script(home: &Home) -> String {
    let calls = json!({"text": "Key: sk-canary-0123456789", "tool_calls": [{"name": "ls", "input": {"path": "src"}}]});
    home.script(&json!({"helper": [calls, {"text": "Done: {{task}}"}]}))
}

/// Runs a command with a model; its JSON.
fn json_of(home: &Home, model: &str, arguments: &[&str]) -> Value {
    let common = ["--json", "--agents", "agents", "--model", model];
    let ran = home.locum(&[arguments, &common].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap()
}

#[test]
fn a_run_is_recorded_without_secrets_and_replayed_to_the_same_answer() {
    let home = home();
    let script = script(&home);
    let recorded = json_of(&home, &script, &["run", "helper", "it", "--record", "run.jsonl"]);
    let text = std::fs::read_to_string(home.project().join("run.jsonl")).unwrap();
    assert_eq!(text.lines().count(), 2);
    assert!(!text.contains("canary"), "{text}");
    let replayed = json_of(&home, "replay:run.jsonl", &["run", "helper", "it"]);
    for field in ["status", "result", "turns_used"] {
        assert_eq!(replayed[field], recorded[field], "{field}");
    }
    let diverged = home.locum(&["run", "helper", "other", "--agents", "agents", "--model", "replay:run.jsonl"]);
    assert_eq!(diverged.code, Some(1));
    assert!(diverged.stderr.contains("the run diverges from the recording"), "{}", diverged.stderr);
}

/// A recording as the session's model stands for every choice: a keyword, or a hint, must not reach for a provider whose
/// key is there.
#[test]
fn keywords_and_hints_are_answered_by_the_recording() {
    let home = home();
    home.write("agents/cheap.md", "---\nname: cheap\ndescription: d\ntools: ls\nmodel: auto-cheap\n---\nYou help.\n");
    let script = home.script(&json!({"cheap": [{"text": "Done."}]}));
    json_of(&home, &script, &["run", "cheap", "it", "--record", "run.jsonl"]);
    for hint in [None, Some(("cost_preference", json!("premium"))), Some(("task_type", json!("code")))] {
        let mut input = json!({"action": "run", "agent": "cheap", "task": "it"});
        if let Some((name, value)) = &hint {
            input[*name] = value.clone();
        }
        let answer = json_of(&home, "replay:run.jsonl", &["call", "subagent", &input.to_string()]);
        assert_eq!(
            (&answer["status"], &answer["result"]),
            (&json!("completed"), &json!("Done.")),
            "{hint:?}: {answer}"
        );
        let model = answer["receipt"]["model"]["effective"].as_str().unwrap();
        assert!(model.starts_with("replay:") && model.ends_with("run.jsonl"), "{hint:?}: {answer}");
    }
}

#[test]
fn workers_record_where_the_command_said() {
    let home = home();
    let script = script(&home);
    for task in ["first", "second"] {
        let arguments = ["spawn", "helper", task, "--record", "run.jsonl", "--agents", "agents", "--model", &script];
        assert_eq!(home.locum(&arguments).code, Some(0));
    }
    assert_eq!(home.locum(&["wait", "t_01", "t_02"]).code, Some(0));
    let text = std::fs::read_to_string(home.project().join("run.jsonl")).unwrap();
    assert_eq!(text.lines().count(), 4, "{text}");
    let arguments = ["parallel", "helper=second", "helper=first"];
    let replayed = json_of(&home, "replay:run.jsonl", &arguments);
    let results: Vec<&str> =
        replayed["results"].as_array().unwrap().iter().map(|one| one["result"].as_str().unwrap()).collect();
    assert_eq!(results, ["Done: second", "Done: first"]);
}

/// Tasks that ask the same are answered in the order of the recording, and every process begins at its beginning: what
/// another one was told is not used up.
#[test]
fn two_processes_that_ask_the_same_are_answered_alike() {
    let home = home();
    let script = home.script(&json!({"helper": [{"text": "first"}]}));
    json_of(&home, &script, &["run", "helper", "it", "--record", "run.jsonl"]);
    let path = home.project().join("run.jsonl");
    let first = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{first}{}", first.replace("first", "second"))).unwrap();
    let both = json_of(&home, "replay:run.jsonl", &["parallel", "helper=it", "helper=it"]);
    let mut results: Vec<&str> =
        both["results"].as_array().unwrap().iter().map(|one| one["result"].as_str().unwrap()).collect();
    results.sort_unstable();
    assert_eq!(results, ["first", "second"], "one process gives out each answer once");
    for _ in 0..3 {
        assert_eq!(json_of(&home, "replay:run.jsonl", &["run", "helper", "it"])["result"], "first");
    }
    let spawned: Vec<Value> = (0..2).map(|_| json_of(&home, "replay:run.jsonl", &["spawn", "helper", "it"])).collect();
    for task in &spawned {
        let id = task["task_id"].as_str().unwrap();
        assert_eq!(home.locum(&["wait", id]).code, Some(0));
        let answer: Value = serde_json::from_str(&home.locum(&["collect", id, "--json"]).stdout).unwrap();
        assert_eq!(answer["result"], "first", "{answer}");
    }
}

#[test]
fn what_cannot_be_recorded_to_is_refused_before_anything_is_asked() {
    let home = home();
    let script = script(&home);
    for (file, expected) in [("README.md", "not a recording"), ("src", "directory"), ("no/such/place", "No such file")]
    {
        let arguments = ["run", "helper", "it", "--record", file, "--agents", "agents", "--model", &script];
        let ran = home.locum(&arguments);
        assert_eq!(ran.code, Some(1), "{file}");
        assert!(ran.stderr.contains(expected) && ran.stderr.contains(file), "{}", ran.stderr);
    }
}
