//! The same requests through the library, `locum call -`, MCP in all its ways, and HTTP: the same answers.

use std::sync::Arc;

use locum::sandbox::{Level, Sandbox};
use locum::settings::Places;
use locum::settings::environment::Environment;
use locum::store::sqlite::SqliteStore;
use locum::{Desk, DeskBuilder};
use serde_json::{Value, json};

use crate::conversation::expand;
use crate::home::Home;
use crate::mcp::Client;
use crate::served::Served;
use crate::settle::settle;
use crate::visit::{ALONE, Visit, WITH_SESSION};

/// What is asked, in this order: `context` stands before an input of `shared_context`, `board` before one of
/// `manage_tasks`.
const REQUESTS: &str = r#"
{"action": "list_agents"}
{"action": "define", "name": "helper", "description": "Helps", "system_prompt": "p"}
{"action": "define", "name": "helper", "description": "Helps", "system_prompt": "p"}
{"action": "define", "name": "helper", "extends": "helper", "replace": true, "max_turns": 77}
{"action": "define", "name": "looker", "description": "Looks", "system_prompt": "p", "tools": ["ls", "grep", "subagent"]}
{"action": "define", "name": "broken", "extends": "helper", "system_prompt_append": "more"}
{"action": "define", "name": "No name", "description": "d", "system_prompt": "p"}
{"action": "define", "name": "a", "description": "d", "system_prompt": "<<x*16001>>"}
{"action": "define", "name": "a", "description": "d", "system_prompt": "p", "tools": ["nothing"]}
{"action": "define", "name": "a", "description": "d", "system_prompt": "p", "model": "nothing"}
{"action": "define", "name": "a"}
{"action": "list_agents"}
{"action": "run", "agent": "helper", "task": "one"}
{"action": "run", "agent": "Helper", "task": "folded"}
{"action": "run", "agent": "looker", "task": "look", "label": "L", "timeout": 600, "max_input_tokens": 100000}
{"action": "run", "agent": "broken", "task": "fail"}
{"action": "run", "agent": "scout", "task": "long"}
{"action": "run", "agent": "writer", "task": "<<é*4000>>"}
{"action": "run", "agent": "writer", "task": "<<é*4001>>"}
{"action": "run", "agent": "hlper", "task": "t"}
{"action": "run", "agent": "helper", "task": "t", "model": "nothing"}
{"action": "run", "agent": "helper", "task": "t", "isolation": "moon"}
{"action": "run", "agent": "helper", "task": "t", "max_input_tokens": 1}
{"action": "run", "agent": "helper", "task": " "}
{"action": "spawn", "agent": "helper", "task": "two", "idempotency_key": "k"}
{"action": "wait", "task_ids": ["t_07"]}
{"action": "spawn", "agent": "helper", "task": "two", "idempotency_key": "k"}
{"action": "spawn", "agent": "helper", "task": "three", "idempotency_key": "k"}
{"action": "status", "task_id": "t_07"}
{"action": "status"}
{"action": "collect", "task_id": "t_07"}
{"action": "collect", "task_id": "t_07"}
{"action": "status", "task_id": "t_07"}
{"action": "cancel", "task_id": "t_07"}
{"action": "result", "task_id": "t_07"}
{"action": "result", "task_id": "t_05", "offset": 4000, "limit": 10}
{"action": "result", "task_id": "t_99"}
{"action": "spawn", "agent": "helper", "task": "after", "depends_on": ["t_01", "t_04"]}
{"action": "collect", "task_id": "t_08"}
{"action": "spawn", "agent": "helper", "task": "after", "depends_on": ["t_55"]}
{"action": "parallel", "tasks": [{"agent": "helper", "task": "a"}, {"agent": "nobdy", "task": "b"}, {"agent": "broken", "task": "c"}, {"agent": "looker", "task": "d"}]}
{"action": "parallel", "tasks": [["helper", "a"]]}
{"action": "parallel", "tasks": []}
{"action": "chain", "tasks": [{"agent": "helper", "task": "a"}, {"agent": "helper", "task": "{previous} b"}]}
{"action": "chain", "tasks": [{"agent": "broken", "task": "a"}, {"agent": "helper", "task": "{previous} b"}]}
{"action": "chain", "tasks": [{"agent": "helper", "task": "a"}, {"agent": "nobdy", "task": "b"}], "background": true}
{"action": "run", "agent": "helper", "task": "t", "background": true}
{"action": "wait", "task_ids": ["t_16"], "mode": "all", "timeout_ms": 45001}
{"action": "wait", "mode": "none"}
{"action": "race", "tasks": [{"agent": "broken", "task": "a"}]}
{"action": "race", "tasks": [{"agent": "helper", "task": "a"}]}
{"action": "race", "tasks": [{"agent": "nobdy", "task": "a"}]}
{"action": "map", "agent": "helper", "task": "about {input}", "inputs": ["x", "y"]}
{"action": "map", "agent": "helper", "task": "about it", "inputs": ["x"]}
{"action": "map", "agent": "helper", "task": "{input}", "inputs": "x"}
{"action": "status", "colour": "red"}
{"action": "start"}
{"action": 1}
{}
context {"action": "list_keys"}
context {"action": "write", "key": "goal", "value": "v"}
context {"action": "write", "key": "goal", "value": "<<x*3200>>", "expected_version": 1}
context {"action": "write", "key": "goal", "value": "w", "expected_version": 1}
context {"action": "write", "key": "goal", "value": "<<x*4001>>"}
context {"action": "write", "key": "No", "value": "v"}
context {"action": "read", "key": "goal"}
context {"action": "read", "key": "gaol"}
context {"action": "list_keys"}
context {"action": "delete", "key": "goal"}
context {"action": "delete", "key": "goal"}
context {"action": "read"}
context {"action": "run"}
context {"action": "write", "key": "a", "value": "one", "readable_by": ["subagent:*"]}
context {"action": "write", "key": "a", "value": "two", "writable_by": ["Nobody"]}
context {"action": "snapshot", "label": "first"}
context {"action": "snapshot", "label": "First"}
context {"action": "write", "key": "a", "value": "two"}
context {"action": "write", "key": "b", "value": "v"}
context {"action": "write", "key": "b", "value": "v", "ttl_seconds": 0}
context {"action": "read_batch", "keys": ["b", "a", "c"]}
context {"action": "read_batch", "keys": "a"}
context {"action": "read_history", "key": "a", "versions": 5}
context {"action": "read_history", "key": "goal"}
context {"action": "list_snapshots"}
context {"action": "restore", "label": "first"}
context {"action": "restore", "label": "second"}
context {"action": "list_keys"}
board {"action": "list"}
board {"action": "add", "subject": "one", "description": "d", "active_form": "Doing one", "metadata": {"k": [1]}}
board {"action": "add", "tasks": [{"subject": "two", "blocked_by": ["b_01"]}, {"subject": "three"}]}
board {"action": "claim", "id": "b_02"}
board {"action": "claim", "id": "b_03", "owner": "t_01"}
board {"action": "claim", "id": "b_03"}
board {"action": "claim", "id": "b_01"}
board {"action": "update", "id": "b_01", "comment": "c", "metadata": {"k": null}}
board {"action": "update", "id": "b_01", "blocked_by": ["b_02"]}
board {"action": "update", "id": "b_01", "colour": "red"}
board {"action": "complete", "id": "b_01"}
board {"action": "get", "id": "b_01"}
board {"action": "list"}
board {"action": "complete_all"}
board {"action": "clear"}
board {"action": "list", "archived": true}
board {"action": "get", "id": "b_77"}
board {"action": "remove"}
"#;

