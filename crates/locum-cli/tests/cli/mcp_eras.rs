//! Both eras of the protocol over standard input and output: what an earlier client says hello for, a later one says in
//! every request.

use serde_json::{Value, json};

use crate::home::{Home, wait_until};
use crate::raw::Raw;

fn script(home: &Home) -> String {
    home.script(&json!({
        "slow": [{"text": "Done: {{task}}", "usage": {}, "delay_ms": 200}],
        "*": [{"text": "Done: {{task}}", "usage": {}}],
    }))
}

/// A client of the newest version with an `initialize`, and what it is told.
fn hello(home: &Home, capabilities: &Value) -> (Raw, Value) {
    let mut raw = Raw::start(home, &["--model", &script(home), "--session", "test"]);
    let client = json!({"name": "raw", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client});
    raw.ask(&json!(0), "initialize", &params);
    let about = raw.next()["result"].clone();
    raw.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    (raw, about)
}

fn get(raw: &mut Raw, method: &str, params: &Value) -> Value {
    raw.ask(&json!(1), method, params);
    let answer = raw.next();
    assert!(answer["result"].is_object(), "{method}: {answer}");
    answer["result"].clone()
}

/// What a request that stands alone carries.
fn alone(mut params: Value, capabilities: &Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    params
}

#[test]
fn an_earlier_client_has_tasks_resources_and_prompts() {
    let home = Home::new();
    let (mut raw, about) = hello(&home, &json!({}));
    assert_eq!(about["protocolVersion"], "2025-11-25");
    let capabilities = &about["capabilities"];
    assert_eq!(capabilities["tasks"]["requests"]["tools"]["call"], json!({}), "{about}");
    assert_eq!((&capabilities["resources"]["subscribe"], &capabilities["prompts"]), (&json!(true), &json!({})));
    let tools = get(&mut raw, "tools/list", &json!({}));
    assert_eq!(tools["tools"][0]["execution"]["taskSupport"], "optional");
    let define = json!({"action": "define", "name": "slow", "description": "d", "system_prompt": "p"});
    raw.subagent(2, &define);
    let run = json!({"action": "run", "agent": "slow", "task": "t"});
    let created = get(&mut raw, "tools/call", &json!({"name": "subagent", "arguments": run, "task": {}}));
    let id = &created["task"]["taskId"];
    get(&mut raw, "resources/subscribe", &json!({"uri": "locum://tasks/t_01/result"}));
    let updated = raw.next();
    assert_eq!(updated["params"]["uri"], "locum://tasks/t_01/result", "{updated}");
    let result = get(&mut raw, "tasks/result", &json!({"taskId": id}));
    assert_eq!(result["structuredContent"]["result"], "Done: t");
    let read = get(&mut raw, "resources/read", &json!({"uri": "locum://tasks/t_01/result"}));
    assert_eq!(read["contents"][0]["text"], "Done: t");
    assert_eq!(get(&mut raw, "prompts/list", &json!({}))["prompts"][1]["name"], "roster");
    assert_eq!(raw.leave().code, Some(0));
}

#[test]
fn a_client_of_2025_06_18_is_told_nothing_of_tasks() {
    let home = Home::new();
    let mut raw = Raw::start(&home, &["--model", "offline"]);
    let client = json!({"name": "raw", "version": "1"});
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    raw.ask(&json!(0), "initialize", &params);
    let about = raw.next();
    assert!(about["result"]["capabilities"].get("tasks").is_none(), "{about}");
    raw.leave();
}

#[test]
fn a_later_client_says_hello_in_every_request() {
    let home = Home::new();
    let mut raw = Raw::start(&home, &["--model", &script(&home), "--session", "test"]);
    let about = get(&mut raw, "server/discover", &alone(json!({}), &json!({})));
    assert!(about["supportedVersions"].as_array().unwrap().contains(&json!("2026-07-28")), "{about}");
    let run = json!({"action": "run", "agent": "explore", "task": "t"});
    let call = json!({"name": "subagent", "arguments": run});
    let ran = get(&mut raw, "tools/call", &alone(call.clone(), &json!({})));
    assert_eq!(ran["structuredContent"]["result"], "Done: t");
    let knows_tasks = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let created = get(&mut raw, "tools/call", &alone(call, &knows_tasks));
    assert_eq!(created["resultType"], "task", "{created}");
    let id = json!({"taskId": created["taskId"]});
    wait_until(|| get(&mut raw, "tasks/get", &alone(id.clone(), &knows_tasks))["status"] == "completed");
    let wanted = json!({"notifications": {"resourceSubscriptions": ["locum://context/goal"]}});
    raw.ask(&json!(9), "subscriptions/listen", &alone(wanted, &json!({})));
    assert_eq!(raw.next()["method"], "notifications/subscriptions/acknowledged");
    let write = json!({"action": "write", "key": "goal", "value": "v"});
    raw.ask(&json!(1), "tools/call", &alone(json!({"name": "shared_context", "arguments": write}), &json!({})));
    let mut methods = [raw.next(), raw.next()].map(|message| message["method"].as_str().unwrap_or("answer").to_owned());
    methods.sort();
    assert_eq!(methods, ["answer", "notifications/resources/updated"]);
    raw.leave();
}

#[test]
fn the_person_at_an_earlier_client_is_asked() {
    let home = Home::new();
    let config = home.locum_home().join("config");
    std::fs::create_dir_all(&config).unwrap();
    std::fs::write(config.join("config.toml"), "[permissions]\nrules = [\"ask write(src/**)\"]\n").unwrap();
    home.write("agents/scribe.md", "---\nname: scribe\ndescription: Writes\ntools: write\n---\nYou write.\n");
    let write = json!({"tool_calls": [{"name": "write", "input": {"path": "src/a.txt", "content": "x"}}]});
    let model = home.script(&json!({"*": [write, {"text": "Done."}]}));
    let mut raw = Raw::start(&home, &["--model", &model, "--agents", "agents"]);
    let client = json!({"name": "raw", "version": "1"});
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {"elicitation": {}}, "clientInfo": client});
    raw.ask(&json!(0), "initialize", &params);
    raw.next();
    raw.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    raw.call(1, "subagent", &json!({"action": "run", "agent": "scribe", "task": "Go."}));
    let question = raw.next();
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let said = json!({"action": "accept", "content": {"allow": true}});
    raw.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": said}));
    assert_eq!(raw.answer(1)["result"], "Done.");
    assert!(home.project().join("src/a.txt").exists());
    raw.leave();
}
