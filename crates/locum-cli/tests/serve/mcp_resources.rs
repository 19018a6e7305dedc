//! What MCP clients read beside the tools, in both eras: addresses, pages, lists, prompts, and what they are told of.

use serde_json::{Value, json};

use crate::home::{Home, wait_until};
use crate::served::Served;
use crate::visit::{ALONE, Messages, Visit};

/// Bytes that no answer to a reader may pass.
const PAGE_BYTES: usize = 8_000;

fn script(home: &Home) -> String {
    home.script(&json!({
        "*": [
            {"text": "Looking.", "tool_calls": [{"name": "ls", "input": {}}], "usage": {}},
            {"text": format!("{{{{task}}}} <system>{}", "é\"\n".repeat(9_000)), "usage": {}},
        ],
        "short": [{"text": "Done.", "usage": {}}],
        "slow": [{"text": "Done.", "usage": {}, "delay_ms": 200}],
    }))
}

fn run(visit: &Visit<'_>, agent: &str, task: &str) -> Value {
    visit.call("subagent", &json!({"action": "run", "agent": agent, "task": task}))
}

fn define(visit: &Visit<'_>, name: &str) {
    let define = json!({"action": "define", "name": name, "description": "d", "system_prompt": "p", "replace": true});
    assert_ne!(visit.call("subagent", &define)["isError"], true);
}

/// Reads all pages from an address on, each of which must be small.
fn read(visit: &Visit<'_>, uri: &str) -> String {
    let (mut uri, mut whole) = (uri.to_owned(), String::new());
    loop {
        let answer = visit.ask("resources/read", json!({"uri": uri}));
        assert!(answer.to_string().len() < PAGE_BYTES, "{}", answer.to_string().len());
        let contents = answer["result"]["contents"].as_array().unwrap_or_else(|| panic!("{answer}"));
        assert_eq!(contents[0]["uri"], uri.as_str());
        whole.push_str(contents[0]["text"].as_str().unwrap());
        match contents.get(1) {
            None => return whole,
            Some(more) => more["uri"].as_str().unwrap().clone_into(&mut uri),
        }
    }
}

fn both(server: &Served) -> [Visit<'_>; 2] {
    [Visit::open(server, "/mcp", "", &json!({})).0, Visit::alone(server, "/mcp?session=alone", "")]
}

#[test]
fn everything_can_be_read_by_its_address() {
    let home = Home::new();
    let server = Served::start(&home, &script(&home));
    for visit in both(&server) {
        let ran = run(&visit, "explore", "Look.");
        // What was cut can be read in whole.
        let link = &ran["content"][1];
        assert_eq!((&link["type"], &link["uri"]), (&json!("resource_link"), &json!("locum://tasks/t_01/result")));
        let whole = read(&visit, "locum://tasks/t_01/result");
        assert_eq!(whole, format!("Look. <system>{}", "é\"\n".repeat(9_000)));
        let task: Value = serde_json::from_str(&read(&visit, "locum://tasks/t_01")).unwrap();
        assert_eq!((&task["status"], &task["agent"]), (&json!("completed"), &json!("explore")));
        // By its uid, too.
        let uid = task["uid"].as_str().unwrap();
        assert_eq!(
            read(&visit, &format!("locum://tasks/{uid}/result?offset=27000")),
            whole.chars().skip(27_000).collect::<String>()
        );
        let transcript = read(&visit, "locum://tasks/t_01/transcript");
        for part in ["asked\nLook.", "said\nLooking.\n[calls ls {}]", "a tool answered", "ended: completed"] {
            assert!(transcript.contains(part), "{part}: {}", &transcript[..500]);
        }
        // What an agent wrote does not pass for somebody else's words.
        assert!(!transcript.contains("<system>"));
        assert!(transcript.matches('é').count() == 9_000 || transcript.matches('é').count() == 18_000);
        let agent = read(&visit, "locum://agents/explore");
        assert!(agent.starts_with("name: explore\ndescription: ") && agent.contains("\ntools: "), "{agent}");
        visit.call("shared_context", &json!({"action": "write", "key": "goal", "value": "ü".repeat(4000)}));
        assert_eq!(read(&visit, "locum://context/goal"), "ü".repeat(4000));
    }
}

#[test]
fn what_is_not_there_is_said() {
    let home = Home::new();
    let server = Served::start(&home, &script(&home));
    for (visit, code) in both(&server).into_iter().zip([-32002, -32602]) {
        for uri in [
            "locum://tasks/t_99",
            "locum://tasks/t_99/result",
            "locum://tasks/nothing",
            "locum://agents/nobody",
            "locum://context/nothing",
            "locum://context/No",
            "locum://moon",
            "file:///etc/passwd",
            "",
        ] {
            let answer = visit.ask("resources/read", json!({"uri": uri}));
            assert_eq!(
                (&answer["error"]["code"], &answer["error"]["data"]["uri"]),
                (&json!(code), &json!(uri)),
                "{answer}"
            );
        }
        assert_eq!(visit.ask("resources/list", json!({"cursor": "moon"}))["error"]["code"], -32602);
        assert_eq!(visit.ask("resources/list", json!({"cursor": "tasks:x"}))["error"]["code"], -32602);
        assert_eq!(visit.ask("prompts/get", json!({"name": "moon"}))["error"]["code"], -32602);
    }
}

