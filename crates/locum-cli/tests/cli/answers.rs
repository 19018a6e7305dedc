//! The shape of every answer, whole.

use serde_json::{Value, json};

use crate::conversation::Conversation;
use crate::home::Home;

/// Has a conversation with these agents: `helper` answers, `looker` looks first, `silent` never answers, `talker`
/// says something and then never answers, `broken` fails.
fn check(name: &str, lines: &str) {
    let home = Home::new();
    let usage = json!({"input_tokens": 10, "output_tokens": 5, "cache_read_tokens": 3, "cache_write_tokens": 1});
    let model = home.script(&json!({
        "helper": [{"text": "Done: {{task}}", "usage": usage}],
        "looker": [
            {"text": "I look.", "tool_calls": [{"name": "ls"}, {"name": "read", "input": {"path": "README.md"}}], "usage": usage},
            {"text": "Two files.", "usage": usage},
        ],
        "silent": [{"error": {"kind": "hang"}}],
        "talker": [{"text": "So far.", "tool_calls": [{"name": "ls"}], "usage": usage}, {"error": {"kind": "hang"}}],
        "broken": [{"error": {"kind": "auth"}}],
    }));
    let mut conversation = Conversation::open(&home, &model);
    conversation.say(
        r#"
        quiet {"action": "define", "name": "helper", "description": "Helps", "system_prompt": "p"}
        quiet {"action": "define", "name": "looker", "description": "Looks", "system_prompt": "p", "tools": ["ls", "read"]}
        quiet {"action": "define", "name": "silent", "extends": "helper"}
        quiet {"action": "define", "name": "talker", "extends": "looker"}
        quiet {"action": "define", "name": "broken", "extends": "helper"}
        "#,
    );
    conversation.say(lines);
    insta::assert_snapshot!(format!("answers_{name}"), conversation.close());
}

#[test]
fn define_answers_with_name_description_and_version() {
    check(
        "define",
        r#"
        {"action": "define", "name": "a", "description": "A", "system_prompt": "p"}
        {"action": "define", "name": "a", "description": "A2", "system_prompt": "p", "replace": true, "max_turns": 99}
        {"action": "define", "name": "a", "extends": "a", "replace": true, "system_prompt_append": "more"}
        {"action": "define", "name": "b", "extends": "a", "description": "B", "tools": ["grep", "subagent"]}
        {"action": "define", "name": "new", "description": "N", "system_prompt": "p", "replace": true}
        {"action": "define", "name": "writer", "description": "Mine", "system_prompt": "p", "replace": true}
        {"action": "run", "agent": "b", "task": "t"}
        "#,
    );
}

#[test]
fn list_agents_shows_what_a_task_would_have() {
    let home = Home::new();
    let model = home.script(&json!({}));
    let mut conversation = Conversation::open(&home, &model);
    conversation.say(
        r#"
        quiet {"action": "define", "name": "a", "description": "A", "system_prompt": "p"}
        quiet {"action": "define", "name": "b", "description": "B", "system_prompt": "p", "tools": ["grep", "subagent"], "max_turns": 7, "model": "offline"}
        quiet {"action": "define", "name": "b", "extends": "b", "replace": true}
        "#,
    );
    let answer = conversation.ask("subagent", &json!({"action": "list_agents"}));
    conversation.close();
    let (defined, others): (Vec<&Value>, Vec<&Value>) =
        answer["agents"].as_array().unwrap().iter().partition(|agent| agent["source"] == "defined");
    let session_model = "scripted:ROOT/script.json";
    let expected = json!([
        {"name": "a", "description": "A", "model": session_model, "max_turns": 10, "tools": [], "source": "defined", "version": 1},
        {"name": "b", "description": "B", "model": "offline", "max_turns": 7, "tools": ["grep"], "source": "defined", "version": 2},
    ]);
    assert_eq!(json!(defined), expected);
    assert_eq!(answer.as_object().unwrap().len(), 1);
    assert!(others.iter().any(|agent| agent["name"] == "explore"));
    for agent in others {
        let fields: Vec<&str> = agent.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(fields, ["description", "max_turns", "model", "name", "source", "tools"]);
        assert_eq!((&agent["source"], &agent["model"]), (&json!("bundled"), &json!(session_model)));
    }
}

