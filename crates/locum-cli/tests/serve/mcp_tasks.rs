//! Calls that are answered with a task, in both eras: they outlive the client and the server.

use serde_json::{Value, json};

use crate::home::{Home, wait_until};
use crate::served::Served;
use crate::visit::Visit;

const TASKS: &str = "io.modelcontextprotocol/tasks";

fn script(home: &Home) -> String {
    home.script(&json!({
        "slow": [{"text": "Done: {{task}}", "usage": {}, "delay_ms": 300}],
        "hanging": [{"error": {"kind": "hang"}}],
        "broken": [{"error": {"kind": "auth"}}],
    }))
}

fn define(visit: &Visit<'_>) {
    for name in ["slow", "hanging", "broken"] {
        let define = json!({"action": "define", "name": name, "description": "d", "system_prompt": "p"});
        visit.call("subagent", &define);
    }
}

fn run(agent: &str) -> Value {
    json!({"name": "subagent", "arguments": {"action": "run", "agent": agent, "task": "t"}})
}

#[test]
fn a_client_that_knows_tasks_is_answered_with_one() {
    let home = Home::new();
    let server = Served::start(&home, &script(&home));
    let visit = Visit::alone(&server, "/mcp?session=alone", "").with(json!({"extensions": {TASKS: {}}}));
    let about = visit.get("server/discover", json!({}));
    assert!(about["capabilities"]["extensions"][TASKS].is_object(), "{about}");
    define(&visit);
    let created = visit.get("tools/call", run("slow"));
    assert_eq!((&created["resultType"], &created["status"]), (&json!("task"), &json!("working")), "{created}");
    let id = created["taskId"].clone();
    let get = || visit.get("tasks/get", json!({"taskId": id}));
    wait_until(|| get()["status"] == "completed");
    // As often as it is asked for, and what the call would have been answered.
    for _ in 0..2 {
        let task = get();
        assert_eq!(task["result"]["structuredContent"]["result"], "Done: t", "{task}");
    }
    // An agent that fails has answered.
    let broken = visit.get("tools/call", run("broken"));
    let get = || visit.get("tasks/get", json!({"taskId": broken["taskId"]}));
    wait_until(|| get()["status"] == "completed");
    assert_eq!(get()["result"]["structuredContent"]["status"], "failed");
    // What leads to no task is answered at once.
    let refused = visit.get("tools/call", run("nobody"));
    assert_eq!(
        (&refused["isError"], &refused["structuredContent"]["error"]),
        (&json!(true), &json!("AGENT_NOT_FOUND"))
    );
    let status = visit.call("subagent", &json!({"action": "status"}));
    assert_eq!(status["resultType"], "complete");
    // Cancelled, and gone.
    let hanging = visit.get("tools/call", run("hanging"));
    visit.get("tasks/cancel", json!({"taskId": hanging["taskId"]}));
    wait_until(|| visit.get("tasks/get", json!({"taskId": hanging["taskId"]}))["status"] == "cancelled");
    for id in ["nothing", "t_77", "01J00000000000000000000000"] {
        assert_eq!(visit.ask("tasks/get", json!({"taskId": id}))["error"]["code"], -32602, "{id}");
    }
    // A client that does not know them waits.
    let plain = Visit::alone(&server, "/mcp?session=alone", "");
    assert_eq!(plain.get("tools/call", run("slow"))["structuredContent"]["result"], "Done: t");
    assert_eq!(plain.ask("tasks/get", json!({"taskId": id}))["error"]["code"], -32021);
}

/// The inspector is such a client: it was answered with a task that it had not asked for.
#[test]
fn a_client_of_the_older_era_that_knows_the_extension_is_answered_at_once() {
    let home = Home::new();
    let server = Served::start(&home, &script(&home));
    let (visit, _) = Visit::open(&server, "/mcp", "", &json!({"extensions": {TASKS: {}}}));
    define(&visit);
    let answer = visit.get("tools/call", run("slow"));
    assert_eq!(answer["structuredContent"]["status"], "completed", "{answer}");
}

