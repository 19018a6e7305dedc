//! Tallow: tasks in the background, and the tool `subagent_status`.

use std::time::Duration;

use locum::faces::{Face, FaceSettings, Retention};
use locum::models::scripted::{Say, Scripted};
use locum::{Desk, DeskBuilder};
use serde_json::{Value, json};

use super::{call, text};
use crate::repository::Repository;
use crate::stage::{agent, ask, builder, check, pass};

fn cast() -> DeskBuilder {
    let look = Say::calls([("ls", json!({}))]).with_text("I look.").after(Duration::from_secs(2));
    let script = Scripted::new()
        .agent("ann", [look, Say::text("Seen: {{task}}").after(Duration::from_secs(2))])
        .agent("bob", [Say::hang()]);
    builder(script).agent(agent("ann", &["ls"]))
}

async fn subagent(desk: &Desk, input: Value) -> Value {
    call(desk, Face::Tallow, "subagent", input).await
}

async fn status(desk: &Desk, id: Option<&str>) -> Value {
    call(desk, Face::Tallow, "subagent_status", json!({"taskId": id})).await
}

#[tokio::test(start_paused = true)]
async fn a_background_task_is_started_told_of_and_read_when_it_is_done() {
    let desk = cast().build().unwrap();
    let answer = subagent(&desk, json!({"agent": "ann", "task": "Map it.", "background": true})).await;
    let started = "Started background subagent: bg_01\nUse subagent_status to check progress.";
    assert_eq!((text(&answer), &answer["isError"]), (started, &json!(false)));
    check(&answer["details"], &json!({"mode": "single", "results": []}));
    pass(3.0).await;
    let running = status(&desk, Some("bg_01")).await;
    let expected = "bg_01\nAgent: ann\nStatus: running\nDuration: 3.0s\nTask: Map it.\nIsolation: none\n\
                    History: full (3 messages)";
    assert_eq!((text(&running), &running["isError"]), (expected, &json!(false)));
    pass(2.0).await;
    let done = status(&desk, Some("bg_01")).await;
    let expected = "bg_01\nAgent: ann\nStatus: completed\nDuration: 4.0s\nTask: Map it.\nIsolation: none\n\
                    History: compacted (4/4 messages retained)\n\nOutput:\nSeen: Map it.";
    assert_eq!(text(&done), expected);
    check(&done["details"]["tasks"], &json!([{"taskId": "bg_01", "agent": "ann", "output": "Seen: Map it."}]));
    // Looking at it does not take it away.
    assert_eq!(text(&status(&desk, Some("bg_01")).await), expected);
}

#[tokio::test(start_paused = true)]
async fn several_are_started_at_once_and_listed() {
    let desk = cast().build().unwrap();
    assert_eq!(text(&status(&desk, None).await), "No background subagents.");
    let tasks =
        json!([{"agent": "ann", "task": "one\ntwo"}, {"agent": "bob", "task": "b"}, {"agent": "ann", "task": " "}]);
    let answer = subagent(&desk, json!({"tasks": tasks, "background": true})).await;
    let started = "Started background subagent: bg_01\nStarted background subagent: bg_02\n\
                   [ann] failed: `task` is empty (say what the agent should do)\n\
                   Use subagent_status to check progress.";
    assert_eq!((text(&answer), &answer["isError"]), (started, &json!(true)));
    pass(5.0).await;
    let listed = status(&desk, None).await;
    assert_eq!(text(&listed), "bg_01 @ann completed 4.0s one\nbg_02 @bob running 5.0s b");
    assert_eq!(listed["details"]["tasks"].as_array().unwrap().len(), 2);
    pass(200.0).await;
    let stalled = status(&desk, Some("bg_02")).await;
    assert!(text(&stalled).contains("Status: stalled"), "{stalled}");
    assert!(text(&stalled).contains("Output:\nStalled: no activity for"), "{stalled}");
}

