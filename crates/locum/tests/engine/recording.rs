//! What models answered, written to a file and said again from it.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use locum::Desk;
use locum::models::scripted::{Say, Scripted};
use locum::recorder::Recorder;
use locum::redact::Redactor;
use locum::transcript::Repeat;
use locum_core::task::event::FailureKind;
use serde_json::{Value, json};

use crate::stage::{Ledger, agent, ask, builder, check, noting_tool, run, scene};

const SECRET: &str = "sk-very-secret-0123456789";

/// Two agents with a tool, and a model that fails, calls, leaks and answers.
fn script() -> Scripted {
    let leaks = format!("The key is {SECRET}.");
    Scripted::new()
        .agent(
            "eve",
            [
                Say::error(FailureKind::Overloaded, format!("busy, {SECRET}")),
                Say::calls([("look", json!({"at": "it"}))]).with_text(leaks),
                Say::text("Eve saw {{task}}"),
            ],
        )
        .agent("mia", [Say::text("Mia saw {{task}}")])
}

fn with_agents(builder: locum::DeskBuilder) -> Desk {
    let look = noting_tool("look", Repeat::Safe, &Ledger::default());
    let redactor = Redactor::new([SECRET]);
    builder.tool(look).agent(agent("eve", &["look"])).agent(agent("mia", &[])).redact(redactor).build().unwrap()
}

fn recording(path: &Path) -> Desk {
    let recorder = Recorder::open(path, Redactor::new([SECRET])).unwrap();
    with_agents(builder(script()).recorder(recorder))
}

fn replaying(path: &Path) -> Desk {
    with_agents(scene().session_model(&format!("replay:{}", path.display()), "the test's"))
}

/// Several tasks at once, two of which ask the same.
async fn play(desk: &Desk) -> Value {
    let task = |agent: &str, task: &str| json!({"agent": agent, "task": task});
    let tasks = [task("eve", "one"), task("mia", "one"), task("eve", "two"), task("mia", "one")];
    let mut answer = ask(desk, json!({"action": "parallel", "tasks": tasks})).await;
    for result in answer["results"].as_array_mut().unwrap() {
        result["usage"]["duration_ms"] = json!(0);
        result["receipt"] = Value::Null;
    }
    answer["total_usage"] = Value::Null;
    answer["usage"] = Value::Null;
    answer
}

#[tokio::test(start_paused = true)]
async fn a_recorded_run_replays_to_the_same_results_and_holds_no_secret() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.jsonl");
    let recorded = play(&recording(&path)).await;
    check(&recorded, &json!({"completed": 4, "failed": 0}));

    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 3 + 1 + 3 + 1, "one line for each call, failed ones too");
    assert!(!text.contains(SECRET) && text.contains("[redacted]"), "{text}");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);

    assert_eq!(play(&replaying(&path)).await, recorded);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "replaying writes nothing");
}

#[tokio::test(start_paused = true)]
async fn what_was_not_recorded_fails_and_says_why() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.jsonl");
    run(&recording(&path), "mia", "one").await;
    let desk = replaying(&path);
    let cases = [
        ("mia", "two", "Model API error: the run diverges from the recording: call 1 of agent mia"),
        ("eve", "one", "Model API error: the recording has no replies for agent eve; it has some for: mia"),
    ];
    for (agent, task, error) in cases {
        let answer = run(&desk, agent, task).await;
        check(&answer, &json!({"status": "failed", "reason": "model", "turns_used": 1}));
        assert!(answer["error"].as_str().unwrap().starts_with(error), "{answer}");
    }
    check(&run(&desk, "mia", "one").await, &json!({"status": "completed", "result": "Mia saw one"}));
    let once_more = run(&desk, "mia", "one").await;
    assert!(once_more["error"].as_str().unwrap().starts_with("Model API error: recording ended"), "{once_more}");
}

#[tokio::test(start_paused = true)]
async fn what_is_no_recording_is_neither_replayed_nor_written_to() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notes.txt");
    std::fs::write(&path, "My notes.\n").unwrap();
    let refused = Recorder::open(&path, Redactor::default()).unwrap_err().to_string();
    assert!(refused.contains("not a recording"), "{refused}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "My notes.\n");

    for (name, expected) in [("notes.txt", "line 1: this is not what a recording holds"), ("none", "No such file")] {
        let model = format!("replay:{}", directory.path().join(name).display());
        let refused = scene().session_model(&model, "the test's").build().map(drop).unwrap_err().to_string();
        assert!(refused.contains(expected), "{refused}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_line_that_was_cut_off_swallows_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.jsonl");
    run(&recording(&path), "mia", "one").await;
    let mut text = std::fs::read_to_string(&path).unwrap();
    text.truncate(text.len() - 10);
    std::fs::write(&path, text).unwrap();
    run(&recording(&path), "mia", "two").await;
    let desk = replaying(&path);
    check(&run(&desk, "mia", "two").await, &json!({"status": "completed", "result": "Mia saw two"}));
    check(&run(&desk, "mia", "one").await, &json!({"status": "failed"}));
}

#[tokio::test(start_paused = true)]
async fn a_recorded_failure_costs_no_waiting() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.jsonl");
    run(&recording(&path), "eve", "one").await;
    let started = tokio::time::Instant::now();
    check(&run(&replaying(&path), "eve", "one").await, &json!({"status": "completed"}));
    assert_eq!(started.elapsed(), std::time::Duration::ZERO);
    // The recording says what failed, and how.
    let text = std::fs::read_to_string(&path).unwrap();
    let first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    check(&first, &json!({"recording": 1, "agent": "eve", "call": 0, "error": {"kind": "overloaded"}}));
}
