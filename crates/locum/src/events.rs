//! Everything that happens to tasks, from any entry of their logs on, whoever works on them.
//!
//! A stream of [`Events`] is read at its reader's own pace and never slows a task: what comes while nobody reads is in
//! the log, and is read from there. It says where it is ([`Events::position`]), and another one goes on from that
//! [`Position`], also in another process.
//!
//! ```
//! use std::sync::Arc;
//!
//! use locum::events::Position;
//! use locum::models::scripted::{Say, Scripted};
//! use locum::progress::News;
//! use locum::{AgentName, AgentSpec, Desk};
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let model = Scripted::new().agent("writer", [Say::text("Once upon a time.")]);
//! let writer = AgentSpec::new(AgentName::parse("writer")?, "Writes", "You write.");
//! let desk = Desk::builder().model("script", Arc::new(model)).agent(writer).build()?;
//! desk.call("subagent", json!({"action": "run", "agent": "writer", "task": "Begin a tale."})).await?;
//!
//! // It has ended; all of it is told all the same.
//! let mut events = desk.events_of("t_01", 0).await?;
//! let mut entries = 0;
//! while let Some(progress) = events.next().await? {
//!     entries += usize::from(matches!(progress.news, News::Event(_)));
//! }
//! assert_eq!(entries, 4);
//!
//! // Whoever has seen everything is told nothing again.
//! let seen: Position = events.position().to_string().parse()?;
//! assert!(desk.events(&seen).next().now_or_never().is_none());
//! # Ok(())
//! # }
//! # use futures_util::FutureExt as _;
//! ```

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use futures_util::future::{Either, select};
use locum_core::ids::{AgentName, Seq, TaskId, Uid};
use locum_core::protocol::Refusal;
use locum_core::task::TaskEvent;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;

use crate::desk::Desk;
use crate::engine::store_refusal;
use crate::progress::{News, Progress};
use crate::store::{TaskQuery, TaskRow};

/// Tasks that are looked for at once.
const TASKS_AT_ONCE: u32 = 256;

/// Entries of one log that are read at once; the rest is read when they were told.
const RECORDS_AT_ONCE: usize = 256;

/// Tasks of other sessions that are remembered as such.
const FOREIGN_MAX: usize = 4096;

/// Up to where the events of a session were told: all of the tasks up to a number, and of some of the later ones
/// everything up to an entry of their logs. As a text it is as long as there are tasks under way, for example
/// `12 14:3 15:7`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Position {
    whole: u32,
    parts: BTreeMap<u32, Seq>,
}

/// A text that is no position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no position in a session's events: it is a number, and pairs like 14:3 after it")]
pub struct InvalidPosition(String);

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.whole)?;
        self.parts.iter().try_for_each(|(task, seq)| write!(f, " {task}:{seq}"))
    }
}

impl FromStr for Position {
    type Err = InvalidPosition;

    fn from_str(text: &str) -> Result<Self, InvalidPosition> {
        let invalid = || InvalidPosition(text.chars().take(80).collect());
        let mut words = text.split(' ');
        let whole = words.next().and_then(|word| word.parse().ok()).ok_or_else(invalid)?;
        let mut parts = BTreeMap::new();
        for word in words {
            let (task, seq) = word.split_once(':').ok_or_else(invalid)?;
            parts.insert(task.parse().map_err(|_| invalid())?, seq.parse().map_err(|_| invalid())?);
        }
        Ok(Self { whole, parts })
    }
}

/// A stream of events.
pub struct Events {
    desk: Desk,
    scope: Scope,
    /// The tasks that have more to tell.
    open: BTreeMap<TaskId, Cursor>,
    /// Told to their end, but not all before them.
    done: BTreeMap<TaskId, Seq>,
    ready: VecDeque<Progress>,
    /// Whether the log may have more than was read.
    is_behind: bool,
    foreign: HashSet<Uid>,
    news: Receiver<Arc<Progress>>,
    changes: watch::Receiver<u64>,
}

