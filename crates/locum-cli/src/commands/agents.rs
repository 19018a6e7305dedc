//! `locum agents`: who can be asked.

use locum::agents::FileProblem;
use locum::protocol::{Code, FaceDefaults, Refusal};
use locum::{Executor, ListedAgent};
use serde_json::json;

use crate::args::{Agents, Global};
use crate::door::{Door, Orchestrator};
use crate::output::{Exit, Output, Table};

pub(super) async fn agents(args: Agents, global: &Global, output: Output) -> anyhow::Result<Exit> {
    let door = Door::open(global, output, Orchestrator::Person, Executor::InProcess)?;
    let listed = match door.opened.desk.all_agents(&FaceDefaults::person()).await {
        Ok(listed) => listed,
        Err(refusal) => return Ok(output.refuse(&refusal)),
    };
    Ok(match args {
        Agents::List => list(&door, &listed),
        Agents::Show { name } => show(&door, &listed, &name),
        // They need no desk of a runtime and were answered before one was made.
        Agents::Lint(_) | Agents::New(_) | Agents::Trust(_) => Exit::Done,
    })
}

fn list(door: &Door, listed: &[ListedAgent]) -> Exit {
    let muster = door.opened.desk.muster();
    if door.output.is_json() {
        door.output.json(&json!({"agents": listed, "problems": muster.problems, "project": muster.project}));
        return Exit::Done;
    }
    let mut table = Table::new(&["AGENT", "SOURCE", "MODEL", "TURNS", "TOOLS", "FOR"]);
    for agent in listed {
        let line = &agent.line;
        let source = match agent.mark {
            Some(mark) => format!("{}, {}", line.source, mark.as_str()),
            None => line.source.clone(),
        };
        table.row([
            line.name.to_string(),
            source,
            line.model.clone(),
            line.max_turns.to_string(),
            line.tools.len().to_string(),
            line.description.clone(),
        ]);
    }
    for problem in &muster.problems {
        let dash = || "-".to_owned();
        table.row([stem(problem), "broken".to_owned(), dash(), dash(), dash(), problem.to_string()]);
    }
    door.output.answer(&table.render(door.output.width()));
    if let Some(project) = muster.project.as_ref().filter(|project| !project.trust.is_in_force()) {
        door.output
            .note(&format!("this project is {}; `locum agents trust` shows and trusts it", project.trust.as_str()));
    }
    Exit::Done
}

fn stem(problem: &FileProblem) -> String {
    problem.file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

fn show(door: &Door, listed: &[ListedAgent], name: &str) -> Exit {
    let Some(agent) = listed.iter().find(|agent| agent.line.name.as_str() == name) else {
        let names: Vec<&str> = listed.iter().map(|agent| agent.line.name.as_str()).collect();
        let refusal = Refusal::new(Code::AgentNotFound, format!("no agent is called `{name}`"));
        return door.output.refuse(&refusal.hint(format!("the agents are {}", names.join(", "))));
    };
    if door.output.is_json() {
        door.output.json(&json!({"agent": agent, "prompt": agent.prompt}));
        return Exit::Done;
    }
    door.output.answer(&page(agent));
    door.output.answer(&format!("\n{}", agent.prompt));
    Exit::Done
}

fn page(agent: &ListedAgent) -> String {
    let line = &agent.line;
    let tools = if line.tools.is_empty() { "none".to_owned() } else { line.tools.join(", ") };
    let mark = agent.mark.map(|mark| format!(", {}", mark.as_str())).unwrap_or_default();
    let path = agent.path.as_ref().map(|path| format!(" {}", path.display())).unwrap_or_default();
    format!(
        "{}: {}\nsource   {}{mark}{path}\nmodel    {}\nturns    {}\ntools    {tools}",
        line.name, line.description, line.source, line.model, line.max_turns
    )
}