#[test]
fn a_task_from_spawn_to_its_result() {
    check(
        "spawn",
        r#"
        {"action": "spawn", "agent": "looker", "task": "t", "label": "first look"}
        {"action": "wait", "task_ids": ["t_01"]}
        {"action": "status", "task_id": "t_01"}
        {"action": "status"}
        {"action": "collect", "task_id": "t_01"}
        {"action": "status"}
        {"action": "result", "task_id": "t_01"}
        {"action": "result", "task_id": "t_01", "offset": 4, "limit": 3}
        # the same key and request: the same task
        {"action": "spawn", "agent": "helper", "task": "t", "idempotency_key": "k"}
        {"action": "wait", "task_ids": ["t_02"]}
        {"action": "spawn", "agent": "helper", "task": "t", "idempotency_key": "k"}
        {"action": "run", "agent": "helper", "task": "t", "idempotency_key": "k"}
        "#,
    );
}

#[test]
fn a_running_task_says_when_to_look_again() {
    check(
        "running",
        r#"
        {"action": "spawn", "agent": "silent", "task": "t"}
        until /turns_used=1 {"action": "status", "task_id": "t_01"}
        {"action": "status"}
        {"action": "wait", "task_ids": ["t_01"], "timeout_ms": 1}
        {"action": "spawn", "agent": "helper", "task": "after", "depends_on": ["t_01"]}
        {"action": "status", "task_id": "t_02"}
        {"action": "spawn", "agent": "silent", "task": "u", "queue": true}
        quiet {"action": "cancel", "task_id": "t_03"}
        quiet {"action": "cancel", "task_id": "t_01"}
        {"action": "wait", "task_ids": ["t_02"]}
        {"action": "collect", "task_id": "t_02"}
        "#,
    );
}

#[test]
fn wait_for_any_or_for_all() {
    check(
        "wait",
        r#"
        quiet {"action": "spawn", "agent": "silent", "task": "t"}
        quiet {"action": "spawn", "agent": "helper", "task": "t"}
        until /turns_used=1 {"action": "status", "task_id": "t_01"}
        {"action": "wait", "task_ids": ["t_01", "t_02"], "mode": "any"}
        {"action": "wait", "task_ids": ["t_02", "t_02"], "mode": "all"}
        {"action": "wait", "mode": "any", "timeout_ms": 1}
        {"action": "wait", "task_ids": []}
        {"action": "wait", "task_ids": ["t_02", "t_09"]}
        quiet {"action": "cancel", "task_id": "t_01"}
        {"action": "wait", "task_ids": ["t_01", "t_02"], "mode": "all"}
        "#,
    );
}

#[test]
fn a_cancelled_task_keeps_what_it_said_and_stays_collectable() {
    check(
        "cancel",
        r#"
        {"action": "spawn", "agent": "talker", "task": "t"}
        until /turns_used=2 {"action": "status", "task_id": "t_01"}
        {"action": "cancel", "task_id": "t_01"}
        {"action": "cancel", "task_id": "t_01"}
        {"action": "status", "task_id": "t_01"}
        {"action": "collect", "task_id": "t_01"}
        {"action": "result", "task_id": "t_01"}
        # cancelling what has ended changes nothing
        quiet {"action": "spawn", "agent": "helper", "task": "t"}
        quiet {"action": "wait"}
        {"action": "cancel", "task_id": "t_02"}
        {"action": "collect", "task_id": "t_02"}
        "#,
    );
}

#[test]
fn dependencies_hand_on_their_results() {
    check(
        "depends_on",
        r#"
        quiet {"action": "run", "agent": "helper", "task": "one"}
        {"action": "spawn", "agent": "looker", "task": "two"}
        {"action": "wait", "task_ids": ["t_02"]}
        {"action": "spawn", "agent": "helper", "task": "sum", "depends_on": ["t_01", "t_02", "t_01"]}
        {"action": "wait", "task_ids": ["t_03"]}
        {"action": "collect", "task_id": "t_03"}
        "#,
    );
}

