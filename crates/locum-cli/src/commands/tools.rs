//! `locum tools`: the tools as a model sees them.

use locum::Executor;
use locum::agent::Roster;
use locum::faces::Face;
use serde_json::json;

use crate::args::Global;
use crate::door::{self, Door, Orchestrator};
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
    let own = door::setup(global, Orchestrator::Person, Executor::InProcess).settings()?.0.described_tools();
    if !own.is_empty() {
        let lines: Vec<String> = own.iter().map(|(name, description)| format!("{name}: {description}")).collect();
        output.answer(&format!("Tools of your settings, for agents that name them\n{}", lines.join("\n")));
    }
    Ok(Exit::Done)
}
