//! How a task ends that does not end by itself: the wall clock, silence, a cancel; and what is kept of it.

use std::time::Duration;

use locum::models::scripted::{Say, Scripted};
use locum::transcript::{Repeat, ToolOutput};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::cast::{Beat, Speaker};
use crate::stage::{agent, ask, builder, check, collect, context, desk, pass, spawn, status, tool};

/// Runs a task to its end; its collected form, and after how many seconds it ended.
async fn ending(desk: &locum::Desk, agent: &str, timeout_s: Option<u64>) -> (Value, f64) {
    let started = Instant::now();
    let spawn = json!({"action": "spawn", "agent": agent, "task": "Go on.", "timeout": timeout_s});
    let spawned = ask(desk, spawn).await;
    let collected = collect(desk, spawned["task_id"].as_str().unwrap_or_else(|| panic!("{spawned}"))).await;
    (collected, started.elapsed().as_secs_f64())
}

#[tokio::test(start_paused = true)]
async fn the_wall_clock_ends_a_task_at_its_edge_with_what_it_has() {
    let says = |ms: u64| Speaker::once([Beat::Says("Half "), Beat::Silence(ms), Beat::Says("done."), Beat::Ends]);
    for (answer_after_ms, expected) in [
        (9_999, json!({"status": "completed", "result": "Half done."})),
        (
            10_001,
            json!({"status": "failed", "reason": "timeout", "error": "Timed out after 10 s", "partial_result": "Half "}),
        ),
    ] {
        let (collected, after_s) = ending(&desk(says(answer_after_ms)), "ann", Some(10)).await;
        check(&collected, &expected);
        assert!(after_s <= 10.002, "{after_s}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_wall_clock_runs_over_all_turns_and_tools() {
    let slow = tool("slow", Repeat::Safe, |_, _| async {
        pass(4.0).await;
        Ok(ToolOutput::ok("slept"))
    });
    let turn = || Say::calls([("slow", json!({}))]).with_text("Once more.").after(Duration::from_secs(2));
    let script = Scripted::new().agent("eve", std::iter::repeat_with(turn).take(9));
    let desk = builder(script).tool(slow).agent(agent("eve", &["slow"])).build().unwrap();
    let (collected, after_s) = ending(&desk, "eve", Some(20)).await;
    let expected = json!({"reason": "timeout", "turns_used": 4, "partial_result": "Once more."});
    check(&collected, &expected);
    assert!((19.9..20.1).contains(&after_s), "{after_s}");
}

#[tokio::test(start_paused = true)]
async fn a_silent_model_or_tool_is_a_stall_and_a_sign_of_life_is_not() {
    let silent_ms = 180_000;
    let alive: Vec<Beat> = [Beat::Silence(179_000), Beat::Lives, Beat::Silence(179_000), Beat::Says("a")]
        .into_iter()
        .cycle()
        .take(40)
        .collect();
    for (beats, expected, ends_after_s) in [
        (
            vec![Beat::Silence(silent_ms + 1), Beat::Says("late"), Beat::Ends],
            json!({"reason": "stalled", "error": "Stalled: no activity for 180 s during model"}),
            180.0,
        ),
        (
            vec![Beat::Silence(100_000), Beat::Says("Half"), Beat::Hangs],
            json!({"reason": "stalled", "partial_result": "Half"}),
            280.0,
        ),
        (alive, json!({"status": "completed", "result": "aaaaaaaaaa"}), 3580.0),
    ] {
        let (collected, after_s) = ending(&desk(Speaker::once(beats)), "ann", None).await;
        check(&collected, &expected);
        assert!((ends_after_s - 0.1..ends_after_s + 0.1).contains(&after_s), "{after_s}: {collected}");
    }
    let hangs = tool("hang", Repeat::Unsafe, |_, _| std::future::pending());
    let script = Scripted::new().agent("eve", [Say::calls([("hang", json!({}))]).with_text("I try.")]);
    let desk = builder(script).tool(hangs).agent(agent("eve", &["hang"])).build().unwrap();
    let (collected, after_s) = ending(&desk, "eve", None).await;
    let error = "Stalled: no activity for 600 s during tool";
    check(&collected, &json!({"reason": "stalled", "error": error, "partial_result": "I try."}));
    assert!((600.0..600.1).contains(&after_s), "{after_s}");
}

/// Cancels a task of `eve` after so many seconds, and looks at what is left of it.
async fn cancelled_after(desk: &locum::Desk, seconds: f64, partial: Option<&str>) {
    let id = spawn(desk, "eve", "Go on.").await;
    pass(seconds).await;
    let started = Instant::now();
    let answer = ask(desk, json!({"action": "cancel", "task_id": id})).await;
    let receipt = json!({"confirmed": true, "tasks": [{"task_id": id, "status": "cancelled"}], "processes": []});
    check(&answer, &json!({"task_id": id, "status": "cancelled", "partial_result": partial, "receipt": receipt}));
    assert_eq!(started.elapsed(), Duration::ZERO, "a cancel waits for nothing");
    check(&status(desk, &id).await, &json!({"status": "cancelled", "error": null, "reason": null}));
    check(&ask(desk, json!({"action": "cancel", "task_id": id})).await, &json!({"status": "cancelled"}));
    let expected = json!({"status": "cancelled", "result": null, "partial_result": partial, "error": null});
    check(&collect(desk, &id).await, &expected);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_a_task_in_the_middle_of_a_reply_and_keeps_what_was_said() {
    let beats = [Beat::Silence(1_000), Beat::Says("So "), Beat::Silence(1_000), Beat::Says("far"), Beat::Hangs];
    for (seconds, partial) in [(0.5, None), (1.5, Some("So ")), (9.0, Some("So far"))] {
        let desk = builder(Speaker::once(beats.clone())).agent(agent("eve", &[])).build().unwrap();
        cancelled_after(&desk, seconds, partial).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_a_task_in_the_middle_of_a_tool_and_tells_the_tool() {
    for repeat in [Repeat::Safe, Repeat::Unsafe] {
        // A tool whose work goes on by itself until it is told to stop.
        let works = tool("work", repeat, |_, scope| async move {
            tokio::spawn(async move {
                scope.stop.cancelled().await;
                let stopped = json!({"action": "write", "key": "stopped", "value": "yes"});
                context(&scope.desk, stopped).await;
            });
            std::future::pending().await
        });
        let script = Scripted::new().agent("eve", [Say::calls([("work", json!({}))]).with_text("Working.")]);
        let desk = builder(script).tool(works).agent(agent("eve", &["work"])).build().unwrap();
        cancelled_after(&desk, 5.0, Some("Working.")).await;
        check(&context(&desk, json!({"action": "read", "key": "stopped"})).await, &json!({"value": "yes"}));
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_of_what_is_parked_or_finished_is_answered_at_once() {
    let script = Scripted::new().agent("eve", [Say::hang()]).agent("ann", [Say::text("Done.")]);
    let limits = locum::Limits { max_running: 1, ..locum::Limits::default() };
    let desk = builder(script).limits(limits).agent(agent("eve", &[])).build().unwrap();
    let running = spawn(&desk, "eve", "Hold the place.").await;
    for entry in [
        json!({"action": "spawn", "agent": "ann", "task": "Queue.", "queue": true}),
        json!({"action": "spawn", "agent": "ann", "task": "Wait.", "depends_on": [running]}),
    ] {
        let parked = ask(&desk, entry).await;
        let cancel = json!({"action": "cancel", "task_id": parked["task_id"]});
        check(&ask(&desk, cancel).await, &json!({"status": "cancelled", "receipt": {"confirmed": true}}));
        check(
            &collect(&desk, parked["task_id"].as_str().unwrap()).await,
            &json!({"status": "cancelled", "turns_used": 0}),
        );
    }
    check(&status(&desk, &running).await, &json!({"status": "running"}));
    check(&ask(&desk, json!({"action": "cancel", "task_id": running})).await, &json!({"status": "cancelled"}));
    let id = spawn(&desk, "ann", "Be done.").await;
    pass(1.0).await;
    let late = ask(&desk, json!({"action": "cancel", "task_id": id})).await;
    check(&late, &json!({"status": "completed", "partial_result": null, "receipt": {"confirmed": true}}));
    check(&collect(&desk, &id).await, &json!({"status": "completed", "result": "Done."}));
    check(&ask(&desk, json!({"action": "cancel", "task_id": id})).await, &json!({"error": "TASK_NOT_FOUND"}));
}

#[tokio::test(start_paused = true)]
async fn dropping_a_foreground_call_ends_the_wait_and_never_the_task() {
    let desk = desk(Scripted::new().agent("ann", [Say::text("Late.").after(Duration::from_secs(60))]));
    let run = ask(&desk, json!({"action": "run", "agent": "ann", "task": "Take your time."}));
    assert!(tokio::time::timeout(Duration::from_secs(5), run).await.is_err());
    check(&collect(&desk, "t_01").await, &json!({"status": "completed", "result": "Late."}));
}
