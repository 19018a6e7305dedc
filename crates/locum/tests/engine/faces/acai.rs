//! Acai: the tool `Agent`.

use std::time::Duration;

use futures_util::FutureExt as _;
use locum::Desk;
use locum::faces::Face;
use locum::models::scripted::{Say, Scripted};
use locum_core::task::event::FailureKind;
use serde_json::{Value, json};

use super::{call, text};
use crate::cast::{Beat, Speaker, Witness};
use crate::stage::{agent, builder, check};

async fn agent_call(desk: &Desk, input: Value) -> Value {
    call(desk, Face::Acai, "Agent", input).await
}

#[tokio::test(start_paused = true)]
async fn the_answer_is_the_final_text_as_one_block() {
    let desk = builder(Scripted::new().agent("ann", [Say::text("Seen: {{task}}")])).build().unwrap();
    let answer = agent_call(&desk, json!({"type": "ann", "prompt": "Look."})).await;
    assert_eq!(answer, json!({"content": [{"type": "text", "text": "Seen: Look."}], "isError": false}));
    let long = "é".repeat(100_000);
    let answer = agent_call(&desk, json!({"type": "ann", "prompt": long})).await;
    assert_eq!(text(&answer), format!("Seen: {long}"));
    let answer = agent_call(&desk, json!({"type": "ann", "prompt": format!("{long}x")})).await;
    assert_eq!(answer["isError"], true);
}

