//! What clients ask: the native protocol, its answers, its refusals and its sessions.

use serde_json::json;

use crate::home::Home;
use crate::served::Served;

fn server(home: &Home) -> Served {
    Served::start(home, &home.script(&json!({"*": [{"text": "Done: {{task}}", "usage": {}}]})))
}

#[test]
fn a_call_is_answered_as_the_tool_answers_it() {
    let home = Home::new();
    let server = server(&home);
    let answer = server.call("subagent", &json!({"action": "run", "agent": "explore", "task": "hello"}));
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")), "{answer:?}");
    assert_eq!(answer.header("locum-session"), Some("test"));
    assert_eq!(answer.json()["result"], "Done: hello");
    let written = server.call("shared_context", &json!({"action": "write", "key": "goal", "value": "v"}));
    assert_eq!(written.json()["written_by"], "orchestrator");
    // Another door sees the same session.
    let status = home.locum(&["result", "t_01", "--session", "test"]);
    assert_eq!(status.stdout, "Done: hello\n", "{status:?}");
    assert_eq!(server.end(), Some(0));
}

#[test]
fn a_refusal_has_the_status_of_its_code() {
    let home = Home::new();
    let server = server(&home);
    for (status, code, input) in [
        (404, "TASK_NOT_FOUND", json!({"action": "status", "task_id": "t_99"})),
        (404, "AGENT_NOT_FOUND", json!({"action": "spawn", "agent": "nobody", "task": "t"})),
        (413, "TASK_TOO_LARGE", json!({"action": "spawn", "agent": "explore", "task": "x".repeat(4001)})),
        (400, "INVALID_ACTION", json!({"action": "start"})),
        (400, "INVALID_REQUEST", json!({"action": "status", "colour": "red"})),
        (400, "INVALID_REQUEST", json!([])),
    ] {
        let answer = server.call("subagent", &input);
        assert_eq!((answer.status, answer.json()["error"].as_str()), (status, Some(code)), "{answer:?}");
        assert!(answer.json()["message"].is_string());
    }
    assert_eq!(server.call("nothing", &json!({})).status, 400);
}

#[test]
fn terms_are_those_of_the_native_tools_unless_a_person_asks() {
    let home = Home::new();
    let server = server(&home);
    let run = json!({"tool": "subagent", "input": {"action": "run", "agent": "explore", "task": "x".repeat(4001)}});
    let body = run.to_string();
    for (path, status) in [
        ("/v1/requests", 413),
        ("/v1/requests?face=native", 413),
        ("/v1/requests?face=person&concurrency=2&strict=false", 200),
        ("/v1/requests?face=nobody", 400),
        ("/v1/requests?concurrency=0", 400),
        ("/v1/requests?concurrency=many", 400),
        ("/v1/requests?strict=perhaps", 400),
        ("/v1/requests?colour=red", 400),
        ("/v1/requests?face=native&face=person", 400),
        ("/v1/requests?session=%ff", 400),
    ] {
        let answer = server.post(path, "", body.as_bytes());
        assert_eq!(answer.status, status, "{path}: {answer:?}");
    }
}

#[test]
fn a_client_has_a_session_of_its_own_unless_it_names_one() {
    let home = Home::new();
    let server = server(&home);
    let define = json!({"tool": "subagent", "input":
        {"action": "define", "name": "a", "description": "d", "system_prompt": "p"}})
    .to_string();
    let post = |path: &str, head: &str| server.post(path, head, define.as_bytes());
    let first = post("/v1/requests", "");
    let session = first.header("locum-session").unwrap().to_owned();
    assert!(session.starts_with("s-"), "{session}");
    let second = post("/v1/requests", "");
    assert_eq!((first.status, second.status), (200, 200), "{second:?}");
    assert_ne!(second.header("locum-session"), Some(session.as_str()));
    // The same name again is the same session, by header or by parameter.
    assert_eq!(post(&format!("/v1/requests?session={session}"), "").status, 409);
    assert_eq!(post("/v1/requests", &format!("Locum-Session: {session}\r\n")).status, 409);
    assert_eq!(post("/v1/requests?session=a", "Locum-Session: a\r\n").status, 200);
    assert_eq!(post("/v1/requests?session=a", "Locum-Session: b\r\n").status, 400);
    assert_eq!(post("/v1/requests?session=No%20session", "").status, 400);
}

#[test]
fn a_server_that_names_a_session_gives_it_to_those_who_name_none() {
    let home = Home::new().with("LOCUM_SESSION", "shared");
    let server = Served::start(&home, "offline");
    let list = json!({"tool": "subagent", "input": {"action": "list_agents"}}).to_string();
    for (head, session) in [("", "shared"), ("Locum-Session: own\r\n", "own")] {
        let answer = server.post("/v1/requests", head, list.as_bytes());
        assert_eq!(answer.header("locum-session"), Some(session), "{answer:?}");
    }
}
