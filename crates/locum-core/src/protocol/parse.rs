//! From a tool's JSON input to a request. Every field is checked by name and type; a field of another action is
//! refused like an unknown one.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::agent::roster::nearest;
use crate::agent::tool_names;
use crate::protocol::request::{Background, BoardAdd, Many, MapInputs, MapOver, Run};
use crate::protocol::{BoardAction, Code, ContextAction, Refusal, SubagentAction, ToolRequest};

/// The tools of the native face.
pub const NATIVE_TOOLS: [&str; 3] = [tool_names::SUBAGENT, tool_names::SHARED_CONTEXT, tool_names::MANAGE_TASKS];

/// The actions of `subagent`, the specification's five first.
pub const SUBAGENT_ACTIONS: [&str; 13] = [
    "list_agents",
    "define",
    "spawn",
    "status",
    "collect",
    "wait",
    "result",
    "cancel",
    "run",
    "parallel",
    "chain",
    "race",
    "map",
];

/// The actions of `shared_context`.
pub const CONTEXT_ACTIONS: [&str; 9] =
    ["list_keys", "read", "write", "delete", "read_batch", "read_history", "snapshot", "list_snapshots", "restore"];

/// The actions of `manage_tasks`.
pub const BOARD_ACTIONS: [&str; 8] = ["add", "list", "get", "update", "claim", "complete", "complete_all", "clear"];

/// Reads the input of one of the native tools.
pub fn tool_request(tool: &str, input: Value) -> Result<ToolRequest, Refusal> {
    match tool {
        tool_names::SUBAGENT => subagent(input).map(ToolRequest::Subagent),
        tool_names::SHARED_CONTEXT => shared_context(input).map(ToolRequest::SharedContext),
        tool_names::MANAGE_TASKS => manage_tasks(input).map(ToolRequest::ManageTasks),
        _ => {
            let name: String = tool.chars().take(80).collect();
            Err(Refusal::invalid(format!("unknown tool `{name}`"))
                .hint(format!("the tools are {}", NATIVE_TOOLS.join(", "))))
        }
    }
}

fn subagent(input: Value) -> Result<SubagentAction, Refusal> {
    let (action, fields) = split_action(input, &SUBAGENT_ACTIONS)?;
    Ok(match action {
        "list_agents" => SubagentAction::ListAgents(typed(action, fields)?),
        "define" => SubagentAction::Define(typed(action, fields)?),
        "spawn" => SubagentAction::Spawn(typed(action, fields)?),
        "status" => SubagentAction::Status(typed(action, fields)?),
        "collect" => SubagentAction::Collect(typed(action, fields)?),
        "wait" => SubagentAction::Wait(typed(action, fields)?),
        "result" => SubagentAction::Result(typed(action, fields)?),
        "cancel" => SubagentAction::Cancel(typed(action, fields)?),
        "run" => SubagentAction::Run(run(fields)?),
        "parallel" => SubagentAction::Parallel(many(action, fields)?),
        "chain" => SubagentAction::Chain(many(action, fields)?),
        "race" => SubagentAction::Race(many(action, fields)?),
        "map" => SubagentAction::Map(map(fields)?),
        other => return Err(unknown_action(other, &SUBAGENT_ACTIONS)),
    })
}

fn shared_context(input: Value) -> Result<ContextAction, Refusal> {
    let (action, fields) = split_action(input, &CONTEXT_ACTIONS)?;
    Ok(match action {
        "list_keys" => ContextAction::ListKeys(typed(action, fields)?),
        "read" => ContextAction::Read(typed(action, fields)?),
        "write" => ContextAction::Write(typed(action, fields)?),
        "delete" => ContextAction::Delete(typed(action, fields)?),
        "read_batch" => ContextAction::ReadBatch(typed(action, fields)?),
        "read_history" => ContextAction::ReadHistory(typed(action, fields)?),
        "snapshot" => ContextAction::Snapshot(typed(action, fields)?),
        "list_snapshots" => ContextAction::ListSnapshots(typed(action, fields)?),
        "restore" => ContextAction::Restore(typed(action, fields)?),
        other => return Err(unknown_action(other, &CONTEXT_ACTIONS)),
    })
}

