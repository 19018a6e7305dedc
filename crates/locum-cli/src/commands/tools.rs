//! `locum tools`: the tools as a model sees them.

use locum::Executor;
use locum::agent::Roster;
use locum::faces::Face;
use serde_json::json;

use crate::args::Global;
use crate::door::{Door, Orchestrator};
use crate::output::{Exit, Output};

pub(super) fn show(face: Face, global: &Global, output: Output) -> anyhow::Result<Exit> {
    let tools = match face {
        // They name no agents: nothing has to be opened.
        Face::Native => face.tools(&Roster::default()),
        Face::Tallow | Face::Pi | Face::Acai | Face::Picoclaw => {
            let door = Door::open(global, output, Orchestrator::Person, Executor::InProcess)?;
            face.tools(&door.opened.desk.muster().roster)
        }
    };
    if output.is_json() {
        output.json(&json!({"tools": tools}));
        return Ok(Exit::Done);
    }
    for tool in &tools {
        let fields = tool.input_schema["properties"].as_object();
        let names: Vec<&str> = fields.into_iter().flat_map(|fields| fields.keys()).map(String::as_str).collect();
        output.answer(&format!("{}\n{}\nfields: {}\n", tool.name, tool.description, names.join(", ")));
    }
    Ok(Exit::Done)
}
