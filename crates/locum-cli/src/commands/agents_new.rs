//! `locum agents new`: a file to begin with.

use locum::agents::{self, CreateError};
use locum::protocol::{Code, Refusal};
use locum::{AgentName, Executor};
use serde_json::json;

use crate::args::{Global, NewArgs};
use crate::door::{self, Door, Orchestrator};
use crate::output::{Exit, Output};

pub(super) fn new(args: &NewArgs, global: &Global, output: Output) -> anyhow::Result<Exit> {
    let name = match AgentName::parse(&args.name) {
        Ok(name) => name,
        Err(error) => {
            let refusal = Refusal::new(Code::InvalidAgentName, error.to_string());
            return Ok(output.refuse(&refusal.hint("[a-z0-9_-], 1 to 64 characters, for example sql-reviewer")));
        }
    };
    let setup = door::setup(global, Orchestrator::Person, Executor::InProcess);
    let door = Door::open(global, output, Orchestrator::Person, Executor::InProcess)?;
    let desk = &door.opened.desk;
    let from = match &args.from {
        None => None,
        Some(from) => match desk.agent(from) {
            Some(agent) => Some(agent),
            None => {
                let refusal = Refusal::new(Code::AgentNotFound, format!("no agent is called `{from}`"));
                return Ok(output.refuse(&refusal.hint("`locum agents list` shows all")));
            }
        },
    };
    let hides = desk.agent(name.as_str());
    let directory = match (&args.dir, args.user) {
        (Some(directory), _) => directory.clone(),
        (None, true) => door.opened.places.config.join("agents"),
        (None, false) => setup.project().join(".locum/agents"),
    };
    let path = match agents::create(&directory, &name, from.as_deref()) {
        Ok(path) => path,
        Err(error) => {
            let hint = match &error {
                CreateError::Exists(_) => Some("choose another name or --dir, or edit that file"),
                CreateError::File { .. } | CreateError::NoFile(_) | CreateError::Unreadable { .. } => None,
            };
            output.complain(&error.to_string(), hint);
            return Ok(Exit::Failed);
        }
    };
    if output.is_json() {
        output.json(&json!({"created": name, "path": path}));
        return Ok(Exit::Done);
    }
    output.answer(&path.display().to_string());
    if let Some(hidden) = hides {
        output.note(&format!("it takes the place of the {} agent `{name}`", hidden.source.as_str()));
    }
    output.note(&format!("edit it, then check it: locum agents lint {}", path.display()));
    if args.dir.is_none() && !args.user {
        output.note("agents of a project run when you trust it: locum agents trust");
    }
    Ok(Exit::Done)
}
