//! `locum chain`: ask several agents in turn.

use locum::Executor;
use locum::protocol::request::Many;
use locum::protocol::{FaceDefaults, Response, SubagentAction};

use super::foreground::{self, Asked};
use super::run;
use crate::args::{Entries, Global};
use crate::entrance::Entrance;
use crate::output::{Exit, Output};

pub(super) async fn chain(args: Entries, global: &Global, output: Output) -> anyhow::Result<Exit> {
    let door = Entrance::open(global, output, Executor::InProcess)?;
    let exit = ask(args, &door, output).await;
    door.leave().await;
    exit
}

async fn ask(args: Entries, door: &Entrance, output: Output) -> anyhow::Result<Exit> {
    let tasks = foreground::entries(door, args)?;
    let action = SubagentAction::Chain(Many { tasks, background: None });
    match foreground::ask(door, action, FaceDefaults::person()).await {
        Asked::Interrupted => Ok(run::interrupted(output)),
        Asked::Answered(answer) => match *answer {
            Err(refusal) => Ok(output.refuse(&refusal)),
            Ok(Response::Chain(chain)) => {
                if output.is_json() {
                    output.json(&chain);
                } else {
                    run::show(door, &chain.collected).await;
                    output.note(&format!("step {} of {}", chain.step, chain.steps));
                }
                Ok(run::exit_of(&chain.collected))
            }
            Ok(other) => {
                output.json(&other);
                Ok(Exit::Done)
            }
        },
    }
}
