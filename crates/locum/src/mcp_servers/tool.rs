//! A tool of a server, as agents have it.

use std::sync::Arc;

use locum_core::transcript::ToolSpec;
use serde_json::Value;

use super::McpServers;
use crate::tools::{Tool, ToolFuture, ToolScope};

/// A tool that is borrowed from a server.
pub(crate) struct BorrowedTool {
    spec: ToolSpec,
    server: String,
    /// Its name, as the server knows it.
    tool: String,
    servers: Arc<McpServers>,
}

impl BorrowedTool {
    pub(super) fn new(spec: ToolSpec, server: String, tool: String, servers: Arc<McpServers>) -> Self {
        Self { spec, server, tool, servers }
    }
}

impl Tool for BorrowedTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, input: Value, scope: &'a ToolScope) -> ToolFuture<'a> {
        Box::pin(async move { Ok(self.servers.call(&self.server, &self.tool, input, scope).await) })
    }
}
