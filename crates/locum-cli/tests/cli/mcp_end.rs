//! How an MCP connection begins and ends: its session, and what becomes of what is under way.

use std::time::Duration;

use serde_json::{Value, json};

use crate::home::Home;
use crate::raw::Raw;

/// Far above what leaving takes, far below any wait for a call or for the SDK.
const PROMPTLY: Duration = Duration::from_secs(3);

fn defined(raw: &mut Raw, name: &str) -> Value {
    let prompt = json!({"action": "define", "name": name, "description": "d", "system_prompt": "p"});
    raw.subagent(1, &prompt)
}

#[test]
fn every_connection_has_a_session_of_its_own_unless_one_is_named() {
    let fresh = Home::new();
    let named = Home::new().with("LOCUM_SESSION", "shared");
    for (home, again) in [(&fresh, json!(1)), (&named, json!("AGENT_ALREADY_EXISTS"))] {
        for expected in [json!(1), again] {
            let mut raw = Raw::start(home, &["--model", "offline"]);
            raw.hello();
            let answer = defined(&mut raw, "a");
            let seen = if answer["error"].is_null() { &answer["version"] } else { &answer["error"] };
            assert_eq!(seen, &expected, "{answer}");
            assert_eq!(raw.leave().code, Some(0));
        }
    }
}

#[test]
fn a_run_under_way_does_not_keep_the_process_and_its_task_goes_on() {
    let home = Home::new();
    let model = home.script(&json!({"*": [{"error": {"kind": "hang"}}]}));
    let mut raw = Raw::open(&home, &model);
    raw.call_watched(1, "r", &json!({"action": "run", "agent": "explore", "task": "t"}));
    assert_eq!(raw.next()["method"], "notifications/progress");
    raw.call(2, "subagent", &json!({"action": "wait"}));
    let end = raw.leave();
    assert_eq!(end.code, Some(0));
    assert!(end.took < PROMPTLY, "{:?}", end.took);
    for message in &end.messages {
        assert!(message["error"]["message"].as_str().unwrap().contains("the task goes on"), "{message}");
    }
    let status = home.locum(&["status", "t_01", "--json", "--session", "test"]);
    assert!(status.stdout.contains(r#""status":"running""#), "{status:?}");
    let cancelled = home.locum(&["cancel", "t_01", "--session", "test"]);
    assert_eq!(cancelled.code, Some(0), "{cancelled:?}");
}

#[test]
fn a_task_under_way_is_finished_by_another_process() {
    let home = Home::new();
    let turn = json!({"tool_calls": [{"name": "ls", "input": {}}], "delay_ms": 200});
    let model = home.script(&json!({"*": [turn, turn, {"text": "Done: {{task}}"}]}));
    let mut raw = Raw::open(&home, &model);
    raw.call_watched(1, "r", &json!({"action": "run", "agent": "explore", "task": "t"}));
    assert_eq!(raw.next()["method"], "notifications/progress");
    assert!(raw.leave().took < PROMPTLY);
    let waited = home.locum(&["wait", "t_01", "--session", "test"]);
    assert_eq!(waited.code, Some(0), "{waited:?}");
    let mut raw = Raw::open(&home, &model);
    let collected = raw.subagent(1, &json!({"action": "collect", "task_id": "t_01"}));
    assert_eq!(collected["result"], "Done: t", "{collected}");
    assert_eq!(raw.leave().code, Some(0));
}

#[test]
fn calls_that_need_no_waiting_are_answered_after_the_input_ended() {
    let home = Home::new();
    let mut raw = Raw::open(&home, "offline");
    raw.call(1, "subagent", &json!({"action": "list_agents"}));
    raw.call(2, "shared_context", &json!({"action": "write", "key": "k", "value": "v"}));
    raw.call(3, "subagent", &json!({"action": "status"}));
    let end = raw.leave();
    let mut ids: Vec<_> = end.messages.iter().map(|message| message["id"].as_u64()).collect();
    ids.sort_unstable();
    assert_eq!(ids, [Some(1), Some(2), Some(3)], "{:?}", end.messages);
    assert!(end.messages.iter().all(|message| message["result"].is_object()), "{:?}", end.messages);
    assert!(end.took < PROMPTLY, "{:?}", end.took);
}

#[test]
fn the_instructions_are_short() {
    let home = Home::new();
    let prompt = home.locum(&["prompt"]).stdout;
    let tokens = prompt.trim_end().chars().count().div_ceil(4);
    assert!(tokens <= 700, "{tokens}");
    for part in
        ["shared_context", "One clear objective", "never ask two", "define", "list_keys", "Agents:\n- architect"]
    {
        assert!(prompt.contains(part), "{part}");
    }
}
