//! Tasks as the protocol had them in 2025-11-25, where the client says that it wants one. The SDK knows only the later
//! ones, so these requests are given names of their own before it reads them, and answered in JSON.

use locum::Uid;
use locum::desk::ShownErrand;
use locum::faces::Face;
use locum::protocol::request::Wait;
use locum::protocol::{Code, SubagentAction};
use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CustomRequest, CustomResult, JsonRpcMessage, ListToolsResult, ProtocolVersion,
    ServerJsonRpcMessage, ServerResult, TaskStatus,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Started, cancel, failed, find, may_be_task, result, shown, start, status_of};
use crate::mcp::server::Place;
use crate::mcp::tools;

/// What stands before the names of these requests.
pub(in crate::mcp) const PREFIX: &str = "locum/2025-11-25/";

/// The field by which a request says which later version it is of.
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// The notification that a task stands otherwise than before.
pub(in crate::mcp) const STATUS: &str = "notifications/tasks/status";

/// Tasks of one page.
const TASKS: usize = 20;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Named {
    task_id: String,
}

#[derive(Default, Deserialize)]
struct Listed {
    cursor: Option<String>,
}

/// A message under the name by which it is answered here, if it is of this era and about tasks.
pub(in crate::mcp) fn renamed(mut message: Value) -> Value {
    let params = &message["params"];
    let method = message["method"].as_str().unwrap_or_default();
    let is_ours = match method {
        "tools/call" => params["task"].is_object(),
        "tools/list" | "tasks/get" | "tasks/result" | "tasks/list" | "tasks/cancel" => true,
        _ => false,
    };
    if is_ours && params["_meta"][VERSION].is_null() && message.get("id").is_some() {
        message["method"] = json!(format!("{PREFIX}{method}"));
    }
    message
}

/// The answer to `initialize`, with what the SDK does not know of this era; everything else as it is.
pub(in crate::mcp) fn completed(message: ServerJsonRpcMessage) -> ServerJsonRpcMessage {
    let JsonRpcMessage::Response(mut response) = message else { return message };
    if let ServerResult::InitializeResult(result) = &response.result
        && result.protocol_version == ProtocolVersion::V_2025_11_25
        && let Ok(mut value) = serde_json::to_value(result)
    {
        value["capabilities"]["tasks"] = json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}});
        response.result = ServerResult::CustomResult(CustomResult::new(value));
    }
    JsonRpcMessage::Response(response)
}

/// Answers a request that was renamed.
pub(in crate::mcp) async fn answer(place: &Place, method: &str, request: &CustomRequest) -> Result<Value, ErrorData> {
    match method {
        "tools/list" => Ok(tools_with_tasks(place)),
        "tools/call" => call(place, params(request)?).await,
        "tasks/get" => get(place, &params::<Named>(request)?.task_id).await,
        "tasks/result" => whole(place, &params::<Named>(request)?.task_id).await,
        "tasks/list" if request.params.is_none() => list(place, Listed::default()).await,
        "tasks/list" => list(place, params(request)?).await,
        _ => stop(place, &params::<Named>(request)?.task_id).await,
    }
}

fn params<T: for<'de> Deserialize<'de>>(request: &CustomRequest) -> Result<T, ErrorData> {
    match request.params_as::<T>() {
        Ok(Some(params)) => Ok(params),
        Ok(None) => Err(ErrorData::invalid_params("the params are missing", None)),
        Err(error) => Err(ErrorData::invalid_params(format!("the params do not fit: {error}"), None)),
    }
}

fn tools_with_tasks(place: &Place) -> Value {
    let tools = tools::list(place.face, &place.desk.muster().roster);
    let mut listed = json!(ListToolsResult { result_type: None, ..ListToolsResult::with_all_items(tools) });
    if place.face == Face::Native {
        for tool in listed["tools"].as_array_mut().into_iter().flatten().filter(|tool| tool["name"] == "subagent") {
            tool["execution"] = json!({"taskSupport": "optional"});
        }
    }
    listed
}

async fn call(place: &Place, request: CallToolRequestParams) -> Result<Value, ErrorData> {
    if !may_be_task(place.face, &request) {
        return Err(ErrorData::invalid_params(
            "only what waits for agents is carried out as a task: subagent's run, parallel, chain, race and map",
            None,
        ));
    }
    match start(place, request).await? {
        Started::Task(task) => Ok(json!({"task": described(place, &task).await?})),
        // Nothing was started, so there is no task to point at.
        Started::Refused(refused) => {
            let message = refused.structured_content.as_ref().and_then(|refusal| refusal["message"].as_str());
            Err(ErrorData::invalid_params(message.unwrap_or("refused").to_owned(), refused.structured_content.clone()))
        }
    }
}

