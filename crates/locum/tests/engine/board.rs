//! The task board as agents use it: claims carry their identity, and how an owner stands is looked up.

use std::time::Duration;

use locum::Desk;
use locum::models::scripted::{Say, Scripted};
use serde_json::{Value, json};

use crate::stage::{agent, builder, check, collect, pass, run, shown, spawn};

fn on_board(action: Value) -> Say {
    Say::calls([("manage_tasks", action)])
}

/// `writer` claims b_01, takes a minute and completes it; `sloth` claims b_02 and never completes it; `thief` tries to
/// take what others have.
fn script() -> Scripted {
    let claim = |id: &str| on_board(json!({"action": "claim", "id": id}));
    let later = Duration::from_secs(60);
    Scripted::new()
        .agent(
            "writer",
            [claim("b_01"), on_board(json!({"action": "complete", "id": "b_01"})).after(later), Say::text("Done.")],
        )
        .agent("sloth", [claim("b_02"), Say::text("Tired.").after(later)])
        .agent("thief", [claim("b_01"), on_board(json!({"action": "clear"})), Say::text("{{task}}")])
}

fn desk() -> Desk {
    let agents = ["writer", "sloth", "thief"].map(|name| agent(name, &["manage_tasks"]));
    agents.into_iter().fold(builder(script()), locum::DeskBuilder::agent).build().unwrap()
}

async fn board(desk: &Desk, input: Value) -> Value {
    shown(desk.call("manage_tasks", input).await)
}

#[tokio::test(start_paused = true)]
async fn claims_of_subagents_carry_their_identity_and_say_whether_it_runs() {
    let desk = desk();
    let tasks = json!([{"subject": "Write", "active_form": "Writing"}, {"subject": "Rest"}]);
    check(
        &board(&desk, json!({"action": "add", "tasks": tasks})).await,
        &json!({"added": [{"id": "b_01", "status": "pending"}, {"id": "b_02", "owner": null}]}),
    );
    let (writer, sloth) = (spawn(&desk, "writer", "Go.").await, spawn(&desk, "sloth", "Go.").await);
    pass(1.0).await;
    check(
        &board(&desk, json!({"action": "list"})).await,
        &json!({"tasks": [
            {"id": "b_01", "status": "in_progress", "owner": "subagent:writer:t_01", "owner_status": "running"},
            {"id": "b_02", "status": "in_progress", "owner": "subagent:sloth:t_02", "owner_status": "running"},
        ]}),
    );
    // Others do not get it: the refusal is what their model reads.
    check(&run(&desk, "thief", "Steal.").await, &json!({"status": "completed"}));
    let log = serde_json::to_string(&desk.log_of("t_03").await.unwrap()).unwrap();
    assert!(log.contains("b_01 is owned by subagent:writer:t_01") && log.contains("cleared by the orchestrator"));

    check(&collect(&desk, &writer).await, &json!({"status": "completed"}));
    check(&collect(&desk, &sloth).await, &json!({"status": "completed"}));
    check(
        &board(&desk, json!({"action": "list"})).await,
        &json!({"tasks": [
            {"id": "b_01", "status": "completed", "owner_status": "completed"},
            // Its owner has ended and did not complete it.
            {"id": "b_02", "status": "in_progress", "owner_status": "completed"},
        ]}),
    );
    check(
        &board(&desk, json!({"action": "claim", "id": "b_02"})).await,
        &json!({"error": "OWNED", "hint": "update it with status pending, then claim it"}),
    );
    board(&desk, json!({"action": "update", "id": "b_02", "status": "pending"})).await;
    check(&board(&desk, json!({"action": "claim", "id": "b_02"})).await, &json!({"owner": "orchestrator"}));
    check(&board(&desk, json!({"action": "complete_all"})).await, &json!({"completed": 1}));
    check(&board(&desk, json!({"action": "clear"})).await, &json!({"archived": 2}));
    check(&board(&desk, json!({"action": "list"})).await, &json!({"tasks": []}));
}

#[tokio::test(start_paused = true)]
async fn one_of_many_claims_at_once_wins() {
    let desk = desk();
    board(&desk, json!({"action": "add", "subject": "One"})).await;
    let claims = ["t_01", "t_02", "t_03"].map(|_| board(&desk, json!({"action": "claim", "id": "b_01"})));
    // The orchestrator is one identity: claiming again is no second claim.
    for claim in futures_util::future::join_all(claims).await {
        check(&claim, &json!({"owner": "orchestrator"}));
    }
    let thieves = [spawn(&desk, "thief", "1").await, spawn(&desk, "thief", "2").await];
    for thief in thieves {
        collect(&desk, &thief).await;
    }
    check(&board(&desk, json!({"action": "get", "id": "b_01"})).await, &json!({"owner": "orchestrator"}));
}
