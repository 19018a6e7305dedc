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

impl Desk {
    /// What the tasks of this session write from a position on, whichever process works on them.
    pub fn tail(&self, after: Position) -> SessionTail {
        SessionTail { desk: self.clone(), after, bell: self.bell() }
    }

    /// What is written to the log of one task from a number on, whichever process works on it.
    pub fn tail_task(&self, uid: Uid, after: Seq) -> TaskTail {
        TaskTail { desk: self.clone(), uid, after, bell: self.bell() }
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
