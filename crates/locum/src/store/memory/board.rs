//! The board of a session in memory.

use std::collections::BTreeMap;

use locum_core::ids::{BoardTaskId, Identity, TaskId};
use locum_core::limits;
use locum_core::protocol::response::BoardTask;
use locum_core::session::{BoardLookup, BoardView};
use locum_core::task::outcome::Status;

use super::tables::{SessionTable, Tables};

impl Tables {
    /// What a decision asked to see.
    pub(super) fn board_view(&self, session: &SessionTable, lookup: BoardLookup) -> BoardView {
        let archived = match lookup {
            BoardLookup::None => return BoardView::default(),
            BoardLookup::Tasks => false,
            BoardLookup::Everything => true,
        };
        let wanted = session.board.values().filter(|task| archived || task.archived_at.is_none());
        let tasks: Vec<BoardTask> = wanted.cloned().collect();
        let status = |id: TaskId| {
            let entry = self.tasks.get(session.tasks.get(&id)?)?;
            Some((id, entry.row.summary.standing.status))
        };
        let owner = |task: &BoardTask| Identity::parse(task.owner.as_deref()?)?.task_id();
        let owners: BTreeMap<TaskId, Status> = tasks.iter().filter_map(owner).filter_map(status).collect();
        let last = session.board.keys().next_back().map_or(0, |id| id.number());
        BoardView { tasks, owners, last }
    }
}

impl SessionTable {
    /// Puts a task on the board, and forgets the archived ones that are too old.
    pub(super) fn put_board_task(&mut self, task: BoardTask) {
        self.board.insert(task.id, task);
        let archived = self.board.values().filter(|task| task.archived_at.is_some());
        let archived: Vec<BoardTaskId> = archived.map(|task| task.id).collect();
        let beyond = archived.len().saturating_sub(limits::BOARD_ARCHIVED_MAX);
        for id in &archived[..beyond] {
            self.board.remove(id);
        }
    }
}
