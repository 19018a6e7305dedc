//! What the tasks of a session wrote, in the order in which it was committed: rows of events have ids that only grow.

use locum_core::ids::{AgentName, SessionKey, TaskId, Uid};
use rusqlite::Connection;

use super::rows::{EventRow, all, first, name};
use crate::store::{Error, PlacedRecord, Position, Tail};

/// Rows of all sessions that one look passes over at most: a look must stay short.
const ROWS_PER_LOOK: i64 = 5_000;

/// One look, still encoded: whoever asked decodes it.
pub(super) struct Look {
    rows: Vec<PlacedRow>,
    until: Position,
    has_more: bool,
}

struct PlacedRow {
    append: u64,
    uid: Uid,
    task_id: TaskId,
    agent: AgentName,
    events: EventRow,
}

/// Looks at the rows after a position.
pub(super) fn look(connection: &Connection, key: &SessionKey, after: Position, most: usize) -> Result<Look, Error> {
    let last = first(connection, "SELECT coalesce(max(id), 0) FROM events", [], |row| Ok(row.get::<_, i64>(0)?))?;
    let last = last.unwrap_or(0);
    if most == 0 {
        let until = Position { append: last.cast_unsigned(), seq: u64::MAX };
        return Ok(Look { rows: Vec::new(), until, has_more: false });
    }
    // Nothing of a session is before its first task.
    let query = "SELECT sessions.id, min(events.id) FROM sessions JOIN tasks ON tasks.session = sessions.id \
                 JOIN events ON events.task = tasks.key AND events.seq = 1 \
                 WHERE project = ?1 AND name = ?2 AND number = (SELECT min(number) FROM tasks WHERE session = sessions.id) \
                 GROUP BY sessions.id";
    let found = first(connection, query, (&key.project, key.id.as_str()), |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
    })?;
    let Some((session, begin)) = found else { return Ok(Look { rows: Vec::new(), until: after, has_more: false }) };
    // An append that was read to its end is passed over.
    let next = if after.seq == u64::MAX { after.append.saturating_add(1) } else { after.append };
    let from = i64::try_from(next).unwrap_or(i64::MAX).max(begin);
    let to = from.saturating_add(ROWS_PER_LOOK).min(last);
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let query = "SELECT events.id, uid, number, agent, events.seq, at, event \
                 FROM events CROSS JOIN tasks ON tasks.key = events.task \
                 WHERE events.id BETWEEN ?1 AND ?2 AND tasks.session = ?3 ORDER BY events.id LIMIT ?4";
    let rows = all(connection, query, (from, to, session, most), |row| {
        Ok(PlacedRow {
            append: row.get::<_, i64>("id")?.cast_unsigned(),
            uid: name(row, "uid")?,
            task_id: TaskId::new(row.get("number")?),
            agent: name(row, "agent")?,
            events: EventRow::read(row)?,
        })
    })?;
    let is_full = i64::try_from(rows.len()).is_ok_and(|count| count >= most);
    // Everything up to here was seen, also where it was not this session's.
    let passed = Position { append: to.max(0).cast_unsigned(), seq: u64::MAX };
    let until = if is_full { after } else { passed.max(after) };
    Ok(Look { rows, until, has_more: is_full || to < last })
}

impl Look {
    pub(super) fn decode(self, after: Position) -> Result<Tail, Error> {
        let Self { rows, mut until, has_more } = self;
        let mut records = Vec::new();
        for PlacedRow { append, uid, task_id, agent, events } in rows {
            for record in events.decode()? {
                let position = Position { append, seq: record.seq };
                if position > after {
                    let (uid, agent) = (uid.clone(), agent.clone());
                    records.push(PlacedRecord { position, uid, task_id, agent, record });
                }
            }
            until = until.max(Position { append, seq: u64::MAX });
        }
        Ok(Tail { records, until, has_more })
    }
}
