//! Reading logs as they grow, from any position on. What is read comes from the store, whoever wrote it; news and
//! changes only say when to look. Nobody waits for a reader, and nothing is kept for one.

use std::pin::pin;
use std::sync::Arc;

use futures_util::future::{Either, select};
use locum_core::ids::{Seq, Uid};
use locum_core::protocol::Refusal;
use locum_core::task::Record;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

use super::Desk;
use crate::ears::Ear;
use crate::engine::store_refusal;
use crate::progress::{News, Progress};
use crate::store::{PlacedRecord, Position};

/// Records that are read at once: a reader that is far behind must not fill the memory.
const AT_ONCE: usize = 64;

/// What the tasks of a session write, in the order in which they wrote it.
pub struct SessionTail {
    desk: Desk,
    after: Position,
    bell: Bell,
}

impl SessionTail {
    /// Waits for what was written next: at least one record.
    ///
    /// # Errors
    ///
    /// The store failed. The next call goes on where this one was.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Vec<PlacedRecord>, Refusal> {
        loop {
            let store = &self.desk.engine.hands.store;
            let tail = store.tail(&self.desk.session, self.after, AT_ONCE).await;
            let tail = tail.map_err(|error| store_refusal(&error))?;
            self.after = tail.until;
            if !tail.records.is_empty() {
                return Ok(tail.records);
            }
            if !tail.has_more {
                self.bell.rings(|_| true).await?;
            }
        }
    }
}

/// What is written to the log of one task.
pub struct TaskTail {
    desk: Desk,
    uid: Uid,
    after: Seq,
    bell: Bell,
    /// Whether the log may have more than was read.
    is_behind: bool,
    /// How much was told of the reply after which entry, in bytes.
    told: (Seq, usize),
}

impl TaskTail {
    /// Waits for what was written next: at least one record. After the end of a task it waits in vain.
    ///
    /// # Errors
    ///
    /// The store failed, or the task is gone. The next call goes on where this one was.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Vec<Record>, Refusal> {
        loop {
            let records = self.desk.engine.hands.store.records(&self.uid, self.after, AT_ONCE).await;
            let records = records.map_err(|error| store_refusal(&error))?;
            if let Some(last) = records.last() {
                self.after = last.seq;
                return Ok(records);
            }
            let uid = &self.uid;
            self.bell.rings(|progress| progress.uid == *uid).await?;
        }
    }

    /// Waits for what is said or written next. Text is told as it comes, between the records that it belongs to; a
    /// reader that falls behind misses some of it, and of the records none.
    ///
    /// # Errors
    ///
    /// As [`TaskTail::next`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no record.
    pub async fn hear(&mut self) -> Result<Heard, Refusal> {
        loop {
            if self.is_behind {
                let records = self.desk.engine.hands.store.records(&self.uid, self.after, AT_ONCE).await;
                let records = records.map_err(|error| store_refusal(&error))?;
                if let Some(last) = records.last() {
                    self.after = last.seq;
                    return Ok(Heard::Records(records));
                }
                self.is_behind = false;
                // Who comes in the middle of a reply hears it from its beginning.
                let so_far = self.desk.engine.hands.hub.said_so_far(&self.uid);
                if let Some(heard) = so_far.and_then(|(after, text)| self.new_of(after, 0, &text)) {
                    return Ok(heard);
                }
            }
            let progress = self.bell.sounds(&self.uid).await?;
            match progress.as_deref().map(|progress| &progress.news) {
                Some(News::Text { after, offset, text }) => {
                    // What it comes after is read first; it is found among what was said so far then.
                    self.is_behind = *after > self.after;
                    if let Some(heard) = self.new_of(*after, *offset, text) {
                        return Ok(heard);
                    }
                }
                Some(News::Event(_)) | None => self.is_behind = true,
            }
        }
    }

    /// What of a piece was not told yet, if it belongs to the reply that comes next.
    fn new_of(&mut self, after: Seq, offset: usize, text: &str) -> Option<Heard> {
        if after != self.after {
            return None;
        }
        let told = if self.told.0 == after { self.told.1 } else { 0 };
        let known = told.saturating_sub(offset);
        let text = text.get(known..).filter(|text| !text.is_empty())?;
        let offset = offset + known;
        self.told = (after, offset + text.len());
        Some(Heard::Text { after, offset, text: text.to_owned() })
    }
}

