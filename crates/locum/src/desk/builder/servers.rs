//! What is said about MCP servers.

use std::path::PathBuf;

use super::DeskBuilder;
use crate::mcp_servers::McpServer;

impl DeskBuilder {
    /// MCP servers that agents may borrow tools from, and the directory in which is kept what they offered when they were
    /// first seen. Naming one here does not grant its tools to anybody; see [`mcp_servers`](crate::mcp_servers).
    #[must_use]
    pub fn mcp_servers(mut self, servers: Vec<McpServer>, pins: impl Into<PathBuf>) -> Self {
        self.servers = servers;
        self.pins = Some(pins.into());
        self
    }

    /// Servers that the user has and that cannot be used here, with why: receipts say it.
    #[must_use]
    pub(crate) fn left_out_servers(mut self, servers: Vec<(String, String)>) -> Self {
        self.left_out_servers = servers;
        self
    }
}
