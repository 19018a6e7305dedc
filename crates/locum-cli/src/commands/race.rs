//! `locum race`: ask several agents at once and take the first answer.

use locum::Executor;
use locum::protocol::request::Many;
use locum::protocol::{FaceDefaults, Response, SubagentAction};

use super::foreground::{self, Asked};
use super::run;
use crate::args::{Entries, Global};
use crate::entrance::Entrance;
use crate::output::{Exit, Output};

pub(super) async fn race(args: Entries, global: &Global, output: Output) -> anyhow::Result<Exit> {
    let door = Entrance::open(global, output, Executor::InProcess)?;
    let exit = ask(args, &door, output).await;
    door.leave().await;
    exit
}

async fn ask(args: Entries, door: &Entrance, output: Output) -> anyhow::Result<Exit> {
    let tasks = foreground::entries(door, args)?;
    let action = SubagentAction::Race(Many { tasks, background: None });
    match foreground::ask(door, action, FaceDefaults::person()).await {
        Asked::Interrupted => Ok(run::interrupted(output)),
        Asked::Answered(answer) => match *answer {
            Err(refusal) => Ok(output.refuse(&refusal)),
            Ok(Response::Race(race)) => {
                if output.is_json() {
                    output.json(&race);
                } else {
                    run::show(door, &race.collected).await;
                    let names: Vec<String> = race.cancelled.iter().map(ToString::to_string).collect();
                    if !names.is_empty() {
                        output.note(&format!("cancelled: {}", names.join(", ")));
                    }
                }
                Ok(run::exit_of(&race.collected))
            }
            Ok(other) => {
                output.json(&other);
                Ok(Exit::Done)
            }
        },
    }
}