#[test]
fn run_parallel_and_chain_answer_with_collected_tasks() {
    check(
        "foreground",
        r#"
        {"action": "run", "agent": "looker", "task": "t"}
        {"action": "run", "agent": "broken", "task": "t"}
        {"action": "parallel", "tasks": [{"agent": "helper", "task": "a", "label": "A"}, {"agent": "helpr", "task": "b"}, {"agent": "broken", "task": "c"}, {"agent": "helper", "task": "d"}]}
        {"action": "parallel", "tasks": [{"agent": "helper", "task": "1"}, {"agent": "helper", "task": "2"}, {"agent": "helper", "task": "3"}, {"agent": "helper", "task": "4"}, {"agent": "helper", "task": "5"}, {"agent": "helper", "task": "6"}, {"agent": "helper", "task": "7"}]}
        {"action": "chain", "tasks": [{"agent": "helper", "task": "a"}, {"agent": "helper", "task": "{previous} and {previous}"}, {"agent": "helper", "task": "no more"}]}
        {"action": "chain", "tasks": [{"agent": "helper", "task": "a"}, {"agent": "broken", "task": "b"}, {"agent": "helper", "task": "c"}]}
        {"action": "chain", "tasks": [{"agent": "helper", "task": "a"}, {"agent": "helpr", "task": "b"}]}
        {"action": "status"}
        "#,
    );
}

#[test]
fn in_the_background_the_answer_is_ids() {
    check(
        "background",
        r#"
        {"action": "run", "agent": "helper", "task": "t", "background": true}
        {"action": "parallel", "tasks": [{"agent": "helper", "task": "a"}, {"agent": "helpr", "task": "b"}, {"agent": "helper", "task": "c"}], "background": true}
        {"action": "chain", "tasks": [{"agent": "helper", "task": "a"}, {"agent": "helper", "task": "{previous}!"}], "background": true}
        quiet {"action": "wait"}
        {"action": "collect", "task_id": "t_01"}
        {"action": "collect", "task_id": "t_05"}
        {"action": "run", "agent": "helper", "task": "t", "background": "yes"}
        "#,
    );
}

#[test]
fn the_four_actions_of_the_shared_context() {
    check(
        "context",
        r#"
        context {"action": "list_keys"}
        context {"action": "write", "key": "goal", "value": "Ship part A", "expected_version": 0}
        context {"action": "write", "key": "goal", "value": "Ship part B", "expected_version": 1}
        context {"action": "write", "key": "empty", "value": ""}
        context {"action": "read", "key": "goal"}
        context {"action": "read", "key": "empty"}
        context {"action": "list_keys"}
        context {"action": "delete", "key": "goal", "expected_version": 2}
        context {"action": "list_keys"}
        # no version is ever used twice
        context {"action": "write", "key": "goal", "value": "again", "expected_version": 0}
        "#,
    );
}

/// A request under its idempotency key was answered `TASK_NOT_FOUND` when it was repeated, and a `parallel` with one
/// task twice was answered `INTERNAL`.
#[test]
fn a_repeated_request_is_answered_as_it_was_the_first_time() {
    check(
        "repeated",
        r#"
        {"action": "run", "agent": "helper", "task": "t", "idempotency_key": "k"}
        {"action": "run", "agent": "helper", "task": "t", "idempotency_key": "k"}
        {"action": "parallel", "tasks": [{"agent": "helper", "task": "t", "idempotency_key": "k"}, {"agent": "helper", "task": "u", "idempotency_key": "l"}, {"agent": "helper", "task": "u", "idempotency_key": "l"}]}
        {"action": "chain", "tasks": [{"agent": "helper", "task": "t", "idempotency_key": "k"}, {"agent": "helper", "task": "after {previous}", "idempotency_key": "m"}]}
        {"action": "chain", "tasks": [{"agent": "helper", "task": "t", "idempotency_key": "k"}, {"agent": "helper", "task": "after {previous}", "idempotency_key": "m"}]}
        {"action": "collect", "task_id": "t_01"}
        {"action": "status"}
        "#,
    );
}
