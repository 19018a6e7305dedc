//! Reading logs as they grow, from any position on. What is read comes from the store, whoever wrote it; news and
//! changes only say when to look. Nobody waits for a reader, and little is kept for one.

mod bell;

use std::sync::Arc;

use locum_core::ids::{Seq, Uid};
use locum_core::protocol::Refusal;
use locum_core::task::Record;

use self::bell::Bell;
use super::Desk;
use crate::ears::Ear;
use crate::engine::store_refusal;
use crate::lookout::{Lately, TailedRecord};
use crate::progress::News;
use crate::store::Position;

/// Records that are read at once: a reader that is far behind must not fill the memory.
const AT_ONCE: usize = 64;

/// What the tasks of a session write, in the order in which they wrote it.
pub struct SessionTail {
    desk: Desk,
    after: Position,
    bell: Bell,
    lately: Arc<Lately>,
    /// Whether there may be more than was read.
    is_behind: bool,
    /// How many looks had begun when the bell was last heard: a later one sees what it rang for.
    heard: u64,
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
    pub async fn next(&mut self) -> Result<Vec<Arc<TailedRecord>>, Refusal> {
        loop {
            if !self.is_behind {
                self.bell.rings(|_| true).await?;
                self.bell.hush();
                (self.is_behind, self.heard) = (true, self.lately.begun());
            }
            let store = &*self.desk.engine.hands.store;
            let look = self.lately.look(store, &self.desk.session, self.after, self.heard).await;
            let look = look.map_err(|error| store_refusal(&error))?;
            let after = self.after;
            self.after = look.until.max(after);
            self.is_behind = look.has_more || look.number <= self.heard;
            let records: Vec<_> = look.records.iter().filter(|record| record.position > after).cloned().collect();
            if !records.is_empty() {
                return Ok(records);
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
        let (bell, lately) = (self.bell(), self.engine.hands.lookout.on(&self.session));
        let heard = lately.begun();
        SessionTail { desk: self.clone(), after, bell, lately, is_behind: true, heard }
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
