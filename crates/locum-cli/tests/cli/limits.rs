//! Each limit at its edge: the last value that passes and the first that does not.

use serde_json::json;

use crate::conversation::{Conversation, converse};
use crate::home::Home;

/// Has a conversation with agents that answer, never answer, or answer with their script's long text.
fn check(name: &str, lines: &str) {
    let home = Home::new();
    let long = |count: usize| json!([{"text": "é".repeat(count), "usage": {}}]);
    let model = home.script(&json!({
        "silent": [{"error": {"kind": "hang"}}],
        "exact": long(4000),
        "longer": long(4001),
        "*": [{"text": "Done.", "usage": {}}],
    }));
    let mut conversation = Conversation::open(&home, &model);
    for agent in ["silent", "exact", "longer", "other"] {
        let define = json!({"action": "define", "name": agent, "description": "d", "system_prompt": "p"});
        conversation.ask("subagent", &define);
    }
    conversation.say(lines);
    insta::assert_snapshot!(format!("limits_{name}"), conversation.close());
}

#[test]
fn a_task_has_at_most_1000_tokens_counted_in_characters() {
    check(
        "task",
        r#"
        {"action": "run", "agent": "other", "task": "<<x*4000>>"}
        {"action": "run", "agent": "other", "task": "<<x*4001>>"}
        {"action": "run", "agent": "other", "task": "<<é*4000>>"}
        {"action": "run", "agent": "other", "task": "<<é*4001>>"}
        {"action": "parallel", "tasks": [{"agent": "other", "task": "<<🦀*4000>>"}, {"agent": "other", "task": "<<🦀*4001>>"}]}
        {"action": "chain", "tasks": [{"agent": "other", "task": "t"}, {"agent": "other", "task": "<<x*4001>>"}]}
        "#,
    );
}

#[test]
fn a_name_has_at_most_64_characters() {
    check(
        "name",
        r#"
        {"action": "define", "name": "<<a*64>>", "description": "d", "system_prompt": "p"}
        {"action": "define", "name": "<<a*65>>", "description": "d", "system_prompt": "p"}
        {"action": "define", "name": "", "description": "d", "system_prompt": "p"}
        {"action": "define", "name": "é", "description": "d", "system_prompt": "p"}
        {"action": "define", "name": "a_b-9", "description": "d", "system_prompt": "p"}
        context {"action": "write", "key": "<<k*64>>", "value": "v"}
        context {"action": "write", "key": "<<k*65>>", "value": "v"}
        context {"action": "write", "key": "a-b", "value": "v"}
        "#,
    );
}

#[test]
fn five_tasks_run_at_once_and_an_end_makes_room() {
    check(
        "running",
        r#"
        {"action": "spawn", "agent": "silent", "task": "1"}
        {"action": "spawn", "agent": "silent", "task": "2"}
        {"action": "spawn", "agent": "silent", "task": "3"}
        {"action": "spawn", "agent": "silent", "task": "4"}
        {"action": "spawn", "agent": "silent", "task": "5"}
        {"action": "spawn", "agent": "silent", "task": "6"}
        # a refusal took no id; what is queued takes the first place that is free
        {"action": "spawn", "agent": "silent", "task": "6", "queue": true}
        {"action": "spawn", "agent": "silent", "task": "7", "queue": true}
        quiet {"action": "cancel", "task_id": "t_03"}
        until /turns_used=1 {"action": "status", "task_id": "t_06"}
        until /position=1 {"action": "status", "task_id": "t_07"}
        quiet {"action": "cancel", "task_id": "t_07"}
        # a finished task that nobody collected blocks nothing
        quiet {"action": "cancel", "task_id": "t_01"}
        {"action": "spawn", "agent": "silent", "task": "8"}
        {"action": "spawn", "agent": "silent", "task": "9"}
        quiet {"action": "cancel", "task_id": "t_02"}
        quiet {"action": "cancel", "task_id": "t_04"}
        quiet {"action": "cancel", "task_id": "t_05"}
        quiet {"action": "cancel", "task_id": "t_06"}
        quiet {"action": "cancel", "task_id": "t_08"}
        "#,
    );
}

#[test]
fn a_task_has_at_most_25_turns() {
    check(
        "turns",
        r#"
        {"action": "define", "name": "least", "description": "d", "system_prompt": "p", "max_turns": 1}
        {"action": "define", "name": "none", "description": "d", "system_prompt": "p", "max_turns": 0}
        {"action": "define", "name": "negative", "description": "d", "system_prompt": "p", "max_turns": -9223372036854775808}
        {"action": "define", "name": "most", "description": "d", "system_prompt": "p", "max_turns": 25}
        {"action": "define", "name": "more", "description": "d", "system_prompt": "p", "max_turns": 26}
        {"action": "define", "name": "endless", "description": "d", "system_prompt": "p", "max_turns": 9223372036854775807}
        {"action": "define", "name": "half", "description": "d", "system_prompt": "p", "max_turns": 1.5}
        "#,
    );
}

