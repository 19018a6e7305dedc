//! `locum spawn`: start a task in a process of its own and return at once.

use locum::Executor;
use locum::protocol::{Response, SubagentAction};
use locum::task::Status;

use super::foreground;
use crate::args::{self, Global};
use crate::entrance::Entrance;
use crate::output::{Exit, Output};

pub(super) async fn spawn(args: args::Spawn, global: &Global, output: Output) -> anyhow::Result<Exit> {
    let door = Entrance::open(global, output, Executor::Detached)?;
    let exit = ask(args, &door, output).await;
    door.leave().await;
    exit
}

async fn ask(args: args::Spawn, door: &Entrance, output: Output) -> anyhow::Result<Exit> {
    let task = foreground::task_text(&args.task)?;
    let mut entry = foreground::entry(door, args.agent, task, args.options);
    entry.depends_on = Some(args.depends_on).filter(|ids| !ids.is_empty());
    entry.queue = args.queue.then_some(true);
    entry.idempotency_key = args.idempotency_key;
    match door.ask(SubagentAction::Spawn(entry)).await {
        Err(refusal) => Ok(output.refuse(&refusal)),
        Ok(answer) if output.is_json() => {
            output.json(&answer);
            Ok(Exit::Done)
        }
        Ok(Response::Spawned(task)) => {
            for warning in &task.warnings {
                output.warn(warning);
            }
            output.answer(&task.task_id.to_string());
            let id = task.task_id;
            let state = match (task.status, task.position) {
                (Status::Queued, Some(position)) => format!("is queued at place {position}"),
                (status, _) => format!("is {}", status.as_str()),
            };
            output.note(&format!("{id} {state}; `locum wait {id}`, then `locum collect {id}`"));
            Ok(Exit::Done)
        }
        Ok(other) => {
            output.json(&other);
            Ok(Exit::Done)
        }
    }
}
