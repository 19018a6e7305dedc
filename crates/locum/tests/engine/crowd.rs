//! Hundreds of tasks at once in one process.

use std::time::Duration;

use locum::models::scripted::{Say, Scripted};
use locum::task::Task;
use locum::transcript::Repeat;
use locum::{Desk, Limits};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::cast::Witness;
use crate::stage::{Ledger, agent, ask, builder, check, noting_tool};

/// Places and spawns for everybody.
fn desk(max_running: u32) -> (Desk, Witness) {
    let turn = Say::calls([("look", json!({}))]).after(Duration::from_secs(30));
    let script = [turn.clone(), turn, Say::text("Saw {{task}}.").after(Duration::from_secs(30))];
    let model = Witness::new(Scripted::new().agent("eve", script));
    let limits = Limits { max_running, max_spawns: 1000, ..Limits::default() };
    let look = noting_tool("look", Repeat::Safe, &Ledger::default());
    (builder(model.clone()).limits(limits).tool(look).agent(agent("eve", &["look"])).build().unwrap(), model)
}

fn parallel(tasks: usize) -> Value {
    let tasks: Vec<Value> = (0..tasks).map(|n| json!({"agent": "eve", "task": format!("number {n}")})).collect();
    json!({"action": "parallel", "tasks": tasks})
}

#[tokio::test(start_paused = true)]
async fn three_hundred_tasks_at_once_all_end_with_their_own_answers() {
    let (desk, model) = desk(300);
    let started = Instant::now();
    let answer = ask(&desk, parallel(300)).await;
    check(&answer, &json!({"completed": 300, "failed": 0, "stalled": 0}));
    for (n, result) in answer["results"].as_array().unwrap().iter().enumerate() {
        check(result, &json!({"result": format!("Saw number {n}."), "turns_used": 3}));
    }
    assert_eq!((model.calls(), model.most_at_once()), (900, 300));
    assert_eq!(started.elapsed().as_secs(), 90, "they do not wait for each other");
    check(&ask(&desk, json!({"action": "status"})).await, &json!({"tasks": []}));
}

#[tokio::test(start_paused = true)]
async fn a_long_queue_drains_through_few_places() {
    let (desk, model) = desk(10);
    let started = Instant::now();
    check(&ask(&desk, parallel(200)).await, &json!({"completed": 200}));
    assert_eq!((model.most_at_once(), started.elapsed().as_secs()), (10, 20 * 90));
}

#[tokio::test(start_paused = true)]
async fn a_finished_task_holds_no_transcript_and_its_log_has_it_all() {
    let (desk, _) = desk(5);
    check(&ask(&desk, parallel(1)).await, &json!({"completed": 1}));
    let mut log = desk.log_of("t_01").await.unwrap();
    let finished = Task::replay(log.clone()).unwrap();
    assert!(finished.messages().is_empty() && finished.last_text().is_none());
    log.pop();
    assert_eq!(Task::replay(log).unwrap().messages().len(), 6);
}

#[test]
fn a_call_that_waits_for_its_task_is_small() {
    let (desk, _) = desk(5);
    let call = desk.call("subagent", json!({"action": "run", "agent": "eve", "task": "x"}));
    // A thousand callers wait at once; what only some requests need is no part of each.
    assert!(size_of_val(&call) <= 4096, "{} bytes", size_of_val(&call));
}