/// What a stream is about.
enum Scope {
    /// One task; the stream ends with it.
    Task,
    /// All tasks of a session; those up to this number were told whole.
    Session { whole: u32, from: BTreeMap<u32, Seq>, found: u32 },
}

/// How much of a task was told.
struct Cursor {
    uid: Uid,
    agent: AgentName,
    seq: Seq,
}

impl Desk {
    /// Everything that happens to one task of this session, after the entry `after` of its log. The stream ends with
    /// the task.
    ///
    /// # Errors
    ///
    /// There is no such task in the session, or the store failed.
    ///
    /// # Cancel safety
    ///
    /// It only reads: it may be dropped at any time.
    pub async fn events_of(&self, task_id: &str, after: Seq) -> Result<Events, Refusal> {
        let mut events = Events::new(self, Scope::Task);
        let TaskRow { summary, .. } = self.row(task_id).await?;
        events.open.insert(summary.task_id, Cursor { uid: summary.uid, agent: summary.agent, seq: after });
        Ok(events)
    }

    /// Everything that happens in this session, from a position on; [`Position::default`] is its beginning. The stream
    /// does not end.
    pub fn events(&self, from: &Position) -> Events {
        let Position { whole, parts } = from.clone();
        Events::new(self, Scope::Session { whole, from: parts, found: whole })
    }
}

impl Events {
    fn new(desk: &Desk, scope: Scope) -> Self {
        let engine = desk.engine();
        // Listening begins before the log is read, so nothing falls between them.
        let (news, changes) = (engine.hands.hub.subscribe(), engine.hands.store.changes());
        Self {
            desk: desk.clone(),
            scope,
            open: BTreeMap::new(),
            done: BTreeMap::new(),
            ready: VecDeque::new(),
            is_behind: true,
            foreign: HashSet::new(),
            news,
            changes,
        }
    }

