//! The faces of other programs, each held to what its document says: inputs, answers, errors, limits and defaults.

mod acai;
mod pi;
mod picoclaw;
mod tallow;
mod tallow_board;
mod tallow_seed;
mod tallow_status;

use locum::Desk;
use locum::faces::Face;
use serde_json::{Value, json};

use crate::stage::check;

/// Calls a tool of a face; its answer as `locum call` prints it.
async fn call(desk: &Desk, face: Face, tool: &str, input: Value) -> Value {
    let answer = face.handle(desk, tool, input).await;
    serde_json::from_str(&answer.json).unwrap()
}

/// The text of an answer that is one.
#[track_caller]
fn text(answer: &Value) -> &str {
    answer["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {answer:#}"))
}

#[tokio::test(start_paused = true)]
async fn a_face_has_its_tools_and_no_others() {
    let desk = crate::stage::desk(locum::models::scripted::Scripted::new());
    let expected = [
        (Face::Native, "native", vec!["subagent", "shared_context", "manage_tasks"]),
        (Face::Tallow, "tallow", vec!["subagent", "subagent_status", "manage_tasks"]),
        (Face::Pi, "pi", vec!["subagent"]),
        (Face::Acai, "acai", vec!["Agent"]),
        (Face::Picoclaw, "picoclaw", vec!["subagent", "spawn", "spawn_status"]),
    ];
    assert_eq!(expected.len(), Face::ALL.len());
    for (face, name, tools) in expected {
        assert_eq!((face.as_str(), Face::parse(name)), (name, Some(face)));
        let definitions = face.tools(&desk.muster().roster);
        let names: Vec<&str> = definitions.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, tools);
        assert!(definitions.iter().all(|tool| tool.input_schema["type"] == "object" && !tool.description.is_empty()));
        let answer = call(&desk, face, "nothing", json!({})).await;
        check(&answer, &json!({"error": "INVALID_REQUEST", "message": "unknown tool `nothing`"}));
        // Whatever is sent, it is answered.
        for tool in tools {
            for input in [json!(null), json!([]), json!("x"), json!({"a": 1}), json!({"task": [], "agent": {}})] {
                assert!(face.handle(&desk, tool, input.clone()).await.is_error, "{name} {tool} {input}");
            }
        }
    }
    assert_eq!(Face::parse("claude"), None);
}
