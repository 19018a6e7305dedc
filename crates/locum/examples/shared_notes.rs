//! Two agents that share context: a researcher reads the problem from it, looks things up with a tool of the
//! application and writes down what it found; a remediator, defined on the way, goes on from there. Neither sees the
//! other's conversation, and every note says who wrote it.
//!
//! Run it with `cargo run -p locum --example shared_notes`. The model is scripted: no key, always the same.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::sync::Arc;

use locum::models::scripted::{Say, Scripted};
use locum::tools::{Tool, ToolFuture, ToolScope};
use locum::transcript::{Repeat, ToolOutput, ToolSpec};
use locum::{AgentName, AgentSpec, Desk};
use serde_json::{Value, json};

/// A tool of the application: what a specialist can look up.
struct QueryMetrics {
    spec: ToolSpec,
}

impl QueryMetrics {
    fn new() -> Self {
        let input_schema = json!({
            "type": "object",
            "properties": {"metric": {"type": "string"}},
            "required": ["metric"],
        });
        let description = "Reads a metric of the production system.".to_owned();
        Self { spec: ToolSpec { name: "query_metrics".to_owned(), description, input_schema, repeat: Repeat::Safe } }
    }
}

impl Tool for QueryMetrics {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, input: Value, _scope: &'a ToolScope) -> ToolFuture<'a> {
        Box::pin(async move {
            Ok(match input["metric"].as_str() {
                Some("pool_size") => ToolOutput::ok("200 until Feb 17, 20 since Feb 18"),
                Some(other) => ToolOutput::failed(format!("there is no metric called {other}")),
                None => ToolOutput::failed("`metric` must be a text"),
            })
        })
    }
}

/// What the specialists will say: a stand-in for a model.
fn model() -> Scripted {
    let look = Say::calls([
        ("shared_context", json!({"action": "read", "key": "problem_summary"})),
        ("query_metrics", json!({"metric": "pool_size"})),
    ]);
    let note = Say::calls([(
        "shared_context",
        json!({"action": "write", "key": "findings_summary", "value": "Pool size fell from 200 to 20 on Feb 18."}),
    )]);
    let read_findings = Say::calls([("shared_context", json!({"action": "read", "key": "findings_summary"}))]);
    Scripted::new()
        .agent("researcher", [look, note, Say::text("Root cause: the connection pool was cut from 200 to 20.")])
        .agent("remediator", [read_findings, Say::text("Reverted in staging; throughput is back.")])
}

/// Makes a call and prints it with what of its answer matters here.
async fn say(desk: &Desk, tool: &str, input: Value, shown: &[&str]) -> Result<Value, Box<dyn std::error::Error>> {
    let about = ["agent", "name", "key", "task_id"].iter().find_map(|field| input[field].as_str()).unwrap_or_default();
    println!("{}", format!("{tool} {} {about}", input["action"].as_str().unwrap_or_default()).trim_end());
    let answer = serde_json::to_value(desk.call(tool, input).await?)?;
    for field in shown {
        match &answer[field] {
            Value::String(text) => println!("    {field}: {text}"),
            other => println!("    {field}: {other}"),
        }
    }
    Ok(answer)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut researcher = AgentSpec::new(
        AgentName::parse("researcher")?,
        "Investigates technical issues with metrics",
        "You investigate technical issues. Read the problem from shared context and write your findings there.",
    );
    researcher.tools = Some(vec!["query_metrics".to_owned(), "shared_context".to_owned()]);
    let desk = Desk::builder()
        .standard_tools()
        .tool(Arc::new(QueryMetrics::new()))
        .agent(researcher)
        .model("script", Arc::new(model()))
        .build()?;

    let problem = "Throughput dropped 30% after the config change on Feb 18.";
    let write = json!({"action": "write", "key": "problem_summary", "value": problem});
    say(&desk, "shared_context", write, &["version", "written_by"]).await?;
    let task = "Investigate the problem in problem_summary. Write findings to findings_summary.";
    let spawn = json!({"action": "spawn", "agent": "researcher", "task": task});
    let id = say(&desk, "subagent", spawn, &["task_id", "status"]).await?["task_id"].clone();
    say(&desk, "subagent", json!({"action": "wait", "task_ids": [id]}), &["timed_out"]).await?;
    say(&desk, "subagent", json!({"action": "collect", "task_id": id}), &["status", "result", "turns_used"]).await?;
    let read = json!({"action": "read", "key": "findings_summary"});
    say(&desk, "shared_context", read, &["value", "written_by"]).await?;

    let remediator = json!({
        "action": "define",
        "name": "remediator",
        "description": "Executes approved fixes",
        "system_prompt": "You execute the approved fix and verify it.",
        "tools": ["shared_context"],
        "max_turns": 15,
    });
    say(&desk, "subagent", remediator, &["defined"]).await?;
    let fix = json!({"action": "run", "agent": "remediator", "task": "Revert the pool size in staging."});
    say(&desk, "subagent", fix, &["status", "result", "turns_used"]).await?;
    Ok(())
}
