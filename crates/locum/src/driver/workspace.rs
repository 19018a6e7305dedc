//! The two steps of a task that has a worktree to itself.

use std::path::Path;

use locum_core::liveness::Patience;
use locum_core::task::TaskEvent;
use locum_core::task::event::{Activity, StopCause};

use super::attend::{Heard, Interrupt};
use super::{Driver, Next};
use crate::journal::JournalError;
use crate::workspace;

impl Driver<'_> {
    /// Makes the worktree, and records it or why there is none.
    pub(super) async fn prepare_workspace(&mut self) -> Result<Next, JournalError> {
        self.flush().await?;
        // Git has a limit of its own, and says nothing while it works.
        let attention = self.attention(Patience { startup_ms: u64::MAX, ..self.hands.patience });
        let made = workspace::made_for(self.hands, self.task);
        match attention.attend(made, Activity::Startup, &Heard::new()).await {
            Err(interrupt) => self.interrupted(interrupt, None),
            Ok(Ok(workspace)) => {
                self.journal.push(self.task, TaskEvent::WorkspaceReady { workspace })?;
                Ok(Next::GoOn)
            }
            Ok(Err(error)) => {
                let cause = StopCause::Isolation { details: error.told() };
                self.interrupted(Interrupt::Stop(cause), None)
            }
        }
    }

    /// Sees to what is in the worktree. Only a hand-over ends that early: a task that was cancelled has work too.
    pub(super) async fn close_workspace(&mut self) -> Result<Next, JournalError> {
        self.flush().await?;
        // Nothing may write there while it is seen to.
        self.hands.servers.end_below(Path::new(self.task.root())).await;
        let stop = self.signals.hand_over.clone();
        match workspace::closed(self.hands, self.task, stop).await {
            None => Ok(Next::HandOver),
            Some(event) => {
                self.journal.push(self.task, event)?;
                Ok(Next::GoOn)
            }
        }
    }
}
