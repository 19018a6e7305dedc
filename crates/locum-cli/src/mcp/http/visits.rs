//! The sessions of the older era: kept by the SDK, as many as a server can bear and as long as clients need them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::Stream;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, LocalSessionManagerError};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId, SessionManager};

use super::handshake_era;

/// How long a session may be silent: a client that waits for a person, or for tasks in the background, says nothing for
/// hours.
const SILENCE_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Sessions at once. The one that was silent for longest makes room; its client is told to open another one, and its
/// tasks go on.
const VISITS_MAX: usize = 1000;

/// All sessions, with when each was last heard of.
pub(super) struct Visits {
    kept: LocalSessionManager,
    heard: Mutex<HashMap<SessionId, Instant>>,
}

impl Default for Visits {
    fn default() -> Self {
        let mut kept = LocalSessionManager::default();
        kept.session_config.keep_alive = Some(SILENCE_MAX);
        Self { kept, heard: Mutex::default() }
    }
}

impl Visits {
    fn hear(&self, id: &SessionId) {
        // Nothing panics or awaits under this lock.
        if let Some(last) = self.heard.lock().unwrap_or_else(PoisonError::into_inner).get_mut(id) {
            *last = Instant::now();
        }
    }

    /// Notes a new session, and names the one that makes room for it.
    fn note(&self, id: &SessionId) -> Option<SessionId> {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let crowded = heard.len() >= VISITS_MAX;
        let oldest = heard.iter().filter(|_| crowded).min_by_key(|(_, last)| **last).map(|(id, _)| id.clone());
        heard.insert(id.clone(), Instant::now());
        oldest
    }
}

impl SessionManager for Visits {
    type Error = LocalSessionManagerError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let (id, transport) = self.kept.create_session().await?;
        if let Some(oldest) = self.note(&id) {
            self.close_session(&oldest).await?;
        }
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        Ok(handshake_era::completed(self.kept.initialize_session(id, message).await?))
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.hear(id);
        self.kept.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
        self.kept.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.kept.create_stream(id, message).await
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
        self.kept.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.kept.create_standalone_stream(id).await
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.kept.resume(id, last_event_id).await
    }
}