fn manage_tasks(input: Value) -> Result<BoardAction, Refusal> {
    let (action, fields) = split_action(input, &BOARD_ACTIONS)?;
    Ok(match action {
        "add" => BoardAction::Add(board_add(fields)?),
        "list" => BoardAction::List(typed(action, fields)?),
        "get" => BoardAction::Get(typed(action, fields)?),
        "update" => BoardAction::Update(Box::new(typed(action, fields)?)),
        "claim" => BoardAction::Claim(typed(action, fields)?),
        "complete" => BoardAction::Complete(typed(action, fields)?),
        "complete_all" => BoardAction::CompleteAll(typed(action, fields)?),
        "clear" => BoardAction::Clear(typed(action, fields)?),
        other => return Err(unknown_action(other, &BOARD_ACTIONS)),
    })
}

/// `add` takes the fields of one task, or a list of such.
fn board_add(fields: Map<String, Value>) -> Result<BoardAdd, Refusal> {
    if fields.get("tasks").is_some_and(|tasks| !tasks.is_null()) {
        check_entries("add", "subject", &fields)?;
        return typed("add", fields);
    }
    let fields = fields.into_iter().filter(|(name, _)| name != "tasks").collect();
    Ok(BoardAdd { tasks: vec![typed("add", fields)?] })
}

/// `run` takes the fields of `spawn` and one more.
fn run(mut fields: Map<String, Value>) -> Result<Run, Refusal> {
    let own: Map<String, Value> = fields.remove_entry("background").into_iter().collect();
    let background: Background = typed("run", own)?;
    let entry = typed("run", fields)?;
    Ok(Run { entry, background: background.background })
}

/// `map` takes the fields of `spawn` and two more.
fn map(mut fields: Map<String, Value>) -> Result<MapOver, Refusal> {
    let own = ["inputs", "background"].iter().filter_map(|name| fields.remove_entry(*name)).collect();
    let MapInputs { inputs, background } = typed("map", own)?;
    Ok(MapOver { entry: typed("map", fields)?, inputs, background: background.unwrap_or(false) })
}

fn many(action: &str, fields: Map<String, Value>) -> Result<Many, Refusal> {
    check_entries(action, "agent and task", &fields)?;
    typed(action, fields)
}

/// An entry given as a list would be read as the fields in their order.
fn check_entries(action: &str, required: &str, fields: &Map<String, Value>) -> Result<(), Refusal> {
    let entries = fields.get("tasks").and_then(Value::as_array);
    match entries.and_then(|entries| entries.iter().position(|entry| !entry.is_object())) {
        Some(place) => {
            Err(Refusal::invalid(format!("{action}: a task must be an object with {required} at `tasks[{place}]`")))
        }
        None => Ok(()),
    }
}

fn split_action<'a>(input: Value, known: &[&'a str]) -> Result<(&'a str, Map<String, Value>), Refusal> {
    let Value::Object(mut fields) = input else {
        return Err(Refusal::invalid("the input must be a JSON object").hint("for example {\"action\": \"…\"}"));
    };
    let action = match fields.remove("action") {
        None | Some(Value::Null) => {
            return Err(Refusal::invalid("missing field `action`").hint(format!("one of {}", known.join(", "))));
        }
        Some(Value::String(action)) => action,
        Some(_) => return Err(Refusal::invalid("field `action` must be a string")),
    };
    match known.iter().find(|name| **name == action) {
        Some(name) => Ok((name, fields)),
        None => Err(unknown_action(&action, known)),
    }
}