fn requests() -> Vec<(&'static str, Value)> {
    let lines = REQUESTS.trim().lines();
    lines
        .map(|line| match line.split_once(' ') {
            Some(("context", input)) => ("shared_context", expand(input)),
            Some(("board", input)) => ("manage_tasks", expand(input)),
            _ => ("subagent", expand(line)),
        })
        .collect()
}

fn script(home: &Home) -> String {
    let usage = json!({"input_tokens": 10, "output_tokens": 5});
    home.script(&json!({
        "looker": [{"text": "I look.", "tool_calls": [{"name": "ls"}, {"name": "bash"}], "usage": usage}, {"text": "Two.", "usage": usage}],
        "broken": [{"text": "So far.", "tool_calls": [{"name": "ls"}], "usage": usage}, {"error": {"kind": "auth"}}],
        "scout": [{"text": "é".repeat(4001), "usage": usage}],
        "writer": [{"text": "<system>\u{1b}[31m{{task}}", "usage": usage}],
        "*": [{"text": "Done: {{task}}", "usage": usage}],
    }))
}

fn through_library(builder: DeskBuilder) -> Vec<Value> {
    let home = Home::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let builder = builder.standard_tools().bundled_agents().root(home.project()).session("test");
        let builder = builder.worktrees(home.locum_home().join("state/worktrees"));
        let environment = Environment::new([], home.project());
        let builder = builder.sandbox(Sandbox::new(Level::Full, &environment, &Places::below(&home.locum_home())));
        let desk = builder.session_model(&script(&home), "set by --model").build().unwrap();
        let mut answers = Vec::new();
        for (tool, input) in requests() {
            let answer = match desk.call(tool, input).await {
                Ok(response) => json!(response),
                Err(refusal) => json!(refusal),
            };
            answers.push(settle(answer, &home.root()));
        }
        desk.close().await.unwrap();
        answers
    })
}

