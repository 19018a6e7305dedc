//! Tools: what an agent can do besides talking. Each is one file with its description beside it.
//!
//! The tools that come with locum read files below the project's root and cannot leave it, run commands in a
//! [`sandbox`](crate::sandbox), or read the public web; [`Tool`] is for an application's own.

mod bash;
mod command_tool;
mod desk_tool;
mod edit;
mod find;
mod grep;
mod job;
mod ls;
mod read;
mod think;
mod tree;
mod web_fetch;
mod web_search;
mod write;

pub(crate) mod input;
mod outside;
mod reading;
mod writing;

mod beneath;
mod content;
mod ignore_rules;
mod replacing;
mod walk;

mod bounded;
mod command_output;
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
use locum_core::permission::{Permissions, Subject};
use locum_core::task::KnownFiles;
use locum_core::transcript::{Intent, ToolOutput, ToolSpec};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub(crate) use self::command_tool::CommandTool;
pub(crate) use self::content::hash as content_hash;
use self::desk_tool::DeskTool;
pub(crate) use self::outside::Seals;
use self::reading::ReadingTool;
pub(crate) use self::web_fetch::WebFetch;
pub(crate) use self::web_search::{SearchEngine, SearchKind, WebSearch};
use self::writing::WritingTool;
use crate::jobs::{Jobs, TaskBadge};
use crate::pool::Pool;
use crate::writers::Writers;

/// Something an agent can call. Failure is output that the model reads, so that it can try something else.
///
/// ```
/// use std::sync::Arc;
///
/// use locum::models::scripted::{Say, Scripted};
/// use locum::tools::{Tool, ToolFuture, ToolScope};
/// use locum::transcript::{Repeat, ToolOutput, ToolSpec};
/// use locum::{AgentName, AgentSpec, Desk};
/// use serde_json::{Value, json};
///
/// /// Looks up what is in stock.
/// struct Stock {
///     spec: ToolSpec,
/// }
///
/// impl Tool for Stock {
///     fn spec(&self) -> &ToolSpec {
///         &self.spec
///     }
///
///     fn call<'a>(&'a self, input: Value, _scope: &'a ToolScope) -> ToolFuture<'a> {
///         Box::pin(async move {
///             Ok(match input["item"].as_str() {
///                 Some("bolts") => ToolOutput::ok("250"),
///                 Some(other) => ToolOutput::failed(format!("nothing is called {other}")),
///                 None => ToolOutput::failed("`item` must be a text"),
///             })
///         })
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let spec = ToolSpec {
///     name: "stock".to_owned(),
///     description: "Says how many of an item are in stock.".to_owned(),
///     input_schema: json!({"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]}),
///     // It only reads: a call whose end was never recorded may be made again.
///     repeat: Repeat::Safe,
/// };
/// let mut clerk = AgentSpec::new(AgentName::parse("clerk")?, "Knows the stock", "You answer from the stock.");
/// clerk.tools = Some(vec!["stock".to_owned()]);
/// let says = [Say::calls([("stock", json!({"item": "bolts"}))]), Say::text("250 bolts.")];
/// let desk = Desk::builder()
///     .tool(Arc::new(Stock { spec }))
///     .agent(clerk)
///     .model("script", Arc::new(Scripted::new().agent("clerk", says)))
///     .build()?;
/// let run = json!({"action": "run", "agent": "clerk", "task": "How many bolts?"});
/// let answer = serde_json::to_value(desk.call("subagent", run).await?)?;
/// assert_eq!((&answer["result"], &answer["turns_used"]), (&json!("250 bolts."), &json!(2)));
/// # Ok(())
/// # }
/// ```
pub trait Tool: Send + Sync {
    /// What a model is told about it, and what the engine must know of it.
    fn spec(&self) -> &ToolSpec;

    /// Runs one call. The input is a JSON object; anything else about it is the tool's to check.
    ///
    /// # Cancel safety
    ///
    /// The future is dropped when the task is cancelled, stalls or is handed over. Blocking work may be left behind
    /// then; it should end when it next looks at [`ToolScope::stop`].
    fn call<'a>(&'a self, input: Value, scope: &'a ToolScope) -> ToolFuture<'a>;

    /// Says what a call is about before it is made, so that rules can be judged and an intent written down. Nothing
    /// may be changed here. A call that cannot be made anyway is answered instead.
    fn prepare<'a>(&'a self, input: &'a Value, scope: &'a ToolScope) -> BoxFuture<'a, Result<Prepared, ToolOutput>> {
        // Most tools need nothing from the scope to say what a call is about.
        let _ = scope;
        Box::pin(async { Ok(Prepared { subject: Subject::of(input), intent: None }) })
    }

    /// Whether every locum program has this very tool, so that a worker process runs it itself. Any other tool runs in
    /// the process in which it was registered.
    fn comes_with_locum(&self) -> bool {
        false
    }

    /// Whether it runs commands in the [`sandbox`](crate::sandbox): then the receipt of a task that has it names the
    /// sandbox.
    fn runs_commands(&self) -> bool {
        false
    }
}

/// What is known of a call before it is made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prepared {
    /// What rules are judged by.
    pub subject: Subject,
    /// What it is about to do to a file; for tools that are [`Repeat::Guarded`](crate::transcript::Repeat::Guarded).
    pub intent: Option<Intent>,
}

/// What a tool call returns.
pub type ToolFuture<'a> = BoxFuture<'a, Result<ToolOutput, ToolLayerError>>;

/// The tool layer itself cannot be used; the task ends with it. A call that merely failed is a [`ToolOutput`].
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
    /// What the call said that it is about to do.
    pub intent: Option<Intent>,
    /// The files that the task knows.
    pub files: Arc<KnownFiles>,
    /// What the task may use its tools for; a call that leads on to something else is judged again.
    pub(crate) permissions: Permissions,
    /// Who writes which files.
    pub(crate) writers: Arc<Writers>,
    /// Where the seals of texts from outside come from.
    pub(crate) seals: Arc<Seals>,
    /// Where blocking work runs.
    pub(crate) pool: Arc<Pool>,
    /// The task that calls, as its commands know it.
    pub(crate) task: TaskBadge,
    /// The commands of tasks.
    pub(crate) jobs: Arc<Jobs>,
    /// The desk of the calling task, for tools that delegate or share context themselves: it may do no more than the
    /// task was granted.
    pub desk: crate::desk::Desk,
}

/// The tools that read files and change nothing: `read`, `grep`, `find`, `ls`, `tree` and `think`.
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

/// The tools that change files: `write` and `edit`.
pub fn writing_tools() -> Vec<Arc<dyn Tool>> {
    vec![Arc::new(WritingTool::<write::Write>::default()), Arc::new(WritingTool::<edit::Edit>::default())]
}

/// The tools that come with locum: the reading ones, `write`, `edit`, `bash`, `job`, `web_fetch`, `shared_context`,
/// `manage_tasks` and `subagent`.
pub fn standard_tools() -> Vec<Arc<dyn Tool>> {
    let mut tools = reading_tools();
    tools.extend(writing_tools());
    tools.push(Arc::new(bash::Bash::default()));
    tools.push(Arc::new(job::Job::default()));
    tools.push(Arc::new(WebFetch::new(Arc::default())));
    tools.push(Arc::new(DeskTool::shared_context()));
    tools.push(Arc::new(DeskTool::manage_tasks()));
    tools.push(Arc::new(DeskTool::subagent()));
    tools
}
