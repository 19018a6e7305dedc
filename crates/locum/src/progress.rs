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

mod sayings;

use std::sync::Arc;

use locum_core::ids::{AgentName, Seq, SessionKey, TaskId, Uid};
use locum_core::task::{Plan, Record};
use tokio::sync::broadcast;

use self::sayings::Sayings;
use crate::ears::Ears;

/// News that a reader may fall behind by before it loses the oldest.
const BACKLOG: usize = 1024;

/// One piece of news about a task.
#[derive(Debug, Clone)]
pub struct Progress {
    /// The session that the task is in.
    pub session: SessionKey,
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
    sayings: Arc<Sayings>,
    /// Who listens in other processes.
    ears: Option<Arc<Ears>>,
}

impl Hub {
    /// A hub for this process, and for those that listen from others.
    pub(crate) fn new(ears: Option<Ears>) -> Self {
        let (sender, sayings) = (broadcast::Sender::new(BACKLOG), Arc::default());
        Self { sender, sayings, ears: ears.map(Arc::new) }
    }

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
        self.send(about(plan, news));
    }

    /// What was said so far of the reply that a task is giving, and the entry of its log that it comes after.
    pub(crate) fn said_so_far(&self, uid: &Uid) -> Option<(Seq, String)> {
        self.sayings.so_far(uid)
    }

    /// Tells what was heard from another process.
    pub(crate) fn pass_on(&self, progress: Progress) {
        if let News::Text { after, offset, text } = &progress.news {
            self.sayings.add(&progress.uid, *after, *offset, text);
        }
        self.send(progress);
    }

    /// Where other processes can be heard, if anywhere.
    pub(crate) fn ears(&self) -> Option<&Ears> {
        self.ears.as_deref()
    }

    fn send(&self, progress: Progress) {
        // Nobody listening is not a failure.
        self.sender.send(Arc::new(progress)).ok();
    }
}

/// Tells the text of one reply while it arrives, here and to those who listen from other processes.
pub(crate) struct Telling<'a> {
    hub: &'a Hub,
    plan: &'a Plan,
    after: Seq,
    offset: usize,
    /// Which ears have heard it from its beginning.
    ears_known: usize,
}

impl<'a> Telling<'a> {
    /// Begins with the reply that comes after an entry of the log.
    pub(crate) fn new(hub: &'a Hub, plan: &'a Plan, after: Seq) -> Self {
        Self { hub, plan, after, offset: 0, ears_known: 0 }
    }

    /// Tells more of it.
    pub(crate) fn tell(&mut self, text: String) {
        let (after, offset) = (self.after, self.offset);
        self.offset += text.len();
        self.hub.sayings.add(&self.plan.uid, after, offset, &text);
        if let Some(ears) = self.hub.ears() {
            self.tell_afar(ears, offset, &text);
        }
        if self.hub.is_heard() {
            self.hub.tell(self.plan, News::Text { after, offset, text });
        }
    }

    /// Whoever has begun to listen hears the reply from its beginning.
    fn tell_afar(&mut self, ears: &Ears, offset: usize, text: &str) {
        let Some(listening) = ears.listening() else { return };
        let is_new = self.ears_known != listening;
        self.ears_known = listening;
        let whole = self.hub.said_so_far(&self.plan.uid).filter(|_| is_new && offset > 0);
        let news = match whole {
            Some((after, text)) => News::Text { after, offset: 0, text },
            None => News::Text { after: self.after, offset, text: text.to_owned() },
        };
        ears.say(&about(self.plan, news));
    }
}

impl Drop for Telling<'_> {
    fn drop(&mut self) {
        self.hub.sayings.end(&self.plan.uid);
    }
}

fn about(plan: &Plan, news: News) -> Progress {
    let (session, uid, agent) = (plan.session.clone(), plan.uid.clone(), plan.agent.name.clone());
    Progress { session, uid, task_id: plan.task_id, agent, news }
}
