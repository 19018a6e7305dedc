//! Work that goes from one process to the next.

use std::io::{BufRead, BufReader, Write};

use serde_json::{Value, json};

use crate::home::{Home, kill_now, until};

fn slow() -> Home {
    let home = Home::scripted(&json!({"*": [
        {"tool_calls": [{"name": "think", "input": {"thought": "hm"}}], "delay_ms": 60},
        {"text": "done: {{task}}", "delay_ms": 60},
    ]}));
    home.agent("plain", "tools: think", "You are plain.");
    home
}

fn spawn(task: &str) -> Value {
    json!({"action": "spawn", "agent": "plain", "task": task, "queue": true})
}

#[test]
fn the_end_of_input_hands_unfinished_tasks_on() {
    let home = slow();
    let inputs: Vec<Value> = (0..8).map(|number| spawn(&format!("n{number}"))).collect();
    let answers = home.calls("x", &inputs);
    assert!(answers.iter().all(|answer| answer["task_id"].is_string()), "{answers:?}");
    let waited = home.json(&["wait", "--session", "x"]);
    assert_eq!(waited["timed_out"], false);
    for (number, answer) in answers.iter().enumerate() {
        let id = answer["task_id"].as_str().unwrap();
        let collected = home.json(&["collect", id, "--session", "x"]);
        assert_eq!(collected["result"], format!("done: n{number}"));
        assert_eq!(collected["turns_used"], 2);
    }
    home.wait_for_no_worker();
}

#[test]
fn one_call_that_spawns_leaves_a_worker_behind() {
    let home = slow();
    let input = spawn("alone").to_string();
    let answer = home.json(&["call", "subagent", &input, "--session", "x"]);
    assert_eq!(answer["task_id"], "t_01");
    assert_eq!(home.workers().len(), 1);
    home.json(&["wait", "t_01", "--session", "x"]);
    home.wait_for_no_worker();
    assert_eq!(home.json(&["collect", "t_01", "--session", "x"])["result"], "done: alone");
}

/// Speaks MCP to a server, one request after the other.
struct Client {
    server: std::process::Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
    next: u64,
}

impl Client {
    fn connect(home: &Home) -> Self {
        let mut server = home.start(&["mcp", "--session", "x"]);
        let lines = BufReader::new(server.stdout.take().unwrap()).lines();
        let mut client = Self { server, lines, next: 1 };
        let hello =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        client.ask("initialize", &hello);
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.server.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.next;
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let line = self.lines.next().unwrap().unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                return message["result"].clone();
            }
        }
    }

    fn call(&mut self, input: &Value) -> Value {
        let answer = self.ask("tools/call", &json!({"name": "subagent", "arguments": input}));
        answer["structuredContent"].clone()
    }
}

#[test]
fn a_killed_server_is_followed_by_the_next_one() {
    let home = slow();
    let mut client = Client::connect(&home);
    let ids: Vec<_> = (0..7).map(|number| client.call(&spawn(&format!("n{number}")))["task_id"].clone()).collect();
    kill_now(client.server.id());
    client.server.wait().unwrap();
    assert_eq!(home.workers(), [0_u32; 0]);

    let mut client = Client::connect(&home);
    let waited = client.call(&json!({"action": "wait", "task_ids": ids}));
    assert_eq!(waited["timed_out"], false, "{waited}");
    assert_eq!(home.workers(), [0_u32; 0], "the server goes on with them itself");
    for (number, id) in ids.iter().enumerate() {
        let collected = client.call(&json!({"action": "collect", "task_id": id}));
        assert_eq!(collected["result"], format!("done: n{number}"));
    }
    drop(client.server.stdin.take());
    assert!(client.server.wait().unwrap().success());
}

#[test]
fn a_client_that_leaves_leaves_its_tasks_to_a_worker() {
    let home = slow();
    let mut client = Client::connect(&home);
    let id = client.call(&spawn("left"))["task_id"].as_str().unwrap().to_owned();
    drop(client.server.stdin.take());
    assert!(client.server.wait().unwrap().success());
    home.json(&["wait", &id, "--session", "x"]);
    assert_eq!(home.json(&["collect", &id, "--session", "x"])["result"], "done: left");
    home.wait_for_no_worker();
}

#[test]
fn a_client_that_leaves_in_the_middle_of_a_wait_is_not_waited_for() {
    let home = Home::scripted(&json!({"*": [{"error": {"kind": "hang"}}]}));
    home.agent("plain", "tools: []", "You are plain.");
    let mut client = Client::connect(&home);
    client.call(&spawn("x"));
    let wait = json!({"name": "subagent", "arguments": {"action": "wait", "timeout_ms": 45_000}});
    client.send(&json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": wait}));
    let begun = std::time::Instant::now();
    drop(client.server.stdin.take());
    assert!(client.server.wait().unwrap().success());
    assert!(begun.elapsed() < std::time::Duration::from_secs(30), "{:?}", begun.elapsed());
    assert_eq!(home.workers().len(), 1);
    assert_eq!(home.json(&["cancel", "t_01", "--session", "x"])["receipt"]["confirmed"], true);
    home.wait_for_no_worker();
}

#[test]
fn an_agents_directory_that_was_named_relative_to_the_command_is_found_by_its_worker() {
    let mut home = Home::scripted(&json!({
        "lead": [
            {"tool_calls": [{"name": "subagent", "input": {"action": "spawn", "agent": "nearby", "task": "y"}}]},
            {"text": "led"},
        ],
        "nearby": [{"text": "near"}],
    }));
    home.set("LOCUM_MAX_DEPTH", "2");
    home.agent("lead", "tools: subagent", "You lead.");
    home.agent("nearby", "tools: []", "You are near.");
    std::fs::rename(home.agents(), home.project().join("specialists")).unwrap();
    home.json(&["spawn", "lead", "x", "--agents", "specialists"]);
    let status = until("the end of both", || {
        let status = home.json(&["status", "--agents", "specialists"]);
        let ended = |task: &Value| task["completed_at"].is_string();
        status["tasks"].as_array().unwrap().iter().all(ended).then_some(status)
    });
    assert_eq!(status["tasks"][1]["agent"], "nearby", "{status}");
}
