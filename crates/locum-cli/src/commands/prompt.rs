//! `locum prompt`: the text that tells an orchestrating model how to delegate.

use locum::Executor;

use crate::args::Global;
use crate::door::{Door, Orchestrator};
use crate::output::{Exit, Output};

pub(super) async fn prompt(global: &Global, output: Output) -> anyhow::Result<Exit> {
    let door = Door::open(global, output, Orchestrator::Person, Executor::InProcess)?;
    Ok(match door.opened.desk.prompt().await {
        Err(refusal) => output.refuse(&refusal),
        Ok(text) => {
            output.answer(&text);
            Exit::Done
        }
    })
}
