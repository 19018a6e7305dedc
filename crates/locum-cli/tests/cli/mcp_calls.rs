//! MCP calls that wait: what a client is told meanwhile, and what it may do.

use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest, ProgressNotificationParam, ServerResult};
use rmcp::service::{NotificationContext, PeerRequestOptions};
use rmcp::transport::TokioChildProcess;
use rmcp::{ClientHandler, RoleClient, ServiceExt as _};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::home::Home;
use crate::raw::Raw;

fn hanging(home: &Home) -> String {
    home.script(&json!({"*": [{"tool_calls": [{"name": "ls", "input": {}}]}, {"error": {"kind": "hang"}}]}))
}

/// A task of some turns, each long enough for a notice.
fn slow(home: &Home) -> String {
    let turn = json!({"tool_calls": [{"name": "ls", "input": {}}], "usage": {}, "delay_ms": 250});
    home.script(&json!({"*": [turn, turn, turn, {"text": "Done: {{task}}", "usage": {}}]}))
}

/// Reads progress under `token` until the answer to `id`; checks that it only grows.
fn watch(raw: &Raw, id: u32, token: &str) -> (Vec<String>, Value) {
    let (mut messages, mut last) = (Vec::new(), 0.0);
    loop {
        let message = raw.next();
        if message["id"] == id {
            return (messages, message["result"]["structuredContent"].clone());
        }
        assert_eq!(message["method"], "notifications/progress", "{message}");
        let params = &message["params"];
        assert_eq!(params["progressToken"], token, "{message}");
        let progress = params["progress"].as_f64().unwrap();
        assert!(progress > last, "{message}");
        last = progress;
        messages.push(params["message"].as_str().unwrap().to_owned());
    }
}

#[test]
fn a_call_that_waits_tells_of_its_tasks_and_nothing_after_its_answer() {
    let home = Home::new();
    let mut raw = Raw::open(&home, &slow(&home));
    let task = |task: &str| json!({"agent": "explore", "task": task});
    let cases = [
        json!({"action": "run", "agent": "explore", "task": "a"}),
        json!({"action": "parallel", "tasks": [task("b"), task("c")]}),
        json!({"action": "chain", "tasks": [task("d"), task("e")]}),
    ];
    for (id, input) in (1..).zip(&cases) {
        let token = format!("token-{id}");
        raw.call_watched(id, &token, input);
        let (messages, answer) = watch(&raw, id, &token);
        raw.assert_silent();
        assert!(messages.iter().any(|message| message.starts_with("@explore t_0")), "{input}: {messages:?}");
        assert!(messages.iter().any(|message| message.ends_with(" turn 2: thinking")), "{input}: {messages:?}");
        assert!(answer.to_string().contains("Done: "), "{input}: {answer}");
    }
    assert_eq!(raw.leave().code, Some(0));
}

#[test]
fn a_wait_tells_of_the_tasks_it_waits_for_and_of_no_others() {
    let home = Home::new();
    let mut raw = Raw::open(&home, &slow(&home));
    for id in [1, 2] {
        raw.subagent(id, &json!({"action": "spawn", "agent": "explore", "task": "t"}));
    }
    raw.call_watched(3, "w", &json!({"action": "wait", "task_ids": ["t_02"]}));
    let (messages, answer) = watch(&raw, 3, "w");
    assert_eq!(answer["tasks"][0]["status"], "completed", "{answer}");
    assert!(!messages.is_empty());
    assert!(messages.iter().all(|message| message.starts_with("@explore t_02 ")), "{messages:?}");
    raw.subagent(4, &json!({"action": "wait"}));
    assert_eq!(raw.leave().code, Some(0));
}

#[test]
fn a_client_that_did_not_ask_for_progress_is_not_told() {
    let home = Home::new();
    let mut raw = Raw::open(&home, &slow(&home));
    let answer = raw.subagent(1, &json!({"action": "run", "agent": "explore", "task": "t"}));
    assert_eq!(answer["result"], "Done: t");
    assert_eq!(raw.leave().code, Some(0));
}

#[test]
fn a_wait_that_is_given_up_leaves_its_task_to_be_collected() {
    let home = Home::new();
    let mut raw = Raw::open(&home, &slow(&home));
    raw.subagent(1, &json!({"action": "spawn", "agent": "explore", "task": "t"}));
    raw.call_watched(2, "w", &json!({"action": "wait", "task_ids": ["t_01"]}));
    assert_eq!(raw.next()["method"], "notifications/progress");
    raw.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}));
    let waited = raw_answer_past_progress(&mut raw, 3, &json!({"action": "wait", "task_ids": ["t_01"]}));
    assert_eq!(waited["tasks"][0]["status"], "completed", "{waited}");
    let collected = raw.subagent(4, &json!({"action": "collect", "task_id": "t_01"}));
    assert_eq!(collected["result"], "Done: t");
    raw.assert_silent();
    assert_eq!(raw.leave().code, Some(0));
}

