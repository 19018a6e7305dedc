//! The MCP servers behind a desk: reached before a decision that depends on what they offer, and shown to people.

use std::path::Path;
use std::sync::Arc;

use locum_core::admission::{Order, servers};
use locum_core::agent::AgentSpec;
use locum_core::protocol::Refusal;
use locum_core::protocol::request::Define;
use locum_core::session::Lookup;

use super::Desk;
use crate::agents::Muster;
use crate::mcp_servers::ServerStanding;

impl Desk {
    /// Reaches the servers that the agents of some orders ask for and of which nothing is known yet. Nothing else is
    /// ever started before a task needs it.
    pub(super) async fn meet_servers_of(&self, orders: &[Order], muster: &Muster) -> Result<(), Refusal> {
        if self.engine.hands.servers.is_empty() {
            return Ok(());
        }
        let mut agents: Vec<Arc<AgentSpec>> = Vec::new();
        let mut is_any_elsewhere = false;
        for order in orders {
            match muster.roster.find(&order.entry.agent) {
                Some(found) => agents.push(found.agent),
                None => is_any_elsewhere = true,
            }
        }
        if is_any_elsewhere {
            let lookup = Lookup { agents: true, ..Lookup::default() };
            let defined = |_: &crate::engine::Engine, view: &locum_core::session::SessionView| {
                Ok((Vec::new(), view.defined.clone()))
            };
            let (_, defined) = self.engine.decide(&self.session, lookup, defined).await?;
            let is_asked = |agent: &AgentSpec| orders.iter().any(|order| order.entry.agent == agent.name.as_str());
            agents.extend(defined.into_iter().filter(is_asked).map(Arc::new));
        }
        self.meet(agents.iter().map(AsRef::as_ref), muster).await;
        Ok(())
    }

    /// The same for an agent that is being defined.
    pub(super) async fn meet_servers_for(&self, request: &Define, muster: &Muster) {
        let named = request.tools.iter().flatten().filter_map(|tool| servers::server_of(tool));
        self.engine.hands.servers.meet(named, Path::new(&self.engine.rules.root)).await;
        let base = request.extends.as_ref().and_then(|name| muster.roster.find(name));
        self.meet(base.iter().map(|found| found.agent.as_ref()), muster).await;
    }

    async fn meet<'a>(&self, agents: impl Iterator<Item = &'a AgentSpec>, muster: &Muster) {
        let complete: Vec<AgentSpec> = agents.map(|agent| muster.fallbacks.complete(agent).agent).collect();
        let mut names: Vec<&str> = complete.iter().flat_map(servers::wanted).collect();
        names.sort_unstable();
        names.dedup();
        self.engine.hands.servers.meet(names, Path::new(&self.engine.rules.root)).await;
    }

    /// How the MCP servers stand, as far as it is known without reaching any.
    pub fn mcp_servers(&self) -> Vec<ServerStanding> {
        self.engine.hands.servers.standings()
    }

    /// Reaches every MCP server, and says how it stands then.
    ///
    /// # Cancel safety
    ///
    /// Servers that were started stay for the next call, or until [`Desk::end_mcp_servers`].
    pub async fn reach_mcp_servers(&self) -> Vec<ServerStanding> {
        self.engine.hands.servers.look(Path::new(&self.engine.rules.root)).await
    }

    /// Takes tools of an MCP server that have changed since they were first seen as they are now; all of them where none
    /// is named. Returns the names of those that had changed.
    ///
    /// # Errors
    ///
    /// There is no such server or tool, or what is known of it cannot be read or kept.
    pub fn accept_mcp_tools(&self, server: &str, tools: &[String]) -> Result<Vec<String>, Refusal> {
        self.engine.hands.servers.accept(server, tools).map_err(Refusal::invalid)
    }

    /// Ends the MCP servers that this process has started, and waits until they are gone; the next call of a tool starts
    /// them again. Returns what did not end. [`Desk::close`] does this too.
    ///
    /// # Cancel safety
    ///
    /// Servers that were told to end do so without being waited for.
    pub async fn end_mcp_servers(&self) -> Vec<String> {
        self.engine.hands.servers.end_all().await
    }

    /// Sends what is left to tell the collector of traces, if there is one; says why it could not be sent, if it could
    /// not. [`Desk::close`] does this too.
    ///
    /// # Cancel safety
    ///
    /// What is left may not arrive.
    pub async fn finish_traces(&self) -> Option<String> {
        self.engine.hands.traces.as_ref()?.finish().await
    }
}
