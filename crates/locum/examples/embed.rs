//! Delegation embedded in an agent of your own: a small loop around a model, which is given locum's two tools beside
//! whatever else it has, and whose calls are handed to the desk.
//!
//! Run it with `cargo run -p locum --example embed`. Both models are scripted, so it needs no key and always says the
//! same; put a real one in their place with `.access(…)` and `.session_model("openai:…", "…")`, and your own in the loop.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::Arc;

use locum::models::scripted::{Say, Scripted};
use locum::models::{Model, Prefix};
use locum::protocol::schema::native_tools;
use locum::transcript::{Message, Prompt, Repeat, ToolCall, ToolOutput, ToolSpec, ToolUse};
use locum::{AgentName, AgentSpec, Desk};
use serde_json::json;

/// A loop over something that may never come to an end has a bound.
const TURNS_MAX: u32 = 10;

/// What the two models will say. The orchestrator mistypes a name first: it reads the refusal and does better.
fn script() -> Scripted {
    let ask = |agent: &str| {
        Say::calls([(
            "subagent",
            json!({"action": "run", "agent": agent, "task": "Why did throughput drop on Feb 18?"}),
        )])
    };
    Scripted::new()
        .agent("orchestrator", [ask("researchr"), ask("researcher"), Say::text("The pool was cut; I will revert it.")])
        .agent("researcher", [Say::text("The connection pool was cut from 200 to 20.")])
}

/// Hands one call of the orchestrator's model to whoever can carry it out. What went wrong is an answer as well: the
/// model reads the code, the message and the hint of a refusal, and acts on them.
async fn carry_out(desk: &Desk, call: ToolCall) -> Result<ToolOutput, serde_json::Error> {
    println!("call    {} {}", call.name, call.input);
    Ok(match call.name.as_str() {
        "subagent" | "shared_context" => match desk.call(&call.name, call.input).await {
            Ok(response) => ToolOutput::ok(serde_json::to_string(&response)?),
            Err(refusal) => ToolOutput::failed(serde_json::to_string(&refusal)?),
        },
        // The application's own tools would be here.
        other => ToolOutput::failed(format!("there is no tool called {other}")),
    })
}

/// The agent loop of the application: ask, carry out, ask again, until the model has nothing more to call.
async fn orchestrate(desk: &Desk, model: &dyn Model, question: &str) -> Result<String, Box<dyn Error>> {
    let agent = AgentName::parse("orchestrator")?;
    let system = format!("You find causes.\n\n{}", desk.prompt().await?);
    let tools: Arc<[ToolSpec]> = native_tools()
        .into_iter()
        .map(|tool| ToolSpec {
            name: tool.name,
            description: tool.description,
            input_schema: tool.input_schema,
            repeat: Repeat::Unsafe,
        })
        .collect();
    let mut messages = vec![Message::User(question.to_owned())];
    let mut prefix = Prefix::default();
    for call in 0..TURNS_MAX {
        let prompt = Prompt {
            agent: &agent,
            task: question,
            model: "",
            system: &system,
            messages: &messages,
            notice: None,
            tools: &tools,
            tool_use: ToolUse::Allowed,
            max_output_tokens: None,
            temperature: None,
            effort: None,
            call,
        };
        let reply = model.respond(&prompt, &mut prefix, &mut |_| {}).await?;
        if reply.tool_calls.is_empty() {
            return Ok(reply.text);
        }
        let calls = reply.tool_calls.clone();
        messages.push(Message::Assistant(reply));
        for call in calls {
            let (call_id, name) = (call.id.clone(), call.name.clone());
            let output = carry_out(desk, call).await?;
            println!("answer  {}", shown(&output)?);
            messages.push(Message::Tool { call_id, name, output });
        }
    }
    Err("the orchestrator did not come to an end".into())
}

/// What of an answer matters here.
fn shown(output: &ToolOutput) -> Result<String, serde_json::Error> {
    let answer: serde_json::Value = serde_json::from_str(&output.text)?;
    Ok(match answer["error"].as_str() {
        Some(code) => format!("{code}, {}", answer["hint"]),
        None => format!("{}: {}", answer["status"], answer["result"]),
    })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let script = Arc::new(script());
    let researcher = AgentSpec::new(
        AgentName::parse("researcher")?,
        "Investigates technical issues",
        "You investigate technical issues and name their cause.",
    );
    let desk = Desk::builder().agent(researcher).model("script", Arc::clone(&script) as Arc<dyn Model>).build()?;
    let answer = orchestrate(&desk, script.as_ref(), "Throughput dropped 30 %. What will you do?").await?;
    println!("said    {answer}");
    desk.close().await?;
    Ok(())
}
