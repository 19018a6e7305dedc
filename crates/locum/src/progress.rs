//! What happens to the tasks of this process, as it happens. A slow reader loses the oldest news, never slows a task;
//! what it lost is in the log, by number. [`Desk::tail`](crate::Desk::tail) reads that log, and loses nothing.
//!
//! ```
//! use std::sync::Arc;
//!
//! use locum::models::scripted::{Say, Scripted};
//! use locum::progress::News;
//! use locum::task::TaskEvent;
//! use locum::{AgentName, AgentSpec, Desk};
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let model = Scripted::new().agent("writer", [Say::text("Once upon a time.")]);
//! let writer = AgentSpec::new(AgentName::parse("writer")?, "Writes", "You write.");
//! let desk = Desk::builder().model("script", Arc::new(model)).agent(writer).build()?;
//!
//! // Listening begins before the task, so nothing of it is missed.
//! let mut news = desk.progress();
//! desk.call("subagent", json!({"action": "spawn", "agent": "writer", "task": "Begin a tale."})).await?;
//! let mut told = String::new();
//! loop {
//!     let progress = news.recv().await?;
//!     match &progress.news {
//!         News::Text { text, .. } => told.push_str(text),
//!         News::Event(record) if matches!(record.event, TaskEvent::Ended { .. }) => break,
//!         News::Event(_) => {}
//!     }
//! }
//! assert_eq!(told, "Once upon a time.");
//! # Ok(())
//! # }
//! ```

use std::sync::Arc;

use locum_core::ids::{AgentName, Seq, TaskId, Uid};
use locum_core::task::{Plan, Record};
use tokio::sync::broadcast;

/// News that a reader may fall behind by before it loses the oldest.
const BACKLOG: usize = 1024;

/// One piece of news about a task.
#[derive(Debug, Clone)]
pub struct Progress {
    /// The task.
    pub uid: Uid,
    /// Its id in the session.
    pub task_id: TaskId,
    /// The agent that works on it.
    pub agent: AgentName,
    /// What happened.
    pub news: News,
}

/// What happened to a task.
#[derive(Debug, Clone)]
pub enum News {
    /// An entry of its log, already durable.
    Event(Arc<Record>),
    /// More text of the reply under way; shown, never kept.
    Text {
        /// The last entry of the log.
        after: Seq,
        /// Where in the reply it begins, in bytes.
        offset: usize,
        /// The text.
        text: String,
    },
}

/// Where news is told.
#[derive(Debug, Clone)]
pub(crate) struct Hub {
    sender: broadcast::Sender<Arc<Progress>>,
}

impl Default for Hub {
    fn default() -> Self {
        Self { sender: broadcast::Sender::new(BACKLOG) }
    }
}

impl Hub {
    /// News from now on.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Arc<Progress>> {
        self.sender.subscribe()
    }

    /// Whether anybody listens: news that nobody hears is not even made.
    pub(crate) fn is_heard(&self) -> bool {
        self.sender.receiver_count() > 0
    }

    /// Tells one piece of news.
    pub(crate) fn tell(&self, plan: &Plan, news: News) {
        let progress = Progress { uid: plan.uid.clone(), task_id: plan.task_id, agent: plan.agent.name.clone(), news };
        // Nobody listening is not a failure.
        self.sender.send(Arc::new(progress)).ok();
    }
}
