//! A process is killed in the middle of its task; other processes answer for it.

use serde_json::{Value, json};

use crate::home::{Home, kill_now, until};

#[test]
fn after_a_kill_status_wait_and_collect_answer_from_other_processes() {
    let home = Home::scripted(&json!({"plain": [
        {"tool_calls": [{"name": "think", "input": {"thought": "hm"}}]},
        {"text": "plain: {{task}}", "delay_ms": 200},
    ]}));
    home.agent("plain", "tools: think", "You are plain.");
    home.json(&["status"]);
    let observer = home.observer("main");
    let mut run = home.start(&["run", "plain", "x"]);
    // Accepted, asked, answered, a tool started and ended, asked again.
    until("the second turn", || (observer.first_seq() >= 6).then_some(()));
    kill_now(run.id());
    run.wait().unwrap();

    let status = home.json(&["status", "t_01"]);
    assert_eq!((&status["status"], &status["turns_used"]), (&json!("running"), &json!(2)));
    let (refused, code) = home.answer(&["collect", "t_01"]);
    assert_eq!((&refused["error"], code), (&json!("TASK_NOT_READY"), 1));
    let waited = home.json(&["wait", "t_01"]);
    assert_eq!(waited["tasks"][0]["status"], "completed");
    let collected = home.json(&["collect", "t_01"]);
    assert_eq!(collected["result"], "plain: x");
    assert_eq!(collected["turns_used"], 2);
    let (again, code) = home.answer(&["collect", "t_01"]);
    assert_eq!((&again["error"], code), (&json!("TASK_NOT_FOUND"), 1));
    assert_eq!(home.json(&["result", "t_01"])["text"], "plain: x");

    let output = home.output(&["logs", "t_01", "--json"]);
    let log = crate::home::whole_lines(&output.stdout);
    let events: Vec<_> = log.iter().map(|record| record["event"]["event"].as_str().unwrap()).collect();
    let expected = [
        "accepted",
        "turn_started",
        "replied",
        "tool_started",
        "tool_ended",
        "turn_started",
        "turn_started",
        "replied",
        "ended",
    ];
    assert_eq!(events, expected, "the lost call is announced again, nothing else is");
    let seqs: Vec<Value> = log.iter().map(|record| record["seq"].clone()).collect();
    assert_eq!(seqs, (1..=9).map(|seq| json!(seq)).collect::<Vec<_>>());
}
