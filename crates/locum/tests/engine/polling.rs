//! Looking at tasks: `status` in a storm, and `wait` instead of it.

use std::time::Duration;

use locum::Desk;
use locum::models::scripted::{Say, Scripted};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::stage::{agent, ask, builder, check, pass, spawn, status};

/// `ann` takes 1 s, `bob` 10 s, and `eve` for ever.
fn desk() -> Desk {
    let after = |seconds| Say::text("Done.").after(Duration::from_secs(seconds));
    let script = Scripted::new().agent("ann", [after(1)]).agent("bob", [after(10)]).agent("eve", [Say::hang()]);
    builder(script).agent(agent("eve", &[])).build().unwrap()
}

async fn looks(desk: &Desk, id: &str, times: usize) -> Duration {
    let started = Instant::now();
    for _ in 0..times {
        status(desk, id).await;
    }
    started.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_running_status_says_when_to_look_again_and_a_final_one_does_not() {
    let desk = desk();
    let id = spawn(&desk, "ann", "Go.").await;
    let hint = "use wait instead of polling";
    check(&status(&desk, &id).await, &json!({"status": "running", "poll_after_ms": 1000, "hint": hint}));
    pass(2.0).await;
    check(&status(&desk, &id).await, &json!({"status": "completed", "poll_after_ms": null, "hint": null}));
    assert_eq!(looks(&desk, &id, 100).await, Duration::ZERO, "an end is never held back");
}

#[tokio::test(start_paused = true)]
async fn twenty_looks_a_second_are_answered_at_once_and_each_further_one_is_held() {
    let desk = desk();
    let id = spawn(&desk, "eve", "Go.").await;
    let other = spawn(&desk, "eve", "Go.").await;
    assert_eq!(looks(&desk, &id, 20).await, Duration::ZERO);
    assert_eq!(looks(&desk, &other, 20).await, Duration::ZERO, "every task has its own count");
    assert_eq!(looks(&desk, &id, 1).await, Duration::from_secs(1));
    assert_eq!(looks(&desk, &id, 20).await, Duration::ZERO, "the next second begins anew");
    assert_eq!(looks(&desk, &id, 1).await, Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_held_look_is_answered_as_soon_as_something_changes() {
    let desk = desk();
    let id = spawn(&desk, "ann", "Go.").await;
    pass(0.4).await;
    assert_eq!(looks(&desk, &id, 20).await, Duration::ZERO);
    let started = Instant::now();
    check(&status(&desk, &id).await, &json!({"status": "completed"}));
    assert_eq!(started.elapsed(), Duration::from_millis(600));
}

/// Waits, and checks who had ended, whether the time ran out, and after how many seconds it was.
async fn check_wait(desk: &Desk, fields: Value, ended: &[&str], timed_out: bool, after_s: f64) {
    let started = Instant::now();
    let mut request = fields.clone();
    request["action"] = json!("wait");
    let answer = ask(desk, request).await;
    let tasks = answer["tasks"].as_array().unwrap_or_else(|| panic!("{fields}: {answer}"));
    let completed: Vec<&str> =
        tasks.iter().filter(|task| task["status"] == "completed").filter_map(|task| task["task_id"].as_str()).collect();
    assert_eq!(completed, ended, "{fields}");
    assert_eq!(answer["timed_out"], timed_out, "{fields}");
    let took = started.elapsed().as_secs_f64();
    assert!((took - after_s).abs() < 0.01, "{fields}: {took} s");
}

#[tokio::test(start_paused = true)]
async fn wait_ends_with_any_or_all_tasks_or_with_its_time() {
    let all = json!(["t_01", "t_02", "t_03"]);
    for (fields, ended, timed_out, after_s) in [
        (json!({"task_ids": ["t_01", "t_02"]}), vec!["t_01", "t_02"], false, 10.0),
        (json!({"task_ids": ["t_01", "t_02"], "mode": "all"}), vec!["t_01", "t_02"], false, 10.0),
        (json!({"task_ids": all, "mode": "any"}), vec!["t_01"], false, 1.0),
        (json!({"task_ids": ["t_02", "t_03"], "mode": "any", "timeout_ms": 9_000}), vec![], true, 9.0),
        (json!({"task_ids": all}), vec!["t_01", "t_02"], true, 30.0),
        (json!({}), vec!["t_01", "t_02"], true, 30.0),
        (json!({"timeout_ms": 99_000}), vec!["t_01", "t_02"], true, 45.0),
        (json!({"timeout_ms": 0}), vec![], true, 0.0),
        (json!({"task_ids": []}), vec![], false, 0.0),
    ] {
        let desk = desk();
        for agent in ["ann", "bob", "eve"] {
            spawn(&desk, agent, "Go.").await;
        }
        check_wait(&desk, fields, &ended, timed_out, after_s).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_has_ended_is_not_waited_for_and_one_that_is_gone_is_refused() {
    let desk = desk();
    spawn(&desk, "ann", "Go.").await;
    spawn(&desk, "eve", "Go.").await;
    pass(2.0).await;
    check_wait(&desk, json!({"task_ids": ["t_01"]}), &["t_01"], false, 0.0).await;
    check_wait(&desk, json!({"task_ids": ["t_01", "t_02"], "mode": "any"}), &["t_01"], false, 0.0).await;
    ask(&desk, json!({"action": "collect", "task_id": "t_01"})).await;
    for id in ["t_01", "t_99", "x"] {
        let answer = ask(&desk, json!({"action": "wait", "task_ids": [id]})).await;
        check(&answer, &json!({"error": "TASK_NOT_FOUND"}));
    }
    check(
        &ask(&desk, json!({"action": "wait", "task_ids": vec!["t_02"; 1001]})).await,
        &json!({"error": "INVALID_REQUEST"}),
    );
}
