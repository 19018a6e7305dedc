//! Calls whose client left before they were answered. What they started goes on, unless the client said beforehand that
//! it should end then.

use std::sync::Arc;

use futures_util::future::join_all;
use locum::protocol::request::{Cancel, SubagentAction};
use locum::{Desk, Following, Uid};
use tokio::sync::mpsc;

use super::hall::Hall;

/// Calls that may be abandoned at once before some go on against the wish of their clients: more than connections.
pub(super) const WAITING_MAX: usize = 1024;

/// Tasks that nobody waits for any more, and the desk that they were started at.
pub(super) struct Forsaken {
    desk: Desk,
    tasks: Vec<Uid>,
}

/// A call that is waited for. Dropped before it was answered, it was abandoned.
pub(super) struct Attended {
    hall: Arc<Hall>,
    desk: Desk,
    following: Option<Following>,
}

impl Attended {
    /// A call through this desk, which ends what it started if it is abandoned.
    pub(super) fn new(hall: &Arc<Hall>, desk: Desk, following: Following) -> Self {
        Self { hall: Arc::clone(hall), desk, following: Some(following) }
    }

    /// The call was answered, or the server ends: what it started is not ended with it.
    pub(super) fn done(mut self) {
        self.following = None;
    }
}

impl Drop for Attended {
    fn drop(&mut self) {
        if let Some(following) = self.following.take() {
            let forsaken = Forsaken { desk: self.desk.clone(), tasks: following.tasks() };
            // Where too many wait already, it goes on.
            self.hall.forsaken.try_send(forsaken).ok();
        }
    }
}

/// Ends what was abandoned, until the server does.
pub(super) async fn end_forsaken(hall: &Hall, mut forsaken: mpsc::Receiver<Forsaken>) {
    while let Some(Some(Forsaken { desk, tasks })) = hall.closing.run_until_cancelled(forsaken.recv()).await {
        let ends = tasks.iter().map(async |uid| {
            // One that is gone needs no end.
            let Ok(task) = desk.task(uid.as_str()).await else { return };
            desk.handle(SubagentAction::Cancel(Cancel { task_id: task.status.task_id.to_string() })).await.ok();
        });
        join_all(ends).await;
    }
}
