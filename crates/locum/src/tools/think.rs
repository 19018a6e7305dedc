//! `think`: a place for a thought. It has no effect; that the model writes it down is the point.

use locum_core::limits::TOOL_OUTPUT_BYTES_MAX;
use locum_core::transcript::{Repeat, ToolOutput, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{Tool, ToolFuture, ToolScope, input};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Thought {
    thought: String,
}

/// The tool `think`.
#[derive(Debug)]
pub(crate) struct Think {
    spec: ToolSpec,
}

impl Default for Think {
    fn default() -> Self {
        Self { spec: input::spec::<Thought>("think", include_str!("think.md"), Repeat::Safe) }
    }
}

impl Tool for Think {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn comes_with_locum(&self) -> bool {
        true
    }

    fn call<'a>(&'a self, input: Value, _: &'a ToolScope) -> ToolFuture<'a> {
        Box::pin(async move {
            Ok(match input::parse::<Thought>(input) {
                Err(output) => output,
                Ok(Thought { thought }) if thought.len() > TOOL_OUTPUT_BYTES_MAX => {
                    ToolOutput::failed(format!("a thought of {} bytes is a document; keep it short", thought.len()))
                }
                Ok(_) => ToolOutput::ok("noted"),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tools::fixture::Fixture;

    #[tokio::test]
    async fn a_thought_is_noted() {
        let fixture = Fixture::new(&[]);
        for (input, expected) in [
            (json!({"thought": "hm"}), ToolOutput::ok("noted")),
            (json!({}), ToolOutput::failed("invalid input: missing field `thought`")),
            (
                json!({"thought": "x".repeat(50_001)}),
                ToolOutput::failed("a thought of 50001 bytes is a document; keep it short"),
            ),
        ] {
            assert_eq!(Think::default().call(input, &fixture.tool_scope()).await.unwrap(), expected);
        }
    }
}
