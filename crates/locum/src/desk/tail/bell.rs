//! What tells a reader when to look.

use std::pin::pin;
use std::sync::Arc;

use futures_util::future::{Either, select};
use locum_core::ids::Uid;
use locum_core::protocol::Refusal;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{broadcast, watch};

use crate::progress::{News, Progress};

/// Rings when something may have been written, here or by another process.
pub(super) struct Bell {
    pub(super) news: broadcast::Receiver<Arc<Progress>>,
    pub(super) changes: watch::Receiver<u64>,
}

impl Bell {
    pub(super) async fn rings(&mut self, concerns: impl Fn(&Progress) -> bool) -> Result<(), Refusal> {
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

    /// Forgets what has rung already: a look from now on sees all of it.
    pub(super) fn hush(&mut self) {
        while !matches!(self.news.try_recv(), Err(TryRecvError::Empty | TryRecvError::Closed)) {}
        self.changes.borrow_and_update();
    }

    /// The next news about a task, or nothing where its log is to be looked at.
    pub(super) async fn sounds(&mut self, uid: &Uid) -> Result<Option<Arc<Progress>>, Refusal> {
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
