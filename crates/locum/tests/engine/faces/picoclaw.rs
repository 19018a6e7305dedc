//! Picoclaw: `subagent`, `spawn` and `spawn_status`.

use std::time::Duration;

use locum::faces::Face;
use locum::models::scripted::{Say, Scripted};
use locum::transcript::Repeat;
use locum::{Desk, Limits};
use locum_core::task::event::FailureKind;
use serde_json::{Value, json};

use super::call;
use crate::cast::Witness;
use crate::stage::{Ledger, builder, check, noting_tool, pass};

async fn subagent(desk: &Desk, input: Value) -> Value {
    call(desk, Face::Picoclaw, "subagent", input).await
}

fn answering(says: impl IntoIterator<Item = Say>) -> (Desk, Witness) {
    let model = Witness::new(Scripted::new().agent("subagent", says));
    (builder(model.clone()).build().unwrap(), model)
}

#[tokio::test(start_paused = true)]
async fn a_completed_task_is_told_in_full_to_the_model_and_in_short_to_the_user() {
    let (desk, _) = answering([Say::calls([("ls", json!({}))]), Say::text("Found 23 files.")]);
    let answer = subagent(&desk, json!({"task": "Count", "label": "code-analysis"})).await;
    let for_model = "Subagent task completed:\nLabel: code-analysis\nIterations: 2\nResult: Found 23 files.";
    let expected = json!({
        "ForLLM": for_model, "ForUser": "Found 23 files.", "Silent": false, "IsError": false, "Async": false,
    });
    assert_eq!(answer, expected);
    let answer = subagent(&desk, json!({"task": "Count"})).await;
    assert!(answer["ForLLM"].as_str().unwrap().contains("\nLabel: (unnamed)\n"), "{answer}");
    let given = Face::Picoclaw.handle(&desk, "subagent", json!({"task": "Count", "label": "code-analysis"})).await;
    assert_eq!((given.text.as_str(), given.is_error), (for_model, false), "a model reads what is for it");
}

#[tokio::test(start_paused = true)]
async fn the_user_is_shown_five_hundred_characters() {
    let (desk, _) = answering([Say::text("é".repeat(501))]);
    let answer = subagent(&desk, json!({"task": "Write"})).await;
    assert_eq!(answer["ForUser"], "é".repeat(500));
    assert!(answer["ForLLM"].as_str().unwrap().ends_with(&format!("Result: {}", "é".repeat(501))));
}