    /// The next piece of news: an entry of a log, each once and those of a task in order, or text of a reply under way
    /// in this process. None after the end of the one task that the stream is about.
    ///
    /// # Errors
    ///
    /// The store failed. Asked again, the stream goes on where it was.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Option<Progress>, Refusal> {
        loop {
            if let Some(progress) = self.ready.pop_front() {
                self.pass(&progress);
                return Ok(Some(progress));
            }
            if self.is_behind {
                self.changes.borrow_and_update();
                self.is_behind = self.read().await?;
                if !self.ready.is_empty() {
                    continue;
                }
            }
            if matches!(self.scope, Scope::Task) && self.open.is_empty() {
                return Ok(None);
            }
            let news = {
                let changed = std::pin::pin!(self.changes.changed());
                match select(std::pin::pin!(self.news.recv()), changed).await {
                    Either::Left((Ok(news), _)) => Some(news),
                    // What was missed is in the log.
                    Either::Left((Err(RecvError::Lagged(_)), _)) | Either::Right((Ok(()), _)) => None,
                    Either::Left((Err(RecvError::Closed), _)) | Either::Right((Err(_), _)) => {
                        return Err(Refusal::internal("the engine was closed"));
                    }
                }
            };
            match news {
                Some(news) => self.take(&news),
                None => self.is_behind = true,
            }
        }
    }

    /// Up to where the events were told. Text is not counted: it is not kept.
    pub fn position(&self) -> Position {
        let (whole, from) = match &self.scope {
            Scope::Task => (0, BTreeMap::new()),
            Scope::Session { whole, from, .. } => (*whole, from.clone()),
        };
        let told = |(task, cursor): (&TaskId, &Cursor)| (task.number(), cursor.seq);
        let mut parts = from;
        parts.extend(self.open.iter().map(told).filter(|(_, seq)| *seq > 0));
        parts.extend(self.done.iter().map(|(task, seq)| (task.number(), *seq)));
        Position { whole, parts }
    }

    /// Notes that something was told.
    fn pass(&mut self, progress: &Progress) {
        let News::Event(record) = &progress.news else { return };
        let Some(cursor) = self.open.get_mut(&progress.task_id) else { return };
        cursor.seq = record.seq;
        if matches!(record.event, TaskEvent::Ended { .. }) {
            self.finish(progress.task_id);
        }
    }

    /// Notes that a task was told to its end.
    fn finish(&mut self, task_id: TaskId) {
        let Some(cursor) = self.open.remove(&task_id) else { return };
        self.done.insert(task_id, cursor.seq);
        if let Scope::Session { whole, .. } = &mut self.scope {
            while self.done.remove(&TaskId::new(*whole + 1)).is_some() {
                *whole += 1;
            }
        }
    }

    /// Takes in what this process tells: as it is where it follows, else as a sign that the log has more.
    fn take(&mut self, news: &Arc<Progress>) {
        let is_session = matches!(self.scope, Scope::Session { .. });
        let Some(cursor) = self.open.get(&news.task_id).filter(|cursor| cursor.uid == news.uid) else {
            // It may be a task of this session that is new; what the next look does not find is not.
            if self.foreign.len() >= FOREIGN_MAX {
                self.foreign.clear();
            }
            self.is_behind |= is_session && self.foreign.insert(news.uid.clone());
            return;
        };
        match &news.news {
            News::Event(record) if record.seq == cursor.seq + 1 => self.ready.push_back(Progress::clone(news)),
            News::Event(record) => self.is_behind |= record.seq > cursor.seq,
            News::Text { after, .. } if *after == cursor.seq => self.ready.push_back(Progress::clone(news)),
            News::Text { .. } => {}
        }
    }

    /// Reads what the log has more; whether there is still more.
    async fn read(&mut self) -> Result<bool, Refusal> {
        self.find().await?;
        let engine = self.desk.engine();
        let store = &engine.hands.store;
        let uids = self.open.values().map(|cursor| cursor.uid.clone()).collect();
        let rows = store.tasks(TaskQuery::Uids(uids)).await.map_err(|error| store_refusal(&error))?;
        let mut has_more = false;
        for row in rows {
            let Some(cursor) = self.open.get(&row.summary.task_id) else { continue };
            if row.summary.seq <= cursor.seq {
                if row.summary.standing.status.is_final() {
                    self.finish(row.summary.task_id);
                }
                continue;
            }
            let records = store.records(&cursor.uid, cursor.seq, RECORDS_AT_ONCE).await;
            let records = records.map_err(|error| store_refusal(&error))?;
            has_more |= records.len() == RECORDS_AT_ONCE;
            for record in records {
                let (uid, agent) = (cursor.uid.clone(), cursor.agent.clone());
                let news = News::Event(Arc::new(record));
                self.ready.push_back(Progress { uid, task_id: row.summary.task_id, agent, news });
            }
        }
        Ok(has_more)
    }

    /// Finds the tasks of the session that were accepted since the last look. Their numbers have no gaps.
    async fn find(&mut self) -> Result<(), Refusal> {
        let Scope::Session { from, found, .. } = &mut self.scope else { return Ok(()) };
        let engine = self.desk.engine();
        loop {
            let ids = (*found + 1..=*found + TASKS_AT_ONCE).map(TaskId::new).collect();
            let query = TaskQuery::Ids(self.desk.session().clone(), ids);
            let rows = engine.hands.store.tasks(query).await.map_err(|error| store_refusal(&error))?;
            let Some(last) = rows.iter().map(|row| row.summary.task_id.number()).max() else { break };
            *found = last;
            for TaskRow { summary, .. } in rows {
                let seq = from.remove(&summary.task_id.number()).unwrap_or(0);
                self.foreign.remove(&summary.uid);
                self.open.insert(summary.task_id, Cursor { uid: summary.uid, agent: summary.agent, seq });
            }
        }
        Ok(())
    }
}
