//! Tasks that delegate: how deep, how wide, and that they take their children with them.

use locum::models::scripted::{Say, Scripted};
use locum::transcript::{Repeat, ToolOutput};
use locum::{Desk, Limits};
use serde_json::{Value, json};

use crate::cast::Witness;
use crate::stage::{Ledger, agent, ask, builder, check, collect, noting_tool, pass, run, spawn, tool};

fn delegate(action: &str, to: &str) -> Say {
    Say::calls([("subagent", json!({"action": action, "agent": to, "task": "Help."}))])
}

/// `lead` may look and delegate; `helper` would like to look, act and delegate.
fn desk(max_depth: u32, lead: Vec<Say>, helper: Vec<Say>) -> (Desk, Witness) {
    let model = Witness::new(Scripted::new().agent("lead", lead).agent("helper", helper));
    // A tool of the application that delegates by itself, whatever the agent's own tools are.
    let by_hand = tool("by_hand", Repeat::Unsafe, |_, scope| async move {
        let request = json!({"action": "run", "agent": "helper", "task": "By hand."});
        Ok(ToolOutput::ok(ask(&scope.desk, request).await.to_string()))
    });
    let limits = Limits { max_depth: Some(max_depth), ..Limits::default() };
    let ledger = Ledger::default();
    let desk = builder(model.clone())
        .tool(by_hand)
        .tool(noting_tool("look", Repeat::Safe, &ledger))
        .tool(noting_tool("act", Repeat::Unsafe, &ledger))
        .agent(agent("lead", &["subagent", "look", "by_hand"]))
        .agent(agent("helper", &["subagent", "look", "act", "by_hand"]))
        .limits(limits)
        .build();
    (desk.unwrap(), model)
}

fn last_answer(model: &Witness) -> Value {
    serde_json::from_str(&model.asked().last().unwrap().tool_answers()[0]).unwrap()
}

#[tokio::test(start_paused = true)]
async fn at_depth_one_no_task_delegates_whatever_its_tools_are() {
    for (call, denied) in [
        (delegate("run", "helper"), json!("You have no tool named `subagent`. You have: look, by_hand.")),
        (Say::calls([("by_hand", json!({}))]), json!(null)),
    ] {
        let (desk, model) = desk(1, vec![call, Say::text("Alone.")], vec![Say::text("Helped.")]);
        let answer = run(&desk, "lead", "Lead.").await;
        let dropped = json!([{"name": "subagent", "why": "delegation is at its depth limit"}]);
        check(&answer, &json!({"status": "completed", "receipt": {"tools": {"dropped": dropped}}}));
        match denied {
            Value::String(text) => assert_eq!(model.asked()[1].tool_answers(), [text]),
            _ => check(&last_answer(&model), &json!({"error": "DEPTH_EXCEEDED"})),
        }
        assert_eq!(model.calls(), 2, "nobody helped");
    }
}

