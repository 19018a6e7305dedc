//! The shapes of answers, as far as clients rely on them.

use locum::protocol::Code;
use serde_json::{Map, Value, json};

use super::reference;

/// Every shape by its name.
pub(super) fn all() -> Map<String, Value> {
    let shapes = [
        ("Refusal", refusal()),
        ("Task", task()),
        ("Tasks", object(&json!({"tasks": list(&reference("Task")), "next": text()}), &["tasks"])),
        ("Record", object(&json!({"seq": number(), "at": text(), "event": anything()}), &["seq", "at", "event"])),
        ("Log", object(&json!({"records": list(&reference("Record")), "next": number()}), &["records"])),
        ("ResultPage", result_page()),
        ("Comparison", comparison()),
        ("AgentLine", agent_line()),
        ("Agents", agents()),
        ("AgentPage", object(&json!({"agent": reference("AgentLine"), "prompt": text()}), &["agent", "prompt"])),
        ("Keys", object(&json!({"keys": list(&anything())}), &["keys"])),
        ("Entry", entry()),
        ("History", object(&json!({"key": text(), "versions": list(&anything())}), &["key", "versions"])),
        (
            "BoardTask",
            object(&json!({"id": text(), "subject": text(), "status": text()}), &["id", "subject", "status"]),
        ),
        ("Board", object(&json!({"tasks": list(&reference("BoardTask"))}), &["tasks"])),
        ("Sessions", sessions()),
        ("Document", anything()),
    ];
    shapes.into_iter().map(|(name, shape)| (name.to_owned(), shape)).collect()
}

fn object(fields: &Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": fields, "required": required})
}

fn list(of: &Value) -> Value {
    json!({"type": "array", "items": of})
}

fn anything() -> Value {
    json!({"type": "object"})
}

fn text() -> Value {
    json!({"type": "string"})
}

fn number() -> Value {
    json!({"type": "integer", "minimum": 0})
}

fn flag() -> Value {
    json!({"type": "boolean"})
}

fn status() -> Value {
    json!({"enum": ["queued", "waiting", "running", "completed", "failed", "cancelled"]})
}

fn refusal() -> Value {
    let codes: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    object(&json!({"error": {"enum": codes}, "message": text(), "hint": text()}), &["error", "message"])
}

fn task() -> Value {
    let fields = json!({
        "uid": text(),
        "session": text(),
        "collected": flag(),
        "parent": text(),
        "seq": number(),
        "task_id": text(),
        "agent": text(),
        "status": status(),
        "turns_used": number(),
        "label": text(),
        "error": text(),
        "reason": text(),
        "position": number(),
        "waiting_for": list(&text()),
        "activity": text(),
        "usage": anything(),
        "created_at": text(),
        "completed_at": text(),
    });
    let required =
        ["uid", "session", "collected", "seq", "task_id", "agent", "status", "turns_used", "usage", "created_at"];
    object(&fields, &required)
}

fn result_page() -> Value {
    let fields = json!({
        "task_id": text(),
        "status": status(),
        "text": text(),
        "offset": number(),
        "next_offset": number(),
        "total_chars": number(),
    });
    object(&fields, &["task_id", "status", "text", "offset", "total_chars"])
}

fn comparison() -> Value {
    let fields = json!({
        "branch": text(),
        "against": text(),
        "patch": text(),
        "cut": flag(),
        "conflicts": list(&text()),
        "uncommitted": number(),
    });
    object(&fields, &["branch", "against", "patch", "cut", "conflicts", "uncommitted"])
}

fn agent_line() -> Value {
    let fields = json!({
        "name": text(),
        "description": text(),
        "model": text(),
        "max_turns": number(),
        "tools": list(&text()),
        "source": text(),
        "version": number(),
        "path": text(),
        "mark": text(),
    });
    object(&fields, &["name", "description", "model", "max_turns", "tools", "source"])
}

fn agents() -> Value {
    let fields = json!({
        "agents": list(&reference("AgentLine")),
        "problems": list(&anything()),
        "project": {"type": ["object", "null"]},
    });
    object(&fields, &["agents", "problems", "project"])
}

fn entry() -> Value {
    object(&json!({"key": text(), "value": text(), "version": number()}), &["key", "value", "version"])
}

fn sessions() -> Value {
    let fields = json!({
        "session": text(),
        "state": {"enum": ["active", "archived"]},
        "tasks": number(),
        "unfinished": number(),
        "keys": number(),
    });
    let session = object(&fields, &["session", "state", "tasks", "unfinished", "keys"]);
    object(&json!({"project": text(), "sessions": list(&session)}), &["project", "sessions"])
}
