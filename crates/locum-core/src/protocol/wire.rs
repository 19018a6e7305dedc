//! The protocol between two processes of locum: a request as the call of a tool, and the answer to it read back. The
//! other direction of [`parse`](super::parse).

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::agent::tool_names;
use crate::protocol::{BoardAction, ContextAction, Response, SubagentAction, ToolRequest};

/// The tool that a request is made to, and the input with which it is called.
pub fn call_of(request: &ToolRequest) -> Result<(&'static str, Value), serde_json::Error> {
    Ok(match request {
        ToolRequest::Subagent(SubagentAction::Run(run)) => {
            // It is written as its entry with one field more.
            let mut fields = fields_of(serde_json::to_value(&run.entry)?);
            if let Some(background) = run.background {
                fields.insert("background".to_owned(), Value::Bool(background));
            }
            (tool_names::SUBAGENT, input("run", fields))
        }
        ToolRequest::Subagent(SubagentAction::Map(map)) => {
            let mut fields = fields_of(serde_json::to_value(&map.entry)?);
            fields.insert("inputs".to_owned(), serde_json::to_value(&map.inputs)?);
            if map.background {
                fields.insert("background".to_owned(), Value::Bool(true));
            }
            (tool_names::SUBAGENT, input("map", fields))
        }
        ToolRequest::Subagent(action) => (tool_names::SUBAGENT, tagged(serde_json::to_value(action)?)),
        ToolRequest::SharedContext(action) => (tool_names::SHARED_CONTEXT, tagged(serde_json::to_value(action)?)),
        ToolRequest::ManageTasks(action) => (tool_names::MANAGE_TASKS, tagged(serde_json::to_value(action)?)),
    })
}

/// From an action as one field of its own name to one object with its name in it.
fn tagged(action: Value) -> Value {
    match fields_of(action).into_iter().next() {
        Some((name, fields)) => input(&name, fields_of(fields)),
        None => Value::Null,
    }
}

fn input(action: &str, mut fields: Map<String, Value>) -> Value {
    fields.insert("action".to_owned(), Value::String(action.to_owned()));
    Value::Object(fields)
}

