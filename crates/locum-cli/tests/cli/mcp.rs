//! The MCP door, through the official client.

use rmcp::model::{CallToolRequestParams, CallToolResult, Tool};
use rmcp::service::RunningService;
use rmcp::transport::TokioChildProcess;
use rmcp::{RoleClient, ServiceExt as _};
use serde_json::{Value, json};

use crate::home::Home;
use crate::settle::settle;

/// A connection to `locum mcp`.
pub(crate) struct Client {
    service: RunningService<RoleClient, ()>,
}

/// A tool's answer.
pub(crate) struct Answer {
    pub(crate) value: Value,
    pub(crate) is_error: bool,
}

impl Client {
    pub(crate) async fn connect(home: &Home, model: &str) -> Self {
        Self::connect_to(home, model, "native").await
    }

    /// A connection to the tools of a face.
    pub(crate) async fn connect_to(home: &Home, model: &str, face: &str) -> Self {
        let command = home.command(&["mcp", "--model", model, "--session", "test", "--face", face]);
        let process = TokioChildProcess::new(tokio::process::Command::from(command)).unwrap();
        Self { service: ().serve(process).await.unwrap() }
    }

    /// The tools that it offers.
    pub(crate) async fn tools(&self) -> Vec<Value> {
        let tools = self.service.list_all_tools().await.unwrap();
        let shown = |tool: &Tool| json!({"name": tool.name, "description": tool.description, "inputSchema": *tool.input_schema});
        tools.iter().map(shown).collect()
    }

    /// What a call of a tool is answered.
    pub(crate) async fn result(&self, tool: &str, input: &Value) -> CallToolResult {
        let arguments = input.as_object().unwrap().clone();
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        self.service.call_tool(params).await.unwrap()
    }

    /// Calls a tool. Its structured answer must be its text.
    pub(crate) async fn call(&self, tool: &str, input: &Value) -> Answer {
        let result = self.result(tool, input).await;
        let [content, links @ ..] = result.content.as_slice() else { panic!("there is no answer") };
        assert!(links.iter().all(|link| link.as_text().is_none()), "one text is the answer: {links:?}");
        let text: Value = serde_json::from_str(&content.as_text().unwrap().text).unwrap();
        let value = result.structured_content.unwrap();
        assert_eq!(value, text);
        Answer { value, is_error: result.is_error.unwrap_or(false) }
    }

    /// Leaves: the server sees the end of its input.
    pub(crate) async fn leave(self) {
        self.service.cancel().await.unwrap();
    }
}

fn script(home: &Home) -> String {
    home.script(&json!({
        "slow": [
            {"text": "So far.", "tool_calls": [{"name": "ls"}], "usage": {}, "delay_ms": 300},
            {"text": "Done: {{task}}", "usage": {}},
        ],
        "*": [{"text": "Done: {{task}}", "usage": {}}],
    }))
}

