//! Which tools a task gets: what the agent asks for, less what does not exist, is denied, or its parent lacks.

use std::collections::BTreeMap;

use crate::admission::{Premises, servers};
use crate::agent::AgentSpec;
use crate::agent::tool_names::{CHANGING_NOTHING, MANAGE_TASKS, READING, SUBAGENT, WORKING, canonical, covers};
use crate::limits;
use crate::protocol::FaceDefaults;
use crate::protocol::face::DefaultTools;
use crate::task::plan::{Dropped, GrantedTool, ToolsReceipt};

/// The tools of a task and the receipt for them.
pub(super) struct Granted {
    pub(super) tools: Vec<GrantedTool>,
    pub(super) receipt: ToolsReceipt,
    /// The MCP servers of which it has tools.
    pub(super) servers: Vec<String>,
    /// What the programs of those are shut into.
    pub(super) sandboxes: BTreeMap<String, String>,
    /// What to say about those that it does not reach.
    pub(super) unreached: Vec<String>,
}

/// Decides which tools a task of this agent gets. An empty set means no tools, never all.
pub(super) fn grant(agent: &AgentSpec, face: &FaceDefaults, premises: &Premises<'_>, depth_left: u32) -> Granted {
    let requested: Vec<String> = match (&agent.tools, face.tools) {
        (Some(names), _) => names.iter().flat_map(|name| servers::expanded(name, premises)).collect(),
        (None, DefaultTools::Reading) => READING.iter().map(|name| (*name).to_owned()).collect(),
        (None, DefaultTools::Working) => WORKING.iter().map(|name| (*name).to_owned()).collect(),
        (None, DefaultTools::Everything) => premises.tools.iter().map(|tool| tool.name.clone()).collect(),
    };
    let requested = requested.into_iter().chain(servers::unnamed(agent, premises));
    let mut tools: Vec<GrantedTool> = Vec::new();
    let mut dropped = Vec::new();
    for name in requested {
        let name = canonical(&name);
        if tools.iter().any(|tool| tool.name == name) {
            continue;
        }
        let judged = judge(name, agent, premises, depth_left);
        match judged.and_then(|tool| if face.read_only { unchanging(tool) } else { Ok(tool) }) {
            Ok(_) if tools.len() >= limits::TOOLS_PER_AGENT_MAX => {
                let why = format!("an agent has at most {} tools", limits::TOOLS_PER_AGENT_MAX);
                dropped.push(Dropped { name: name.to_owned(), why });
            }
            Ok(tool) => tools.push(tool),
            // What an agent did not ask for by name is not missed.
            Err(_) if agent.tools.is_none() && !name.starts_with(servers::PREFIX) => {}
            Err(why) => dropped.push(Dropped { name: name.to_owned(), why }),
        }
    }
    let effective = tools.iter().map(|tool| tool.name.clone()).collect();
    let (reached, unreached) = servers::receipt(agent, &tools, premises);
    let receipt = ToolsReceipt { requested: agent.tools.clone(), effective, dropped };
    let sandboxes = servers::sandboxes(&reached, premises);
    Granted { tools, receipt, servers: reached, sandboxes, unreached }
}

/// A tool, where nothing may be changed.
fn unchanging(tool: GrantedTool) -> Result<GrantedTool, String> {
    if CHANGING_NOTHING.contains(&tool.name.as_str()) {
        return Ok(tool);
    }
    Err("it may change something, and subagents.allow_write is not set".to_owned())
}

fn judge(name: &str, agent: &AgentSpec, premises: &Premises<'_>, depth_left: u32) -> Result<GrantedTool, String> {
    let refused = |why: &str| Err(why.to_owned());
    if name == SUBAGENT && depth_left == 0 {
        return refused("delegation is at its depth limit");
    }
    let tool = match premises.tools.iter().find(|tool| tool.name == name) {
        Some(tool) => tool,
        None => servers::find(name, premises)?,
    };
    if agent.denied_tools.iter().flatten().any(|denied| covers(denied, name)) {
        return refused("the agent denies it");
    }
    // The board is no more of the project's files than the shared context is.
    if agent.readonly == Some(true) && !READING.contains(&name) && name != MANAGE_TASKS {
        return refused("the agent is read-only");
    }
    if !servers::is_listed(name, agent) {
        return refused("the agent's mcpServers leave its server out");
    }
    if let Some(parent) = &premises.caller.parent
        && !parent.tools.iter().any(|granted| granted == name)
    {
        return refused("the task that delegates does not have it");
    }
    Ok(tool.clone())
}
