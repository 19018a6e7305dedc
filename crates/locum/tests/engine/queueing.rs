//! Places: how many tasks run at once, who waits for one, and in which order they get it.

use std::time::Duration;

use locum::models::scripted::{Say, Scripted};
use locum::{Desk, Limits};
use serde_json::{Value, json};

use crate::cast::Witness;
use crate::stage::{ask, ask_as_person, builder, check, collect, pass, spawn, status};

/// A desk with so many places, whose tasks take ten seconds each.
fn desk_with_places(max_running: u32) -> (Desk, Witness) {
    let slow = Say::text("Done: {{task}}").after(Duration::from_secs(10));
    let model = Witness::new(Scripted::new().agent("*", [slow]));
    let limits = Limits { max_running, ..Limits::default() };
    (builder(model.clone()).limits(limits).build().unwrap(), model)
}

async fn queued(desk: &Desk, task: &str) -> Value {
    ask(desk, json!({"action": "spawn", "agent": "ann", "task": task, "queue": true})).await
}

#[tokio::test(start_paused = true)]
async fn five_tasks_run_and_the_sixth_is_refused_unless_it_queues() {
    let (desk, _) = desk_with_places(5);
    for _ in 0..5 {
        spawn(&desk, "ann", "Run.").await;
    }
    let sixth = json!({"action": "spawn", "agent": "ann", "task": "Run."});
    let refused = ask(&desk, sixth.clone()).await;
    check(&refused, &json!({"error": "MAX_TASKS_EXCEEDED", "message": "5 tasks are running; 5 may run at once"}));
    check(&queued(&desk, "Queue.").await, &json!({"task_id": "t_06", "status": "queued", "position": 1}));
    pass(10.5).await;
    check(&status(&desk, "t_06").await, &json!({"status": "running", "position": null}));
    // Finished tasks that nobody collected block nothing.
    check(&ask(&desk, sixth).await, &json!({"task_id": "t_07", "status": "running"}));
}

#[tokio::test(start_paused = true)]
async fn queued_tasks_move_up_and_start_in_their_order() {
    let (desk, model) = desk_with_places(2);
    for task in ["a", "b", "c", "d", "e"] {
        queued(&desk, task).await;
    }
    let positions = |tasks: Value| -> Vec<Value> {
        tasks["tasks"].as_array().unwrap().iter().map(|task| json!([task["status"], task["position"]])).collect()
    };
    let all = positions(ask(&desk, json!({"action": "status"})).await);
    let running = json!(["running", null]);
    assert_eq!(
        all,
        [running.clone(), running.clone(), json!(["queued", 1]), json!(["queued", 2]), json!(["queued", 3])]
    );
    ask(&desk, json!({"action": "cancel", "task_id": "t_03"})).await;
    check(&status(&desk, "t_04").await, &json!({"position": 1}));
    pass(10.5).await;
    check(&status(&desk, "t_05").await, &json!({"status": "running"}));
    collect(&desk, "t_05").await;
    let order: Vec<String> = model.asked().iter().map(|asked| asked.task().to_owned()).collect();
    assert_eq!(order, ["a", "b", "d", "e"]);
    assert_eq!(model.most_at_once(), 2);
}

#[tokio::test(start_paused = true)]
async fn running_tasks_never_exceed_the_places_of_the_session_or_of_the_command() {
    let tasks: Vec<Value> = (0..13).map(|n| json!({"agent": "ann", "task": format!("Task {n}")})).collect();
    let parallel = json!({"action": "parallel", "tasks": tasks});
    for (person, concurrency, expected) in
        [(false, None, 5), (true, None, 4), (true, Some(1), 1), (true, Some(8), 8), (true, Some(0), 1)]
    {
        let (desk, model) = desk_with_places(5);
        let answer = match person {
            true => ask_as_person(&desk, concurrency, parallel.clone()).await,
            false => ask(&desk, parallel.clone()).await,
        };
        check(&answer, &json!({"completed": 13, "failed": 0, "stalled": 0}));
        assert_eq!(model.most_at_once(), expected, "person: {person}, concurrency: {concurrency:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_place_is_given_to_one_task_whatever_ended_the_one_before() {
    let script =
        Scripted::new().agent("ann", [Say::hang()]).agent("bob", [Say::text("Done.").after(Duration::from_secs(1))]);
    let model = Witness::new(script);
    let limits = Limits { max_running: 1, ..Limits::default() };
    let desk = builder(model.clone()).limits(limits).build().unwrap();
    let timed = json!({"action": "spawn", "agent": "ann", "task": "Time out.", "timeout": 5, "queue": true});
    for _ in 0..3 {
        ask(&desk, timed.clone()).await;
    }
    ask(&desk, json!({"action": "spawn", "agent": "bob", "task": "Last.", "queue": true})).await;
    check(&collect(&desk, "t_04").await, &json!({"status": "completed"}));
    for id in ["t_01", "t_02", "t_03"] {
        check(&collect(&desk, id).await, &json!({"status": "failed", "reason": "timeout"}));
    }
    assert_eq!((model.calls(), model.most_at_once()), (4, 1));
}
