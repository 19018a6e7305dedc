//! Where a rule wants a person to agree, the client's person is asked, in both eras.

use serde_json::{Value, json};

use crate::home::{Home, wait_until};
use crate::served::Served;
use crate::visit::Visit;

fn server(home: &Home) -> Served {
    let write = json!({"tool_calls": [{"name": "write", "input": {"path": "src/a.txt", "content": "x"}}]});
    let model = home.script(&json!({"*": [write, {"text": "Done."}]}));
    let agents = home.project().join("agents");
    Served::start_with(home, &["--model", &model, "--agents", agents.to_str().unwrap()])
}

fn run() -> Value {
    json!({"name": "subagent", "arguments": {"action": "run", "agent": "scribe", "task": "Go."}})
}

/// What a client answers, and whether the file is written then.
fn answers() -> [(Value, bool); 4] {
    [
        (json!({"action": "accept", "content": {"allow": true}}), true),
        (json!({"action": "accept", "content": {"allow": false}}), false),
        (json!({"action": "decline"}), false),
        (json!({"action": "cancel"}), false),
    ]
}

fn check_question(request: &Value) {
    assert_eq!((&request["method"], &request["params"]["mode"]), (&json!("elicitation/create"), &json!("form")));
    let message = request["params"]["message"].as_str().unwrap();
    assert!(message.contains("@scribe (t_01) wants to use write: src/a.txt"), "{message}");
    assert!(message.contains("the rule `ask write(src/**)`") || message.contains("The rule `ask write(src/**)`"));
    assert_eq!(request["params"]["requestedSchema"]["properties"]["allow"]["type"], "boolean", "{request}");
}

#[test]
fn a_client_with_a_session_is_asked_while_it_waits() {
    for (said, is_written) in answers() {
        let home = Home::with_scribe();
        let server = server(&home);
        let (visit, _) = Visit::open(&server, "/mcp", "", &json!({"elicitation": {}}));
        let mut told = visit.listen();
        let waiting = visit.start("tools/call", run());
        let request = told.next().unwrap();
        check_question(&request);
        visit.say(&json!({"jsonrpc": "2.0", "id": request["id"], "result": said}));
        let answer = waiting.all().pop().unwrap();
        assert_eq!(answer["result"]["structuredContent"]["result"], "Done.", "{answer}");
        assert_eq!(home.project().join("src/a.txt").exists(), is_written, "{said}");
    }
}

#[test]
fn a_request_that_stands_alone_is_answered_with_the_question() {
    for (said, is_written) in answers() {
        let home = Home::with_scribe();
        let server = server(&home);
        let visit = Visit::alone(&server, "/mcp?session=alone", "").with(json!({"elicitation": {"form": {}}}));
        let asked = visit.get("tools/call", run());
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        let (name, request) = asked["inputRequests"].as_object().unwrap().iter().next().unwrap();
        check_question(request);
        let mut again = run();
        again["inputResponses"] = json!({name.as_str(): said});
        again["requestState"] = asked["requestState"].clone();
        let answer = visit.get("tools/call", again);
        // It is the same task that goes on.
        let (id, result) = (&answer["structuredContent"]["task_id"], &answer["structuredContent"]["result"]);
        assert_eq!((id, result), (&json!("t_01"), &json!("Done.")), "{answer}");
        assert_eq!(home.project().join("src/a.txt").exists(), is_written, "{said}");
    }
    let home = Home::with_scribe();
    let server = server(&home);
    let visit = Visit::alone(&server, "/mcp", "").with(json!({"elicitation": {}}));
    let mut forged = run();
    forged["requestState"] = json!("No such state");
    assert_eq!(visit.ask("tools/call", forged)["error"]["code"], -32602);
}

#[test]
fn a_task_waits_for_what_the_person_says() {
    for (said, is_written) in answers() {
        let home = Home::with_scribe();
        let server = server(&home);
        let knows = json!({"elicitation": {"form": {}}, "extensions": {"io.modelcontextprotocol/tasks": {}}});
        let visit = Visit::alone(&server, "/mcp?session=alone", "").with(knows);
        let created = visit.get("tools/call", run());
        let get = || visit.get("tasks/get", json!({"taskId": created["taskId"]}));
        wait_until(|| get()["status"] == "input_required");
        let asked = get();
        let (name, request) = asked["inputRequests"].as_object().unwrap().iter().next().unwrap();
        check_question(request);
        let brought = json!({"taskId": created["taskId"], "inputResponses": {name.as_str(): said}});
        visit.get("tasks/update", brought);
        wait_until(|| get()["status"] == "completed");
        assert_eq!(get()["result"]["structuredContent"]["result"], "Done.");
        assert_eq!(home.project().join("src/a.txt").exists(), is_written, "{said}");
    }
}

#[test]
fn a_client_that_cannot_ask_is_told_the_rule() {
    let home = Home::with_scribe();
    let server = server(&home);
    for visit in [Visit::open(&server, "/mcp", "", &json!({})).0, Visit::alone(&server, "/mcp", "")] {
        let answer = visit.get("tools/call", run());
        let warnings = answer["structuredContent"]["warnings"].to_string();
        assert!(warnings.contains("nobody can be asked here"), "{answer}");
    }
    assert!(!home.project().join("src/a.txt").exists());
}
