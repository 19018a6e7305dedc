//! The faces of other programs through every door: the same calls have the same answers.

use locum::faces::Face;
use serde_json::{Value, json};

use crate::home::Home;
use crate::mcp::Client;
use crate::settle::settle;

/// What is asked of each face, in this order. A call that is waited for comes before one that looks at it.
const CALLS: [(&str, &str, &str); 31] = [
    ("tallow", "subagent", r#"{"agent": "scout", "task": "one"}"#),
    ("tallow", "subagent", r#"{"agent": "broken", "task": "one"}"#),
    ("tallow", "subagent", r#"{"agent": "botanist", "task": "one"}"#),
    ("tallow", "subagent", r#"{"tasks": [{"agent": "scout", "task": "a"}, {"agent": "broken", "task": "b"}]}"#),
    ("tallow", "subagent", r#"{"tasks": "[{\"agent\": \"scout\", \"task\": \"a\"}]"}"#),
    (
        "tallow",
        "subagent",
        r#"{"centipede": [{"agent": "scout", "task": "a"}, {"agent": "scout", "task": "{previous}"}]}"#,
    ),
    ("tallow", "subagent", r#"{"centipede": [{"agent": "broken", "task": "a"}, {"agent": "scout", "task": "b"}]}"#),
    ("tallow", "subagent", r#"{"agent": "scout", "task": "one", "agentScope": "project"}"#),
    ("tallow", "subagent", r#"{}"#),
    ("tallow", "subagent", r#"{"agent": "scout", "task": "one", "colour": "red"}"#),
    ("tallow", "subagent_status", r#"{}"#),
    ("tallow", "subagent_status", r#"{"taskId": "bg_99"}"#),
    ("tallow", "manage_tasks", r#"{"action": "add", "subject": "Ship", "activeForm": "Shipping"}"#),
    ("tallow", "manage_tasks", r#"{"action": "claim", "id": "b_01"}"#),
    ("tallow", "manage_tasks", r#"{"action": "complete", "id": "b_09"}"#),
    ("tallow", "manage_tasks", r#"{"action": "list"}"#),
    ("tallow", "manage_tasks", r#"{"action": "clear"}"#),
    ("tallow", "Agent", r#"{}"#),
    ("pi", "subagent", r#"{"agent": "scout", "task": "one"}"#),
    ("pi", "subagent", r#"{"agent": "broken", "task": "one"}"#),
    ("pi", "subagent", r#"{"agent": "botanist", "task": "one"}"#),
    ("pi", "subagent", r#"{"agent": "scout", "task": "one", "chain": []}"#),
    ("acai", "Agent", r#"{"type": "scout", "prompt": "one"}"#),
    ("acai", "Agent", r#"{"type": "broken", "prompt": "one", "timeout": 60}"#),
    ("acai", "Agent", r#"{"type": "botanist", "prompt": "one"}"#),
    ("acai", "Agent", r#"{"type": "scout"}"#),
    ("picoclaw", "subagent", r#"{"task": "one", "label": "first"}"#),
    ("picoclaw", "subagent", r#"{"label": "first"}"#),
    ("picoclaw", "spawn", r#"{"task": "one", "agent_id": "botanist"}"#),
    ("picoclaw", "spawn_status", r#"{"task_id": "t_99"}"#),
    ("picoclaw", "spawn_status", r#"{}"#),
];

fn calls(face: Face) -> Vec<(&'static str, Value)> {
    let ours = CALLS.iter().filter(|(name, _, _)| *name == face.as_str());
    ours.map(|(_, tool, input)| (*tool, serde_json::from_str(input).unwrap())).collect()
}

fn script(home: &Home) -> String {
    home.script(&json!({
        "broken": [{"error": {"kind": "auth"}}],
        "*": [{"text": "Done: {{task}}", "usage": {}}],
    }))
}

fn home() -> Home {
    let home = Home::new();
    let directory = home.locum_home().join("config/agents");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("broken.md"), "---\nname: broken\ndescription: d\n---\nYou are broken.\n").unwrap();
    home
}

/// An answer without what no test can know: ids, times, files.
fn settled(home: &Home, answer: &Value) -> Value {
    let mut answer = settle(answer.clone(), &home.root());
    for path in ["/details/added/0", "/details/tasks/0", "/details"] {
        if let Some(Value::Object(task)) = answer.pointer_mut(path) {
            let times = task.iter_mut().filter(|(name, _)| name.ends_with("At"));
            times.for_each(|(_, time)| *time = json!("TIME"));
        }
    }
    if let Some(id) = answer.pointer_mut("/details/runId") {
        *id = json!("RUN");
    }
    if let Some(file) = answer.pointer_mut("/details/results/0/sessionFile") {
        let name = file.as_str().unwrap().rsplit_once('/').unwrap().0.to_owned();
        *file = json!(name);
    }
    if let Some(text) = answer.pointer_mut("/content/0/text")
        && let Some((before, _)) = text.as_str().unwrap().split_once("Session file: ")
    {
        *text = json!(format!("{before}Session file: FILE"));
    }
    answer
}

fn through_call(face: Face) -> Vec<Value> {
    let home = home();
    let lines: Vec<String> =
        calls(face).into_iter().map(|(tool, input)| json!({"tool": tool, "input": input}).to_string()).collect();
    let arguments = ["call", "-", "--model", &script(&home), "--session", "test", "--face", face.as_str()];
    let ran = home.locum_reading(&arguments, lines.join("\n").as_bytes());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.stdout.lines().map(|line| settled(&home, &serde_json::from_str(line).unwrap())).collect()
}

fn through_single_calls(face: Face) -> Vec<Value> {
    let home = home();
    let model = script(&home);
    let call = |(tool, input): (&'static str, Value)| {
        let input = input.to_string();
        let arguments = ["call", "--face", face.as_str(), tool, &input, "--model", &model, "--session", "test"];
        let ran = home.locum(&arguments);
        let answer: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
        let failed = answer["isError"] == true
            || answer["IsError"] == true
            || answer.get("message").is_some()
            || answer["details"].get("error").is_some();
        assert_eq!(ran.code, Some(i32::from(failed)), "{answer}");
        settled(&home, &answer)
    };
    calls(face).into_iter().map(call).collect()
}

fn through_library(face: Face) -> Vec<Value> {
    let home = home();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let environment = locum::settings::environment::Environment::new(
            [
                ("HOME".to_owned(), home.root().display().to_string()),
                ("LOCUM_HOME".to_owned(), home.locum_home().display().to_string()),
            ],
            home.project(),
        );
        let mut setup = locum::setup::Setup::new(environment);
        setup.session = locum::setup::SessionChoice::Named("test".to_owned());
        setup.flags.push(("--model", "model", script(&home)));
        let desk = setup.open().unwrap().desk;
        let mut answers = Vec::new();
        for (tool, input) in calls(face) {
            let answer = face.handle(&desk, tool, input).await;
            answers.push(settled(&home, &serde_json::from_str(&answer.json).unwrap()));
        }
        desk.close().await.unwrap();
        answers
    })
}

/// The texts, what programs read, and whether it failed, as an MCP client sees them.
async fn through_mcp(face: Face) -> Vec<(String, Value, bool)> {
    let home = home();
    let client = Client::connect_to(&home, &script(&home), face.as_str()).await;
    let mut answers = Vec::new();
    for (tool, input) in calls(face) {
        let result = client.result(tool, &input).await;
        let [content] = result.content.as_slice() else { panic!("one text is the answer: {:?}", result.content) };
        let text = content.as_text().unwrap().text.clone();
        let structured = result.structured_content.unwrap_or_default();
        let whole = settled(&home, &json!({"content": [{"text": text}], "details": structured}));
        let text = whole["content"][0]["text"].as_str().unwrap().to_owned();
        answers.push((text, whole["details"].clone(), result.is_error.unwrap_or(false)));
    }
    client.leave().await;
    answers
}

#[test]
fn the_same_calls_have_the_same_answers_through_every_door() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for face in Face::ALL.into_iter().filter(|face| *face != Face::Native) {
        let expected = through_library(face);
        assert_eq!(expected.len(), calls(face).len());
        let seen = runtime.block_on(through_mcp(face));
        for (place, (call, expected)) in calls(face).iter().zip(&expected).enumerate() {
            let (text, structured, is_error) = &seen[place];
            match face {
                Face::Picoclaw => {
                    assert_eq!((structured, &json!(is_error)), (expected, &expected["IsError"]), "{call:?}");
                }
                _ if expected.get("message").is_some() => assert!(is_error, "{call:?}"),
                Face::Native | Face::Tallow | Face::Pi | Face::Acai => {
                    assert_eq!(text, expected["content"][0]["text"].as_str().unwrap(), "{call:?}");
                    assert_eq!(structured, &expected["details"], "{call:?}");
                    let failed = expected["isError"] == true || expected["details"].get("error").is_some();
                    assert_eq!(*is_error, failed, "{call:?}");
                }
            }
        }
        for (door, answers) in [("call -", through_call(face)), ("call", through_single_calls(face))] {
            for ((call, answer), expected) in calls(face).iter().zip(&answers).zip(&expected) {
                // A task in the background goes on while the next process asks for it.
                if call.0 != "spawn_status" {
                    assert_eq!(answer, expected, "{door}: {call:?}");
                }
            }
        }
    }
}

#[test]
fn every_door_lists_the_tools_of_its_face() {
    let home = home();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for face in Face::ALL {
        let ran = home.locum(&["tools", "--face", face.as_str(), "--json"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let listed: Value = serde_json::from_str(&ran.stdout).unwrap();
        let tools = runtime.block_on(async {
            let client = Client::connect_to(&home, "offline", face.as_str()).await;
            let tools = client.tools().await;
            client.leave().await;
            tools
        });
        assert_eq!(listed, json!({"tools": tools}), "{}", face.as_str());
        let shown = home.locum(&["tools", "--face", face.as_str()]).stdout;
        let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert!(names.iter().all(|name| shown.contains(name)), "{shown}");
    }
    let ran = home.locum(&["tools", "--face", "claude"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("tallow"), "{}", ran.stderr);
}

#[test]
fn a_task_in_the_background_is_found_by_the_next_process_of_its_session() {
    let home = home();
    let model = script(&home);
    let call = |tool: &str, input: &Value| -> Value {
        let input = input.to_string();
        let ran = home.locum(&["call", "--face", "tallow", tool, &input, "--model", &model, "--session", "test"]);
        serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"))
    };
    let started = call("subagent", &json!({"agent": "scout", "task": "t", "background": true}));
    let text = "Started background subagent: bg_01\nUse subagent_status to check progress.";
    assert_eq!(started["content"][0]["text"], text);
    assert_eq!(home.locum(&["wait", "t_01", "--session", "test"]).code, Some(0));
    let answer = call("subagent_status", &json!({"taskId": "bg_01"}));
    assert!(answer["content"][0]["text"].as_str().unwrap().ends_with("Output:\nDone: t"), "{answer}");
    // What is remembered is a setting.
    let input = json!({"taskId": "bg_01"}).to_string();
    let mut home = home;
    for (variable, value, history) in [
        ("LOCUM_SUBAGENT_HISTORY_TAIL_MESSAGES", "1", "History: compacted (1/2 messages retained)"),
        ("LOCUM_SUBAGENT_KEEP_FULL_HISTORY", "1", "History: full (2 messages)"),
    ] {
        home = home.with(variable, value);
        let ran = home.locum(&["call", "--face", "tallow", "subagent_status", &input, "--session", "test"]);
        assert!(ran.stdout.contains(history), "{variable}: {ran:?}");
    }
    let home = home.with("LOCUM_SUBAGENT_COMPLETED_RETENTION_MINUTES", "0");
    let ran = home.locum(&["call", "--face", "tallow", "subagent_status", &input, "--session", "test"]);
    assert!(ran.stdout.contains("Task not found: bg_01"), "{ran:?}");
    assert_eq!(ran.code, Some(1));
}
