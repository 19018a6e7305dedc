//! The life of sessions, and the shared context over the store: what the library adds to the rules.

use std::sync::Arc;

use locum::context_changes::ContextChange;
use locum::models::scripted::{Say, Scripted};
use locum::operation_log::OperationLog;
use locum::redact::Redactor;
use locum::store::sqlite::SqliteStore;
use locum::{Desk, SessionId, Timestamp};
use serde_json::{Value, json};

use crate::stage::{agent, ask, builder, check, collect, context, desk, pass, spawn, status};

fn script() -> Scripted {
    let write = |value: &str| json!({"action": "write", "key": "goal", "value": value});
    Scripted::new()
        .agent("ann", [Say::calls([("shared_context", write("hers"))]), Say::text("Done.")])
        .agent("bob", [Say::text("Done.").after(std::time::Duration::from_secs(5))])
}

fn id(text: &str) -> SessionId {
    SessionId::parse(text).unwrap()
}

async fn sessions(desk: &Desk) -> Vec<String> {
    let rows = desk.sessions().await.unwrap();
    rows.iter()
        .map(|row| format!("{} {} {}", row.id, if row.archived { "archived" } else { "active" }, row.keys))
        .collect()
}

fn code<T: std::fmt::Debug>(answer: Result<T, locum::Refusal>) -> &'static str {
    answer.unwrap_err().code.as_str()
}

#[tokio::test(start_paused = true)]
async fn a_session_is_made_archived_and_removed() {
    let desk = desk(script());
    assert_eq!(sessions(&desk).await, [""; 0]);
    desk.create_session(&id("team")).await.unwrap();
    assert_eq!(code(desk.create_session(&id("team")).await), "INVALID_REQUEST");
    assert_eq!(code(desk.archive_session(&id("tame")).await), "SESSION_NOT_FOUND");
    assert_eq!(code(desk.delete_session(&id("tame")).await), "SESSION_NOT_FOUND");

    let team = desk.in_session(id("team"));
    context(&team, json!({"action": "write", "key": "goal", "value": "v"})).await;
    let task = spawn(&team, "bob", "Go.").await;
    assert_eq!(code(desk.delete_session(&id("team")).await), "INVALID_REQUEST");
    desk.archive_session(&id("team")).await.unwrap();
    desk.archive_session(&id("team")).await.unwrap();
    assert_eq!(sessions(&desk).await, ["team archived 1"]);

    let refused = json!({"error": "SESSION_ARCHIVED"});
    check(&context(&team, json!({"action": "write", "key": "goal", "value": "w"})).await, &refused);
    check(&context(&team, json!({"action": "delete", "key": "goal"})).await, &refused);
    check(&context(&team, json!({"action": "snapshot", "label": "s"})).await, &refused);
    check(&context(&team, json!({"action": "restore", "label": "s"})).await, &refused);
    check(&ask(&team, json!({"action": "spawn", "agent": "bob", "task": "Go."})).await, &refused);
    let define = json!({"action": "define", "name": "eve", "description": "d", "system_prompt": "p"});
    check(&ask(&team, define).await, &refused);
    // Reading goes on, and so does what was under way.
    check(&context(&team, json!({"action": "read", "key": "goal"})).await, &json!({"value": "v"}));
    check(&context(&team, json!({"action": "read_history", "key": "goal"})).await, &json!({"key": "goal"}));
    check(&status(&team, &task).await, &json!({"status": "running"}));
    check(&collect(&team, &task).await, &json!({"result": "Done."}));

    desk.delete_session(&id("team")).await.unwrap();
    assert_eq!(sessions(&desk).await, [""; 0]);
    check(&context(&team, json!({"action": "read", "key": "goal"})).await, &json!({"error": "KEY_NOT_FOUND"}));
    check(&ask(&team, json!({"action": "result", "task_id": task})).await, &json!({"error": "TASK_NOT_FOUND"}));
    assert_eq!(spawn(&team, "bob", "Go.").await, "t_01");
}

#[tokio::test(start_paused = true)]
async fn every_change_is_told_to_those_who_watch_the_session() {
    let desk = builder(script()).agent(agent("ann", &["shared_context"])).build().unwrap();
    let mut changes = desk.context_changes();
    let other = desk.in_session(id("other"));
    context(&other, json!({"action": "write", "key": "elsewhere", "value": "v"})).await;
    context(&desk, json!({"action": "write", "key": "goal", "value": "12345"})).await;
    context(&desk, json!({"action": "snapshot", "label": "s"})).await;
    let task = spawn(&desk, "ann", "Go.").await;
    collect(&desk, &task).await;
    context(&desk, json!({"action": "write", "key": "note", "value": "v", "ttl_seconds": 60})).await;
    context(&desk, json!({"action": "delete", "key": "goal"})).await;
    pass(60.0).await;
    context(&desk, json!({"action": "restore", "label": "s"})).await;
    context(&desk, json!({"action": "read", "key": "goal"})).await;
    context(&desk, json!({"action": "delete", "key": "nothing"})).await;
    drop((desk, other));
    let mut told = Vec::new();
    while let Some(ContextChange { key, version, writer, size, deleted }) = changes.next().await {
        told.push(format!("{key} {version} {writer} {size} {deleted}"));
    }
    let expected = [
        "goal 1 orchestrator 2 false",
        "goal 2 subagent:ann:t_01 1 false",
        "note 1 orchestrator 1 false",
        "goal 2 orchestrator 0 true",
        "goal 3 orchestrator 2 false",
        "note 1 expiry 0 true",
    ];
    assert_eq!(told, expected);
}

