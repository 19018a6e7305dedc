//! Tallow: the tool `manage_tasks`, the board of the session in tallow's spelling.

use locum::Desk;
use locum::faces::Face;
use locum::models::scripted::{Say, Scripted};
use serde_json::{Value, json};

use super::{call, text};
use crate::stage::{agent, builder, check};

async fn board(desk: &Desk, input: Value) -> Value {
    call(desk, Face::Tallow, "manage_tasks", input).await
}

#[tokio::test(start_paused = true)]
async fn tasks_are_added_claimed_and_completed_in_tallows_spelling() {
    let desk = builder(Scripted::new()).build().unwrap();
    assert_eq!(text(&board(&desk, json!({"action": "list"})).await), "No tasks.");
    let metadata = json!({"team_name": {"a_b": 1}});
    let add = json!({"action": "add", "subject": "Write tests", "activeForm": "Writing tests", "metadata": metadata});
    let added = board(&desk, add).await;
    assert_eq!((text(&added), &added["isError"]), ("b_01 [pending] Write tests", &json!(false)));
    check(&added["details"], &json!({"added": [{"id": "b_01", "activeForm": "Writing tests", "metadata": metadata}]}));
    assert!(added["details"]["added"][0]["createdAt"].is_string(), "{added}");
    // Lists come as lists, as texts, and as subjects alone.
    let tasks = json!(["Review", {"subject": "Ship", "blockedBy": ["b_01"]}]);
    let added = board(&desk, json!({"action": "add", "tasks": tasks.to_string()})).await;
    assert_eq!(text(&added), "b_02 [pending] Review\nb_03 [pending] Ship, blocked by b_01");
    let claimed = board(&desk, json!({"action": "claim", "id": "b_01"})).await;
    assert_eq!(text(&claimed), "b_01 [in_progress] Writing tests (@orchestrator)");
    let refused = board(&desk, json!({"action": "complete", "id": "b_03"})).await;
    check(&refused, &json!({"isError": true, "details": {"error": {"code": "BLOCKED"}}}));
    for (input, code) in [
        (json!({"action": "get", "id": "b_99"}), "BOARD_TASK_NOT_FOUND"),
        (json!({"action": "update", "id": "b_01", "blockedBy": ["b_03"]}), "CYCLE"),
        (json!({"action": "add", "colour": "red"}), "INVALID_REQUEST"),
        (json!({"action": "paint"}), "INVALID_ACTION"),
    ] {
        let answer = board(&desk, input.clone()).await;
        assert_eq!(answer["details"]["error"]["code"], code, "{input}: {answer}");
        assert_eq!(answer["isError"], true);
    }
    let completed = board(&desk, json!({"action": "complete", "id": "b_01"})).await;
    assert!(text(&completed).starts_with("b_01 [completed] Write tests"), "{completed}");
    assert_eq!(text(&board(&desk, json!({"action": "complete_all"})).await), "Completed 2 tasks");
    assert_eq!(text(&board(&desk, json!({"action": "clear"})).await), "Archived 3 tasks");
}

#[tokio::test(start_paused = true)]
async fn what_an_agent_claims_is_shown_with_its_name() {
    let claim = Say::calls([("manage_tasks", json!({"action": "claim", "id": "b_01"}))]);
    let script = Scripted::new().agent("alice", [claim, Say::text("Mine.")]);
    let desk = builder(script).agent(agent("alice", &["manage_tasks"])).build().unwrap();
    board(&desk, json!({"action": "add", "subject": "Write tests", "activeForm": "Writing tests"})).await;
    call(&desk, Face::Tallow, "subagent", json!({"agent": "alice", "task": "Take it."})).await;
    let listed = board(&desk, json!({"action": "list"})).await;
    assert_eq!(text(&listed), "b_01 [in_progress] Writing tests (@alice)");
    assert_eq!(listed["details"]["tasks"][0]["owner"], "subagent:alice:t_01");
}

#[test]
fn its_schema_is_the_native_one_in_tallows_spelling() {
    let tools = Face::Tallow.tools(&locum::agent::Roster::default());
    let fields = tools[2].input_schema["properties"].as_object().unwrap();
    let names: Vec<&str> = fields.keys().map(String::as_str).collect();
    assert!(names.contains(&"activeForm") && names.contains(&"blockedBy"), "{names:?}");
    assert!(names.iter().all(|name| !name.contains('_')), "{names:?}");
}
