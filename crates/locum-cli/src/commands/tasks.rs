//! `locum status`, `wait`, `collect` and `cancel`: looking at tasks and ending them.

use std::time::{Duration, Instant};

use locum::Executor;
use locum::protocol::request::{Cancel, Collect, Status, Wait, WaitMode};
use locum::protocol::response::{Cancelled, TaskStatus, Waited};
use locum::protocol::{Refusal, Response, SubagentAction};

use super::run;
use crate::args::{Global, StatusArgs, TaskArgs, WaitArgs};
use crate::entrance::Entrance;
use crate::output::{Exit, Output, Table, counted};

/// How long one wait of the engine lasts; a person's lasts until the end, or as long as was said.
const WAIT_SLICE: Duration = Duration::from_secs(5);

fn open(global: &Global, output: Output) -> anyhow::Result<Entrance> {
    Entrance::open(global, output, Executor::InProcess)
}

pub(super) async fn status(args: StatusArgs, global: &Global, output: Output) -> anyhow::Result<Exit> {
    let door = open(global, output)?;
    door.look_after_orphans().await;
    let answer = door.ask(SubagentAction::Status(Status { task_id: args.task_id })).await;
    Ok(match answer {
        Err(refusal) => output.refuse(&refusal),
        Ok(answer) if output.is_json() => {
            output.json(&answer);
            Exit::Done
        }
        Ok(Response::Status(task)) => {
            output.answer(&details(&task));
            Exit::Done
        }
        Ok(Response::Tasks(tasks)) if tasks.tasks.is_empty() => {
            output.note("no tasks in this session; `locum spawn AGENT TASK` starts one");
            Exit::Done
        }
        Ok(Response::Tasks(tasks)) => {
            output.answer(&table(&tasks.tasks).render(output.width()));
            Exit::Done
        }
        Ok(other) => {
            output.json(&other);
            Exit::Done
        }
    })
}

pub(super) async fn wait(args: WaitArgs, global: &Global, output: Output) -> anyhow::Result<Exit> {
    let door = open(global, output)?;
    door.look_after_orphans().await;
    let until = args.timeout.and_then(|seconds| Instant::now().checked_add(Duration::from_secs(seconds)));
    let waited = loop {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let slice = left.map_or(WAIT_SLICE, |left| left.min(WAIT_SLICE));
        match wait_once(&door, &args, slice).await {
            Err(refusal) => return Ok(output.refuse(&refusal)),
            // A worker may be lost while we wait: between two slices its tasks are looked after.
            Ok(waited) if waited.timed_out && left.is_none_or(|left| left > slice) => door.look_after_orphans().await,
            Ok(waited) => break waited,
        }
    };
    if output.is_json() {
        output.json(&waited);
    } else {
        output.answer(&table(&waited.tasks).render(output.width()));
    }
    Ok(if waited.timed_out { Exit::TimedOut } else { Exit::Done })
}

async fn wait_once(door: &Entrance, args: &WaitArgs, slice: Duration) -> Result<Waited, Refusal> {
    let wait = Wait {
        task_ids: Some(args.task_ids.clone()).filter(|ids| !ids.is_empty()),
        mode: Some(if args.any { WaitMode::Any } else { WaitMode::All }),
        timeout_ms: Some(u64::try_from(slice.as_millis()).unwrap_or(u64::MAX)),
    };
    match door.ask(SubagentAction::Wait(wait)).await? {
        Response::Waited(waited) => Ok(waited),
        other => Err(Refusal::internal(format!("an unexpected answer to wait: {other:?}"))),
    }
}

pub(super) async fn collect(args: TaskArgs, global: &Global, output: Output) -> anyhow::Result<Exit> {
    let door = open(global, output)?;
    door.look_after_orphans().await;
    let answer = door.ask(SubagentAction::Collect(Collect { task_id: args.task_id })).await;
    Ok(match answer {
        Err(refusal) => output.refuse(&refusal),
        Ok(Response::Collected(task)) => {
            if output.is_json() {
                output.json(&task);
            } else {
                run::show(&door, &task).await;
            }
            run::exit_of(&task)
        }
        Ok(other) => {
            output.json(&other);
            Exit::Done
        }
    })
}

pub(super) async fn cancel(args: TaskArgs, global: &Global, output: Output) -> anyhow::Result<Exit> {
    let door = open(global, output)?;
    let answer = door.ask(SubagentAction::Cancel(Cancel { task_id: args.task_id })).await;
    Ok(match answer {
        Err(refusal) => output.refuse(&refusal),
        Ok(answer) if output.is_json() => {
            output.json(&answer);
            Exit::Done
        }
        Ok(Response::Cancelled(task)) => {
            output.answer(&cancelled(&task));
            Exit::Done
        }
        Ok(other) => {
            output.json(&other);
            Exit::Done
        }
    })
}

fn cancelled(task: &Cancelled) -> String {
    let mut text = format!("{} is {}", task.task_id, task.status.as_str());
    for below in task.receipt.tasks.iter().skip(1) {
        text.push_str(&format!("\n{} is {}", below.task_id, below.status.as_str()));
    }
    for process in &task.receipt.processes {
        let state = if process.ended { "has ended" } else { "IS STILL RUNNING" };
        text.push_str(&format!("\nprocess {} {state}", process.pid));
    }
    if !task.receipt.confirmed {
        text.push_str("\nnot everything has ended yet; `locum status` shows what is left");
    }
    if let Some(partial) = &task.partial_result {
        text.push_str(&format!("\n\n{partial}"));
    }
    text
}

fn table(tasks: &[TaskStatus]) -> Table {
    let mut table = Table::new(&["TASK", "AGENT", "STATUS", "TURNS", "TIME", "WHAT"]);
    for task in tasks {
        let what = task.error.clone().or_else(|| task.activity.clone()).unwrap_or_default();
        let label = task.label.as_ref().map(|label| format!("{label}: ")).unwrap_or_default();
        table.row([
            task.task_id.to_string(),
            format!("@{}", task.agent),
            standing(task),
            task.turns_used.to_string(),
            format!("{:.1}s", Duration::from_millis(task.usage.duration_ms).as_secs_f64()),
            format!("{label}{what}"),
        ]);
    }
    table
}

fn standing(task: &TaskStatus) -> String {
    let status = task.status.as_str();
    match (&task.position, &task.waiting_for) {
        (Some(position), _) => format!("{status} #{position}"),
        (None, Some(ids)) => {
            let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
            format!("{status} for {}", ids.join(", "))
        }
        (None, None) => status.to_owned(),
    }
}

fn details(task: &TaskStatus) -> String {
    let mut lines = vec![format!("{} @{}: {}", task.task_id, task.agent, standing(task))];
    let usage = &task.usage;
    lines.push(format!("created  {}", task.created_at));
    lines.extend(task.completed_at.map(|at| format!("ended    {at}")));
    lines.extend(task.label.as_ref().map(|label| format!("label    {label}")));
    lines.extend(task.activity.as_ref().map(|activity| format!("doing    {activity}")));
    lines.push(format!(
        "used     {}, {}, {} + {} tokens, {:.1} s",
        counted(usage.turns.into(), "turn"),
        counted(usage.tool_calls.into(), "tool call"),
        usage.input_tokens,
        usage.output_tokens,
        Duration::from_millis(usage.duration_ms).as_secs_f64()
    ));
    lines.extend(task.error.as_ref().map(|error| format!("error    {error}")));
    lines.join("\n")
}
