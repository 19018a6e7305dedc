//! The board in the database.

use std::collections::BTreeMap;

use locum_core::ids::{Identity, TaskId};
use locum_core::limits;
use locum_core::protocol::response::BoardTask;
use locum_core::session::{BoardLookup, BoardView};
use locum_core::task::outcome::Status;
use rusqlite::Connection;

use super::rows::{all, decode, encode, execute, first, status};
use crate::store::Error;

/// What a decision asked to see.
pub(super) fn view(connection: &Connection, session: i64, lookup: BoardLookup) -> Result<BoardView, Error> {
    let query = match lookup {
        BoardLookup::None => return Ok(BoardView::default()),
        BoardLookup::Tasks => "SELECT task FROM board WHERE session = ?1 AND archived = 0 ORDER BY number",
        BoardLookup::Everything => "SELECT task FROM board WHERE session = ?1 ORDER BY number",
    };
    let tasks = all(connection, query, [session], |row| Ok(decode::<BoardTask>(&row.get::<_, String>("task")?)?))?;
    let query = "SELECT coalesce(max(number), 0) AS last FROM board WHERE session = ?1";
    let last = first(connection, query, [session], |row| Ok(row.get("last")?))?.unwrap_or(0);
    let owners = owners(connection, session, &tasks)?;
    Ok(BoardView { tasks, owners, last })
}

/// How the tasks of the session stand that own one on the board.
fn owners(connection: &Connection, session: i64, tasks: &[BoardTask]) -> Result<BTreeMap<TaskId, Status>, Error> {
    let owner = |task: &BoardTask| Some(Identity::parse(task.owner.as_deref()?)?.task_id()?.number());
    let numbers: Vec<u32> = tasks.iter().filter_map(owner).collect();
    if numbers.is_empty() {
        return Ok(BTreeMap::new());
    }
    let query = "SELECT number, status FROM tasks WHERE session = ?1 AND number IN (SELECT value FROM json_each(?2))";
    let rows = all(connection, query, (session, encode(&numbers)?), |row| {
        Ok((TaskId::new(row.get("number")?), status(row)?))
    })?;
    Ok(rows.into_iter().collect())
}

/// Puts a task on the board, and forgets the archived ones that are too old.
pub(super) fn put(connection: &Connection, session: i64, task: &BoardTask) -> Result<(), Error> {
    let archived = task.archived_at.is_some();
    let statement = "INSERT OR REPLACE INTO board (session, number, archived, task) VALUES (?1, ?2, ?3, ?4)";
    execute(connection, statement, (session, task.id.number(), archived, encode(task)?))?;
    if archived {
        let statement = "DELETE FROM board WHERE session = ?1 AND archived = 1 AND number NOT IN \
                         (SELECT number FROM board WHERE session = ?1 AND archived = 1 \
                         ORDER BY number DESC LIMIT ?2)";
        let most = i64::try_from(limits::BOARD_ARCHIVED_MAX).unwrap_or(i64::MAX);
        execute(connection, statement, (session, most))?;
    }
    Ok(())
}
