//! An orchestrator for those who have none: an agent of the session that splits a goal, delegates the parts and joins
//! what comes back. It is defined like any other agent and runs like any other task.

use locum_core::protocol::request::Define;
use locum_core::protocol::response::TaskStatus;
use locum_core::protocol::{Refusal, Request, SubagentAction, ToolRequest};

use super::Desk;
use crate::store::{TaskQuery, TaskRow};

/// The name that the orchestrator goes by.
pub const ORCHESTRATOR: &str = "orchestrator";

/// What it is told beyond how to delegate.
const PROMPT: &str = include_str!("orchestrator.md");

/// What it may use: others, what it shares with them, and tools that read.
const TOOLS: &[&str] = &["subagent", "shared_context", "manage_tasks", "read", "grep", "find", "ls", "tree", "think"];

impl Desk {
    /// Defines the orchestrator in this session, or defines it anew: it is told who can be asked now. Run it as the agent
    /// [`ORCHESTRATOR`]; the session needs one more level of delegation for it, as [`Setup::lead`](crate::setup::Setup::lead)
    /// gives.
    ///
    /// # Errors
    ///
    /// As [`Desk::handle`].
    ///
    /// # Cancel safety
    ///
    /// As [`Desk::handle`].
    pub async fn define_orchestrator(&self) -> Result<(), Refusal> {
        let define = Define {
            name: ORCHESTRATOR.to_owned(),
            description: Some("Splits a goal, delegates the parts and joins what comes back".to_owned()),
            system_prompt: Some(format!("{}\n\n{}", PROMPT.trim_end(), self.prompt().await?)),
            tools: Some(TOOLS.iter().map(|tool| (*tool).to_owned()).collect()),
            model: None,
            max_turns: Some(i64::from(self.engine.rules.limits.max_turns)),
            extends: None,
            system_prompt_append: None,
            replace: Some(true),
        };
        self.handle(Request::native(ToolRequest::Subagent(SubagentAction::Define(define)))).await.map(drop)
    }

    /// A task and everything that was delegated below it, collected or not, as it stands: each task before those that it
    /// delegated.
    ///
    /// # Errors
    ///
    /// There is no such task in this session, or the store failed.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub async fn family(&self, task_id: &str) -> Result<Vec<TaskStatus>, Refusal> {
        let mut open = vec![self.row(task_id).await?];
        let mut family: Vec<TaskRow> = Vec::new();
        while let Some(row) = open.pop() {
            let mut children = self.engine.rows(TaskQuery::Children(row.summary.uid.clone())).await?;
            children.reverse();
            open.append(&mut children);
            family.push(row);
        }
        self.present_all(&family).await
    }
}
