//! A model and a person ask the same desk under different terms.

use locum::Limits;
use locum::models::scripted::{Say, Scripted};
use serde_json::{Value, json};

use crate::stage::{ask, ask_as_person, builder, check, desk};

fn model() -> Scripted {
    Scripted::new().agent("*", [Say::text("Done.")])
}

fn run(task: &str) -> Value {
    json!({"action": "run", "agent": "ann", "task": task})
}

#[tokio::test(start_paused = true)]
async fn a_task_of_a_model_has_a_thousand_tokens_and_one_of_a_person_a_hundred_thousand_characters() {
    let desk = desk(model());
    for (person, chars, accepted) in
        [(false, 4_000, true), (false, 4_001, false), (true, 100_000, true), (true, 100_001, false)]
    {
        // Characters, never bytes.
        let request = run(&"é".repeat(chars));
        let answer = if person { ask_as_person(&desk, None, request).await } else { ask(&desk, request).await };
        let expected = if accepted { json!({"status": "completed"}) } else { json!({"error": "TASK_TOO_LARGE"}) };
        check(&answer, &expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_model_starts_at_most_fifty_tasks_in_a_session_and_a_person_as_many_as_they_type() {
    let desk = desk(model());
    for _ in 0..50 {
        check(&ask(&desk, run("Go.")).await, &json!({"status": "completed"}));
    }
    let message = "the session has started 50 tasks; 50 are allowed";
    check(&ask(&desk, run("Go.")).await, &json!({"error": "SPAWN_LIMIT_EXCEEDED", "message": message}));
    let entry = json!({"agent": "ann", "task": "Go."});
    let three = json!({"action": "parallel", "tasks": [entry, entry, entry]});
    check(&ask(&desk, three.clone()).await, &json!({"completed": 0, "failed": 3}));
    check(&ask_as_person(&desk, None, three).await, &json!({"completed": 3}));
    let elsewhere = desk.in_session(locum::SessionId::parse("elsewhere").unwrap());
    check(&ask(&elsewhere, run("Go.")).await, &json!({"task_id": "t_01", "status": "completed"}));
}

#[tokio::test(start_paused = true)]
async fn the_cap_cuts_a_parallel_of_a_model_where_it_is_reached() {
    let limits = Limits { max_spawns: 2, ..Limits::default() };
    let desk = builder(model()).limits(limits).build().unwrap();
    let entry = json!({"agent": "ann", "task": "Go."});
    let answer = ask(&desk, json!({"action": "parallel", "tasks": [entry, entry, entry]})).await;
    let expected =
        [json!({"status": "completed"}), json!({"status": "completed"}), json!({"error": "SPAWN_LIMIT_EXCEEDED"})];
    check(&answer, &json!({"results": expected, "completed": 2, "failed": 1}));
}

#[tokio::test(start_paused = true)]
async fn delegation_that_is_switched_off_starts_nothing_and_still_answers_questions() {
    let desk = builder(model()).enabled(false).build().unwrap();
    let define = json!({"action": "define", "name": "x", "description": "d", "system_prompt": "p"});
    let entry = json!({"agent": "ann", "task": "Go."});
    for request in [run("Go."), define, json!({"action": "parallel", "tasks": [entry]})] {
        check(&ask(&desk, request).await, &json!({"error": "SUBAGENTS_DISABLED"}));
    }
    check(&ask(&desk, json!({"action": "status"})).await, &json!({"tasks": []}));
    check(&ask(&desk, json!({"action": "list_agents"})).await, &json!({"agents": [{"name": "ann"}, {"name": "bob"}]}));
}