#[test]
fn a_client_of_the_older_era_asks_for_a_task() {
    let home = Home::new();
    let server = Served::start(&home, &script(&home));
    let (visit, about) = Visit::open(&server, "/mcp", "", &json!({}));
    assert_eq!(about["capabilities"]["tasks"]["requests"]["tools"]["call"], json!({}), "{about}");
    let tools = visit.get("tools/list", json!({}));
    assert_eq!(tools["tools"][0]["execution"]["taskSupport"], "optional");
    assert!(tools["tools"][1].get("execution").is_none() && tools.get("resultType").is_none());
    define(&visit);
    let augmented = |agent: &str| {
        let mut params = run(agent);
        params["task"] = json!({"ttl": 60000});
        params
    };
    let created = visit.get("tools/call", augmented("slow"))["task"].clone();
    assert_eq!((&created["status"], &created["ttl"]), (&json!("working"), &Value::Null), "{created}");
    let id = &created["taskId"];
    assert_eq!(visit.get("tasks/get", json!({"taskId": id}))["taskId"], *id);
    // It waits for the result, which can be had again.
    for _ in 0..2 {
        let result = visit.get("tasks/result", json!({"taskId": id}));
        assert_eq!(result["structuredContent"]["result"], "Done: t");
        assert_eq!(result["_meta"]["io.modelcontextprotocol/related-task"]["taskId"], *id);
    }
    assert_eq!(visit.get("tasks/get", json!({"taskId": id}))["status"], "completed");
    let hanging = visit.get("tools/call", augmented("hanging"))["task"]["taskId"].clone();
    assert_eq!(visit.get("tasks/cancel", json!({"taskId": hanging}))["status"], "cancelled");
    assert_eq!(visit.ask("tasks/cancel", json!({"taskId": hanging}))["error"]["code"], -32602);
    let listed = visit.get("tasks/list", json!({}));
    let ids: Vec<&Value> = listed["tasks"].as_array().unwrap().iter().map(|task| &task["taskId"]).collect();
    assert_eq!(ids, [&hanging, id]);
    // Only what waits for agents is a task.
    let status = json!({"name": "subagent", "arguments": {"action": "status"}, "task": {}});
    assert_eq!(visit.ask("tools/call", status)["error"]["code"], -32602);
    let refused = visit.ask("tools/call", augmented("nobody"));
    assert_eq!(refused["error"]["data"]["error"], "AGENT_NOT_FOUND", "{refused}");
    for (method, params) in [
        ("tasks/get", json!({"taskId": "nothing"})),
        ("tasks/get", json!({})),
        ("tasks/result", json!({"taskId": "t_77"})),
        ("tasks/list", json!({"cursor": "x"})),
    ] {
        assert_eq!(visit.ask(method, params)["error"]["code"], -32602, "{method}");
    }
}

#[test]
fn a_task_outlives_the_client_and_the_server() {
    let home = Home::new();
    let server = Served::start(&home, &script(&home));
    let (visit, _) = Visit::open(&server, "/mcp", "", &json!({}));
    define(&visit);
    let mut params = run("slow");
    params["task"] = json!({});
    let id = visit.get("tools/call", params)["task"]["taskId"].clone();
    drop(visit);
    assert_eq!(server.end(), Some(0));
    let server = Served::start(&home, &script(&home));
    let (visit, _) = Visit::open(&server, "/mcp", "", &json!({}));
    assert_eq!(visit.get("tasks/result", json!({"taskId": id}))["structuredContent"]["result"], "Done: t");
}

