//! Every code with which a request can be refused, with its message and hint, and the exit codes of a single call.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::conversation::Conversation;
use crate::home::Home;

/// The codes that no request to the native tools leads to here: delegation below the depth limit (the tool is not
/// granted there), untrusted projects (there are none yet), the life of sessions (no tool decides about it), and faults
/// of locum itself. What cannot be isolated needs a project that is no repository: see below.
const UNREACHABLE: [&str; 6] =
    ["DEPTH_EXCEEDED", "INTERNAL", "ISOLATION_FAILED", "NOT_TRUSTED", "SESSION_ARCHIVED", "SESSION_NOT_FOUND"];

/// What is asked in a home with these variables, under a name for the snapshot.
type Case = (&'static str, &'static [(&'static str, &'static str)], &'static str);

const CASES: [Case; 5] = [
    (
        "delegation",
        &[],
        r#"
        quiet {"action": "define", "name": "silent", "description": "Never answers", "system_prompt": "p"}
        # the specification's nine
        {"action": "spawn", "agent": "silnt", "task": "t"}
        {"action": "define", "name": "silent", "description": "d", "system_prompt": "p"}
        {"action": "status", "task_id": "t_99"}
        {"action": "collect", "task_id": "t_1"}
        {"action": "spawn", "agent": "silent", "task": "<<x*4001>>"}
        {"action": "define", "name": "Not a name", "description": "d", "system_prompt": "p"}
        {"action": "define", "name": "a", "description": "d", "system_prompt": "p", "tools": ["gerp"]}
        {"action": "define", "name": "a", "description": "d", "system_prompt": "<<x*16001>>"}
        quiet {"action": "parallel", "tasks": [{"agent": "silent", "task": "1"}, {"agent": "silent", "task": "2"}, {"agent": "silent", "task": "3"}, {"agent": "silent", "task": "4"}], "background": true}
        {"action": "spawn", "agent": "silent", "task": "5", "idempotency_key": "k"}
        {"action": "spawn", "agent": "silent", "task": "6"}
        {"action": "run", "agent": "silent", "task": "6"}
        {"action": "collect", "task_id": "t_01"}
        {"action": "result", "task_id": "t_01"}
        # the others
        {"action": "spwan"}
        {"action": "race"}
        {}
        {"action": null}
        {"action": 7}
        {"action": "spawn", "agent": "silent"}
        {"action": "spawn", "agent": "silent", "task": "  "}
        {"action": "spawn", "agent": "silent", "task": 5}
        {"action": "spawn", "agent": "silent", "task": "t", "offset": 1}
        {"action": "spawn", "agent": "silent", "task": "t", "timeout": 0}
        {"action": "spawn", "agent": "silent", "task": "t", "cwd": "../elsewhere"}
        {"action": "spawn", "agent": "silent", "task": "t", "label": "<<x*201>>"}
        {"action": "spawn", "agent": "silent", "task": "t", "depends_on": ["t_77"]}
        {"action": "parallel", "tasks": []}
        {"action": "chain", "tasks": [{"agent": "silent"}]}
        {"action": "wait", "mode": "some"}
        {"action": "define", "name": "a"}
        {"action": "define", "name": "a", "extends": "silnt"}
        {"action": "spawn", "agent": "silent", "task": "t", "queue": true, "model": "gtp-5.4"}
        {"action": "define", "name": "a", "description": "d", "system_prompt": "p", "model": "nothing-like-it"}
        {"action": "spawn", "agent": "silent", "task": "t", "queue": true, "max_input_tokens": 10}
        {"action": "spawn", "agent": "silent", "task": "t", "queue": true, "max_output_tokens": 0}
        {"action": "spawn", "agent": "silent", "task": "another", "idempotency_key": "k"}
        quiet {"action": "cancel", "task_id": "t_01"}
        quiet {"action": "cancel", "task_id": "t_02"}
        quiet {"action": "cancel", "task_id": "t_03"}
        quiet {"action": "cancel", "task_id": "t_04"}
        quiet {"action": "cancel", "task_id": "t_05"}
        quiet {"action": "collect", "task_id": "t_05"}
        # collected: named, and where its text still is
        {"action": "status", "task_id": "t_05"}
        {"action": "collect", "task_id": "t_05"}
        {"action": "cancel", "task_id": "t_05"}
        "#,
    ),
    (
        "shared_context",
        &[],
        r#"
        context {"action": "read", "key": "goal"}
        context {"action": "delete", "key": "goal"}
        context {"action": "write", "key": "Goal!", "value": "v"}
        context {"action": "read", "key": ""}
        context {"action": "write", "key": "goal", "value": "<<x*4001>>"}
        context {"action": "write", "key": "goal", "value": "v", "expected_version": 3}
        context {"action": "write", "key": "goal", "value": "v"}
        context {"action": "write", "key": "goal", "value": "w", "expected_version": 0}
        context {"action": "write", "key": "goal", "value": "w", "expected_version": 9}
        context {"action": "delete", "key": "goal", "expected_version": 9}
        context {"action": "write", "key": "goal", "value": 3}
        context {"action": "write", "key": "goal"}
        context {"action": "list_keys", "key": "goal"}
        context {"action": "spawn", "key": "goal"}
        "#,
    ),
    (
        "manage_tasks",
        &[],
        r#"
        quiet {"action": "define", "name": "claimer", "description": "Claims", "system_prompt": "p", "tools": ["manage_tasks"]}
        board {"action": "add", "tasks": [{"subject": "one"}, {"subject": "two", "blocked_by": ["b_01"]}]}
        board {"action": "claim", "id": "b_02"}
        board {"action": "complete", "id": "b_02"}
        board {"action": "claim", "id": "b_03"}
        board {"action": "update", "id": "b_01", "blocked_by": ["b_02"]}
        quiet {"action": "run", "agent": "claimer", "task": "t"}
        board {"action": "claim", "id": "b_01"}
        board {"action": "add"}
        board {"action": "add", "subject": ""}
        board {"action": "add", "subject": "<<x*201>>"}
        board {"action": "claim"}
        board {"action": "list", "id": "b_01"}
        board {"action": "remove", "id": "b_01"}
        "#,
    ),
    (
        "spawn_limit",
        &[("LOCUM_MAX_SPAWNS", "1")],
        r#"
        quiet {"action": "run", "agent": "writer", "task": "t"}
        {"action": "run", "agent": "writer", "task": "t"}
        {"action": "spawn", "agent": "writer", "task": "t"}
        {"action": "parallel", "tasks": [{"agent": "writer", "task": "t"}]}
        "#,
    ),
    (
        "switched_off",
        &[("LOCUM_SUBAGENTS_ENABLED", "false")],
        r#"
        {"action": "spawn", "agent": "writer", "task": "t"}
        {"action": "run", "agent": "writer", "task": "t"}
        {"action": "define", "name": "a", "description": "d", "system_prompt": "p"}
        "#,
    ),
];

fn model(home: &Home) -> String {
    let claim = json!({"name": "manage_tasks", "input": {"action": "claim", "id": "b_01"}});
    home.script(&json!({
        "silent": [{"error": {"kind": "hang"}}],
        "claimer": [{"tool_calls": [claim]}, {"text": "Claimed."}],
        "*": [{"text": "Done."}],
    }))
}

#[test]
fn every_reachable_code_is_refused_with_its_message() {
    let mut codes = BTreeSet::new();
    for (name, variables, lines) in CASES {
        let home = variables.iter().fold(Home::new(), |home, (name, value)| home.with(name, value));
        let mut conversation = Conversation::open(&home, &model(&home));
        conversation.say(lines);
        codes.extend(conversation.codes.iter().cloned());
        insta::assert_snapshot!(format!("refusals_{name}"), conversation.close());
    }
    // The shared context fills up only with eleven writes: their answers are a limit's, not a refusal's.
    codes.insert("STORE_FULL".to_owned());
    let expected: BTreeSet<String> = locum::Code::ALL
        .iter()
        .map(|code| code.as_str().to_owned())
        .filter(|code| !UNREACHABLE.contains(&code.as_str()))
        .collect();
    assert_eq!(codes, expected);
}

#[test]
fn a_worktree_outside_a_repository_is_refused() {
    let home = Home::new();
    std::fs::remove_dir(home.project().join(".git")).unwrap();
    let input = r#"{"action": "spawn", "agent": "explore", "task": "t", "isolation": "worktree"}"#;
    let ran = home.locum(&["call", "subagent", input]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stdout.starts_with(r#"{"error":"ISOLATION_FAILED""#), "{ran:?}");
}

#[test]
fn a_single_call_exits_with_1_when_it_is_refused() {
    let home = Home::new();
    let cases = [
        (r#"{"action": "run", "agent": "writer", "task": "t"}"#, 0, "status", json!("completed")),
        (r#"{"action": "list_agents"}"#, 0, "error", Value::Null),
        // That a task failed is an answer.
        (r#"{"action": "run", "agent": "broken", "task": "t"}"#, 1, "error", json!("AGENT_NOT_FOUND")),
        (r#"{"action": "collect", "task_id": "t_01"}"#, 1, "error", json!("TASK_NOT_FOUND")),
        (r#"{"action": "spwan"}"#, 1, "error", json!("INVALID_ACTION")),
        ("[]", 1, "error", json!("INVALID_REQUEST")),
        ("{", 1, "error", json!("INVALID_REQUEST")),
    ];
    for (input, code, field, expected) in cases {
        let ran = home.locum(&["call", "subagent", input, "--model", &model(&home)]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(code), ""), "{input}");
        assert_eq!(ran.stdout.lines().count(), 1, "{}", ran.stdout);
        let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(answer.get(field).unwrap_or(&Value::Null), &expected, "{input}");
    }
    let unknown_tool = home.locum(&["call", "nothing", "{}"]);
    assert_eq!(unknown_tool.code, Some(1));
    assert!(unknown_tool.stdout.contains("INVALID_REQUEST"), "{}", unknown_tool.stdout);
    assert_eq!(home.locum(&["call", "subagent"]).code, Some(2));
    assert_eq!(home.locum(&["call"]).code, Some(2));
}
