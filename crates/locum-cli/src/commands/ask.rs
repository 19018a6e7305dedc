//! `locum ask`: give a goal to an orchestrator, watch it delegate, and see who did what for how much.

use locum::protocol::request::Run;
use locum::protocol::response::{Collected, TaskStatus};
use locum::protocol::{FaceDefaults, Response, SubagentAction};
use locum::{Desk, Executor, ORCHESTRATOR};
use serde::Serialize;

use super::foreground::{self, Asked};
use super::result::whole_text;
use super::run;
use crate::args::{self, Global};
use crate::door::{Door, Orchestrator};
use crate::entrance::Entrance;
use crate::output::voice::Voice;
use crate::output::{Exit, Output, Table};

/// The answer for machines: the orchestrator's task, and everybody's.
#[derive(Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    collected: &'a Collected,
    /// The orchestrator and whom it asked.
    family: &'a [TaskStatus],
}

pub(super) async fn ask(args: args::Ask, global: &Global, output: Output) -> anyhow::Result<Exit> {
    let door = Door::open(global, output, Orchestrator::Lead, Executor::InProcess)?;
    let desk = door.opened.desk.clone();
    let door = Entrance::here_at(door);
    let goal = foreground::task_text(&args.goal)?;
    if let Err(refusal) = desk.define_orchestrator().await {
        return Ok(output.refuse(&refusal));
    }
    let entry = foreground::entry(&door, ORCHESTRATOR.to_owned(), goal, args.options);
    let action = SubagentAction::Run(Run { entry, background: Some(false) });
    let mut voice = output.is_spoken().then(|| Voice::new(output, ORCHESTRATOR));
    match foreground::ask_aloud(&door, action, FaceDefaults::person(), voice.as_mut()).await {
        Asked::Interrupted => Ok(run::interrupted(output)),
        Asked::Answered(answer) => match *answer {
            Err(refusal) => Ok(output.refuse(&refusal)),
            Ok(Response::Collected(task)) => Ok(present(&door, &desk, &task, voice).await),
            Ok(other) => {
                output.json(&other);
                Ok(Exit::Done)
            }
        },
    }
}

async fn present(door: &Entrance, desk: &Desk, task: &Collected, voice: Option<Voice>) -> Exit {
    let output = door.output;
    let family = match desk.family(&task.task_id.to_string()).await {
        Ok(family) => family,
        Err(refusal) => return output.refuse(&refusal),
    };
    if output.is_json() {
        output.json(&Answer { collected: task, family: &family });
        return run::exit_of(task);
    }
    show_answer(door, task, voice).await;
    if let Some(error) = &task.error {
        output.complain(error, None);
    }
    for warning in &task.warnings {
        output.warn(warning);
    }
    output.note(table(&family).render(output.width()).trim_end());
    run::exit_of(task)
}

/// The answer, unless the person has just read it.
async fn show_answer(door: &Entrance, task: &Collected, voice: Option<Voice>) {
    match whole_text(door, &task.task_id.to_string()).await {
        Ok(text) => {
            let was_said = voice.is_some_and(|mut voice| voice.finish(&text));
            if !was_said && !text.trim().is_empty() {
                door.output.answer(&text);
            }
        }
        Err(refusal) => {
            door.output.refuse(&refusal);
        }
    }
}

/// Who did what for how much.
fn table(family: &[TaskStatus]) -> Table {
    let mut table = Table::new(&["WHO", "TASK", "STATUS", "TURNS", "TOOLS", "TOKENS", "COST", "TIME"]);
    for task in family {
        let usage = &task.usage;
        table.row([
            format!("@{}", task.agent),
            task.task_id.to_string(),
            task.status.as_str().to_owned(),
            usage.turns.to_string(),
            usage.tool_calls.to_string(),
            format!("{}+{}", usage.input_tokens, usage.output_tokens),
            usage.cost_usd.map_or_else(|| "-".to_owned(), |cost| format!("US${cost:.4}")),
            format!("{:.1} s", std::time::Duration::from_millis(usage.duration_ms).as_secs_f64()),
        ]);
    }
    table
}