#[test]
fn all_25_turns_can_be_used_and_the_last_is_for_the_answer() {
    let home = Home::new();
    let look = json!({"text": "looking", "tool_calls": [{"name": "ls"}], "usage": {"input_tokens": 1}});
    let answer = json!({"text": "Found.", "usage": {"input_tokens": 1}});
    let looks = |count: usize| vec![look.clone(); count];
    let answers = [looks(24), vec![answer]].concat();
    let model = home.script(&json!({"answers": answers, "goes-on": looks(26)}));
    let transcript = converse(
        &home,
        &model,
        r#"
        quiet {"action": "define", "name": "answers", "description": "d", "system_prompt": "p", "max_turns": 25, "tools": ["ls"]}
        quiet {"action": "define", "name": "goes-on", "extends": "answers"}
        {"action": "run", "agent": "answers", "task": "t"}
        {"action": "run", "agent": "goes-on", "task": "t"}
        "#,
    );
    insta::assert_snapshot!("limits_all_turns", transcript);
}

#[test]
fn a_system_prompt_has_at_most_4000_tokens() {
    check(
        "prompt",
        r#"
        {"action": "define", "name": "a", "description": "d", "system_prompt": "<<é*16000>>"}
        {"action": "define", "name": "b", "description": "d", "system_prompt": "<<é*16001>>"}
        {"action": "define", "name": "c", "extends": "a", "system_prompt_append": "x"}
        {"action": "define", "name": "d", "extends": "other", "system_prompt_append": "<<x*15997>>"}
        {"action": "define", "name": "e", "extends": "other", "system_prompt_append": "<<x*15998>>"}
        {"action": "define", "name": "f", "description": "<<x*1000>>", "system_prompt": "p"}
        {"action": "define", "name": "g", "description": "<<x*1001>>", "system_prompt": "p"}
        "#,
    );
}

#[test]
fn a_result_is_cut_after_1000_tokens_and_read_whole_by_page() {
    check(
        "result",
        r#"
        {"action": "run", "agent": "exact", "task": "t"}
        {"action": "run", "agent": "longer", "task": "t"}
        {"action": "result", "task_id": "t_02"}
        {"action": "result", "task_id": "t_02", "offset": 4000}
        {"action": "result", "task_id": "t_02", "offset": 3999, "limit": 1}
        {"action": "result", "task_id": "t_02", "offset": 4001}
        {"action": "result", "task_id": "t_02", "offset": 9007199254740993, "limit": 9007199254740993}
        {"action": "result", "task_id": "t_02", "limit": 0}
        {"action": "result", "task_id": "t_02", "limit": 1000000}
        {"action": "result", "task_id": "t_02", "offset": -1}
        {"action": "chain", "tasks": [{"agent": "longer", "task": "t"}, {"agent": "longer", "task": "{previous}"}]}
        "#,
    );
}

#[test]
fn a_wait_that_is_too_long_is_shortened_and_one_of_nothing_ends_at_once() {
    check(
        "wait",
        r#"
        quiet {"action": "run", "agent": "other", "task": "t", "background": true}
        until /timed_out=false {"action": "wait", "task_ids": ["t_01"], "timeout_ms": 18446744073709551615}
        quiet {"action": "spawn", "agent": "silent", "task": "t"}
        until /turns_used=1 {"action": "status", "task_id": "t_02"}
        {"action": "wait", "timeout_ms": 0}
        {"action": "wait", "timeout_ms": -1}
        quiet {"action": "cancel", "task_id": "t_02"}
        {"action": "wait"}
        "#,
    );
}

#[test]
fn the_shared_context_has_10_000_tokens_of_values_with_1000_each() {
    check(
        "context",
        r#"
        context {"action": "write", "key": "near", "value": "<<é*3196>>"}
        context {"action": "write", "key": "near", "value": "<<é*3197>>"}
        context {"action": "write", "key": "k1", "value": "<<é*4000>>"}
        context {"action": "write", "key": "k1", "value": "<<é*4001>>"}
        context {"action": "write", "key": "k2", "value": "<<é*4000>>"}
        context {"action": "write", "key": "k3", "value": "<<é*4000>>"}
        context {"action": "write", "key": "k4", "value": "<<é*4000>>"}
        context {"action": "write", "key": "k5", "value": "<<é*4000>>"}
        context {"action": "write", "key": "k6", "value": "<<é*4000>>"}
        context {"action": "write", "key": "k7", "value": "<<é*4000>>"}
        context {"action": "write", "key": "k8", "value": "<<é*4000>>"}
        context {"action": "write", "key": "k9", "value": "<<é*4000>>"}
        # 800 tokens and nine times 1000: 200 are left
        context {"action": "write", "key": "last", "value": "<<é*801>>"}
        context {"action": "write", "key": "last", "value": "<<é*800>>"}
        context {"action": "write", "key": "one", "value": "v"}
        context {"action": "write", "key": "k9", "value": "<<x*4000>>"}
        context {"action": "delete", "key": "last"}
        context {"action": "write", "key": "one", "value": "v"}
        context {"action": "list_keys"}
        "#,
    );
}
