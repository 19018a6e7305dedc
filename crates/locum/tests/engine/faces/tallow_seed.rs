//! What tallow's page says of its modes, sentence by sentence.

use std::time::Duration;

use locum::Desk;
use locum::faces::Face;
use locum::models::scripted::{Say, Scripted};
use locum::transcript::{Repeat, ToolOutput};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{call, text};
use crate::cast::{Narrowed, Witness};
use crate::stage::{agent, builder, check, pass, tool};

async fn subagent(desk: &Desk, input: Value) -> Value {
    call(desk, Face::Tallow, "subagent", input).await
}

/// "Multiple agents run in parallel but the conversation blocks until all finish. Results appear inline."
#[tokio::test(start_paused = true)]
async fn parallel_blocks_until_all_have_finished() {
    let after = |text: &str, seconds| Say::text(text).after(Duration::from_secs(seconds));
    let script = Scripted::new().agent("ann", [after("A.", 3)]).agent("bob", [after("B.", 9)]);
    let desk = builder(script).build().unwrap();
    let started = Instant::now();
    let answer =
        subagent(&desk, json!({"tasks": [{"agent": "ann", "task": "a"}, {"agent": "bob", "task": "b"}]})).await;
    assert_eq!(started.elapsed().as_secs(), 9);
    let expected =
        "Parallel: 2/2 done (2 completed, 0 failed, 0 stalled)\n\n[ann] completed:\nA.\n\n[bob] completed:\nB.";
    assert_eq!((text(&answer), &answer["isError"]), (expected, &json!(false)));
}

/// "stalled workers are automatically retried once in single-worker mode with scope-narrowing retry guidance and explicit
/// model pinning when possible"
#[tokio::test(start_paused = true)]
async fn a_stalled_worker_is_retried_once_with_a_narrower_scope_and_its_model_pinned() {
    let desk = builder(Narrowed).build().unwrap();
    let tasks = json!([{"agent": "ann", "task": "stuck"}, {"agent": "bob", "task": "free"}]);
    let started = Instant::now();
    let answer = subagent(&desk, json!({ "tasks": tasks })).await;
    assert_eq!(started.elapsed().as_secs(), 180, "one stuck worker does not pin the run");
    let head = "Parallel: 2/2 done (2 completed, 0 failed, 0 stalled)";
    assert!(text(&answer).starts_with(head), "{answer}");
    assert_eq!(answer["isError"], false);
    let log = desk.log_of("t_03").await.unwrap();
    let locum::task::TaskEvent::Accepted { plan, .. } = &log[0].event else { panic!("{log:?}") };
    assert_eq!(plan.receipt.model.requested.as_deref(), Some("cast"), "the model is named");
    assert!(plan.assignment.task.starts_with("stuck\n\n"), "{}", plan.assignment.task);
}

/// "if any workers still stall after auto-rerun, the call returns partial results with isError: true and remediation
/// guidance"
#[tokio::test(start_paused = true)]
async fn who_stalls_again_is_told_of_with_partial_results_and_what_helps() {
    let script = Scripted::new().agent("ann", [Say::text("A.")]).agent("bob", [Say::hang()]);
    let model = Witness::new(script);
    let desk = builder(model.clone()).build().unwrap();
    let answer =
        subagent(&desk, json!({"tasks": [{"agent": "ann", "task": "a"}, {"agent": "bob", "task": "b"}]})).await;
    assert_eq!(answer["isError"], true);
    let text = text(&answer);
    assert!(
        text.starts_with("Parallel: 2/2 done (1 completed, 0 failed, 1 stalled)\n\n[ann] completed:\nA."),
        "{text}"
    );
    assert!(text.contains("[bob] stalled:\nStalled: no activity for 180 s during model"), "{text}");
    assert!(text.contains("with a narrower task or another model"), "{text}");
    assert_eq!(model.calls(), 3, "once more, and no more");
}

/// "tool-execution timeout widens the window while a tool call is still running"
#[tokio::test(start_paused = true)]
async fn a_tool_has_more_time_than_a_model() {
    let slow = tool("dig", Repeat::Safe, |_, _| async {
        pass(590.0).await;
        Ok(ToolOutput::ok("dug"))
    });
    let script = Scripted::new().agent("eve", [Say::calls([("dig", json!({}))]), Say::text("Dug.")]);
    let desk = builder(script).tool(slow).agent(agent("eve", &["dig"])).build().unwrap();
    let answer = subagent(&desk, json!({"agent": "eve", "task": "t"})).await;
    assert_eq!((text(&answer), &answer["isError"]), ("Dug.", &json!(false)));
}

/// "Centipede, sequential steps where each receives the previous output via {previous} placeholder"
#[tokio::test(start_paused = true)]
async fn a_centipede_takes_one_step_after_the_other() {
    let model = Witness::new(Scripted::new().agent("*", [Say::text("<{{task}}>").after(Duration::from_secs(2))]));
    let desk = builder(model.clone()).build().unwrap();
    let steps = json!([
        {"agent": "ann", "task": "one"},
        {"agent": "bob", "task": "two of {previous}"},
        {"agent": "ann", "task": "three of {previous}"},
    ]);
    let started = Instant::now();
    let answer = subagent(&desk, json!({ "centipede": steps })).await;
    assert_eq!(text(&answer), "<three of <two of <one>>>");
    assert_eq!((started.elapsed().as_secs(), model.most_at_once()), (6, 1));
}

/// "Agents run independently while the conversation continues. Check progress with subagent_status." and "final output
/// text is always retained for subagent_status", "a bounded tail of recent messages is kept for debugging", "stale
/// completed records are removed automatically after a retention window".
#[tokio::test(start_paused = true)]
async fn a_background_agent_works_while_others_are_asked_and_is_compacted_at_its_end() {
    let turns = (0..20).map(|n| Say::calls([("note", json!({"n": n}))]).after(Duration::from_secs(1)));
    let script =
        Scripted::new().agent("eve", turns.chain([Say::text("All noted.")])).agent("ann", [Say::text("Meanwhile.")]);
    let note = tool("note", Repeat::Safe, |_, _| async { Ok(ToolOutput::ok("noted")) });
    let mut eve = agent("eve", &["note"]);
    eve.max_turns = Some(25);
    let desk = builder(script).tool(note).agent(eve).build().unwrap();
    let answer = subagent(&desk, json!({"agent": "eve", "task": "Note.", "background": true})).await;
    assert_eq!(text(&answer), "Started background subagent: bg_01\nUse subagent_status to check progress.");
    assert_eq!(text(&subagent(&desk, json!({"agent": "ann", "task": "t"})).await), "Meanwhile.");
    let status = async || call(&desk, Face::Tallow, "subagent_status", json!({"taskId": "bg_01"})).await;
    assert!(text(&status().await).contains("Status: running"));
    pass(30.0).await;
    let done = status().await;
    // What was asked, twenty calls with their answers, and what it came to.
    assert!(text(&done).contains("History: compacted (24/42 messages retained)\n\nOutput:\nAll noted."), "{done}");
    assert_eq!(done["details"]["tasks"][0]["messages"].as_array().unwrap().len(), 24);
    pass(29.0 * 60.0).await;
    assert!(text(&status().await).contains("All noted."));
    pass(60.0).await;
    assert_eq!(text(&status().await), "Task not found: bg_01");
    let kept = desk.call("subagent", json!({"action": "result", "task_id": "t_01"})).await.unwrap();
    check(&json!(kept), &json!({"text": "All noted."}));
}
