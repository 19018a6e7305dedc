//! Tools: what an agent can do besides talking. Each is one file with its description beside it.

mod desk_tool;
mod find;
mod grep;
mod ls;
mod read;
mod think;
mod tree;

mod input;
mod reading;

mod beneath;
mod ignore_rules;
mod walk;

mod bounded;
mod path_glob;
mod similar;

#[cfg(test)]
mod escapes;
#[cfg(test)]
mod fixture;

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use locum_core::ids::Identity;
use locum_core::transcript::{ToolOutput, ToolSpec};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use self::desk_tool::DeskTool;
use self::reading::ReadingTool;
use crate::pool::Pool;

/// Something an agent can call. Failure is output that the model reads.
pub trait Tool: Send + Sync {
    /// What a model is told about it.
    fn spec(&self) -> &ToolSpec;

    /// Runs one call. The input is a JSON object; anything else about it is the tool's to check. Dropping the future
    /// may leave blocking work behind, which ends when it next looks at [`ToolScope::stop`].
    fn call<'a>(&'a self, input: Value, scope: &'a ToolScope) -> ToolFuture<'a>;
}

/// What a tool call returns.
pub type ToolFuture<'a> = BoxFuture<'a, Result<ToolOutput, ToolLayerError>>;

/// The tool layer itself cannot be used; the task ends with it.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct ToolLayerError(pub String);

/// What a call may touch.
#[derive(Clone)]
pub struct ToolScope {
    /// The directory that file tools cannot leave.
    pub root: PathBuf,
    /// Where relative paths begin, below the root; empty for the root itself.
    pub cwd: PathBuf,
    /// Who calls.
    pub identity: Identity,
    /// Set when the call is no longer wanted.
    pub stop: CancellationToken,
    /// Where blocking work runs.
    pub(crate) pool: Arc<Pool>,
    /// The desk of the calling task's session, for the tools that are requests themselves.
    pub desk: crate::desk::Desk,
}

/// The tools that read files and change nothing.
pub fn reading_tools() -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(ReadingTool::<read::Read>::default()),
        Arc::new(ReadingTool::<grep::Grep>::default()),
        Arc::new(ReadingTool::<find::Find>::default()),
        Arc::new(ReadingTool::<ls::Ls>::default()),
        Arc::new(ReadingTool::<tree::Tree>::default()),
        Arc::new(think::Think::default()),
    ]
}

/// The tools that come with locum.
pub fn standard_tools() -> Vec<Arc<dyn Tool>> {
    let mut tools = reading_tools();
    tools.push(Arc::new(DeskTool::shared_context()));
    tools.push(Arc::new(DeskTool::subagent()));
    tools
}
