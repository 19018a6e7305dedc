//! An agent that is defined on the way, two tasks in the background, and everything that looks after them: `define`,
//! `spawn`, `wait`, `collect`, `result` and `cancel`.
//!
//! Run it with `cargo run -p locum --example define_and_spawn`. The model is scripted: no key, always the same.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::Arc;

use locum::Desk;
use locum::models::scripted::{Say, Scripted};
use serde_json::{Value, json};

/// Calls the tool `subagent` and prints what of the answer matters here.
async fn ask(desk: &Desk, input: Value, shown: &[&str]) -> Result<Value, Box<dyn Error>> {
    println!("{}", input["action"].as_str().unwrap_or_default());
    let answer = match desk.call("subagent", input).await {
        Ok(response) => serde_json::to_value(response)?,
        Err(refusal) => serde_json::to_value(refusal)?,
    };
    for field in shown {
        println!("    {field}: {}", answer.pointer(&format!("/{}", field.replace('.', "/"))).unwrap_or(&Value::Null));
    }
    Ok(answer)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // The reviewer answers at once; the archivist never does.
    let model = Scripted::new()
        .agent("sql-reviewer", [Say::text("The migration locks the table: add the index concurrently.")])
        .agent("archivist", [Say::hang()]);
    let desk = Desk::builder().model("script", Arc::new(model)).build()?;

    for (name, description) in [("sql-reviewer", "Reviews SQL migrations"), ("archivist", "Reads old tickets")] {
        let prompt = format!("You are the {name}.");
        let define = json!({
            "action": "define", "name": name, "description": description, "system_prompt": prompt, "tools": [],
        });
        ask(&desk, define, &["defined", "version"]).await?;
    }

    // Both return at once; the tasks go on behind them.
    let review = json!({"action": "spawn", "agent": "sql-reviewer", "task": "Review 0042_index.sql."});
    let review = ask(&desk, review, &["task_id", "status"]).await?["task_id"].clone();
    let search = json!({"action": "spawn", "agent": "archivist", "task": "Did this fail before?"});
    let search = ask(&desk, search, &["task_id", "status"]).await?["task_id"].clone();

    ask(&desk, json!({"action": "wait", "task_ids": [review]}), &["timed_out", "tasks.0.status"]).await?;
    ask(&desk, json!({"action": "collect", "task_id": review}), &["status", "result", "turns_used"]).await?;
    // Collecting takes a task off the list, but its text stays.
    ask(&desk, json!({"action": "collect", "task_id": review}), &["error"]).await?;
    ask(&desk, json!({"action": "result", "task_id": review}), &["text", "total_chars"]).await?;

    ask(&desk, json!({"action": "collect", "task_id": search}), &["error"]).await?;
    ask(&desk, json!({"action": "cancel", "task_id": search}), &["status", "receipt.confirmed"]).await?;

    println!("{} tasks left for others", desk.close().await?);
    Ok(())
}