/// Requests for several agents, what is in their answers, and where.
fn several() -> [(Value, &'static str, Value); 6] {
    let entry = |agent: &str, task: &str| json!({"agent": agent, "task": task});
    let two = json!([entry("slow", "one"), entry("slow", "two")]);
    let later = json!([entry("slow", "one"), entry("slow", "after {previous}")]);
    let halves = json!([entry("nobody", "one"), entry("broken", "two"), entry("slow", "three")]);
    [
        (json!({"action": "parallel", "tasks": two}), "/results/1/result", json!("Done: two")),
        (json!({"action": "parallel", "tasks": halves}), "/results/0/error", json!("AGENT_NOT_FOUND")),
        (json!({"action": "parallel", "tasks": halves}), "/results/2/result", json!("Done: three")),
        (json!({"action": "chain", "tasks": later}), "/result", json!("Done: after Done: one")),
        (
            json!({"action": "race", "tasks": [entry("hanging", "one"), entry("slow", "two")]}),
            "/result",
            json!("Done: two"),
        ),
        (
            json!({"action": "map", "agent": "slow", "task": "<{input}>", "inputs": ["a", "b", "c"]}),
            "/results/2/result",
            json!("Done: <c>"),
        ),
    ]
}

#[test]
fn what_waits_for_several_agents_is_one_task_in_both_eras() {
    let home = Home::new();
    let server = Served::start(&home, &script(&home));
    let alone = Visit::alone(&server, "/mcp?session=alone", "").with(json!({"extensions": {TASKS: {}}}));
    let (visit, _) = Visit::open(&server, "/mcp", "", &json!({}));
    define(&alone);
    define(&visit);
    for (input, place, expected) in several() {
        let params = json!({"name": "subagent", "arguments": input});
        let created = alone.get("tools/call", params.clone());
        assert_eq!((&created["resultType"], &created["status"]), (&json!("task"), &json!("working")), "{created}");
        let get = || alone.get("tasks/get", json!({"taskId": created["taskId"]}));
        wait_until(|| get()["status"] == "completed");
        let result = &get()["result"]["structuredContent"];
        assert_eq!(result.pointer(place), Some(&expected), "{result}");
        // What a client is answered that waits itself.
        let mut waited = Visit::alone(&server, "/mcp?session=alone", "").get("tools/call", params.clone());
        let shape = |answer: &Value| answer.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(shape(result), shape(&waited["structuredContent"].take()));

        let mut asked = params;
        asked["task"] = json!({});
        let created = visit.get("tools/call", asked)["task"].clone();
        let result = visit.get("tasks/result", json!({"taskId": created["taskId"]}));
        assert_eq!(result["structuredContent"].pointer(place), Some(&expected), "{result}");
        assert_eq!(visit.get("tasks/get", json!({"taskId": created["taskId"]}))["status"], "completed");
    }
}

#[test]
fn several_agents_are_cancelled_as_one_task() {
    let home = Home::new();
    let server = Served::start(&home, &script(&home));
    let alone = Visit::alone(&server, "/mcp?session=alone", "").with(json!({"extensions": {TASKS: {}}}));
    let (visit, _) = Visit::open(&server, "/mcp", "", &json!({}));
    define(&alone);
    define(&visit);
    let entry = |agent: &str| json!({"agent": agent, "task": "t"});
    for (action, agents) in [
        ("parallel", ["slow", "hanging", "hanging"]),
        ("chain", ["slow", "hanging", "slow"]),
        ("race", ["hanging", "broken", "hanging"]),
    ] {
        let input = json!({"action": action, "tasks": agents.map(entry)});
        let params = json!({"name": "subagent", "arguments": input});
        let created = alone.get("tools/call", params.clone());
        let get = || alone.get("tasks/get", json!({"taskId": created["taskId"]}));
        // One has ended by itself, and the whole is at work.
        wait_until(|| get()["statusMessage"] == "1 of 3 tasks have ended");
        assert_eq!(get()["status"], "working");
        alone.get("tasks/cancel", json!({"taskId": created["taskId"]}));
        wait_until(|| get()["status"] == "cancelled");

        let mut asked = params;
        asked["task"] = json!({});
        let created = visit.get("tools/call", asked)["task"].clone();
        let get = || visit.get("tasks/get", json!({"taskId": created["taskId"]}));
        wait_until(|| get()["statusMessage"] == "1 of 3 tasks have ended");
        let cancelled = visit.get("tasks/cancel", json!({"taskId": created["taskId"]}));
        assert_eq!(cancelled["status"], "cancelled", "{action}: {cancelled}");
    }
    // Who ends one of several leaves the others to their own ends.
    let input = json!({"action": "parallel", "tasks": [entry("hanging"), entry("slow")]});
    let created = alone.get("tools/call", json!({"name": "subagent", "arguments": input}));
    let list = alone.call("subagent", &json!({"action": "status"}));
    let hanging = list["structuredContent"]["tasks"].as_array().unwrap();
    let hanging = hanging.iter().rfind(|task| task["agent"] == "hanging").unwrap()["task_id"].clone();
    alone.call("subagent", &json!({"action": "cancel", "task_id": hanging}));
    let get = || alone.get("tasks/get", json!({"taskId": created["taskId"]}));
    wait_until(|| get()["status"] == "completed");
    assert_eq!(get()["result"]["structuredContent"]["results"][1]["result"], "Done: t");
}

#[test]
fn several_agents_are_one_task_after_a_restart() {
    let home = Home::new();
    let server = Served::start(&home, &script(&home));
    let (visit, about) = Visit::open(&server, "/mcp", "", &json!({}));
    define(&visit);
    let several = several();
    let ids = several.clone().map(|(input, ..)| {
        let params = json!({"name": "subagent", "arguments": input, "task": {}});
        visit.get("tools/call", params)["task"]["taskId"].clone()
    });
    drop(visit);
    assert_eq!(server.end(), Some(0));
    let server = Served::start(&home, &script(&home));
    let session = about["session"].as_str().unwrap();
    let (visit, _) = Visit::open(&server, &format!("/mcp?session={session}"), "", &json!({}));
    for (id, (_, place, expected)) in ids.iter().zip(several) {
        let result = visit.get("tasks/result", json!({"taskId": id}));
        assert_eq!(result["structuredContent"].pointer(place), Some(&expected), "{result}");
    }
    let listed = visit.get("tasks/list", json!({}));
    let listed: Vec<&Value> = listed["tasks"].as_array().unwrap().iter().map(|task| &task["taskId"]).collect();
    assert!(ids.iter().all(|id| listed.contains(&id)), "{listed:?}");
}

#[test]
fn the_end_of_a_task_is_told_once() {
    let home = Home::new();
    let server = Served::start(&home, &script(&home));
    let (visit, _) = Visit::open(&server, "/mcp", "", &json!({}));
    define(&visit);
    let mut told = visit.listen();
    let (input, ..) = several()[0].clone();
    let mut ids = Vec::new();
    for arguments in [input, json!({"action": "run", "agent": "broken", "task": "t"})] {
        let params = json!({"name": "subagent", "arguments": arguments, "task": {}});
        ids.push(visit.get("tools/call", params)["task"]["taskId"].clone());
    }
    let mut ended = Vec::new();
    while ended.len() < ids.len() {
        let message = told.next().unwrap();
        if message["method"] == "notifications/tasks/status" {
            assert_eq!(message["params"]["status"], "completed", "{message}");
            assert!(message["params"]["lastUpdatedAt"].is_string() && message["params"]["pollInterval"].is_u64());
            ended.push(message["params"]["taskId"].clone());
        }
    }
    assert!(ids.iter().all(|id| ended.contains(id)), "{ids:?} {ended:?}");
}
