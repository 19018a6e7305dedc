//! What happens to tasks, as it happens: every entry of their logs once it is durable, and the text of replies as it
//! arrives.
//!
//! Run it with `cargo run -p locum --example watch_progress`. The model is scripted: no key, always the same.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::Arc;

use locum::models::scripted::{Say, Scripted};
use locum::progress::News;
use locum::task::TaskEvent;
use locum::{AgentName, AgentSpec, Desk};
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;

/// One line for one event, in the words of an application.
fn line(event: &TaskEvent) -> String {
    match event {
        TaskEvent::Accepted { .. } => "accepted".to_owned(),
        TaskEvent::Released { .. } => "may start".to_owned(),
        TaskEvent::WorkspaceReady { workspace } => format!("works in {}", workspace.path),
        TaskEvent::WorkspaceClosed { worktree } => format!("left {} changed files", worktree.files_changed),
        TaskEvent::TurnStarted { turn, .. } => format!("turn {turn} begins"),
        TaskEvent::TurnDeclined { turn, shortage } => format!("turn {turn} is not paid for: {shortage}"),
        TaskEvent::BudgetNearing { scarce } => format!("most of {} is used", scarce.resource.amount(scarce.limit)),
        TaskEvent::Replied { reply, .. } => format!("replied, with {} tool calls", reply.tool_calls.len()),
        TaskEvent::ModelFailed { failure, retry_in_ms, .. } => {
            let next = if retry_in_ms.is_some() { "tries again" } else { "gives up" };
            format!("the model failed ({}), {next}", failure.message)
        }
        TaskEvent::ModelReplaced { to, .. } => format!("{to} answers instead"),
        TaskEvent::ToolStarted { name, .. } => format!("{name} begins"),
        TaskEvent::ToolEnded { output, .. } => format!("a tool ended: {:?}", output.end),
        TaskEvent::WorkerLost { why } => format!("its worker was lost: {why}"),
        TaskEvent::ProcessesEnded { processes } => format!("ended {} processes", processes.len()),
        TaskEvent::Stopped { cause, .. } => format!("stopped: {cause:?}"),
        TaskEvent::Ended { outcome } => format!("ended: {}", outcome.status().as_str()),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let think = Say::calls([("think", json!({"thought": "Where would a newcomer begin?"}))]);
    let model = Scripted::new().agent("writer", [think, Say::text("Begin with the glossary.")]);
    let mut writer = AgentSpec::new(AgentName::parse("writer")?, "Explains things", "You explain things.");
    writer.tools = Some(vec!["think".to_owned()]);
    let desk = Desk::builder().standard_tools().agent(writer).model("script", Arc::new(model)).build()?;

    // Listening begins before the task, so nothing of it is missed.
    let mut news = desk.progress();
    desk.call("subagent", json!({"action": "spawn", "agent": "writer", "task": "Where to begin?"})).await?;
    loop {
        let progress = match news.recv().await {
            Ok(progress) => progress,
            // Too slow a reader loses the oldest news; `Desk::log_of` has what it missed.
            Err(RecvError::Lagged(lost)) => {
                println!("(lost {lost})");
                continue;
            }
            Err(RecvError::Closed) => break,
        };
        let who = format!("@{} {}", progress.agent, progress.task_id);
        match &progress.news {
            News::Text { text, .. } => println!("{who} says {text:?}"),
            News::Event(record) => {
                println!("{who} #{} {}", record.seq, line(&record.event));
                if matches!(record.event, TaskEvent::Ended { .. }) {
                    break;
                }
            }
        }
    }
    println!("{} entries in the log", desk.log_of("t_01").await?.len());
    desk.close().await?;
    Ok(())
}
