//! The MCP servers that a task reaches: what its agent asks for, less what is not there.
//!
//! An agent asks for a server with `mcpServers`, or for tools of it by name: `mcp__server__tool` for one,
//! `mcp__server` for all. Where it does both, `mcpServers` bounds the names.

use std::collections::BTreeMap;

use crate::admission::Premises;
use crate::agent::AgentSpec;
use crate::agent::tool_names::covers;
use crate::task::plan::GrantedTool;

/// What the names of all tools of MCP servers begin with.
pub const PREFIX: &str = "mcp__";

/// An MCP server as admission sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownServer {
    /// Its name in the settings.
    pub name: String,
    /// Its tools, by the names that models call.
    pub tools: Vec<GrantedTool>,
    /// The names of those that have changed since they were first seen.
    pub suspended: Vec<String>,
    /// Why none of its tools can be had.
    pub problem: Option<String>,
    /// What its program is shut into; none for one that is elsewhere.
    pub sandbox: Option<String>,
}

/// The server that a name of a tool list leads to.
pub fn server_of(entry: &str) -> Option<&str> {
    let rest = entry.strip_prefix(PREFIX)?;
    let name = rest.split_once("__").map_or(rest, |(name, _)| name);
    (!name.is_empty()).then_some(name)
}

/// The servers that an agent asks for, each once.
pub fn wanted(agent: &AgentSpec) -> Vec<&str> {
    let mut servers = Vec::new();
    let listed = agent.mcp_servers.iter().flatten().map(String::as_str);
    let named = agent.tools.iter().flatten().filter_map(|entry| server_of(entry));
    for server in listed.filter(|_| !has_no_tools(agent)).chain(named) {
        if !servers.contains(&server) {
            servers.push(server);
        }
    }
    servers
}

/// An empty list of tools means none, whatever else is said.
fn has_no_tools(agent: &AgentSpec) -> bool {
    agent.tools.as_ref().is_some_and(Vec::is_empty)
}

/// The names of tools that an entry of a tool list stands for. An entry for a server that cannot be had stays what it
/// is, so that it can be said why.
pub(super) fn expanded(entry: &str, premises: &Premises<'_>) -> Vec<String> {
    let is_whole = server_of(entry).is_some_and(|server| {
        let rest = &entry[PREFIX.len() + server.len()..];
        rest.is_empty() || rest == "__*"
    });
    let names: Vec<String> = match server_of(entry).filter(|_| is_whole) {
        None => Vec::new(),
        Some(server) => known(server, premises).map_or_else(Vec::new, names_of),
    };
    if names.is_empty() { vec![entry.to_owned()] } else { names }
}

/// The tools of the servers that the agent lists and of which it names no tool.
pub(super) fn unnamed(agent: &AgentSpec, premises: &Premises<'_>) -> Vec<String> {
    if has_no_tools(agent) {
        return Vec::new();
    }
    let is_named =
        |server: &str| agent.tools.iter().flatten().any(|entry| server_of(entry).is_some_and(|named| named == server));
    let listed = agent.mcp_servers.iter().flatten().filter(|server| !is_named(server));
    listed.filter_map(|server| known(server, premises)).flat_map(names_of).collect()
}

fn names_of(server: &KnownServer) -> Vec<String> {
    server.tools.iter().map(|tool| tool.name.clone()).chain(server.suspended.iter().cloned()).collect()
}

fn known<'a>(server: &str, premises: &Premises<'a>) -> Option<&'a KnownServer> {
    premises.servers.iter().find(|known| known.name == server)
}

/// The tool of a server, by the name that models call; or why it cannot be had.
pub(super) fn find<'a>(name: &str, premises: &Premises<'a>) -> Result<&'a GrantedTool, String> {
    let Some(server) = server_of(name) else { return Err("there is no such tool here".to_owned()) };
    let known = usable(server, premises)?;
    if known.suspended.iter().any(|suspended| suspended == name) {
        return Err(format!(
            "it has changed since it was first seen; `locum mcp servers` shows how, `locum mcp accept {server}` takes \
             it as it is now"
        ));
    }
    let tool = known.tools.iter().find(|tool| tool.name == name);
    tool.ok_or_else(|| format!("the MCP server `{server}` has no such tool"))
}

fn usable<'a>(server: &str, premises: &Premises<'a>) -> Result<&'a KnownServer, String> {
    let known = known(server, premises).ok_or("there is no such MCP server in your settings")?;
    match &known.problem {
        None => Ok(known),
        Some(problem) => Err(format!("the MCP server `{server}` cannot be used: {problem}")),
    }
}

/// What the programs of these servers are shut into, by name.
pub(super) fn sandboxes(names: &[String], premises: &Premises<'_>) -> BTreeMap<String, String> {
    let level = |name: &String| Some((name.clone(), known(name, premises)?.sandbox.clone()?));
    names.iter().filter_map(level).collect()
}

/// Whether the agent's list of servers, where it has one, holds the server of this tool.
pub(super) fn is_listed(name: &str, agent: &AgentSpec) -> bool {
    let Some(listed) = &agent.mcp_servers else { return true };
    server_of(name).is_none_or(|server| listed.iter().any(|known| known == server))
}

/// Whether a name of a tool list can be had from a server.
pub(super) fn offers(entry: &str, premises: &Premises<'_>) -> bool {
    premises.servers.iter().flat_map(|server| &server.tools).any(|tool| covers(entry, &tool.name))
}

/// The servers of which a task has tools, and what to say about those that its agent lists and does not reach.
pub(super) fn receipt(agent: &AgentSpec, tools: &[GrantedTool], premises: &Premises<'_>) -> (Vec<String>, Vec<String>) {
    let has_tools =
        |server: &str| tools.iter().any(|tool| server_of(&tool.name).is_some_and(|of_tool| of_tool == server));
    let reached = premises.servers.iter().map(|server| server.name.clone()).filter(|name| has_tools(name)).collect();
    let missed = agent.mcp_servers.iter().flatten().filter(|server| !has_tools(server)).map(|server| {
        let why = usable(server, premises).err().unwrap_or_else(|| "no tool of it is granted".to_owned());
        format!("the agent's MCP server `{server}` is not reached: {why}")
    });
    (reached, missed.collect())
}