fn fields_of(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// Reads the answer to a request.
pub fn answer_to(request: &ToolRequest, answer: Value) -> Result<Response, serde_json::Error> {
    match request {
        ToolRequest::Subagent(action) => to_subagent(action, answer),
        ToolRequest::SharedContext(action) => to_shared_context(action, answer),
        ToolRequest::ManageTasks(action) => to_manage_tasks(action, answer),
    }
}

fn to_subagent(action: &SubagentAction, answer: Value) -> Result<Response, serde_json::Error> {
    Ok(match action {
        SubagentAction::ListAgents(_) => Response::Agents(read(answer)?),
        SubagentAction::Define(_) => Response::Defined(read(answer)?),
        SubagentAction::Spawn(_) => Response::Spawned(read(answer)?),
        SubagentAction::Status(status) if status.task_id.is_some() => Response::Status(read(answer)?),
        SubagentAction::Status(_) => Response::Tasks(read(answer)?),
        SubagentAction::Wait(_) => Response::Waited(read(answer)?),
        SubagentAction::Collect(_) => Response::Collected(read(answer)?),
        SubagentAction::Result(_) => Response::ResultPage(read(answer)?),
        SubagentAction::Cancel(_) => Response::Cancelled(read(answer)?),
        // Whether it is waited for may be the agent's to say.
        SubagentAction::Run(_)
        | SubagentAction::Parallel(_)
        | SubagentAction::Chain(_)
        | SubagentAction::Race(_)
        | SubagentAction::Map(_)
            if answer.get("task_ids").is_some() =>
        {
            Response::Background(read(answer)?)
        }
        SubagentAction::Run(_) => Response::Collected(read(answer)?),
        SubagentAction::Parallel(_) | SubagentAction::Map(_) => Response::Parallel(read(answer)?),
        SubagentAction::Race(_) => Response::Race(read(answer)?),
        SubagentAction::Chain(_) => Response::Chain(read(answer)?),
    })
}

fn to_shared_context(action: &ContextAction, answer: Value) -> Result<Response, serde_json::Error> {
    Ok(match action {
        ContextAction::ListKeys(_) => Response::Keys(read(answer)?),
        ContextAction::Read(_) => Response::Entry(read(answer)?),
        ContextAction::Write(_) => Response::Written(read(answer)?),
        ContextAction::Delete(_) => Response::Deleted(read(answer)?),
        ContextAction::ReadBatch(_) => Response::Batch(read(answer)?),
        ContextAction::ReadHistory(_) => Response::History(read(answer)?),
        ContextAction::Snapshot(_) => Response::Snapshot(read(answer)?),
        ContextAction::ListSnapshots(_) => Response::Snapshots(read(answer)?),
        ContextAction::Restore(_) => Response::Restored(read(answer)?),
    })
}

fn to_manage_tasks(action: &BoardAction, answer: Value) -> Result<Response, serde_json::Error> {
    Ok(match action {
        BoardAction::Add(_) => Response::BoardAdded(read(answer)?),
        BoardAction::List(_) => Response::BoardTasks(read(answer)?),
        BoardAction::Get(_) | BoardAction::Update(_) | BoardAction::Claim(_) | BoardAction::Complete(_) => {
            Response::BoardTask(read(answer)?)
        }
        BoardAction::CompleteAll(_) => Response::BoardCompleted(read(answer)?),
        BoardAction::Clear(_) => Response::BoardArchived(read(answer)?),
    })
}

fn read<T: DeserializeOwned>(answer: Value) -> Result<T, serde_json::Error> {
    serde_json::from_value(answer)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::protocol::parse;

    #[test]
    fn a_call_that_is_written_and_read_again_is_the_same() {
        for (tool, input) in [
            ("subagent", json!({"action": "list_agents"})),
            ("subagent", json!({"action": "define", "name": "a", "tools": ["ls"], "max_turns": 3})),
            ("subagent", json!({"action": "spawn", "agent": "a", "task": "t", "depends_on": ["t_01"], "queue": true})),
            ("subagent", json!({"action": "status"})),
            ("subagent", json!({"action": "status", "task_id": "t_01"})),
            ("subagent", json!({"action": "wait", "task_ids": ["t_01"], "mode": "any", "timeout_ms": 5})),
            ("subagent", json!({"action": "collect", "task_id": "t_01"})),
            ("subagent", json!({"action": "result", "task_id": "t_01", "offset": 3})),
            ("subagent", json!({"action": "cancel", "task_id": "t_01"})),
            ("subagent", json!({"action": "run", "agent": "a", "task": "t", "timeout": 9})),
            ("subagent", json!({"action": "run", "agent": "a", "task": "t", "background": true})),
            ("subagent", json!({"action": "parallel", "tasks": [{"agent": "a", "task": "t"}]})),
            ("subagent", json!({"action": "chain", "tasks": [{"agent": "a", "task": "t"}], "background": true})),
            ("subagent", json!({"action": "race", "tasks": [{"agent": "a", "task": "t"}]})),
            ("subagent", json!({"action": "map", "agent": "a", "task": "{input}", "inputs": ["i"]})),
            ("shared_context", json!({"action": "list_keys"})),
            ("shared_context", json!({"action": "write", "key": "k", "value": "v", "ttl_seconds": 3})),
            ("shared_context", json!({"action": "read_batch", "keys": ["k"]})),
            ("shared_context", json!({"action": "restore", "label": "l"})),
            ("manage_tasks", json!({"action": "list"})),
            ("manage_tasks", json!({"action": "add", "tasks": [{"subject": "s", "metadata": {"k": [1]}}]})),
            ("manage_tasks", json!({"action": "claim", "id": "b_01"})),
            ("manage_tasks", json!({"action": "update", "id": "b_01", "comment": "c"})),
            ("manage_tasks", json!({"action": "complete_all"})),
        ] {
            let request = parse::tool_request(tool, input.clone()).unwrap();
            assert_eq!(call_of(&request).unwrap(), (tool, input));
        }
    }

    #[test]
    fn an_answer_is_read_as_what_was_asked_for() {
        let status = |input| parse::tool_request("subagent", input).unwrap();
        let tasks = answer_to(&status(json!({"action": "status"})), json!({"tasks": []})).unwrap();
        assert!(matches!(tasks, Response::Tasks(_)));
        let background = status(json!({"action": "run", "agent": "a", "task": "t", "background": true}));
        let ids = answer_to(&background, json!({"task_ids": ["t_01"]})).unwrap();
        assert!(matches!(ids, Response::Background(_)));
        assert!(answer_to(&background, json!({"tasks": []})).is_err());
    }
}
