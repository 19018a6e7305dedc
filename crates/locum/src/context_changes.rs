//! What changes in the shared context, as it changes: who, which key, which version and how large, never the value.

use std::sync::Arc;

use locum_core::ids::SessionKey;
use locum_core::session::SessionChange;
use locum_core::usage::estimate_tokens;
use serde::Serialize;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// Changes that a reader may fall behind by before it loses the oldest.
const BACKLOG: usize = 1024;

/// One change of the shared context, as watchers and the operation log see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ContextChange {
    /// The key.
    pub key: String,
    /// The version that was written, or the one that was removed.
    pub version: u64,
    /// Who did it; `expiry` if the value's time was over.
    pub writer: String,
    /// Tokens of the value; none if it was removed.
    pub size: usize,
    /// Whether the value was removed.
    pub deleted: bool,
}

impl ContextChange {
    /// What a change of a session is to the shared context, if it is one.
    pub(crate) fn of(change: &SessionChange) -> Option<Self> {
        match change {
            SessionChange::PutContext(entry) => Some(Self {
                key: entry.key.clone(),
                version: entry.version,
                writer: entry.written_by.clone(),
                size: estimate_tokens(&entry.value),
                deleted: false,
            }),
            SessionChange::RemoveContext { key, version, by } => {
                Some(Self { key: key.clone(), version: *version, writer: by.clone(), size: 0, deleted: true })
            }
            SessionChange::Define(_)
            | SessionChange::Accept(_)
            | SessionChange::Collect { .. }
            | SessionChange::PutSnapshot(_)
            | SessionChange::PutBoardTask(_)
            | SessionChange::Create
            | SessionChange::Archive
            | SessionChange::Delete => None,
        }
    }
}

/// The changes of one session's shared context that this process makes, from when it was asked for.
#[derive(Debug)]
pub struct ContextChanges {
    receiver: broadcast::Receiver<Arc<(SessionKey, ContextChange)>>,
    session: SessionKey,
}

impl ContextChanges {
    /// Waits for the next change; none when the engine is gone. A reader that fell behind goes on with the oldest
    /// change that is left. May be dropped at any time: nothing is lost by it.
    pub async fn next(&mut self) -> Option<ContextChange> {
        loop {
            match self.receiver.recv().await {
                Ok(news) if news.0 == self.session => return Some(news.1.clone()),
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    }
}

/// Where changes are told.
#[derive(Debug)]
pub(crate) struct ContextHub {
    sender: broadcast::Sender<Arc<(SessionKey, ContextChange)>>,
}

impl Default for ContextHub {
    fn default() -> Self {
        Self { sender: broadcast::Sender::new(BACKLOG) }
    }
}

impl ContextHub {
    /// The changes of a session from now on.
    pub(crate) fn subscribe(&self, session: &SessionKey) -> ContextChanges {
        ContextChanges { receiver: self.sender.subscribe(), session: session.clone() }
    }

    /// Tells changes that were made.
    pub(crate) fn tell(&self, session: &SessionKey, changes: &[ContextChange]) {
        for change in changes {
            // Nobody listening is not a failure.
            self.sender.send(Arc::new((session.clone(), change.clone()))).ok();
        }
    }
}
