//! `subagent`, `shared_context` and `manage_tasks` as agents call them: a request at the desk of the calling task.

use locum_core::protocol::{Request, parse, schema};
use locum_core::transcript::{Repeat, ToolOutput, ToolSpec};
use serde_json::Value;

use super::{Tool, ToolFuture, ToolScope};

/// A tool that is a request to the engine itself.
pub(super) struct DeskTool {
    spec: ToolSpec,
}

impl DeskTool {
    /// The tool `shared_context`. Reading it is repeatable; so is writing: a repeated write is one more version of the
    /// same value, and one that was guarded by a version refuses itself.
    pub(super) fn shared_context() -> Self {
        Self::new(schema::shared_context(), Repeat::Safe)
    }

    /// The tool `subagent`. A repeated spawn would be a second task.
    pub(super) fn subagent() -> Self {
        Self::new(schema::subagent(), Repeat::Unsafe)
    }

    /// The tool `manage_tasks`. A repeated `add` would be a second task on the board.
    pub(super) fn manage_tasks() -> Self {
        Self::new(schema::manage_tasks(), Repeat::Unsafe)
    }

    fn new(definition: schema::ToolDefinition, repeat: Repeat) -> Self {
        let schema::ToolDefinition { name, description, input_schema } = definition;
        Self { spec: ToolSpec { name, description, input_schema, repeat } }
    }
}

impl Tool for DeskTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, input: Value, scope: &'a ToolScope) -> ToolFuture<'a> {
        Box::pin(async move {
            let request = match parse::tool_request(&self.spec.name, input) {
                Ok(request) => request,
                Err(refusal) => return Ok(ToolOutput::failed(json(&refusal))),
            };
            Ok(match scope.desk.handle(Request::native(request)).await {
                Ok(response) => ToolOutput::ok(json(&response)),
                Err(refusal) => ToolOutput::failed(json(&refusal)),
            })
        })
    }
}

fn json(answer: &impl serde::Serialize) -> String {
    serde_json::to_string(answer).unwrap_or_else(|error| format!("{{\"error\":\"INTERNAL\",\"message\":\"{error}\"}}"))
}