#[tokio::test(start_paused = true)]
async fn changes_are_logged_with_key_writer_version_and_size_and_never_the_value() {
    let directory = tempfile::tempdir().unwrap();
    let log = OperationLog::open(directory.path(), Timestamp::from_millis(0), false, Redactor::default()).unwrap();
    let desk = builder(script()).log(log).build().unwrap();
    context(&desk, json!({"action": "write", "key": "goal", "value": "private value"})).await;
    context(&desk, json!({"action": "snapshot", "label": "s"})).await;
    context(&desk, json!({"action": "write", "key": "more", "value": ""})).await;
    context(&desk, json!({"action": "restore", "label": "s"})).await;
    context(&desk, json!({"action": "delete", "key": "goal"})).await;
    context(&desk, json!({"action": "delete", "key": "goal"})).await;
    desk.archive_session(&id("main")).await.unwrap();
    desk.archive_session(&id("nobody")).await.unwrap_err();
    let text = std::fs::read_to_string(directory.path().join("2026-02-18.log")).unwrap();
    assert!(!text.contains("private"), "{text}");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let by = "orchestrator";
    let expected = json!([
        {"action": "shared_context.write", "status": "ok", "key": "goal", "writer": by, "version": 1, "size": 4, "deleted": false},
        {"action": "shared_context.snapshot", "status": "ok", "key": null},
        {"action": "shared_context.write", "key": "more", "writer": by, "version": 1, "size": 0},
        {"action": "shared_context.restore", "key": "goal", "writer": by, "version": 2, "size": 4},
        {"action": "shared_context.restore", "key": "more", "writer": by, "version": 1, "deleted": true},
        {"action": "shared_context.delete", "key": "goal", "writer": by, "version": 2, "deleted": true},
        {"action": "shared_context.delete", "status": "KEY_NOT_FOUND", "key": null},
        {"action": "session.archive", "session": "main", "status": "ok"},
        {"action": "session.archive", "session": "nobody", "status": "SESSION_NOT_FOUND"},
    ]);
    check(&json!(lines), &expected);
}

#[tokio::test(start_paused = true)]
async fn a_value_expires_on_the_engines_clock() {
    let desk = desk(script());
    context(&desk, json!({"action": "write", "key": "lock", "value": "mine", "ttl_seconds": 60})).await;
    pass(59.9).await;
    check(&context(&desk, json!({"action": "read", "key": "lock"})).await, &json!({"value": "mine"}));
    pass(0.1).await;
    check(&context(&desk, json!({"action": "read", "key": "lock"})).await, &json!({"error": "KEY_NOT_FOUND"}));
    check(&context(&desk, json!({"action": "list_keys"})).await, &json!({"keys": [], "total_size_tokens": 0}));
    let again = json!({"action": "write", "key": "lock", "value": "yours", "expected_version": 0});
    check(&context(&desk, again).await, &json!({"version": 2}));
}

#[tokio::test(start_paused = true)]
async fn a_subagent_keeps_to_its_rights() {
    let desk = builder(script()).agent(agent("ann", &["shared_context"])).build().unwrap();
    let mut guarded = json!({"action": "write", "key": "goal", "value": "v", "writable_by": ["orchestrator"]});
    context(&desk, guarded.clone()).await;
    let task = spawn(&desk, "ann", "Go.").await;
    collect(&desk, &task).await;
    check(&context(&desk, json!({"action": "read", "key": "goal"})).await, &json!({"value": "v", "version": 1}));
    guarded["writable_by"] = json!(["subagent:ann:*"]);
    context(&desk, guarded).await;
    let task = spawn(&desk, "ann", "Go.").await;
    collect(&desk, &task).await;
    check(&context(&desk, json!({"action": "read", "key": "goal"})).await, &json!({"value": "hers", "version": 3}));
}

#[tokio::test(start_paused = true)]
async fn namespaces_are_switched_on_in_the_builder() {
    let write = json!({"action": "write", "key": "team:goal", "value": "v"});
    check(&context(&desk(script()), write.clone()).await, &json!({"error": "INVALID_KEY"}));
    let with = builder(script()).namespaces(true).build().unwrap();
    check(&context(&with, write).await, &json!({"key": "team:goal", "version": 1}));
}

#[tokio::test]
async fn snapshots_and_history_survive_the_process() {
    let directory = tempfile::tempdir().unwrap();
    let open = || {
        let store = SqliteStore::open(&directory.path().join("store.db")).unwrap();
        builder(script()).store(Arc::new(store)).build().unwrap()
    };
    let first = open();
    context(&first, json!({"action": "write", "key": "a", "value": "one"})).await;
    context(&first, json!({"action": "snapshot", "label": "s"})).await;
    context(&first, json!({"action": "write", "key": "a", "value": "two"})).await;
    context(&first, json!({"action": "write", "key": "b", "value": "three"})).await;
    drop(first);
    let second = open();
    let restored = context(&second, json!({"action": "restore", "label": "s"})).await;
    check(&restored, &json!({"written": [{"key": "a", "version": 3}], "deleted": ["b"]}));
    let history = context(&second, json!({"action": "read_history", "key": "a"})).await;
    let versions =
        json!([{"version": 3, "value": "one"}, {"version": 2, "value": "two"}, {"version": 1, "value": "one"}]);
    check(&history, &json!({"versions": versions}));
    let history = context(&second, json!({"action": "read_history", "key": "b"})).await;
    check(&history, &json!({"versions": [{"version": 1, "value": "three"}]}));
}
