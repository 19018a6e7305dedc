//! The operation log: one line for each operation and each tool call, and never what was said.

use std::path::Path;

use locum::models::scripted::{Say, Scripted};
use locum::operation_log::OperationLog;
use locum::redact::Redactor;
use locum::tools::ToolLayerError;
use locum::transcript::{Repeat, ToolOutput};
use locum::{Desk, Timestamp};
use serde_json::{Value, json};

use crate::stage::{agent, ask, builder, check, collect, context, pass, spawn, tool};

fn desk(directory: &Path, payloads: bool) -> Desk {
    let moment = std::time::Duration::from_millis(100);
    let looks = Say::calls([("look", json!({"at": "private"})), ("miss", json!({}))]).after(moment);
    let script = Scripted::new()
        .agent("eve", [looks, Say::text("private answer")])
        .agent("ann", [Say::calls([("fall", json!({}))]).after(moment)])
        .agent("bob", [Say::calls([("hang", json!({}))]).after(moment)]);
    let log = OperationLog::open(directory, Timestamp::from_millis(0), payloads, Redactor::default()).unwrap();
    builder(script)
        .tool(tool("look", Repeat::Safe, |_, _| async { Ok(ToolOutput::ok("private output")) }))
        .tool(tool("miss", Repeat::Safe, |_, _| async { Ok(ToolOutput::failed("private failure")) }))
        .tool(tool("fall", Repeat::Safe, |_, _| async { Err(ToolLayerError("private details".to_owned())) }))
        .tool(tool("hang", Repeat::Safe, |_, _| std::future::pending()))
        .agent(agent("eve", &["look", "miss"]))
        .agent(agent("ann", &["fall"]))
        .agent(agent("bob", &["hang"]))
        .log(log)
        .build()
        .unwrap()
}

fn lines(directory: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(directory.join("2026-02-18.log")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

async fn work(desk: &Desk) {
    let id = spawn(desk, "eve", "private task").await;
    collect(desk, &id).await;
    ask(desk, json!({"action": "collect", "task_id": id})).await;
    context(desk, json!({"action": "write", "key": "goal", "value": "private value"})).await;
    let id = spawn(desk, "ann", "private task").await;
    collect(desk, &id).await;
    let id = spawn(desk, "bob", "private task").await;
    pass(1.0).await;
    ask(desk, json!({"action": "cancel", "task_id": id})).await;
}

#[tokio::test(start_paused = true)]
async fn every_operation_and_every_tool_call_is_one_line_that_says_nothing_private() {
    let directory = tempfile::tempdir().unwrap();
    work(&desk(directory.path(), false)).await;
    let lines = lines(directory.path());
    let expected = [
        json!({"task": "t_01", "agent": "eve", "action": "spawn", "status": "running"}),
        json!({"task": "t_01", "agent": "eve", "action": "look", "status": "ok", "turns": 1}),
        json!({"task": "t_01", "agent": "eve", "action": "miss", "status": "failed", "turns": 1}),
        json!({"action": "wait", "status": "ok"}),
        json!({"task": "t_01", "agent": "eve", "action": "collect", "status": "completed", "turns": 2}),
        json!({"action": "collect", "status": "TASK_NOT_FOUND"}),
        json!({"action": "shared_context.write", "status": "ok"}),
        json!({"task": "t_02", "agent": "ann", "action": "spawn", "status": "running"}),
        json!({"task": "t_02", "agent": "ann", "action": "fall", "status": "failed", "turns": 1}),
        json!({"action": "wait", "status": "ok"}),
        json!({"task": "t_02", "agent": "ann", "action": "collect", "status": "failed", "turns": 1}),
        json!({"task": "t_03", "agent": "bob", "action": "spawn", "status": "running"}),
        json!({"task": "t_03", "agent": "bob", "action": "hang", "status": "interrupted", "turns": 1}),
        json!({"task": "t_03", "action": "cancel", "status": "cancelled", "turns": 1}),
    ];
    check(&json!(lines), &json!(expected));
    for line in &lines {
        check(line, &json!({"session": "main", "payload": null}));
        assert!(line["timestamp"].as_str().unwrap().starts_with("2026-02-18T00:00:"), "{line}");
        assert!(!line.to_string().contains("private"), "{line}");
    }
}

#[tokio::test(start_paused = true)]
async fn payloads_are_written_where_the_user_said_so() {
    let directory = tempfile::tempdir().unwrap();
    work(&desk(directory.path(), true)).await;
    let lines = lines(directory.path());
    let payload = |action: &str| lines.iter().find(|line| line["action"] == action).unwrap()["payload"].clone();
    check(&payload("look"), &json!({"input": {"at": "private"}, "output": "private output"}));
    check(&payload("spawn"), &json!({"request": {"subagent": {"spawn": {"task": "private task"}}}}));
    check(&payload("collect"), &json!({"answer": {"result": "private answer"}}));
}

#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn the_log_is_readable_by_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let logs = directory.path().join("state/logs");
    spawn(&desk(&logs, false), "eve", "Go.").await;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&logs), mode(&logs.join("2026-02-18.log"))), (0o700, 0o600));
}

#[tokio::test(start_paused = true)]
async fn another_day_has_another_file() {
    let directory = tempfile::tempdir().unwrap();
    let desk = desk(directory.path(), false);
    spawn(&desk, "eve", "Go.").await;
    pass(24.0 * 60.0 * 60.0).await;
    ask(&desk, json!({"action": "status"})).await;
    let day = |day: &str| std::fs::read_to_string(directory.path().join(format!("{day}.log"))).unwrap();
    assert!(day("2026-02-18").contains("spawn") && !day("2026-02-18").contains("status\","), "{}", day("2026-02-18"));
    assert!(day("2026-02-19").contains("\"action\":\"status\""), "{}", day("2026-02-19"));
}