#[tokio::test]
async fn a_task_in_a_worktree_of_its_own_says_so() {
    let repository = Repository::new();
    let script = Scripted::new().agent("ann", [Say::text("Done.")]);
    let desk = builder(script).root(repository.root()).worktrees(repository.worktrees()).build().unwrap();
    for input in [
        json!({"agent": "ann", "task": "t", "isolation": "worktree"}),
        json!({"tasks": [{"agent": "ann", "task": "t", "isolation": "worktree"}]}),
        json!({"centipede": [{"agent": "ann", "task": "t", "isolation": "worktree"}]}),
    ] {
        let answer = subagent(&desk, input).await;
        assert_eq!(answer["isError"], false, "{answer}");
    }
    subagent(&desk, json!({"agent": "ann", "task": "t", "isolation": "worktree", "background": true})).await;
    let answer = status(&desk, Some("bg_04")).await;
    assert!(text(&answer).contains("Isolation: worktree\n"), "{answer}");
    assert_eq!(answer["details"]["tasks"][0]["isolation"], "worktree");
}

#[tokio::test(start_paused = true)]
async fn an_unknown_task_is_not_found() {
    let desk = cast().build().unwrap();
    subagent(&desk, json!({"agent": "ann", "task": "t"})).await;
    // The last one was waited for: it is nobody's background task.
    for id in ["bg_77", "t_01", "x", "", "bg_", "bg_01"] {
        let answer = status(&desk, Some(id)).await;
        assert_eq!((text(&answer), &answer["isError"]), (format!("Task not found: {id}").as_str(), &json!(true)));
    }
    let answer = call(&desk, Face::Tallow, "subagent_status", json!({"task_id": "bg_01"})).await;
    assert!(text(&answer).contains("`task_id`"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn an_ended_task_leaves_the_list_after_half_an_hour_and_its_result_stays() {
    let desk = cast().build().unwrap();
    subagent(&desk, json!({"agent": "ann", "task": "t", "background": true})).await;
    subagent(&desk, json!({"agent": "bob", "task": "u", "background": true})).await;
    pass(29.0 * 60.0).await;
    assert!(text(&status(&desk, None).await).contains("bg_01"));
    pass(2.0 * 60.0).await;
    assert_eq!(text(&status(&desk, Some("bg_01")).await), "Task not found: bg_01");
    assert!(!text(&status(&desk, None).await).contains("bg_01"));
    check(&ask(&desk, json!({"action": "result", "task_id": "t_01"})).await, &json!({"text": "Seen: t"}));
}

#[tokio::test(start_paused = true)]
async fn what_is_remembered_can_be_set() {
    for (retention, history, shown) in [
        (Retention { tail_messages: 2, ..Retention::default() }, "compacted (2/4 messages retained)", 2),
        (Retention { full_history: true, tail_messages: 2, ..Retention::default() }, "full (4 messages)", 4),
        (Retention { minutes: 60, ..Retention::default() }, "compacted (4/4 messages retained)", 4),
    ] {
        let minutes = retention.minutes;
        let desk = cast().faces(FaceSettings { retention, ..FaceSettings::default() }).build().unwrap();
        subagent(&desk, json!({"agent": "ann", "task": "t", "background": true})).await;
        pass(10.0).await;
        let answer = status(&desk, Some("bg_01")).await;
        assert!(text(&answer).contains(&format!("History: {history}")), "{answer}");
        assert_eq!(answer["details"]["tasks"][0]["messages"].as_array().unwrap().len(), shown);
        pass(60.0 * (f64::from(u32::try_from(minutes).unwrap()) - 1.0)).await;
        assert!(text(&status(&desk, None).await).contains("bg_01"));
        pass(120.0).await;
        assert_eq!(text(&status(&desk, None).await), "No background subagents.");
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_of_another_session_is_known_by_its_whole_id() {
    let desk = cast().build().unwrap();
    let answer = subagent(&desk, json!({"agent": "ann", "task": "t", "background": true, "session": "other"})).await;
    assert!(text(&answer).starts_with("Started background subagent: bg_01@other\n"), "{answer}");
    assert_eq!(text(&status(&desk, None).await), "No background subagents.");
    assert_eq!(text(&status(&desk, Some("bg_01")).await), "Task not found: bg_01");
    pass(5.0).await;
    let answer = status(&desk, Some("bg_01@other")).await;
    assert!(text(&answer).starts_with("bg_01@other\nAgent: ann\nStatus: completed"), "{answer}");
    assert_eq!(text(&status(&desk, Some("bg_01@")).await), "Task not found: bg_01@");
}
