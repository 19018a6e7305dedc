//! A call that is made again after a person was asked must go on with what it started, and start nothing twice. So what
//! it starts is marked with a key that comes back with the next attempt.

use locum::faces::Face;
use locum::{Desk, SessionId};
use rmcp::ErrorData;
use serde_json::{Value, json};

/// The actions that start something and wait for it.
pub(super) const WAITING: [&str; 5] = ["run", "parallel", "chain", "race", "map"];

/// The key of a call and of all its repetitions.
pub(super) struct Repeat(SessionId);

impl Repeat {
    /// The key that came back, or a new one.
    pub(super) fn of(state: Option<String>, desk: &Desk) -> Result<Self, ErrorData> {
        match state {
            // An id that no session has is a key that no call has.
            None => Ok(Self(desk.in_new_session().session().id.clone())),
            Some(state) => SessionId::parse(&state)
                .map(Self)
                .map_err(|_| ErrorData::invalid_params("this requestState was never given", None)),
        }
    }

    /// What comes back.
    pub(super) fn state(&self) -> String {
        self.0.to_string()
    }

    /// Marks what a call starts, unless its caller did.
    pub(super) fn mark(&self, face: Face, tool: &str, input: &mut Value) {
        let action = input["action"].as_str().unwrap_or_default();
        if face != Face::Native || tool != "subagent" || !WAITING.contains(&action) {
            return;
        }
        let key = |place: usize| json!(format!("{}.{place}", self.0));
        match input.get_mut("tasks") {
            Some(tasks) => {
                for (place, entry) in tasks.as_array_mut().into_iter().flatten().enumerate() {
                    if let Some(entry) = entry.as_object_mut() {
                        entry.entry("idempotency_key").or_insert_with(|| key(place));
                    }
                }
            }
            None => {
                if let Some(input) = input.as_object_mut() {
                    input.entry("idempotency_key").or_insert_with(|| key(0));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_call_starts_is_marked_once() {
        let repeat = Repeat(SessionId::parse("k").unwrap());
        for (input, expected) in [
            (json!({"action": "run", "agent": "a"}), json!({"action": "run", "agent": "a", "idempotency_key": "k.0"})),
            (json!({"action": "run", "idempotency_key": "own"}), json!({"action": "run", "idempotency_key": "own"})),
            (
                json!({"action": "chain", "tasks": [{"task": "x"}, {"idempotency_key": "own"}, 1]}),
                json!({"action": "chain", "tasks": [
                    {"task": "x", "idempotency_key": "k.0"}, {"idempotency_key": "own"}, 1
                ]}),
            ),
            (json!({"action": "status"}), json!({"action": "status"})),
            (json!({}), json!({})),
        ] {
            let mut marked = input;
            repeat.mark(Face::Native, "subagent", &mut marked);
            assert_eq!(marked, expected);
        }
        let mut board = json!({"action": "add", "tasks": [{}]});
        repeat.mark(Face::Native, "manage_tasks", &mut board);
        assert_eq!(board, json!({"action": "add", "tasks": [{}]}));
    }
}