fn unknown_action(action: &str, known: &[&str]) -> Refusal {
    let shown: String = action.chars().take(80).collect();
    let refusal = Refusal::new(Code::InvalidAction, format!("unknown action `{shown}`"));
    match nearest(action, known.iter(), |name| name).first() {
        Some(near) => refusal.hint(format!("did you mean `{near}`? The actions are {}", known.join(", "))),
        None => refusal.hint(format!("the actions are {}", known.join(", "))),
    }
}

/// Reads an action's fields, with the path of what is wrong in the message.
fn typed<T: DeserializeOwned>(action: &str, fields: Map<String, Value>) -> Result<T, Refusal> {
    serde_path_to_error::deserialize(Value::Object(fields)).map_err(|error| {
        let path = error.path().to_string();
        let what = error.into_inner().to_string();
        let place = if path == "." { String::new() } else { format!(" at `{}`", shorten(&path)) };
        Refusal::invalid(format!("{action}: {}{place}", shorten(&what)))
    })
}

/// An error message quotes what was sent; a megabyte of it helps nobody.
fn shorten(text: &str) -> String {
    const SHOWN_CHARS_MAX: usize = 400;
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refusal(tool: &str, input: Value) -> (Code, String) {
        let refusal = tool_request(tool, input).unwrap_err();
        (refusal.code, refusal.message)
    }

    #[test]
    fn unknown_and_foreign_fields_are_refused_by_name() {
        let cases = [
            (json!({"action": "status", "colour": 1}), "colour"),
            (json!({"action": "status", "agent": "a"}), "agent"),
            (json!({"action": "spawn", "agent": "a", "task": "t", "offset": 1}), "offset"),
            (json!({"action": "run", "agent": "a", "task": "t", "mode": "all"}), "mode"),
            (json!({"action": "parallel", "tasks": [{"agent": "a", "task": "t", "x": 1}]}), "x"),
        ];
        for (input, field) in cases {
            let (code, message) = refusal("subagent", input);
            assert_eq!(code, Code::InvalidRequest);
            assert!(message.contains(&format!("`{field}`")), "{message}");
        }
    }

    #[test]
    fn wrong_types_name_their_place() {
        let (code, message) =
            refusal("subagent", json!({"action": "parallel", "tasks": [{"agent": "a", "task": "t"}, {"agent": 5}]}));
        assert_eq!(code, Code::InvalidRequest);
        assert!(message.contains("tasks[1].agent"), "{message}");
        let (code, message) =
            refusal("subagent", json!({"action": "chain", "tasks": [{"agent": "a", "task": "t"}, ["a", "t"]]}));
        assert_eq!(code, Code::InvalidRequest);
        assert!(message.contains("tasks[1]"), "{message}");
        assert_eq!(refusal("subagent", json!([])).0, Code::InvalidRequest);
        assert_eq!(refusal("subagent", json!({})).0, Code::InvalidRequest);
        assert_eq!(refusal("subagent", json!({"action": 1})).0, Code::InvalidRequest);
        assert_eq!(refusal("subagent", json!({"action": "spwan"})).0, Code::InvalidAction);
        assert_eq!(refusal("nothing", json!({"action": "spawn"})).0, Code::InvalidRequest);
        assert_eq!(refusal("shared_context", json!({"action": "spawn"})).0, Code::InvalidAction);
    }

    #[test]
    fn null_means_absent() {
        let request = tool_request("subagent", json!({"action": "status", "task_id": null})).unwrap();
        assert_eq!(request, ToolRequest::Subagent(SubagentAction::Status(Default::default())));
        let request =
            tool_request("subagent", json!({"action": "run", "agent": "a", "task": "t", "background": null})).unwrap();
        let ToolRequest::Subagent(SubagentAction::Run(run)) = request else { panic!("{request:?}") };
        assert_eq!(run.background, None);
    }

    #[test]
    fn a_megabyte_in_a_message_is_shortened() {
        let long = "x".repeat(1 << 20);
        let (_, message) = refusal("subagent", json!({"action": "status", long.as_str(): 1}));
        assert!(message.len() < 1000, "{}", message.len());
    }
}