fn through_call() -> Vec<Value> {
    let home = Home::new();
    let lines: Vec<String> =
        requests().into_iter().map(|(tool, input)| json!({"tool": tool, "input": input}).to_string()).collect();
    let answers = home.call(&script(&home), lines.join("\n").as_bytes());
    answers.into_iter().map(|answer| settle(answer, &home.root())).collect()
}

async fn through_mcp() -> Vec<Value> {
    let home = Home::new();
    let client = Client::connect(&home, &script(&home)).await;
    let mut answers = Vec::new();
    for (tool, input) in requests() {
        let answer = client.call(tool, &input).await;
        assert_eq!(answer.is_error, answer.value.get("message").is_some(), "{}", answer.value);
        answers.push(settle(answer.value, &home.root()));
    }
    client.leave().await;
    answers
}

fn through_http() -> Vec<Value> {
    let home = Home::new();
    let server = Served::start(&home, &script(&home));
    let mut answers = Vec::new();
    for (tool, input) in requests() {
        let answer = server.call(tool, &input);
        let value = answer.json();
        assert_eq!(answer.status != 200, value.get("message").is_some(), "{value}");
        answers.push(settle(value, &home.root()));
    }
    assert_eq!(server.end(), Some(0));
    answers
}

/// In one of the two eras.
fn through_mcp_over_http(era: &str) -> Vec<Value> {
    let home = Home::new();
    let server = Served::start(&home, &script(&home));
    let visit = match era {
        ALONE => Visit::alone(&server, "/mcp?session=test", ""),
        _ => Visit::open(&server, "/mcp?session=test", "", &json!({})).0,
    };
    let tools = visit.get("tools/list", json!({}));
    let mut answers = Vec::new();
    for (tool, input) in requests() {
        let result = visit.call(tool, &input);
        let value = result["structuredContent"].clone();
        assert_eq!(result["isError"] == true, value.get("message").is_some(), "{value}");
        assert_eq!(serde_json::from_str::<Value>(result["content"][0]["text"].as_str().unwrap()).unwrap(), value);
        check_announced(&tools, tool, &value);
        answers.push(settle(value, &home.root()));
    }
    answers
}

/// What a tool answers is what it said it would.
fn check_announced(tools: &Value, tool: &str, answer: &Value) {
    let listed = tools["tools"].as_array().unwrap().iter().find(|listed| listed["name"] == tool).unwrap();
    for (name, value) in answer.as_object().unwrap() {
        let schema = &listed["outputSchema"]["properties"][name];
        let kind = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(_) => "integer",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        let allowed = match &schema["type"] {
            Value::Array(kinds) => kinds.contains(&json!(kind)),
            allowed => allowed == kind,
        };
        let is_named = schema["enum"].as_array().is_none_or(|words| words.contains(value));
        assert!(allowed && is_named, "{tool} answers {name}: {value}, which is not announced: {schema}");
    }
}

fn compare(door: &str, answers: &[Value], expected: &[Value]) {
    assert_eq!(answers.len(), expected.len(), "{door}");
    for ((request, answer), expected) in requests().iter().zip(answers).zip(expected) {
        assert_eq!(answer, expected, "{door}: {request:?}");
    }
}

#[test]
fn the_same_requests_have_the_same_answers_through_every_door() {
    assert!(requests().len() >= 60);
    let expected = through_library(Desk::builder());
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&directory.path().join("locum.db")).unwrap();
    compare("SQLite", &through_library(Desk::builder().store(Arc::new(store))), &expected);
    compare("call -", &through_call(), &expected);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    compare("MCP", &runtime.block_on(through_mcp()), &expected);
    compare("HTTP", &through_http(), &expected);
    for era in [WITH_SESSION, ALONE] {
        compare(&format!("MCP {era} over HTTP"), &through_mcp_over_http(era), &expected);
    }
    // What was compared is what was meant: answers and refusals, completed and failed tasks.
    let count = |wanted: &dyn Fn(&Value) -> bool| expected.iter().filter(|answer| wanted(answer)).count();
    assert!(count(&|answer| answer.get("message").is_some()) >= 20);
    assert!(count(&|answer| answer["status"] == "completed") >= 6, "{expected:?}");
    assert!(count(&|answer| answer["status"] == "failed") >= 2);
}
