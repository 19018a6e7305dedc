//! What every route shares: the desk, the sessions that were seen, and whether the server is about to end.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use locum::protocol::{Code, Refusal};
use locum::{Desk, SessionId, Stay};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::abandoned::Forsaken;
use super::metrics::Figures;
use crate::mcp::asking::Clients;
use crate::mcp::http::Endpoint;

/// Sessions that are remembered as looked after; beyond it they are looked at again.
const SESSIONS_REMEMBERED: usize = 10_000;

/// The place that all routes are in.
pub(super) struct Hall {
    desk: Desk,
    /// Whether clients that name no session share the desk's own.
    shares_session: bool,
    looked_after: Mutex<HashSet<SessionId>>,
    pub(super) figures: Figures,
    pub(super) mcp: Endpoint,
    /// Where calls go whose client left.
    pub(super) forsaken: mpsc::Sender<Forsaken>,
    /// Cancelled when no more is accepted.
    pub(super) closing: CancellationToken,
    /// Cancelled when nothing under way is waited for any more.
    pub(super) closed: CancellationToken,
}

impl Hall {
    pub(super) fn new(
        desk: Desk,
        shares_session: bool,
        forsaken: mpsc::Sender<Forsaken>,
        clients: Arc<Clients>,
    ) -> Self {
        let (closing, closed) = (CancellationToken::new(), CancellationToken::new());
        Self {
            desk,
            shares_session,
            looked_after: Mutex::default(),
            figures: Figures::new(),
            mcp: Endpoint::new(closing.clone(), closed.clone(), clients),
            forsaken,
            closing,
            closed,
        }
    }

    /// The desk for a request: in the session that it names, else in the server's own, else in a new one.
    pub(super) async fn desk(&self, session: Option<SessionId>) -> Result<Desk, Refusal> {
        match session {
            None if self.shares_session => Ok(self.desk.clone()),
            None => Ok(self.desk.in_new_session()),
            Some(id) => {
                let desk = self.desk.in_session(id.clone());
                if self.is_new_here(id) {
                    // Another process may have left tasks in it since this one began.
                    let adopted = desk.adopt_orphans(Stay::Long).await;
                    adopted.map_err(|error| Refusal::new(Code::Internal, error.to_string()))?;
                }
                Ok(desk)
            }
        }
    }

    /// The desk for those who look at something of a session: in the one that is named, else in the server's own.
    pub(super) async fn named(&self, session: Option<SessionId>) -> Result<Desk, Refusal> {
        if session.is_none() && !self.shares_session {
            let refusal = Refusal::invalid("the request names no session");
            return Err(refusal.hint("say it with the parameter `session` or the header Locum-Session"));
        }
        self.desk(session).await
    }

    /// The desk for what belongs to no one session.
    pub(super) fn any(&self) -> &Desk {
        &self.desk
    }

    fn is_new_here(&self, id: SessionId) -> bool {
        // Nothing panics or awaits under this lock.
        let mut known = self.looked_after.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= SESSIONS_REMEMBERED {
            known.clear();
        }
        known.insert(id)
    }
}