#[tokio::test(start_paused = true)]
async fn the_subagent_is_told_picoclaws_words_and_asked_with_its_options() {
    let (desk, model) = answering([Say::text("Done.")]);
    subagent(&desk, json!({"task": "Do this."})).await;
    let asked = &model.asked()[0];
    let prompt = "You are a subagent. Complete the given task independently and provide a clear, concise result.\n\n\
                  You have at most 10 turns (each reply is one); in the last one you can only answer.";
    assert_eq!(asked.system, prompt);
    assert_eq!((asked.task(), asked.most, asked.temperature), ("Do this.", Some(4096), Some(0.7)));
    for tool in ["read", "write", "edit", "bash", "ls", "grep", "subagent"] {
        assert!(asked.tools.iter().any(|name| name == tool), "{tool}: {:?}", asked.tools);
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_is_required() {
    let (desk, model) = answering([]);
    for tool in ["subagent", "spawn"] {
        for input in [json!({}), json!({"label": "l"}), json!({"task": ""}), json!({"task": 5}), json!({"task": null})]
        {
            let answer = call(&desk, Face::Picoclaw, tool, input.clone()).await;
            let text = "task is required";
            let expected = json!({
                "ForLLM": text, "ForUser": text, "Silent": false, "IsError": true, "Async": false, "Err": text,
            });
            assert_eq!(answer, expected, "{tool} {input}");
        }
        let answer = call(&desk, Face::Picoclaw, tool, json!({"task": "t", "colour": "red"})).await;
        assert!(answer["Err"].as_str().unwrap().contains("`colour`"), "{answer}");
    }
    assert_eq!(model.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn without_delegation_there_is_no_manager() {
    let desk = builder(Scripted::new()).enabled(false).build().unwrap();
    for tool in ["subagent", "spawn"] {
        let answer = call(&desk, Face::Picoclaw, tool, json!({"task": "t"})).await;
        let text = "Subagent manager not configured";
        check(&answer, &json!({"ForLLM": text, "ForUser": text, "IsError": true, "Err": text}));
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_told_in_both_texts_with_its_reason() {
    let (desk, _) = answering([Say::error(FailureKind::Auth, "no key")]);
    let answer = subagent(&desk, json!({"task": "t"})).await;
    let text = "Subagent execution failed: Model API error: no key";
    let expected = json!({
        "ForLLM": text, "ForUser": text, "Silent": false, "IsError": true, "Async": false,
        "Err": "Model API error: no key",
    });
    assert_eq!(answer, expected);
    let (desk, _) = answering([Say::error(FailureKind::Auth, "x".repeat(1000))]);
    let answer = subagent(&desk, json!({"task": "t"})).await;
    assert_eq!(answer["ForUser"].as_str().unwrap().chars().count(), 500);
}

#[tokio::test(start_paused = true)]
async fn ten_iterations_are_the_most_and_what_was_said_is_kept() {
    let ledger = Ledger::default();
    let turn = || Say::calls([("look", json!({}))]).with_text("So far.");
    let model = Witness::new(Scripted::new().agent("subagent", std::iter::repeat_with(turn).take(20)));
    let desk = builder(model.clone()).tool(noting_tool("look", Repeat::Safe, &ledger)).build().unwrap();
    let answer = subagent(&desk, json!({"task": "t"})).await;
    let why = "Max turns exceeded without producing a final response";
    check(&answer, &json!({"IsError": true, "Err": why}));
    let expected = format!("Subagent execution failed: {why}\n\nPartial result:\nSo far.");
    assert_eq!(answer["ForLLM"], expected);
    assert_eq!(model.calls(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_subagent_may_spawn_a_subagent_which_may_not() {
    let inner = json!({"action": "run", "agent": "ann", "task": "Help."});
    let script = Scripted::new()
        .agent("subagent", [Say::calls([("subagent", inner)]), Say::text("Led.")])
        .agent("ann", [Say::text("Helped.")]);
    let model = Witness::new(script);
    let desk = builder(model.clone()).build().unwrap();
    assert_eq!(subagent(&desk, json!({"task": "t"})).await["IsError"], false);
    let asked: Vec<String> = model.asked().iter().map(|asked| asked.agent.clone()).collect();
    assert_eq!(asked, ["subagent", "ann", "subagent"]);
    // What the user has set is not widened.
    let model = Witness::new(Scripted::new().agent("subagent", [Say::text("Alone.")]));
    let limits = Limits { max_depth: Some(1), ..Limits::default() };
    let desk = builder(model.clone()).limits(limits).build().unwrap();
    subagent(&desk, json!({"task": "t"})).await;
    assert!(!model.asked()[0].tools.contains(&"subagent".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn spawn_answers_at_once_and_its_status_tells_the_rest() {
    let slow = Say::text("Found it.").after(Duration::from_secs(5));
    let script = Scripted::new().agent("subagent", [slow]).agent("ann", [Say::text("Ann here.")]);
    let desk = builder(script).build().unwrap();
    let answer = call(&desk, Face::Picoclaw, "spawn", json!({"task": "Dig.", "label": "dig"})).await;
    let text = "Spawned subagent t_01 'dig' for task: Dig.";
    check(&answer, &json!({"ForLLM": text, "ForUser": text, "IsError": false, "Async": true}));
    let status = |input: Value| call(&desk, Face::Picoclaw, "spawn_status", input);
    let running = "Subagent status report (1 total):\n[t_01] running dig, ";
    let before = status(json!({"task_id": "t_01"})).await;
    assert!(before["ForLLM"].as_str().unwrap().starts_with(running), "{before}");
    pass(6.0).await;
    let done = "Subagent status report (1 total):\n[t_01] completed dig, 1 iterations\nResult: Found it.";
    assert_eq!(status(json!({"task_id": "t_01"})).await["ForLLM"], done);
    call(&desk, Face::Picoclaw, "spawn", json!({"task": "Sing.", "agent_id": "ann"})).await;
    pass(1.0).await;
    let all = "Subagent status report (2 total):\n[t_01] completed dig, 1 iterations\n\
               [t_02] completed (unnamed), 1 iterations";
    assert_eq!(status(json!({})).await["ForLLM"], all);
    let missing = status(json!({"task_id": "t_77"})).await;
    check(&missing, &json!({"IsError": true, "Err": "No subagent found with task ID: t_77"}));
}

/// "task string required", "label string optional"
#[tokio::test(start_paused = true)]
async fn the_schema_is_the_documents() {
    let (desk, _) = answering([]);
    let tools = Face::Picoclaw.tools(&desk.muster().roster);
    for (place, required, fields) in
        [(0, json!(["task"]), vec!["label", "task"]), (1, json!(["task"]), vec!["agent_id", "label", "task"])]
    {
        let schema = &tools[place].input_schema;
        assert_eq!((&schema["required"], &schema["additionalProperties"]), (&required, &json!(false)), "{schema}");
        let mut names: Vec<&str> = schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, fields);
    }
}

/// "LLM model: Same as parent agent", "Creates new conversation context (isolated from parent)"
#[tokio::test(start_paused = true)]
async fn a_subagent_has_the_sessions_model_and_a_conversation_of_its_own() {
    let (desk, model) = answering([Say::text("One."), Say::text("Two.")]);
    for task in ["first", "second"] {
        subagent(&desk, json!({"task": task})).await;
        let asked = model.asked().pop().unwrap();
        assert_eq!((asked.task(), asked.messages.len()), (task, 1));
    }
    let log = desk.log_of("t_02").await.unwrap();
    let locum::task::TaskEvent::Accepted { plan, .. } = &log[0].event else { panic!("{log:?}") };
    assert_eq!(plan.receipt.model.effective, desk.session_model().0);
}

/// "Synchronous return: main agent waits for completion", and of several that are asked for at once each has its answer.
#[tokio::test(start_paused = true)]
async fn several_at_once_are_answered_each_for_itself() {
    let (desk, model) = answering([Say::text("Seen: {{task}}").after(Duration::from_secs(3))]);
    let started = tokio::time::Instant::now();
    let calls = ["ts", "test", "doc"].map(|name| subagent(&desk, json!({"task": name, "label": format!("{name}-a")})));
    let answers = futures_util::future::join_all(calls).await;
    assert_eq!((started.elapsed().as_secs(), model.most_at_once()), (3, 3));
    for (answer, name) in answers.iter().zip(["ts", "test", "doc"]) {
        let told = format!("Subagent task completed:\nLabel: {name}-a\nIterations: 1\nResult: Seen: {name}");
        check(answer, &json!({"ForLLM": told, "ForUser": format!("Seen: {name}")}));
    }
}

/// "Subagent execution failed: {error} - Tool loop failed or timed out (with error object)"
#[tokio::test(start_paused = true)]
async fn a_subagent_that_is_stuck_fails_with_what_happened() {
    let (desk, _) = answering([Say::hang()]);
    let answer = subagent(&desk, json!({"task": "t"})).await;
    let why = "Stalled: no activity for 180 s during model";
    let text = format!("Subagent execution failed: {why}");
    check(&answer, &json!({"ForLLM": text, "ForUser": text, "IsError": true, "Async": false, "Err": why}));
}
