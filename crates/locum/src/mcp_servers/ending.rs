//! How connections to servers end: when nobody calls them, with what they serve, or with the process.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use locum_core::limits;

use super::connection::Connection;
use super::{Key, McpServers, Slot};

/// What becomes of a connection that somebody uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InUse {
    Kept,
    Ended,
}

impl McpServers {
    /// Gives a connection to nobody any more.
    pub(super) fn retire(&self, key: &Key, connection: &Arc<Connection>) {
        let mut state = self.state();
        let is_same = |slot: &Slot| slot.get().is_some_and(|known| Arc::ptr_eq(known, connection));
        if state.open.get(key).is_some_and(is_same) {
            state.open.remove(key);
            state.retired.push(Arc::clone(connection));
        }
    }

    /// Ends what nobody has called for a while.
    pub(crate) async fn end_idle(&self) {
        let is_idle = |_: &Key, connection: &Connection| {
            connection.is_closed() || connection.idle_for() >= Duration::from_millis(limits::MCP_IDLE_MS)
        };
        self.end_those(is_idle, InUse::Kept).await;
    }

    /// Whether any server was reached and not ended.
    pub(crate) fn has_open(&self) -> bool {
        let state = self.state();
        !state.open.is_empty() || !state.retired.is_empty()
    }

    /// Ends what serves one worktree.
    pub(crate) async fn end_below(&self, root: &Path) {
        self.end_those(|(_, served), _| served == root, InUse::Ended).await;
    }

    /// Ends every server, and proves it; what does not end is said.
    pub(crate) async fn end_all(&self) -> Vec<String> {
        self.end_those(|_, _| true, InUse::Ended).await
    }

    async fn end_those(&self, is_over: impl Fn(&Key, &Connection) -> bool, in_use: InUse) -> Vec<String> {
        // Whoever waits for an answer, or is about to ask, has a share of the connection or of its place.
        let is_free = |connection: &Arc<Connection>| in_use == InUse::Ended || Arc::strong_count(connection) == 1;
        let over: Vec<Arc<Connection>> = {
            let mut state = self.state();
            let ending = state.open.extract_if(|key, slot| {
                let is_free = |connection: &Arc<Connection>| is_over(key, connection) && is_free(connection);
                let is_wanted = in_use == InUse::Kept && Arc::strong_count(slot) > 1;
                slot.get().is_some_and(is_free) && !is_wanted
            });
            let mut over: Vec<Arc<Connection>> = ending.filter_map(|(_, slot)| slot.get().cloned()).collect();
            over.extend(state.retired.extract_if(.., |connection| is_free(connection)));
            over
        };
        let ended = join_all(over.iter().map(|connection| connection.close())).await;
        ended.into_iter().filter_map(Result::err).collect()
    }
}