#[tokio::test(start_paused = true)]
async fn at_depth_two_one_level_is_delegated_and_the_child_is_never_wider() {
    let helper = vec![Say::calls([("by_hand", json!({}))]), Say::text("Helped.")];
    let (desk, model) = desk(2, vec![delegate("run", "helper"), Say::text("Led.")], helper);
    check(&run(&desk, "lead", "Lead.").await, &json!({"task_id": "t_01", "status": "completed", "result": "Led."}));
    let agents: Vec<String> = model.asked().iter().map(|asked| asked.agent.clone()).collect();
    assert_eq!(agents, ["lead", "helper", "helper", "lead"]);
    assert_eq!(model.asked()[0].tools, ["subagent", "look", "by_hand"]);
    assert_eq!(model.asked()[1].tools, ["look", "by_hand"]);
    let denied: Value = serde_json::from_str(&model.asked()[2].tool_answers()[0]).unwrap();
    check(&denied, &json!({"error": "DEPTH_EXCEEDED"}));
    let dropped = json!([
        {"name": "subagent", "why": "delegation is at its depth limit"},
        {"name": "act", "why": "the task that delegates does not have it"},
    ]);
    let helped = json!({"task_id": "t_02", "result": "Helped.", "receipt": {"tools": {"dropped": dropped}}});
    check(&last_answer(&model), &helped);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_waits_long_for_its_child_is_not_silent() {
    // Each call takes two minutes, all of them together longer than a tool may be silent.
    let slow = |path: u32| Say::calls([("look", json!({"path": path}))]).after(std::time::Duration::from_secs(120));
    let helper: Vec<Say> = (0..8).map(slow).chain([Say::text("Helped.")]).collect();
    let (desk, model) = desk(2, vec![delegate("run", "helper"), Say::text("Led.")], helper);
    let id = spawn(&desk, "lead", "Lead.").await;
    check(&collect(&desk, &id).await, &json!({"status": "completed", "result": "Led."}));
    check(&last_answer(&model), &json!({"task_id": "t_02", "status": "completed", "result": "Helped."}));
}

#[tokio::test(start_paused = true)]
async fn children_get_the_places_of_those_who_wait_for_them() {
    let helpers = json!([{"agent": "helper", "task": "a"}, {"agent": "helper", "task": "b"}]);
    let call = Say::calls([("subagent", json!({"action": "parallel", "tasks": helpers}))]);
    let later = Say::text("Helped.").after(std::time::Duration::from_secs(5));
    let (desk, _) = desk(2, vec![call, Say::text("Led.")], vec![later]);
    // Every place is taken by somebody who delegates.
    let leads: Vec<Value> = (0..5).map(|number| json!({"agent": "lead", "task": format!("Lead {number}.")})).collect();
    let answer = ask(&desk, json!({"action": "parallel", "tasks": leads})).await;
    check(&answer, &json!({"completed": 5, "failed": 0, "stalled": 0}));
}

#[tokio::test(start_paused = true)]
async fn depth_is_capped_at_five_whatever_is_asked() {
    let lead = vec![delegate("run", "lead"), Say::text("Led.")];
    let (desk, model) = desk(9, lead, Vec::new());
    check(&run(&desk, "lead", "Lead.").await, &json!({"status": "completed"}));
    let with_tool = model.asked().iter().filter(|asked| asked.tools.contains(&"subagent".to_owned())).count();
    // Four of five levels ask twice with the tool; the fifth has none, and is denied once.
    assert_eq!((model.calls(), with_tool), (10, 8));
}

#[tokio::test(start_paused = true)]
async fn a_cancel_takes_the_children_along_and_shows_them_in_its_receipt() {
    for action in ["run", "spawn"] {
        let lead = vec![delegate(action, "helper"), Say::hang()];
        let (desk, _) = desk(2, lead, vec![Say::hang()]);
        let id = spawn(&desk, "lead", "Lead.").await;
        pass(1.0).await;
        let answer = ask(&desk, json!({"action": "cancel", "task_id": id})).await;
        let both = json!([{"task_id": "t_01", "status": "cancelled"}, {"task_id": "t_02", "status": "cancelled"}]);
        check(&answer, &json!({"status": "cancelled", "receipt": {"confirmed": true, "tasks": both}}));
        check(&collect(&desk, "t_02").await, &json!({"status": "cancelled"}));
    }
}

#[tokio::test(start_paused = true)]
async fn a_child_that_a_cancelled_task_starts_at_the_last_moment_is_cancelled_too() {
    // Work that a tool leaves behind, and that delegates while the cancel is under way.
    let behind = tool("behind", Repeat::Unsafe, |_, scope| async move {
        let desk = scope.desk.clone();
        tokio::spawn(async move {
            scope.stop.cancelled().await;
            ask(&desk, json!({"action": "spawn", "agent": "helper", "task": "Stay behind."})).await;
        });
        std::future::pending().await
    });
    let script = Scripted::new().agent("lead", [Say::calls([("behind", json!({}))])]).agent("helper", [Say::hang()]);
    let limits = Limits { max_depth: Some(2), ..Limits::default() };
    let desk = builder(script).limits(limits).tool(behind).agent(agent("lead", &["behind", "subagent"]));
    let desk = desk.agent(agent("helper", &[])).build().unwrap();
    let id = spawn(&desk, "lead", "Lead.").await;
    pass(1.0).await;
    ask(&desk, json!({"action": "cancel", "task_id": id})).await;
    pass(1.0).await;
    let left = ask(&desk, json!({"action": "status"})).await;
    let running = left["tasks"].as_array().unwrap().iter().filter(|task| task["status"] == "running").count();
    assert_eq!(running, 0, "{left:#}");
}
