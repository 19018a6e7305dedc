//! How servers stand, for people: what is known of them, and what has changed.

use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use super::McpServers;
use super::pins::{self, Offer};

/// How a server stands.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServerStanding {
    /// Its name.
    pub name: String,
    /// The program or the address.
    pub target: String,
    /// What its program is shut into; absent for an address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// What is known of its tools.
    pub tools: Vec<ToolStanding>,
    /// Why none of them can be had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// How a tool stands.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolStanding {
    /// The name that agents know it by.
    pub name: String,
    /// What the server said of it when it was pinned.
    pub description: String,
    /// The schema of its input then.
    pub input_schema: Value,
    /// What the server says now, where that is something else: the tool is suspended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed: Option<ChangedTool>,
}

/// What a server says of a tool that has changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChangedTool {
    /// What it says of it.
    pub description: String,
    /// The schema of its input.
    pub input_schema: Value,
}

impl From<Offer> for ChangedTool {
    fn from(offer: Offer) -> Self {
        Self { description: offer.description, input_schema: offer.input_schema }
    }
}

impl McpServers {
    /// How every server stands. Nothing is started for it.
    pub(crate) fn standings(&self) -> Vec<ServerStanding> {
        let known = self.known();
        let standing = |name: &str, problem: Option<String>| {
            let server = self.server(name);
            let manifest = server.and_then(|server| self.manifest(server).ok().flatten());
            let tools = manifest.into_iter().flat_map(|manifest| manifest.tools).map(|tool| ToolStanding {
                name: tool.pinned.shown_name(name),
                description: tool.pinned.description,
                input_schema: tool.pinned.input_schema,
                changed: tool.changed.map(ChangedTool::from),
            });
            ServerStanding {
                name: name.to_owned(),
                target: server.map(super::McpServer::target).unwrap_or_default(),
                sandbox: server.and_then(|server| self.level_of(server)).map(|level| level.to_string()),
                tools: tools.collect(),
                problem,
            }
        };
        known.into_iter().map(|server| standing(&server.name, server.problem)).collect()
    }

    /// Reaches every server for the project at `root`, and says how they stand then.
    pub(crate) async fn look(&self, root: &Path) -> Vec<ServerStanding> {
        let reached = futures_util::future::join_all(self.servers.iter().map(|server| self.connection(server, root)));
        let failures: Vec<Option<String>> = reached.await.into_iter().map(Result::err).collect();
        let mut standings = self.standings();
        for (standing, failure) in standings.iter_mut().zip(failures) {
            standing.problem = standing.problem.take().or(failure);
        }
        standings
    }

    /// Takes the changed tools of a server as they are now, all of them where none is named; their names.
    pub(crate) fn accept(&self, server: &str, tools: &[String]) -> Result<Vec<String>, String> {
        let described = self.server(server).ok_or_else(|| {
            let names: Vec<&str> = self.servers.iter().map(|server| server.name.as_str()).collect();
            format!(
                "no MCP server is called `{server}`; there is {}",
                if names.is_empty() { "none".to_owned() } else { names.join(", ") }
            )
        })?;
        let Some(mut manifest) = self.manifest(described)? else { return Ok(Vec::new()) };
        // A tool may be named as the server does or as agents do.
        let named = |tool: &pins::PinnedTool| {
            let shown = tool.pinned.shown_name(server);
            tools.iter().any(|name| *name == tool.pinned.name || *name == shown).then(|| tool.pinned.name.clone())
        };
        let names: Vec<String> = manifest.tools.iter().filter_map(named).collect();
        if names.len() < tools.len() {
            return Err(format!("the MCP server `{server}` has no such tool: see `locum mcp servers`"));
        }
        let accepted = pins::accept(&mut manifest, &names);
        if !accepted.is_empty() {
            self.keep(described, manifest)?;
        }
        Ok(accepted)
    }
}
