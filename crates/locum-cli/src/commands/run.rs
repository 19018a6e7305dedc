//! `locum run`: ask one agent and wait for its answer.

use locum::Executor;
use locum::protocol::request::Run;
use locum::protocol::response::Collected;
use locum::protocol::{FaceDefaults, Refusal, Response, SubagentAction};
use locum::task::plan::Receipt;
use locum::task::{Reason, Status, Worktree};

use super::foreground::{self, Asked};
use super::result::whole_text;
use crate::args::{self, Global};
use crate::entrance::Entrance;
use crate::output::{Exit, Output, counted};

pub(super) async fn run(args: args::Run, global: &Global, output: Output) -> anyhow::Result<Exit> {
    let door = Entrance::open(global, output, Executor::InProcess)?;
    let task = foreground::task_text(&args.task)?;
    let entry = foreground::entry(&door, args.agent, task, args.options);
    // What neither flag says is the agent's to say.
    let background = (args.background || args.wait).then_some(args.background);
    let action = SubagentAction::Run(Run { entry, background });
    let exit = match foreground::ask(&door, action, FaceDefaults::person()).await {
        Asked::Interrupted => interrupted(output),
        Asked::Answered(answer) => {
            let is_left = matches!(*answer, Ok(Response::Background(_)));
            let exit = present(&door, *answer).await;
            if is_left {
                door.hand_on().await?;
            }
            exit
        }
    };
    door.leave().await;
    Ok(exit)
}

pub(super) fn interrupted(output: Output) -> Exit {
    output.note("interrupted: the tasks were cancelled; `locum status` lists them");
    Exit::Interrupted
}

async fn present(door: &Entrance, answer: Result<Response, Refusal>) -> Exit {
    match answer {
        Err(refusal) => door.output.refuse(&refusal),
        Ok(Response::Collected(task)) if door.output.is_json() => {
            door.output.json(&task);
            exit_of(&task)
        }
        Ok(Response::Collected(task)) => {
            show(door, &task).await;
            exit_of(&task)
        }
        Ok(Response::Background(left)) if !door.output.is_json() => {
            for id in &left.task_ids {
                door.output.answer(&id.to_string());
                door.output
                    .note(&format!("{id} works in the background; `locum wait {id}`, then `locum collect {id}`"));
            }
            Exit::Done
        }
        Ok(other) => {
            door.output.json(&other);
            Exit::Done
        }
    }
}

/// Shows a finished task to a person: the whole answer on standard output, the rest beside it.
pub(super) async fn show(door: &Entrance, task: &Collected) {
    let output = door.output;
    let id = task.task_id.to_string();
    match whole_text(door, &id).await {
        Ok(text) if !text.trim().is_empty() => output.answer(&text),
        Ok(_) => {}
        Err(refusal) => {
            output.refuse(&refusal);
        }
    }
    if let Some(error) = &task.error {
        output.complain(error, None);
    }
    for warning in &task.warnings {
        output.warn(warning);
    }
    if let Some(left_out) = left_out(&task.receipt) {
        output.note(&left_out);
    }
    if let Some(left) = task.worktree.as_ref().and_then(|worktree| left_in(worktree, &id)) {
        output.note(&left);
    }
    output.note(&footer(task));
}

/// Where the work of a task is that had a worktree, and what to do with it.
fn left_in(worktree: &Worktree, id: &str) -> Option<String> {
    let changed = counted(worktree.files_changed, "file");
    (!worktree.removed && worktree.files_changed > 0).then(|| {
        format!(
            "{changed} changed on the branch {}: `locum worktree diff {id}` shows it, `locum worktree apply {id}` \
             takes it",
            worktree.branch
        )
    })
}

/// What the agent asked for and did not get, on one line; what else differs is among the warnings.
pub(super) fn left_out(receipt: &Receipt) -> Option<String> {
    let dropped = receipt.tools.dropped.iter().chain(&receipt.not_honoured);
    let all: Vec<String> = dropped.map(|dropped| format!("{} ({})", dropped.name, dropped.why)).collect();
    (!all.is_empty()).then(|| format!("left out: {}", all.join(", ")))
}

/// What a task was and what it used, on one line.
pub(super) fn footer(task: &Collected) -> String {
    let usage = &task.usage;
    let cost = usage.cost_usd.map_or(String::new(), |cost| format!(" · US${cost:.4}"));
    format!(
        "@{} {} · {} · {} · {}, {} · {}+{} tokens{cost} · {:.1} s",
        task.agent,
        task.task_id,
        task.status.as_str(),
        task.receipt.model.effective,
        counted(usage.turns.into(), "turn"),
        counted(usage.tool_calls.into(), "tool call"),
        usage.input_tokens,
        usage.output_tokens,
        std::time::Duration::from_millis(usage.duration_ms).as_secs_f64(),
    )
}

pub(super) fn exit_of(task: &Collected) -> Exit {
    match (task.status, task.reason) {
        (Status::Completed, _) => Exit::Done,
        (_, Some(Reason::Timeout)) => Exit::TimedOut,
        _ => Exit::Failed,
    }
}
