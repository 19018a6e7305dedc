//! `locum parallel`: ask several agents at once.

use locum::Executor;
use locum::protocol::request::Many;
use locum::protocol::response::{Parallel, ParallelResult};
use locum::protocol::{FaceDefaults, Response, SubagentAction};

use super::foreground::{self, Asked};
use super::run;
use crate::args::{self, Global};
use crate::entrance::Entrance;
use crate::output::{Exit, Output};

pub(super) async fn parallel(args: args::Parallel, global: &Global, output: Output) -> anyhow::Result<Exit> {
    let door = Entrance::open(global, output, Executor::InProcess)?;
    let tasks = foreground::entries(&door, args.entries)?;
    let action = SubagentAction::Parallel(Many { tasks, background: None });
    let face = FaceDefaults { concurrency: Some(args.concurrency), ..FaceDefaults::person() };
    let exit = present(&door, foreground::ask(&door, action, face).await).await;
    door.leave().await;
    Ok(exit)
}

/// Shows the results of many tasks; success is that all of them completed.
pub(super) async fn present(door: &Entrance, asked: Asked) -> Exit {
    let output = door.output;
    let answer = match asked {
        Asked::Interrupted => return run::interrupted(output),
        Asked::Answered(answer) => *answer,
    };
    match answer {
        Err(refusal) => output.refuse(&refusal),
        Ok(Response::Parallel(answer)) => {
            if output.is_json() {
                output.json(&answer);
            } else {
                show(door, &answer).await;
            }
            let all = answer.completed == answer.results.len();
            if all { Exit::Done } else { Exit::Failed }
        }
        Ok(other) => {
            output.json(&other);
            Exit::Done
        }
    }
}

async fn show(door: &Entrance, answer: &Parallel) {
    let output = door.output;
    for result in &answer.results {
        match result {
            ParallelResult::Collected(task) => {
                output.answer(&format!("## @{} {}: {}", task.agent, task.task_id, task.status.as_str()));
                run::show(door, task).await;
                output.answer("");
            }
            ParallelResult::Refused(entry) => {
                output.answer(&format!("## @{}: refused", entry.agent));
                output.refuse(&entry.refusal);
                output.answer("");
            }
        }
    }
    let Parallel { completed, failed, stalled, results } = answer;
    output.note(&format!("{completed} of {} completed, {failed} failed, {stalled} stalled", results.len()));
}
