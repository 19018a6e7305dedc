//! `locum agents`: who can be asked.

use locum::Executor;
use locum::protocol::request::ListAgents;
use locum::protocol::response::{AgentLine, Agents as Listed};
use locum::protocol::{Code, Refusal, Response, SubagentAction};
use serde_json::json;

use crate::args::{Agents, Global};
use crate::door::{Door, Orchestrator};
use crate::output::{Exit, Output, Table};

pub(super) async fn agents(args: Agents, global: &Global, output: Output) -> anyhow::Result<Exit> {
    let door = Door::open(global, output, Orchestrator::Person, Executor::InProcess)?;
    let listed = match door.ask(SubagentAction::ListAgents(ListAgents {})).await {
        Ok(Response::Agents(listed)) => listed,
        Ok(other) => anyhow::bail!("an unexpected answer to list_agents: {other:?}"),
        Err(refusal) => return Ok(output.refuse(&refusal)),
    };
    Ok(match args {
        Agents::List => list(&door, &listed),
        Agents::Show { name } => show(&door, &listed, &name),
        // They need no desk of a runtime and were answered before one was made.
        Agents::Lint(_) | Agents::New(_) => Exit::Done,
    })
}

fn list(door: &Door, listed: &Listed) -> Exit {
    if door.output.is_json() {
        door.output.json(&json!({"agents": listed.agents, "problems": door.opened.problems}));
        return Exit::Done;
    }
    let mut table = Table::new(&["AGENT", "SOURCE", "MODEL", "TURNS", "TOOLS", "FOR"]);
    for agent in &listed.agents {
        table.row([
            agent.name.to_string(),
            agent.source.clone(),
            agent.model.clone(),
            agent.max_turns.to_string(),
            agent.tools.len().to_string(),
            agent.description.clone(),
        ]);
    }
    door.output.answer(&table.render(door.output.width()));
    Exit::Done
}

fn show(door: &Door, listed: &Listed, name: &str) -> Exit {
    let Some(agent) = listed.agents.iter().find(|agent| agent.name.as_str() == name) else {
        let names: Vec<&str> = listed.agents.iter().map(|agent| agent.name.as_str()).collect();
        let refusal = Refusal::new(Code::AgentNotFound, format!("no agent is called `{name}`"));
        return door.output.refuse(&refusal.hint(format!("the agents are {}", names.join(", "))));
    };
    let spec = door.opened.desk.agent(name);
    if door.output.is_json() {
        let prompt = spec.as_ref().map(|spec| spec.prompt.as_str());
        door.output.json(&json!({"agent": agent, "prompt": prompt}));
        return Exit::Done;
    }
    door.output.answer(&page(agent));
    if let Some(spec) = spec {
        door.output.answer(&format!("\n{}", spec.prompt));
    }
    Exit::Done
}

fn page(agent: &AgentLine) -> String {
    let tools = if agent.tools.is_empty() { "none".to_owned() } else { agent.tools.join(", ") };
    format!(
        "{}: {}\nsource   {}\nmodel    {}\nturns    {}\ntools    {tools}",
        agent.name, agent.description, agent.source, agent.model, agent.max_turns
    )
}