#[tokio::test(start_paused = true)]
async fn the_description_lists_the_agents_and_the_schema_is_the_documents() {
    let desk = builder(Scripted::new()).build().unwrap();
    let tools = Face::Acai.tools(&desk.muster().roster);
    let [tool] = tools.as_slice() else { panic!("{tools:?}") };
    assert!(
        tool.description.ends_with("Available agent types:\n- ann: The ann\n- bob: The bob"),
        "{}",
        tool.description
    );
    check(
        &tool.input_schema,
        &json!({
            "properties": {"prompt": {"type": "string"}, "type": {"type": "string"}, "timeout": {"type": "number"}},
            "required": ["prompt", "type"],
        }),
    );
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_asked_is_said_with_what_can() {
    let desk = builder(Scripted::new().agent("ann", [Say::text("Seen.")])).build().unwrap();
    for (input, expected) in [
        (json!({"type": "x", "prompt": "p"}), "Unknown subagent type: \"x\". Available: ann, bob"),
        (json!({"type": "ann"}), "invalid input: missing field `prompt`"),
        (json!({"prompt": "p"}), "invalid input: missing field `type`"),
        (json!({"type": "ann", "prompt": "p", "model": "m"}), "unknown field `model`"),
        (json!({"type": "ann", "prompt": "p", "timeout": 0}), "from 1 to 3600"),
        (json!({"type": "ann", "prompt": "p", "timeout": 3601}), "from 1 to 3600"),
        (json!({"type": "ann", "prompt": "p", "timeout": "soon"}), "timeout"),
        (json!({"type": "ann", "prompt": " "}), "`task` is empty"),
    ] {
        let answer = agent_call(&desk, input.clone()).await;
        assert_eq!(answer["isError"], true, "{input}");
        assert!(text(&answer).contains(expected), "{input}: {answer}");
    }
    let answer = agent_call(&desk, json!({"type": "ann", "prompt": "p", "timeout": 3600})).await;
    assert_eq!(text(&answer), "Seen.");
}

#[tokio::test(start_paused = true)]
async fn a_timeout_is_the_calls_else_the_agents_else_five_minutes_and_keeps_what_was_said() {
    // It lives all the while: only the wall clock can end it.
    let beats = std::iter::repeat_n([Beat::Silence(60_000), Beat::Lives], 90).flatten();
    let model = Speaker::once(std::iter::once(Beat::Says("So far.")).chain(beats).chain([Beat::Ends]));
    let mut slow = agent("slow", &[]);
    slow.timeout_s = Some(600);
    let desk = builder(model).agent(slow).build().unwrap();
    for (kind, timeout, seconds) in
        [("ann", None, 300), ("ann", Some(1), 1), ("slow", None, 600), ("slow", Some(20), 20)]
    {
        let started = tokio::time::Instant::now();
        let answer = agent_call(&desk, json!({"type": kind, "prompt": "p", "timeout": timeout})).await;
        assert_eq!(answer["isError"], true);
        let expected = format!("SubAgent timed out after {seconds} seconds\n\nPartial output:\nSo far.");
        assert_eq!(text(&answer), expected);
        assert_eq!(started.elapsed().as_secs(), seconds, "{kind} {timeout:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_agent_is_an_error_with_its_reason() {
    let script = Scripted::new().agent("ann", [Say::error(FailureKind::Auth, "no key")]);
    let desk = builder(script).build().unwrap();
    let answer = agent_call(&desk, json!({"type": "ann", "prompt": "p"})).await;
    assert_eq!(answer, json!({"content": [{"type": "text", "text": "Model API error: no key"}], "isError": true}));
}

#[tokio::test(start_paused = true)]
async fn the_task_replaces_its_placeholder_or_follows_the_prompt() {
    let model = Witness::new(Scripted::new().agent("*", [Say::text("Seen.")]));
    let mut placed = agent("placed", &[]);
    placed.prompt = "Do this: {{task}} Then stop.".to_owned();
    let desk = builder(model.clone()).agent(placed).build().unwrap();
    agent_call(&desk, json!({"type": "placed", "prompt": "dig"})).await;
    agent_call(&desk, json!({"type": "ann", "prompt": "dig"})).await;
    let asked = model.asked();
    assert!(asked[0].system.starts_with("Do this: dig Then stop."), "{}", asked[0].system);
    assert!(asked[1].system.starts_with("You are ann.") && asked[1].task() == "dig");
}

#[tokio::test(start_paused = true)]
async fn without_a_list_an_agent_has_every_tool_and_a_list_may_use_acais_names() {
    let model = Witness::new(Scripted::new().agent("*", [Say::text("Seen.")]));
    let mut all = agent("all", &[]);
    all.tools = None;
    let names =
        ["Read", "Edit", "Write", "Bash", "Grep", "Glob", "LS", "DirectoryTree", "Think", "Skill", "Agent", "Subagent"];
    let desk = builder(model.clone()).agent(all).agent(agent("some", &names)).build().unwrap();
    agent_call(&desk, json!({"type": "all", "prompt": "p"})).await;
    agent_call(&desk, json!({"type": "some", "prompt": "p"})).await;
    agent_call(&desk, json!({"type": "ann", "prompt": "p"})).await;
    let asked = model.asked();
    for tool in ["read", "edit", "write", "bash", "grep", "find", "ls", "tree", "think", "subagent"] {
        assert!(asked[0].tools.iter().any(|name| name == tool), "{tool}: {:?}", asked[0].tools);
    }
    let expected = ["read", "edit", "write", "bash", "grep", "find", "ls", "tree", "think", "subagent"];
    assert_eq!(asked[1].tools, expected);
    assert_eq!(asked[2].tools, [""; 0], "an empty list means none");
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_lists_agent_delegates_one_level_deep() {
    let delegate = |to: &str| Say::calls([("subagent", json!({"action": "run", "agent": to, "task": "Help."}))]);
    let script = Scripted::new()
        .agent("lead", [delegate("helper"), Say::text("Led.")])
        .agent("helper", [delegate("ann"), Say::text("Helped.")]);
    let model = Witness::new(script);
    let desk =
        builder(model.clone()).agent(agent("lead", &["Agent"])).agent(agent("helper", &["Agent"])).build().unwrap();
    let answer = agent_call(&desk, json!({"type": "lead", "prompt": "p"})).await;
    assert_eq!(text(&answer), "Led.");
    let asked = model.asked();
    let agents: Vec<&str> = asked.iter().map(|asked| asked.agent.as_str()).collect();
    assert_eq!(agents, ["lead", "helper", "helper", "lead"]);
    assert_eq!((asked[0].tools.len(), asked[1].tools.len()), (1, 0), "the helper may not delegate");
}

#[tokio::test(start_paused = true)]
async fn what_an_agent_delegates_is_done_under_acais_terms_too() {
    let delegate = Say::calls([("subagent", json!({"action": "run", "agent": "all", "task": "Help."}))]);
    let script = Scripted::new().agent("lead", [delegate, Say::text("Led.")]).agent("all", [Say::text("Helped.")]);
    let model = Witness::new(script);
    let mut lead = agent("lead", &[]);
    lead.tools = None;
    let mut all = agent("all", &[]);
    all.tools = None;
    let desk = builder(model.clone()).agent(lead).agent(all).build().unwrap();
    agent_call(&desk, json!({"type": "lead", "prompt": "p"})).await;
    let asked = model.asked();
    assert_eq!(asked[1].agent, "all");
    for tool in ["bash", "write", "read"] {
        assert!(asked[1].tools.iter().any(|name| name == tool), "{tool}: {:?}", asked[1].tools);
    }
    assert!(!asked[1].tools.contains(&"subagent".to_owned()), "{:?}", asked[1].tools);
}

#[tokio::test(start_paused = true)]
async fn many_calls_at_once_wait_for_a_place_and_all_are_answered() {
    let script = Scripted::new().agent("ann", [Say::text("{{task}}").after(Duration::from_secs(1))]);
    let model = Witness::new(script);
    let desk = builder(model.clone()).build().unwrap();
    let calls = (0..12).map(|n| agent_call(&desk, json!({"type": "ann", "prompt": n.to_string()})).boxed());
    let answers = futures_util::future::join_all(calls).await;
    let texts: Vec<&str> = answers.iter().map(text).collect();
    assert_eq!(texts, ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"]);
    assert_eq!(model.most_at_once(), 5);
}
