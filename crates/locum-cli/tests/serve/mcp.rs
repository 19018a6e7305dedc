//! MCP over HTTP: the same tools in both eras of the protocol, each client in its own session, behind the same guard.

use serde_json::{Value, json};

use crate::home::Home;
use crate::served::Served;
use crate::visit::Visit;

fn server(home: &Home) -> Served {
    Served::start(home, &home.script(&json!({"*": [{"text": "Done: {{task}}", "usage": {}}]})))
}

const STATUS: &str = r#"{"action": "status"}"#;

fn tasks(visit: &Visit<'_>) -> usize {
    let status: Value = serde_json::from_str(STATUS).unwrap();
    visit.call("subagent", &status)["structuredContent"]["tasks"].as_array().unwrap().len()
}

#[test]
fn a_client_with_a_session_lists_and_calls_the_tools() {
    let home = Home::new();
    let server = server(&home);
    let (visit, about) = Visit::open(&server, "/mcp", "", &json!({}));
    assert_eq!((&about["serverInfo"]["name"], &about["protocolVersion"]), (&json!("locum"), &json!("2025-11-25")));
    assert!(about["instructions"].as_str().unwrap().contains("delegate"), "{about}");
    let tools = visit.get("tools/list", json!({}));
    let names: Vec<&Value> = tools["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["subagent", "shared_context", "manage_tasks"]);
    let ran = visit.call("subagent", &json!({"action": "run", "agent": "explore", "task": "hello"}));
    assert_eq!(ran["structuredContent"]["result"], "Done: hello");
    let refused = visit.call("subagent", &json!({"action": "status", "task_id": "t_99"}));
    assert_eq!((&refused["isError"], &refused["structuredContent"]["error"]), (&json!(true), &json!("TASK_NOT_FOUND")));
    assert_eq!(visit.get("ping", json!({})), json!({}));
    // The task is in the session that the client was told of.
    let result = home.locum(&["result", "t_01", "--session", about["session"].as_str().unwrap()]);
    assert_eq!(result.stdout, "Done: hello\n", "{result:?}");
    assert_eq!(visit.leave(), 204);
    assert_eq!(visit.start("tools/list", json!({})).status, 404);
    assert_eq!(server.end(), Some(0));
}

#[test]
fn clients_have_sessions_of_their_own_unless_they_name_one() {
    let home = Home::new();
    let server = server(&home);
    let (first, first_about) = Visit::open(&server, "/mcp", "", &json!({}));
    let (second, second_about) = Visit::open(&server, "/mcp", "", &json!({}));
    assert_ne!(first_about["session"], second_about["session"]);
    first.call("subagent", &json!({"action": "spawn", "agent": "explore", "task": "t"}));
    assert_eq!((tasks(&first), tasks(&second)), (1, 0));
    // By a header or by the address.
    let session = first_about["session"].as_str().unwrap();
    let (third, _) = Visit::open(&server, "/mcp", &format!("Locum-Session: {session}\r\n"), &json!({}));
    let (fourth, _) = Visit::open(&server, &format!("/mcp?session={session}"), "", &json!({}));
    let alone = Visit::alone(&server, &format!("/mcp?session={session}"), "");
    assert_eq!((tasks(&third), tasks(&fourth), tasks(&alone)), (1, 1, 1));
    // What stands alone shares one session.
    let alone = Visit::alone(&server, "/mcp", "");
    alone.call("subagent", &json!({"action": "spawn", "agent": "explore", "task": "t"}));
    assert_eq!(tasks(&Visit::alone(&server, "/mcp", "")), 1);
    assert_eq!((tasks(&first), tasks(&second)), (1, 0));
}

#[test]
fn requests_that_stand_alone_are_answered_too() {
    let home = Home::new();
    let server = server(&home);
    let visit = Visit::alone(&server, "/mcp", "");
    let about = visit.get("server/discover", json!({}));
    assert!(about["supportedVersions"].as_array().unwrap().contains(&json!("2026-07-28")), "{about}");
    assert!(about["instructions"].as_str().unwrap().contains("delegate"), "{about}");
    let tools = visit.get("tools/list", json!({}));
    assert_eq!((&tools["tools"][0]["name"], &tools["resultType"]), (&json!("subagent"), &json!("complete")));
    let ran = visit.call("subagent", &json!({"action": "run", "agent": "explore", "task": "hello"}));
    assert_eq!(ran["structuredContent"]["result"], "Done: hello");
    // There is no ping any more.
    assert_eq!(visit.ask("ping", json!({}))["error"]["code"], -32601);
}

#[test]
fn another_programs_tools_are_at_an_address_of_their_own() {
    let home = Home::new();
    let server = server(&home);
    let (visit, _) = Visit::open(&server, "/mcp?face=acai", "", &json!({}));
    assert_eq!(visit.get("tools/list", json!({}))["tools"][0]["name"], "Agent");
    let ran = visit.call("Agent", &json!({"type": "explore", "prompt": "hello"}));
    assert_eq!(ran["content"][0]["text"], "Done: hello");
    let alone = Visit::alone(&server, "/mcp?face=picoclaw", "");
    assert_eq!(alone.get("tools/list", json!({}))["tools"][1]["name"], "spawn");
    let refused = server.post("/mcp?face=cat", "", b"{}");
    assert_eq!((refused.status, &refused.json()["error"]), (400, &json!("INVALID_REQUEST")));
}

#[test]
fn a_client_that_waits_is_told_of_progress() {
    let home = Home::new();
    let turn = json!({"tool_calls": [{"name": "ls", "input": {}}], "delay_ms": 300});
    let server = Served::start(&home, &home.script(&json!({"*": [turn, {"text": "Done."}]})));
    let (one, two) = (json!({"agent": "explore", "task": "t"}), json!({"agent": "explore", "task": "u"}));
    let inputs = [
        json!({"action": "run", "agent": "explore", "task": "t"}),
        json!({"action": "parallel", "tasks": [one, two]}),
        json!({"action": "chain", "tasks": [one, two]}),
        json!({"action": "race", "tasks": [one, two]}),
        json!({"action": "map", "agent": "explore", "task": "{input}", "inputs": ["t", "u"]}),
    ];
    let visits = [Visit::open(&server, "/mcp", "", &json!({})).0, Visit::alone(&server, "/mcp", "")];
    for (visit, input) in visits.iter().flat_map(|visit| inputs.iter().map(move |input| (visit, input))) {
        let params = json!({"name": "subagent", "arguments": input, "_meta": {"progressToken": "p"}});
        let messages = visit.start("tools/call", params).all();
        let (answer, told) = messages.split_last().unwrap();
        let answer = &answer["result"]["structuredContent"];
        assert!(answer["result"] == "Done." || answer["completed"] == 2, "{answer}");
        assert!(!told.is_empty(), "{input}");
        for (number, notice) in told.iter().enumerate() {
            let params = &notice["params"];
            let expected = (&json!("notifications/progress"), &json!("p"), number as f64 + 1.0);
            let found = (&notice["method"], &params["progressToken"], params["progress"].as_f64().unwrap());
            assert_eq!(found, expected);
            assert!(params["message"].as_str().unwrap().contains("@explore t_"), "{notice}");
        }
    }
}

#[test]
fn a_client_that_gives_a_call_up_or_goes_away_leaves_its_task_running() {
    let home = Home::new();
    let server = Served::start(&home, &home.script(&json!({"*": [{"error": {"kind": "hang"}}]})));
    let run = json!({"name": "subagent", "arguments": {"action": "run", "agent": "explore", "task": "t"}});
    let (visit, _) = Visit::open(&server, "/mcp", "", &json!({}));
    let waiting = visit.start("tools/call", run.clone());
    let number = visit.count();
    crate::home::wait_until(|| tasks(&visit) == 1);
    visit.give_up(number);
    // Nothing is answered to a call that was given up, and its stream ends.
    assert_eq!(waiting.all(), Vec::<Value>::new());
    let alone = Visit::alone(&server, "/mcp", "");
    let waiting = alone.begin("tools/call", run);
    crate::home::wait_until(|| tasks(&alone) == 1);
    drop(waiting);
    for visit in [visit, alone] {
        let status = visit.call("subagent", &json!({"action": "status", "task_id": "t_01"}));
        assert_eq!(status["structuredContent"]["status"], "running");
        let cancelled = visit.call("subagent", &json!({"action": "cancel", "task_id": "t_01"}));
        assert_eq!(cancelled["structuredContent"]["status"], "cancelled");
    }
    assert_eq!(server.end(), Some(0));
}

#[test]
fn a_client_may_want_its_task_to_end_with_the_call() {
    let home = Home::new();
    let server = Served::start(&home, &home.script(&json!({"*": [{"error": {"kind": "hang"}}]})));
    let run = json!({"action": "run", "agent": "explore", "task": "t"});
    let wish = |wish: &str| json!({"name": "subagent", "arguments": run, "_meta": {"locum/abandoned": wish}});
    let (visit, _) = Visit::open(&server, "/mcp", "", &json!({}));
    let alone = Visit::alone(&server, "/mcp", "");
    let _waiting = visit.begin("tools/call", wish("cancel"));
    let number = visit.count();
    let gone = alone.begin("tools/call", wish("cancel"));
    crate::home::wait_until(|| tasks(&visit) == 1 && tasks(&alone) == 1);
    visit.give_up(number);
    drop(gone);
    for visit in [&visit, &alone] {
        let status = || visit.call("subagent", &json!({"action": "status", "task_id": "t_01"}));
        crate::home::wait_until(|| status()["structuredContent"]["status"] == "cancelled");
        assert_eq!(visit.ask("tools/call", wish("moon"))["error"]["code"], -32602);
    }
    assert_eq!(server.end(), Some(0));
}

#[test]
fn the_end_of_what_picoclaw_spawns_is_announced() {
    let home = Home::new();
    let server = server(&home);
    let (visit, _) = Visit::open(&server, "/mcp?face=picoclaw", "", &json!({}));
    let mut told = visit.listen();
    let spawned = visit.call("spawn", &json!({"task": "hello"}));
    assert!(spawned["content"][0]["text"].as_str().unwrap().contains("Spawned subagent t_01"), "{spawned}");
    let mut told = std::iter::from_fn(|| told.next());
    let message = told.find(|message| message["method"] != "notifications/resources/list_changed").unwrap();
    assert_eq!(message["method"], "notifications/resources/updated", "{message}");
    let read = visit.get("resources/read", json!({"uri": message["params"]["uri"]}));
    assert_eq!(read["contents"][0]["text"], "Done: hello");
}

#[test]
fn strangers_and_nonsense_are_refused() {
    let home = Home::new();
    let server = server(&home);
    let accepts = "Accept: application/json, text/event-stream\r\n";
    let ping = br#"{"jsonrpc": "2.0", "id": 1, "method": "ping"}"#;
    for (status, path, further, body) in [
        (400, "/mcp", accepts, ping.as_slice()),
        (404, "/mcp", "Accept: application/json, text/event-stream\r\nMcp-Session-Id: nothing\r\n", ping),
        (406, "/mcp", "", ping),
        (415, "/mcp", accepts, b"nonsense"),
        (403, "/mcp", "Origin: http://evil.example\r\n", ping),
        (400, "/mcp?colour=red", accepts, ping),
        (400, "/mcp?session=No", accepts, ping),
    ] {
        let answer = server.post(path, further, body);
        assert_eq!(answer.status, status, "{path} {further}: {answer:?}");
    }
    let head = server.head("POST", "/mcp");
    let long = format!("{head}Content-Length: {}\r\n\r\n", locum::limits::REQUEST_BYTES_MAX + 1);
    assert_eq!(server.send(long.as_bytes()).status, 413);
    let stranger = format!("POST /mcp HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", server.address);
    assert_eq!(server.send(stranger.as_bytes()).status, 401);
    assert_eq!(server.send(format!("{}\r\n", server.head("PUT", "/mcp")).as_bytes()).status, 405);
}

#[test]
fn a_server_that_ends_does_not_wait_for_clients_that_do() {
    let home = Home::new();
    let server = Served::start(&home, &home.script(&json!({"*": [{"error": {"kind": "hang"}}]})));
    let (visit, about) = Visit::open(&server, "/mcp", "", &json!({}));
    let mut listening = visit.listen();
    let run = json!({"name": "subagent", "arguments": {"action": "run", "agent": "explore", "task": "t"}});
    let waiting = visit.start("tools/call", run);
    crate::home::wait_until(|| tasks(&visit) == 1);
    server.ask_to_end();
    assert_eq!(listening.next(), None);
    waiting.text();
    let address = about["session"].as_str().unwrap().to_owned();
    drop(visit);
    assert_eq!(server.end(), Some(0));
    // Its task went to another process.
    let cancelled = home.locum(&["cancel", "t_01", "--session", &address]);
    assert_eq!(cancelled.code, Some(0), "{cancelled:?}");
}
