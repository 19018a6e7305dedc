//! `locum logs`: what happened in a task, for people; with `--json` the log itself.

use locum::Executor;
use locum::task::{Record, TaskEvent};
use locum::transcript::ToolEnd;

use super::run::left_out;
use crate::args::{Global, TaskArgs};
use crate::entrance::Entrance;
use crate::output::{Exit, Output};

/// Characters of a text that are shown on one line.
const SHOWN_CHARS: usize = 160;

pub(super) async fn logs(args: TaskArgs, global: &Global, output: Output) -> anyhow::Result<Exit> {
    let door = Entrance::open(global, output, Executor::InProcess)?;
    Ok(match door.log_of(&args.task_id).await {
        Err(refusal) => output.refuse(&refusal),
        Ok(records) => {
            for record in &records {
                if output.is_json() {
                    output.json(record);
                } else {
                    output.answer(&line(record));
                }
            }
            Exit::Done
        }
    })
}

fn line(record: &Record) -> String {
    format!("{:>4}  {}  {}", record.seq, record.at, describe(&record.event))
}

/// What happened, on one line.
pub(crate) fn describe(event: &TaskEvent) -> String {
    match event {
        TaskEvent::Accepted { plan, parked } => {
            let tools: Vec<&str> = plan.grants.tools.iter().map(|tool| tool.name.as_str()).collect();
            let parked = parked.map_or("", |_| ", waiting to start");
            let left_out = left_out(&plan.receipt).map(|left_out| format!("; {left_out}")).unwrap_or_default();
            format!(
                "accepted for @{} with {}, {} turns, tools: {}{parked}{left_out}",
                plan.agent.name,
                plan.model,
                plan.bounds.max_turns,
                tools.join(" ")
            )
        }
        TaskEvent::Released { inputs } => match inputs.len() {
            0 => "released".to_owned(),
            count => format!("released with {count} results of other tasks"),
        },
        TaskEvent::TurnStarted { turn, closing: Some(_), .. } => {
            format!("turn {turn}: asking the model for its last answer, as the budget ends")
        }
        TaskEvent::WorkspaceReady { workspace } => {
            format!("works in {} on {} from {}", workspace.path, workspace.branch, workspace.base)
        }
        TaskEvent::WorkspaceClosed { worktree } => match &worktree.problem {
            Some(problem) => format!("left its worktree uncommitted: {}", shorten(problem)),
            None => format!("left {} changed files on {}", worktree.files_changed, worktree.branch),
        },
        TaskEvent::TurnStarted { turn, .. } => format!("turn {turn}: asking the model"),
        TaskEvent::TurnDeclined { turn, shortage } => format!("turn {turn}: not asked, {shortage}"),
        TaskEvent::BudgetNearing { scarce } => {
            format!("four fifths of the budget are used ({})", scarce.resource.amount(scarce.limit))
        }
        TaskEvent::Replied { turn, reply } => {
            let calls: Vec<&str> = reply.tool_calls.iter().map(|call| call.name.as_str()).collect();
            let calls = if calls.is_empty() { String::new() } else { format!(" [calls {}]", calls.join(", ")) };
            format!("turn {turn}: {}{calls}", shorten(&reply.text))
        }
        TaskEvent::ModelFailed { turn, failure, retry_in_ms, .. } => {
            let again = retry_in_ms.map_or("giving up".to_owned(), |wait| format!("again in {wait} ms"));
            format!("turn {turn}: the model failed: {}; {again}", shorten(&failure.message))
        }
        TaskEvent::ModelReplaced { turn, from, to, why } => {
            format!("turn {turn}: {to} takes the place of {from}: {}", shorten(why))
        }
        TaskEvent::ToolStarted { turn, name, .. } => format!("turn {turn}: {name} started"),
        TaskEvent::ToolEnded { turn, output, duration_ms, .. } => {
            let end = match output.end {
                ToolEnd::Ok => "",
                ToolEnd::Failed => "failed: ",
                ToolEnd::Denied => "denied: ",
                ToolEnd::Unknown => "unknown: ",
            };
            format!("turn {turn}: {end}{} ({duration_ms} ms)", shorten(&output.text))
        }
        TaskEvent::WorkerLost { why } => format!("its worker process was lost: {why}"),
        TaskEvent::ProcessesEnded { processes } => {
            let left = processes.iter().filter(|process| !process.ended).count();
            format!("{} of its processes ended, {left} left", processes.len() - left)
        }
        TaskEvent::Stopped { cause, .. } => format!("stopped: {cause:?}"),
        TaskEvent::Ended { outcome } => match outcome.error() {
            Some(error) => format!("ended: {}: {error}", outcome.status().as_str()),
            None => format!("ended: {}", outcome.status().as_str()),
        },
    }
}

fn shorten(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match text.char_indices().nth(SHOWN_CHARS) {
        None => text,
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
