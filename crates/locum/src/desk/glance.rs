//! A session at a glance: for a screen that shows it again and again. Looking is no operation, and none is logged.

use locum_core::protocol::request::BoardList;
use locum_core::protocol::response::BoardTask;
use locum_core::protocol::{BoardAction, Refusal, Response};

use super::{Desk, ShownTask};
use crate::store::TaskQuery;

/// How a session stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Glance {
    /// Its tasks that were not collected, oldest first.
    pub tasks: Vec<ShownTask>,
    /// Its board, oldest first.
    pub board: Vec<BoardTask>,
}

impl Desk {
    /// How the session stands: its uncollected tasks and its board, as `status` and `list` tell them.
    ///
    /// # Errors
    ///
    /// The store failed.
    ///
    /// # Cancel safety
    ///
    /// It only reads: it may be dropped at any time.
    pub async fn glance(&self) -> Result<Glance, Refusal> {
        let rows = self.engine.rows(TaskQuery::Uncollected(self.session.clone())).await?;
        let tasks = self.show(rows).await?;
        match self.manage_tasks(BoardAction::List(BoardList::default())).await? {
            Response::BoardTasks(board) => Ok(Glance { tasks, board: board.tasks }),
            other => Err(Refusal::internal(format!("an unexpected board: {other:?}"))),
        }
    }
}
