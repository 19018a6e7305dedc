//! `locum logs`: what happened in a task, for people; with `--json` the log itself.

use std::collections::BTreeMap;

use locum::Executor;
use locum::task::TaskEvent;
use locum::task::event::StopCause;
use locum::transcript::{ToolCall, ToolEnd};

use super::run::left_out;
use crate::args::{Global, TaskArgs};
use crate::entrance::Entrance;
use crate::output::{Exit, Output, counted};

/// Characters of a text that are shown on one line.
const SHOWN_CHARS: usize = 160;

pub(super) async fn logs(args: TaskArgs, global: &Global, output: Output) -> anyhow::Result<Exit> {
    let door = Entrance::open(global, output, Executor::InProcess)?;
    Ok(match door.log_of(&args.task_id).await {
        Err(refusal) => output.refuse(&refusal),
        Ok(records) => {
            let mut teller = Teller::default();
            for record in &records {
                if output.is_json() {
                    output.json(record);
                } else {
                    let (seq, at, what) = (record.seq, record.at, teller.tell(&record.event));
                    output.answer(&format!("{seq:>4}  {at}  {what}"));
                }
            }
            Exit::Done
        }
    })
}

/// Tells a log entry by entry; who knows what was called also knows what answered.
#[derive(Debug, Clone, Default)]
pub(crate) struct Teller {
    /// The calls of the last reply, by id.
    calls: BTreeMap<String, ToolCall>,
}

impl Teller {
    /// Takes up an entry, and says on one line what happened.
    pub(crate) fn tell(&mut self, event: &TaskEvent) -> String {
        self.take_up(event);
        describe(event, |call_id| self.call(call_id).map_or(call_id, |call| &call.name))
    }

    /// Takes up an entry.
    pub(crate) fn take_up(&mut self, event: &TaskEvent) {
        if let TaskEvent::Replied { reply, .. } = event {
            self.calls = reply.tool_calls.iter().map(|call| (call.id.clone(), call.clone())).collect();
        }
    }

    /// A call of the last reply.
    pub(crate) fn call(&self, id: &str) -> Option<&ToolCall> {
        self.calls.get(id)
    }
}

/// What happened, on one line.
fn describe<'a>(event: &'a TaskEvent, tool: impl Fn(&'a str) -> &'a str) -> String {
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
            count => format!("released with {} of other tasks", counted(count as u64, "result")),
        },
        TaskEvent::TurnStarted { turn, closing: Some(_), .. } => {
            format!("turn {turn}: asking the model for its last answer, as the budget ends")
        }
        TaskEvent::WorkspaceReady { workspace } => {
            format!("works in {} on {} from {}", workspace.path, workspace.branch, workspace.base)
        }
        TaskEvent::WorkspaceClosed { worktree } => match &worktree.problem {
            Some(problem) => format!("left its worktree uncommitted: {}", shorten(problem)),
            None => format!("left {} on {}", counted(worktree.files_changed, "changed file"), worktree.branch),
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
        TaskEvent::ToolEnded { turn, call_id, output, duration_ms, .. } => {
            let end = match output.end {
                ToolEnd::Ok => "answered",
                ToolEnd::Failed => "failed",
                ToolEnd::Denied => "was denied",
                ToolEnd::Unknown => "ended nobody knows how",
            };
            format!("turn {turn}: {} {end}: {} ({duration_ms} ms)", tool(call_id), shorten(&output.text))
        }
        TaskEvent::WorkerLost { why } => format!("its worker process was lost: {why}"),
        TaskEvent::ProcessesEnded { processes } => {
            let left = processes.iter().filter(|process| !process.ended).count();
            format!("{} of its processes ended, {left} left", processes.len() - left)
        }
        TaskEvent::Stopped { cause, .. } => format!("stopped: {}", why(cause)),
        TaskEvent::Ended { outcome } => match outcome.error() {
            Some(error) => format!("ended: {}: {error}", outcome.status().as_str()),
            None => format!("ended: {}", outcome.status().as_str()),
        },
    }
}

/// Why a task was stopped, in words.
fn why(cause: &StopCause) -> String {
    match cause {
        StopCause::Cancelled => "somebody asked for it".to_owned(),
        StopCause::TimedOut { after_s } => format!("its time of {after_s} s was over"),
        StopCause::Stalled { after_s, during } => format!("no sign of life for {after_s} s ({})", during.as_str()),
        StopCause::ToolLayer { details, .. }
        | StopCause::Isolation { details }
        | StopCause::Interrupted { details }
        | StopCause::Internal { details } => shorten(details),
    }
}

fn shorten(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match text.char_indices().nth(SHOWN_CHARS) {
        None => text,
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