async fn get(place: &Place, name: &str) -> Result<Value, ErrorData> {
    described(place, &find(&place.desk, name).await?).await
}

/// What is told of a task that has ended; nothing as long as it has not.
pub(in crate::mcp) async fn ended(place: &Place, uid: &Uid) -> Result<Option<Value>, ErrorData> {
    let errand = find(&place.desk, uid.as_str()).await?;
    match status_of(&errand).is_terminal() {
        true => described(place, &errand).await.map(Some),
        false => Ok(None),
    }
}

/// The result of a task, once there is one.
async fn whole(place: &Place, name: &str) -> Result<Value, ErrorData> {
    let mut errand = find(&place.desk, name).await?;
    let desk = place.desk.in_session(errand.first.session.clone());
    while status_of(&errand) == TaskStatus::Working {
        let open = errand.tasks.iter().filter(|task| !task.status.status.is_final());
        let ids = Some(open.map(|task| task.status.task_id.to_string()).collect());
        match desk.handle(SubagentAction::Wait(Wait { task_ids: ids, ..Wait::default() })).await {
            Ok(_) => {}
            // Somebody took it in the meantime: it has ended.
            Err(refusal) if refusal.code == Code::TaskNotFound => {}
            Err(refusal) => return Err(failed(refusal)),
        }
        errand = find(&place.desk, name).await?;
    }
    let mut value = json!(result(&place.desk, &errand).await?);
    if let Some(fields) = value.as_object_mut() {
        fields.remove("resultType");
        fields.insert("_meta".to_owned(), json!({"io.modelcontextprotocol/related-task": {"taskId": name}}));
    }
    Ok(value)
}

async fn list(place: &Place, Listed { cursor }: Listed) -> Result<Value, ErrorData> {
    let unknown = |_| ErrorData::invalid_params("there is no such cursor", None);
    let before = cursor.map(|cursor| Uid::parse(&cursor).map_err(unknown)).transpose()?;
    let session = place.desk.session().id.clone();
    let page = place.desk.task_page(Some(session), before, TASKS).await.map_err(failed)?;
    let mut tasks = Vec::new();
    for task in &page {
        tasks.push(get(place, task.uid.as_str()).await?);
    }
    let mut listed = json!({ "tasks": tasks });
    if let Some(last) = page.last().filter(|_| page.len() == TASKS) {
        listed["nextCursor"] = json!(last.uid);
    }
    Ok(listed)
}

async fn stop(place: &Place, name: &str) -> Result<Value, ErrorData> {
    if status_of(&find(&place.desk, name).await?).is_terminal() {
        return Err(ErrorData::invalid_params("the task has ended already", None));
    }
    described(place, &cancel(&place.desk, name).await?).await
}

/// A task in the words of this era.
async fn described(place: &Place, errand: &ShownErrand) -> Result<Value, ErrorData> {
    let mut value = json!(shown(&place.desk, errand).await?);
    if let Some(fields) = value.as_object_mut() {
        for (later, earlier) in [("ttlMs", "ttl"), ("pollIntervalMs", "pollInterval")] {
            if let Some(field) = fields.remove(later) {
                fields.insert(earlier.to_owned(), field);
            }
        }
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requests_of_that_era_about_tasks_are_renamed() {
        let modern = json!({"_meta": {VERSION: "2026-07-28"}, "taskId": "x"});
        for (message, expected) in [
            (json!({"id": 1, "method": "tools/call", "params": {"task": {}}}), "locum/2025-11-25/tools/call"),
            (json!({"id": 1, "method": "tools/call", "params": {"task": 1}}), "tools/call"),
            (json!({"id": 1, "method": "tools/call", "params": {}}), "tools/call"),
            (json!({"id": 1, "method": "tasks/get", "params": {"taskId": "x"}}), "locum/2025-11-25/tasks/get"),
            (json!({"id": 1, "method": "tasks/list"}), "locum/2025-11-25/tasks/list"),
            (json!({"id": 1, "method": "tools/list"}), "locum/2025-11-25/tools/list"),
            (json!({"id": 1, "method": "tasks/get", "params": modern}), "tasks/get"),
            (json!({"method": "tasks/get"}), "tasks/get"),
            (json!({"id": 1, "method": "ping"}), "ping"),
        ] {
            assert_eq!(renamed(message)["method"], expected);
        }
        assert_eq!(renamed(json!([])), json!([]));
        assert_eq!(renamed(json!(1)), json!(1));
    }
}
