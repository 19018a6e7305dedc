//! Following one call: news about the tasks that it waits for, and about no others.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use locum_core::ids::Uid;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::Desk;
use crate::progress::Progress;

/// The tasks that the calls of a desk wait for.
#[derive(Debug, Clone, Default)]
pub(super) struct Awaited(Arc<Mutex<BTreeSet<Uid>>>);

impl Awaited {
    fn extend<'a>(&self, uids: impl IntoIterator<Item = &'a Uid>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(uids.into_iter().cloned());
    }

    fn all(&self) -> Vec<Uid> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    fn contains(&self, uid: &Uid) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(uid)
    }
}

/// News about the tasks that the calls of one desk wait for, as far as this process works on them.
#[derive(Debug)]
pub struct Following {
    news: Receiver<Arc<Progress>>,
    awaited: Awaited,
}

impl Following {
    /// The next piece of news. It never ends on its own: drop it with the call that it accompanies. Dropping the
    /// future loses nothing. A reader that falls behind loses the oldest.
    pub async fn next(&mut self) -> Arc<Progress> {
        loop {
            match self.news.recv().await {
                Ok(progress) if self.awaited.contains(&progress.uid) => return progress,
                // What was missed is in the log; the next news is newer anyway.
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}

impl Following {
    /// The tasks that calls of the desk have started or waited for so far.
    pub fn tasks(&self) -> Vec<Uid> {
        self.awaited.all()
    }
}

impl Desk {
    /// The same desk, and news about the tasks that calls through it wait for.
    #[must_use]
    pub fn followed(&self) -> (Self, Following) {
        let awaited = Awaited::default();
        let following = Following { news: self.progress(), awaited: awaited.clone() };
        (Self { awaited: Some(awaited), ..self.clone() }, following)
    }

    /// Notes tasks that a call of this desk starts or waits for, before anything can be told of them.
    pub(super) fn follow<'a>(&self, uids: impl IntoIterator<Item = &'a Uid>) {
        if let Some(awaited) = &self.awaited {
            awaited.extend(uids);
        }
    }
}
