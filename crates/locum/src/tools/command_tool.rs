//! A tool that the user has made out of a command: its input is what the command reads, its answer what it writes. It
//! runs in the sandbox, like every command.

use locum_core::transcript::{ToolOutput, ToolSpec};
use locum_core::{input_schema, limits};
use serde_json::Value;

use super::bash::{attended, shell};
use super::{Tool, ToolFuture, ToolScope};
use crate::settings::{CommandToolSettings, ToolCommand};

/// What stands around the command, inside the sandbox too.
const AROUND: &str = include_str!("command_tool.sh");

/// One tool of the user's settings.
#[derive(Debug)]
pub(crate) struct CommandTool {
    spec: ToolSpec,
    command: ToolCommand,
    seconds: u64,
}

impl CommandTool {
    /// The tool that these settings describe.
    pub(crate) fn new(settings: CommandToolSettings) -> Self {
        let CommandToolSettings { name, description, command, schema, seconds, repeat } = settings;
        Self { spec: ToolSpec { name, description, input_schema: schema, repeat }, command, seconds }
    }

    async fn run(&self, input: &Value, scope: &ToolScope) -> Result<ToolOutput, String> {
        let input = input.to_string();
        if input.len() > limits::COMMAND_BYTES_MAX {
            let most = limits::COMMAND_BYTES_MAX;
            return Err(format!(
                "its input has {} bytes; {most} are the most: write it into a file first",
                input.len()
            ));
        }
        let mut order = scope.jobs.order(&scope.task, &scope.root, &scope.cwd)?;
        let words = match &self.command {
            ToolCommand::Line(line) => shell(line),
            ToolCommand::Program(words) => words.clone(),
        };
        let around = ["/bin/sh", "-c", AROUND, &self.spec.name, &input].map(str::to_owned);
        order.program = around.into_iter().chain(words).collect();
        attended(scope, &order, self.seconds, "").await
    }
}

impl Tool for CommandTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, input: Value, scope: &'a ToolScope) -> ToolFuture<'a> {
        Box::pin(async move {
            // Nothing runs with an input that the user did not mean to allow.
            if let Some(misfit) = input_schema::misfit(&self.spec.input_schema, &input) {
                return Ok(ToolOutput::failed(format!("invalid input: {misfit}")));
            }
            let answer = self.run(&input, scope).await;
            Ok(answer.unwrap_or_else(|why| ToolOutput::failed(format!("the command was not run: {why}"))))
        })
    }

    fn runs_commands(&self) -> bool {
        true
    }
}