/// The answer to a call, past notices that were under way; there must be no other answer.
fn raw_answer_past_progress(raw: &mut Raw, id: u32, input: &Value) -> Value {
    raw.call(id, "subagent", input);
    loop {
        let message = raw.next();
        if message["method"] != "notifications/progress" {
            assert_eq!(message["id"], id, "{message}");
            return message["result"]["structuredContent"].clone();
        }
    }
}

#[test]
fn a_run_that_is_given_up_goes_on() {
    let home = Home::new();
    let mut raw = Raw::open(&home, &hanging(&home));
    raw.call_watched(1, "r", &json!({"action": "run", "agent": "explore", "task": "t"}));
    assert_eq!(raw.next()["method"], "notifications/progress");
    raw.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}));
    let status = raw_answer_past_progress(&mut raw, 2, &json!({"action": "status", "task_id": "t_01"}));
    assert_eq!(status["status"], "running");
    let cancelled = raw.subagent(3, &json!({"action": "cancel", "task_id": "t_01"}));
    assert_eq!(cancelled["status"], "cancelled");
    raw.assert_silent();
    assert_eq!(raw.leave().code, Some(0));
}

#[test]
fn calls_are_answered_out_of_order() {
    let home = Home::new();
    let mut raw = Raw::open(&home, &hanging(&home));
    raw.call(1, "subagent", &json!({"action": "run", "agent": "explore", "task": "t"}));
    raw.call(2, "subagent", &json!({"action": "run", "agent": "writer", "task": "u"}));
    raw.call(3, "subagent", &json!({"action": "list_agents"}));
    assert!(raw.answer(3)["agents"].is_array());
    raw.call(4, "shared_context", &json!({"action": "list_keys"}));
    assert!(raw.answer(4)["keys"].is_array());
    while raw.subagent(5, &json!({"action": "status"}))["tasks"].as_array().unwrap().len() < 2 {}
    for (id, task) in [(6, "t_02"), (7, "t_01")] {
        raw.call(id, "subagent", &json!({"action": "cancel", "task_id": task}));
    }
    let mut ids: Vec<_> = (0..4).map(|_| raw.next()["id"].as_u64().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, [1, 2, 6, 7]);
    assert_eq!(raw.leave().code, Some(0));
}

/// A client of the SDK that keeps what it is told.
struct Listener(mpsc::UnboundedSender<ProgressNotificationParam>);

impl ClientHandler for Listener {
    async fn on_progress(&self, params: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {
        self.0.send(params).ok();
    }
}

#[tokio::test]
async fn the_official_client_sees_progress_gives_up_and_collects() {
    let home = Home::new();
    let command = home.command(&["mcp", "--model", &slow(&home)]);
    let process = TokioChildProcess::new(tokio::process::Command::from(command)).unwrap();
    let (sender, mut notices) = mpsc::unbounded_channel();
    let service = Listener(sender).serve(process).await.unwrap();
    let request = |input: Value| {
        let params = CallToolRequestParams::new("subagent").with_arguments(input.as_object().unwrap().clone());
        ClientRequest::CallToolRequest(CallToolRequest::new(params))
    };
    let run = request(json!({"action": "run", "agent": "explore", "task": "t"}));
    let run = service.send_cancellable_request(run, PeerRequestOptions::no_options()).await.unwrap();
    let notice = notices.recv().await.unwrap();
    assert_eq!(notice.progress_token, run.progress_token);
    assert_eq!(notice.message.as_deref(), Some("@explore t_01 turn 1: thinking"));
    run.cancel(None).await.unwrap();
    for (input, path, expected) in [
        (json!({"action": "wait", "task_ids": ["t_01"]}), "/tasks/0/status", "completed"),
        (json!({"action": "collect", "task_id": "t_01"}), "/result", "Done: t"),
    ] {
        let ServerResult::CallToolResult(result) = service.send_request(request(input)).await.unwrap() else {
            panic!("a call has a result");
        };
        assert_eq!(result.structured_content.unwrap().pointer(path), Some(&json!(expected)));
    }
    service.cancel().await.unwrap();
}
