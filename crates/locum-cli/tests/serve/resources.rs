//! What can be looked at: tasks by pages, logs, results, agents, the shared context, sessions, figures, and the
//! document that says so.

use serde_json::{Value, json};

use crate::home::Home;
use crate::served::Served;

fn server(home: &Home) -> Served {
    let long = "é".repeat(4001);
    Served::start(home, &home.script(&json!({"scout": [{"text": long}], "*": [{"text": "Done: {{task}}"}]})))
}

fn run(server: &Served, agent: &str, task: &str) -> Value {
    let answer = server.subagent(&json!({"action": "run", "agent": agent, "task": task}));
    assert_eq!(answer["status"], "completed", "{answer}");
    answer
}

fn list(server: &Served, path: &str) -> (Vec<String>, Value) {
    let answer = server.get(path);
    assert_eq!(answer.status, 200, "{answer:?}");
    let answer = answer.json();
    let names = answer["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| format!("{} {}", task["session"].as_str().unwrap(), task["task_id"].as_str().unwrap()));
    (names.collect(), answer["next"].clone())
}

#[test]
fn tasks_are_listed_by_pages_newest_first() {
    let home = Home::new();
    let server = server(&home);
    for task in ["one", "two", "three"] {
        run(&server, "explore", task);
    }
    let other = json!({"tool": "subagent", "input": {"action": "run", "agent": "explore", "task": "four"}}).to_string();
    server.post("/v1/requests?session=other", "", other.as_bytes());
    let (all, next) = list(&server, "/v1/tasks");
    assert_eq!(all, ["other t_01", "test t_03", "test t_02", "test t_01"]);
    assert_eq!(next, Value::Null);
    let (first, next) = list(&server, "/v1/tasks?limit=3");
    assert_eq!(first, all[..3]);
    let (second, next) = list(&server, &format!("/v1/tasks?limit=3&before={}", next.as_str().unwrap()));
    assert_eq!((second.as_slice(), next), (&all[3..], Value::Null));
    assert_eq!(list(&server, "/v1/tasks?session=other").0, ["other t_01"]);
    assert_eq!(list(&server, "/v1/tasks?session=nothing").0, [""; 0]);
    for (path, status) in [
        ("/v1/tasks?limit=0", 400),
        ("/v1/tasks?limit=many", 400),
        ("/v1/tasks?before=No", 400),
        ("/v1/tasks?before=nothing", 404),
        ("/v1/tasks?colour=red", 400),
        ("/v1/tasks?session=No", 400),
    ] {
        assert_eq!(server.get(path).status, status, "{path}");
    }
}

#[test]
fn a_task_is_looked_at_by_its_uid_or_by_its_id_in_a_session() {
    let home = Home::new();
    let server = server(&home);
    run(&server, "scout", "long");
    let by_id = server.get("/v1/tasks/t_01?session=test");
    let task = by_id.json();
    assert_eq!((by_id.status, &task["collected"], &task["status"]), (200, &json!(true), &json!("completed")), "{task}");
    let uid = task["uid"].as_str().unwrap();
    assert_eq!(server.get(&format!("/v1/tasks/{uid}")).json(), task);

    let log = server.get(&format!("/v1/tasks/{uid}/log?limit=2")).json();
    let numbers = |log: &Value| -> Vec<u64> {
        log["records"].as_array().unwrap().iter().map(|record| record["seq"].as_u64().unwrap()).collect()
    };
    assert_eq!((numbers(&log), &log["next"]), (vec![1, 2], &json!(2)));
    assert_eq!(log["records"][0]["event"]["event"], "accepted");
    let rest = server.get(&format!("/v1/tasks/{uid}/log?after=2")).json();
    assert_eq!((numbers(&rest).first(), &rest["next"]), (Some(&3), &Value::Null));

    let page = server.get(&format!("/v1/tasks/{uid}/result?offset=3999&limit=1")).json();
    assert_eq!((&page["text"], &page["next_offset"], &page["total_chars"]), (&json!("é"), &json!(4000), &json!(4001)));
    for (path, status) in [
        ("/v1/tasks/t_01".to_owned(), 400),
        ("/v1/tasks/t_99?session=test".to_owned(), 404),
        ("/v1/tasks/nothing".to_owned(), 404),
        ("/v1/tasks/%ff".to_owned(), 400),
        ("/v1/tasks/No%20task/log".to_owned(), 404),
        (format!("/v1/tasks/{uid}/log?after=-1"), 400),
        (format!("/v1/tasks/{uid}/result?limit=x"), 400),
        (format!("/v1/tasks/{uid}/nothing"), 404),
    ] {
        let answer = server.get(&path);
        assert_eq!(answer.status, status, "{path}: {answer:?}");
        assert!(answer.json()["message"].is_string());
    }
}

#[test]
fn a_task_that_has_not_ended_has_no_result_yet() {
    let home = Home::new();
    let server = Served::start(&home, &home.script(&json!({"*": [{"error": {"kind": "hang"}}]})));
    let uid = server.subagent(&json!({"action": "spawn", "agent": "explore", "task": "t"}))["uid"].clone();
    let path = format!("/v1/tasks/{}/result", uid.as_str().unwrap());
    let answer = server.get(&path);
    assert_eq!((answer.status, &answer.json()["error"]), (409, &json!("TASK_NOT_READY")));
    server.subagent(&json!({"action": "cancel", "task_id": "t_01"}));
    assert_eq!(server.get(&path).json()["status"], "cancelled");
    assert_eq!(server.end(), Some(0));
}

#[test]
fn agents_context_and_sessions_are_seen_as_the_command_line_shows_them() {
    let home = Home::new();
    let server = server(&home);
    let write = json!({"action": "write", "key": "goal", "value": "one"});
    server.call("shared_context", &write);
    server.call("shared_context", &json!({"action": "write", "key": "goal", "value": "two"}));
    let shown = |path: &str, arguments: &[&str]| {
        let command = home.locum(&[arguments, &["--session", "test", "--json"]].concat());
        let expected: Value = serde_json::from_str(&command.stdout).unwrap();
        let mut found = server.get(path).json();
        // The server's model is not the command's.
        for agent in found.get_mut("agents").and_then(Value::as_array_mut).into_iter().flatten() {
            agent["model"] = json!("offline");
        }
        assert_eq!(found, expected, "{path}");
    };
    shown("/v1/agents?session=test", &["agents", "list"]);
    shown("/v1/context?session=test", &["context", "list"]);
    shown("/v1/context/goal?session=test", &["context", "read", "goal"]);
    shown("/v1/context/goal/history?session=test&versions=5", &["context", "history", "goal"]);
    let agent = server.get("/v1/agents/explore").json();
    assert_eq!(agent["agent"]["name"], "explore");
    assert!(agent["prompt"].as_str().is_some_and(|prompt| !prompt.is_empty()));
    let sessions = server.get("/v1/sessions").json();
    assert_eq!(sessions["project"], json!(home.project()));
    let test = json!({"session": "test", "state": "active", "tasks": 0, "unfinished": 0, "keys": 1});
    assert_eq!(sessions["sessions"], json!([test]));
    for (path, status) in [
        ("/v1/agents/nobody", 404),
        ("/v1/context/nothing?session=test", 404),
        ("/v1/context", 400),
        ("/v1/context/goal", 400),
        ("/v1/context/goal/history?session=test&versions=x", 400),
    ] {
        assert_eq!(server.get(path).status, status, "{path}");
    }
}

#[test]
fn figures_are_counts_and_tell_nothing_of_what_tasks_are_about() {
    let home = Home::new();
    let server = server(&home);
    run(&server, "explore", "a very private matter");
    assert_eq!(server.get("/nothing").status, 404);
    let answer = server.get("/metrics");
    for line in ["locum_sessions 1", "locum_tasks 1", "locum_tasks_unfinished 0", "locum_event_readers 0"] {
        assert!(answer.body.lines().any(|found| found == line), "{line}: {}", answer.body);
    }
    assert!(answer.body.contains("locum_http_answers_total{status=\"404\"} 1\n"), "{}", answer.body);
    assert!(!answer.body.contains("private"));
}

#[test]
fn every_path_of_the_document_is_answered() {
    let home = Home::new();
    let server = server(&home);
    let document = server.get("/openapi.json").json();
    let paths = document["paths"].as_object().unwrap();
    assert!(paths.len() >= 15, "{}", paths.len());
    for (path, operations) in paths {
        let path = path.replace(['{', '}'], "");
        let method = if operations["get"].is_object() { "GET" } else { "POST" };
        let answer = server.send(format!("{}\r\n", server.head(method, &path)).as_bytes());
        assert!(!answer.body.contains("there is nothing here") && answer.status != 405, "{path}: {answer:?}");
        assert!(operations[method.to_lowercase()]["responses"][answer.status.to_string()].is_object(), "{answer:?}");
    }
    let printed = home.locum(&["serve", "--openapi"]);
    assert_eq!(serde_json::from_str::<Value>(&printed.stdout).unwrap(), document);
}