/// What somebody who listens to a task is told next.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    /// What was written to its log: at least one record.
    Records(Vec<Record>),
    /// More of the reply under way, which is in no log yet.
    Text {
        /// The last entry of the log, which this reply comes after.
        after: Seq,
        /// Where in the reply it begins, in bytes: who missed something before it sees a gap.
        offset: usize,
        /// The text.
        text: String,
    },
}

/// Rings when something may have been written, here or by another process.
struct Bell {
    news: broadcast::Receiver<Arc<Progress>>,
    changes: watch::Receiver<u64>,
}

impl Bell {
    async fn rings(&mut self, concerns: impl Fn(&Progress) -> bool) -> Result<(), Refusal> {
        let Self { news, changes } = self;
        let told = async {
            loop {
                match news.recv().await {
                    Ok(progress) if matches!(progress.news, News::Event(_)) && concerns(&progress) => return,
                    Ok(_) => {}
                    Err(RecvError::Lagged(_)) => return,
                    Err(RecvError::Closed) => std::future::pending().await,
                }
            }
        };
        match select(pin!(told), pin!(changes.changed())).await {
            Either::Left(_) | Either::Right((Ok(()), _)) => Ok(()),
            Either::Right((Err(_), _)) => Err(Refusal::internal("the store was closed")),
        }
    }
}

impl Bell {
    /// The next news about a task, or nothing where its log is to be looked at.
    async fn sounds(&mut self, uid: &Uid) -> Result<Option<Arc<Progress>>, Refusal> {
        let Self { news, changes } = self;
        let told = async {
            loop {
                match news.recv().await {
                    Ok(progress) if progress.uid == *uid => return Some(progress),
                    Ok(_) => {}
                    Err(RecvError::Lagged(_)) => return None,
                    Err(RecvError::Closed) => std::future::pending().await,
                }
            }
        };
        match select(pin!(told), pin!(changes.changed())).await {
            Either::Left((progress, _)) => Ok(progress),
            Either::Right((Ok(()), _)) => Ok(None),
            Either::Right((Err(_), _)) => Err(Refusal::internal("the store was closed")),
        }
    }
}

impl Desk {
    /// Hears what tasks of this project say while they say it, also where other processes of this user work on them,
    /// and tells it as news of this desk, as long as it is waited for. It never ends on its own.
    ///
    /// # Cancel safety
    ///
    /// Dropping it ends the listening, and nothing else.
    pub async fn overhear(&self) {
        let hub = &self.engine.hands.hub;
        let Some(mut ear) = hub.ears().and_then(|ears| Ear::open(ears).ok()) else {
            return std::future::pending().await;
        };
        while let Ok(progress) = ear.next().await {
            if progress.session.project == self.session.project {
                hub.pass_on(progress);
            }
        }
        std::future::pending::<()>().await;
    }

    /// What the tasks of this session write from a position on, whichever process works on them.
    pub fn tail(&self, after: Position) -> SessionTail {
        SessionTail { desk: self.clone(), after, bell: self.bell() }
    }

    /// What is written to the log of one task from a number on, whichever process works on it.
    pub fn tail_task(&self, uid: Uid, after: Seq) -> TaskTail {
        TaskTail { desk: self.clone(), uid, after, bell: self.bell(), is_behind: true, told: (0, 0) }
    }

    /// Where everything that was written so far ends.
    ///
    /// # Errors
    ///
    /// The store failed.
    ///
    /// # Cancel safety
    ///
    /// It only reads: it may be dropped at any time.
    pub async fn last_position(&self) -> Result<Position, Refusal> {
        let tail = self.engine.hands.store.tail(&self.session, Position::default(), 0).await;
        Ok(tail.map_err(|error| store_refusal(&error))?.until)
    }

    fn bell(&self) -> Bell {
        Bell { news: self.progress(), changes: self.engine.hands.store.changes() }
    }
}