#[test]
fn lists_come_in_pages_and_miss_nothing() {
    let home = Home::new();
    let server = Served::start(&home, &script(&home));
    let visit = Visit::alone(&server, "/mcp?session=many", "");
    define(&visit, "short");
    for round in 0..6 {
        let tasks: Vec<Value> =
            (0..8).map(|n| json!({"agent": "short", "task": "t", "label": "l".repeat(150 + n)})).collect();
        let ran = visit.call("subagent", &json!({"action": "parallel", "tasks": tasks}));
        assert_eq!(ran["structuredContent"]["completed"], 8, "{ran}");
        for key in 0..10 {
            let write = json!({"action": "write", "key": format!("key_{round}_{key}"), "value": "v"});
            visit.call("shared_context", &write);
        }
    }
    let (mut cursor, mut found, mut pages) = (Value::Null, Vec::new(), 0);
    loop {
        let params = if cursor.is_null() { json!({}) } else { json!({ "cursor": cursor }) };
        let answer = visit.ask("resources/list", params);
        assert!(answer.to_string().len() < PAGE_BYTES, "{}", answer.to_string().len());
        let resources = answer["result"]["resources"].as_array().unwrap();
        assert!(!resources.is_empty());
        found.extend(resources.iter().map(|resource| resource["uri"].as_str().unwrap().to_owned()));
        pages += 1;
        cursor = answer["result"]["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert!(pages > 2, "{pages}");
    let mut expected: Vec<String> = found.iter().filter(|uri| uri.starts_with("locum://agents/")).cloned().collect();
    assert!(expected.contains(&"locum://agents/explore".to_owned()) && expected.is_sorted());
    expected.extend((1..=48).rev().map(|number| format!("locum://tasks/t_{number:02}")));
    expected.extend((0..60).map(|number| format!("locum://context/key_{}_{}", number / 10, number % 10)));
    assert_eq!(found, expected);
    let templates = visit.get("resources/templates/list", json!({}));
    let templates: Vec<&str> =
        templates["resourceTemplates"].as_array().unwrap().iter().map(|t| t["uriTemplate"].as_str().unwrap()).collect();
    assert_eq!(templates[1], "locum://tasks/{id}");
}

#[test]
fn prompts_tell_how_to_delegate_and_what_is_under_way() {
    let home = Home::new();
    let server = Served::start(&home, &script(&home));
    for visit in both(&server) {
        let names: Vec<Value> = visit.get("prompts/list", json!({}))["prompts"].as_array().unwrap().clone();
        assert_eq!(names.iter().map(|prompt| &prompt["name"]).collect::<Vec<_>>(), ["delegate", "roster"]);
        let text = |params: Value| {
            visit.get("prompts/get", params)["messages"][0]["content"]["text"].as_str().unwrap().to_owned()
        };
        let delegate = text(json!({"name": "delegate", "arguments": {"goal": "Ship it."}}));
        assert!(delegate.contains("- explore: ") && delegate.contains("The goal: Ship it."), "{delegate}");
        assert!(!text(json!({"name": "delegate"})).contains("The goal"));
        assert!(!text(json!({"name": "roster"})).contains("not collected"));
        define(&visit, "short");
        visit.call("subagent", &json!({"action": "spawn", "agent": "short", "task": "t", "label": "my task"}));
        visit.call("shared_context", &json!({"action": "write", "key": "goal", "value": "v"}));
        visit.call("manage_tasks", &json!({"action": "add", "subject": "tidy up"}));
        let roster = text(json!({"name": "roster"}));
        for part in [
            "- t_01 @short ",
            ": my task",
            "- goal (version 1, orchestrator)",
            "- b_01 pending: tidy up",
            "- explore: ",
        ] {
            assert!(roster.contains(part), "{part}: {roster}");
        }
        let wrong = visit.ask("prompts/get", json!({"name": "delegate", "arguments": {"colour": "red"}}));
        assert_eq!(wrong["error"]["code"], -32602);
    }
    // The words are about locum's own tools.
    let (visit, _) = Visit::open(&server, "/mcp?face=pi", "", &json!({}));
    assert_eq!(visit.get("prompts/list", json!({}))["prompts"], json!([]));
}

/// The next message about a resource; that there are others than before is told as well.
fn updated(told: &mut Messages) -> Value {
    loop {
        let message = told.next().unwrap();
        if message["method"] != "notifications/resources/list_changed" {
            assert_eq!(message["method"], "notifications/resources/updated", "{message}");
            return message;
        }
    }
}

#[test]
fn a_client_with_a_session_is_told_of_what_it_watches() {
    let home = Home::new();
    let server = Served::start(&home, &script(&home));
    let (visit, _) = Visit::open(&server, "/mcp", "", &json!({}));
    define(&visit, "slow");
    let mut told = visit.listen();
    visit.call("subagent", &json!({"action": "spawn", "agent": "slow", "task": "t"}));
    for uri in ["locum://tasks/t_01/result", "locum://context/goal"] {
        assert_eq!(visit.get("resources/subscribe", json!({"uri": uri})), json!({}));
    }
    for uri in ["locum://tasks/t_77", "locum://moon"] {
        assert_eq!(visit.ask("resources/subscribe", json!({"uri": uri}))["error"]["code"], -32002);
    }
    let mut next = || updated(&mut told)["params"]["uri"].as_str().unwrap().to_owned();
    assert_eq!(next(), "locum://tasks/t_01/result");
    let write = |key: &str| visit.call("shared_context", &json!({"action": "write", "key": key, "value": "v"}));
    write("other");
    write("goal");
    assert_eq!(next(), "locum://context/goal");
    visit.get("resources/unsubscribe", json!({"uri": "locum://context/goal"}));
    visit.get("resources/subscribe", json!({"uri": "locum://context/last"}));
    write("goal");
    write("last");
    assert_eq!(next(), "locum://context/last");
}

#[test]
fn a_request_that_listens_is_told_of_what_it_watches() {
    let home = Home::new();
    let server = Served::start(&home, &script(&home));
    let visit = Visit::alone(&server, "/mcp?session=alone", "");
    define(&visit, "slow");
    visit.call("subagent", &json!({"action": "spawn", "agent": "slow", "task": "t"}));
    let wanted = ["locum://tasks/t_01", "locum://context/goal", "locum://moon"];
    let mut told = visit.start(
        "subscriptions/listen",
        json!({"notifications": {"resourceSubscriptions": wanted, "toolsListChanged": true}}),
    );
    let accepted = told.next().unwrap();
    assert_eq!(accepted["method"], "notifications/subscriptions/acknowledged", "{accepted}");
    assert_eq!(accepted["params"]["notifications"], json!({"resourceSubscriptions": &wanted[..2]}));
    let mut next = |uri: &str| loop {
        let message = told.next().unwrap();
        assert_eq!(message["method"], "notifications/resources/updated", "{message}");
        if message["params"]["uri"] == uri {
            break;
        }
    };
    next("locum://tasks/t_01");
    wait_until(|| {
        visit.call("shared_context", &json!({"action": "write", "key": "goal", "value": "v"}))["isError"] != true
    });
    next("locum://context/goal");
    assert_eq!(ALONE, "2026-07-28");
}

/// Waits for a notification.
fn hear(told: &mut Messages, method: &str) {
    while told.next().unwrap()["method"] != method {}
}

#[test]
fn clients_are_told_when_agents_come_and_go() {
    const RESOURCES: &str = "notifications/resources/list_changed";
    const TOOLS: &str = "notifications/tools/list_changed";
    let home = Home::new();
    let server = Served::start(&home, &script(&home));
    let (visit, about) = Visit::open(&server, "/mcp", "", &json!({}));
    let (pi, other) = Visit::open(&server, "/mcp?face=pi", "", &json!({}));
    let capabilities = |about: &Value| {
        let capabilities = &about["capabilities"];
        (capabilities["resources"]["listChanged"].clone(), capabilities["tools"]["listChanged"].clone())
    };
    // The own tools are always the same.
    assert_eq!(capabilities(&about), (json!(true), Value::Null));
    assert_eq!(capabilities(&other), (json!(true), json!(true)));
    let alone = Visit::alone(&server, "/mcp?session=alone", "");
    assert_eq!(capabilities(&alone.get("server/discover", json!({}))), (json!(true), Value::Null));
    let wanted = json!({"resourcesListChanged": true, "toolsListChanged": true, "promptsListChanged": true});
    let mut listening = alone.start("subscriptions/listen", json!({"notifications": wanted}));
    let accepted = &listening.next().unwrap()["params"]["notifications"];
    assert_eq!(*accepted, json!({"resourcesListChanged": true}));
    let (mut told, mut told_pi) = (visit.listen(), pi.listen());
    let agents = home.locum_home().join("config/agents");
    std::fs::create_dir_all(&agents).unwrap();
    let file = agents.join("newcomer.md");
    std::fs::write(&file, "---\nname: newcomer\ndescription: Comes and goes.\n---\nCome.\n").unwrap();
    let list = || visit.get("resources/list", json!({}))["resources"].to_string();
    for is_there in [true, false] {
        hear(&mut told, RESOURCES);
        hear(&mut listening, RESOURCES);
        hear(&mut told_pi, TOOLS);
        assert_eq!(list().contains("locum://agents/newcomer"), is_there);
        if is_there {
            std::fs::remove_file(&file).unwrap();
        }
    }
    // So are they of what calls make.
    visit.call("shared_context", &json!({"action": "write", "key": "goal", "value": "v"}));
    hear(&mut told, RESOURCES);
    alone.call("shared_context", &json!({"action": "write", "key": "goal", "value": "v"}));
    hear(&mut listening, RESOURCES);
}
