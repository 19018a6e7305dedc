//! `locum map`: ask one agent the same about many inputs.

use locum::Executor;
use locum::protocol::request::MapOver;
use locum::protocol::{FaceDefaults, SubagentAction};

use super::{foreground, parallel};
use crate::args::{self, Global};
use crate::entrance::Entrance;
use crate::output::{Exit, Output};

pub(super) async fn map(args: args::Map, global: &Global, output: Output) -> anyhow::Result<Exit> {
    let door = Entrance::open(global, output, Executor::InProcess)?;
    let inputs = match &args.file {
        None => args.inputs,
        Some(path) => {
            let text = foreground::read_text(path)?;
            text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect()
        }
    };
    let entry = foreground::entry(&door, args.agent, args.task, args.options);
    let action = SubagentAction::Map(MapOver { entry, inputs, background: false });
    let face = FaceDefaults { concurrency: Some(args.concurrency), ..FaceDefaults::person() };
    let exit = parallel::present(&door, foreground::ask(&door, action, face).await).await;
    door.leave().await;
    Ok(exit)
}