#[tokio::test]
async fn the_server_says_who_it_is_and_lists_its_tools() {
    let home = Home::new();
    let client = Client::connect(&home, &script(&home)).await;
    let server = serde_json::to_value(client.service.peer_info().unwrap().as_ref()).unwrap();
    let about = server.to_string();
    assert!(about.contains(r#""name":"locum""#) && about.contains(env!("CARGO_PKG_VERSION")), "{about}");
    let prompt = home.locum(&["prompt", "--session", "test"]).stdout;
    assert!(about.contains(&json!(prompt.trim_end()).to_string()[1..60]), "{about}");
    assert_eq!(json!(client.tools().await), json!(locum::protocol::schema::native_tools()));
    client.leave().await;
}

/// What a text costs a model, by two tokenizers of real ones; the dearer counts.
fn tokens(value: &Value) -> usize {
    let text = value.to_string();
    let counts = [tiktoken_rs::o200k_base_singleton(), tiktoken_rs::cl100k_base_singleton()];
    counts.map(|tokenizer| tokenizer.encode_ordinary(&text).len()).into_iter().max().unwrap()
}

#[tokio::test]
async fn the_tools_cost_a_model_little() {
    let home = Home::new();
    let client = Client::connect(&home, &script(&home)).await;
    let cost = tokens(&json!({"tools": client.tools().await}));
    assert!(cost <= 1600, "names, descriptions and input schemas cost {cost} tokens");
    // What hosts keep to themselves: shapes of answers, and hints. No model is sent them.
    let listed = client.service.list_all_tools().await.unwrap();
    let further: Vec<Value> = listed.iter().map(|tool| json!([tool.output_schema, tool.annotations])).collect();
    assert!(listed.iter().all(|tool| tool.output_schema.is_some() && tool.annotations.is_some()));
    let cost = tokens(&json!(further));
    assert!(cost <= 1000, "output schemas and annotations cost {cost} tokens");
    client.leave().await;
}

#[tokio::test]
async fn answers_are_structured_and_refusals_are_errors() {
    let home = Home::new();
    let client = Client::connect(&home, &script(&home)).await;
    let cases = [
        (
            "subagent",
            json!({"action": "define", "name": "a", "description": "d", "system_prompt": "p"}),
            json!({"defined": "a", "description": "d", "version": 1}),
        ),
        (
            "shared_context",
            json!({"action": "write", "key": "k", "value": "v"}),
            json!({"key": "k", "version": 1, "written_by": "orchestrator", "written_at": "TIME"}),
        ),
        (
            "shared_context",
            json!({"action": "read", "key": "k"}),
            json!({"key": "k", "value": "v", "version": 1, "written_by": "orchestrator", "written_at": "TIME"}),
        ),
        ("subagent", json!({"action": "status"}), json!({"tasks": []})),
    ];
    for (tool, input, expected) in cases {
        let answer = client.call(tool, &input).await;
        assert!(!answer.is_error, "{input}");
        assert_eq!(settle(answer.value, &home.root()), expected, "{input}");
    }
    let run = client.call("subagent", &json!({"action": "run", "agent": "a", "task": "t"})).await;
    assert_eq!((&run.value["result"], run.is_error), (&json!("Done: t"), false));
    let refusals = [
        ("subagent", json!({"action": "status", "task_id": "t_09"}), "TASK_NOT_FOUND"),
        ("subagent", json!({}), "INVALID_REQUEST"),
        ("shared_context", json!({"action": "read", "key": "none"}), "KEY_NOT_FOUND"),
        ("nothing", json!({"action": "status"}), "INVALID_REQUEST"),
    ];
    for (tool, input, code) in refusals {
        let answer = client.call(tool, &input).await;
        assert!(answer.is_error, "{input}");
        assert_eq!(answer.value["error"], code, "{input}");
        assert!(answer.value["message"].is_string(), "{input}");
    }
    client.leave().await;
}

#[tokio::test]
async fn calls_are_answered_while_others_wait() {
    let home = Home::new();
    let model = home.script(&json!({"*": [{"error": {"kind": "hang"}}]}));
    let client = Client::connect(&home, &model).await;
    let run = json!({"action": "run", "agent": "writer", "task": "t"});
    let cancel = async {
        let status = json!({"action": "status", "task_id": "t_01"});
        while client.call("subagent", &status).await.value["turns_used"] != 1 {}
        client.call("subagent", &json!({"action": "cancel", "task_id": "t_01"})).await
    };
    let (ran, cancelled) = tokio::join!(client.call("subagent", &run), cancel);
    assert_eq!((&ran.value["status"], &cancelled.value["status"]), (&json!("cancelled"), &json!("cancelled")));
    client.leave().await;
}

#[tokio::test]
async fn a_task_goes_on_when_the_client_leaves() {
    let home = Home::new();
    let client = Client::connect(&home, &script(&home)).await;
    client
        .call(
            "subagent",
            &json!({"action": "define", "name": "slow", "description": "d", "system_prompt": "p", "tools": ["ls"]}),
        )
        .await;
    let spawned = client.call("subagent", &json!({"action": "spawn", "agent": "slow", "task": "t"})).await;
    assert_eq!(spawned.value["status"], "running");
    client.leave().await;
    let waited = home.locum(&["wait", "t_01", "--session", "test"]);
    assert_eq!(waited.code, Some(0), "{waited:?}");
    // The next connection to the session finds it, and the agent that was defined.
    let client = Client::connect(&home, &script(&home)).await;
    let collected = client.call("subagent", &json!({"action": "collect", "task_id": "t_01"})).await;
    assert_eq!((&collected.value["status"], &collected.value["result"]), (&json!("completed"), &json!("Done: t")));
    let again = client.call("subagent", &json!({"action": "run", "agent": "slow", "task": "u"})).await;
    assert_eq!((&again.value["task_id"], &again.value["result"]), (&json!("t_02"), &json!("Done: u")));
    client.leave().await;
}

#[test]
fn a_client_that_says_nothing_sensible_ends_the_server_quietly() {
    let home = Home::new();
    for input in
        ["", "\n", "nonsense\n", "{}\n", "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"nothing\"}\n", "[]\n"]
    {
        let ran = home.locum_reading(&["mcp", "--model", "offline"], input.as_bytes());
        assert!(ran.code.is_some(), "{input}: {ran:?}");
        assert!(!ran.stderr.contains("panicked"), "{input}: {ran:?}");
    }
}
