//! Forgetting what has ended long ago. Removing a task removes its log and all that refers to it.

use rusqlite::Connection;

use super::rows::{all, count, encode, execute};
use crate::store::{Error, Sweep, Sweeping, Swept};

/// Tasks that may go: none that something unfinished came from or waits for, and not the one that wrote last, because
/// the numbers of entries must go on from it.
const OLD: &str = "WITH RECURSIVE \
     above (uid) AS ( \
         SELECT parent FROM tasks WHERE completed_at IS NULL AND parent IS NOT NULL \
         UNION SELECT parent FROM tasks JOIN above ON tasks.uid = above.uid WHERE parent IS NOT NULL), \
     waited_for (session, number) AS ( \
         SELECT tasks.session, CAST(substr(value, 3) AS INTEGER) \
         FROM tasks, json_each(tasks.start, '$.depends_on') WHERE completed_at IS NULL) \
     SELECT key FROM tasks WHERE completed_at < ?1 \
         AND uid NOT IN (SELECT value FROM json_each(?2)) \
         AND uid NOT IN (SELECT uid FROM above) \
         AND (session, number) NOT IN (SELECT session, number FROM waited_for) \
         AND key IS NOT (SELECT task FROM events ORDER BY id DESC LIMIT 1) \
     ORDER BY key LIMIT ?3";

/// Looks for what is old, and removes it if that is asked for.
pub(super) fn sweep(connection: &Connection, sweep: &Sweep) -> Result<Swept, Error> {
    let (before, most) = (sweep.before.millis(), i64::try_from(sweep.most).unwrap_or(i64::MAX));
    let keys: Vec<i64> = all(connection, OLD, (before, encode(&sweep.kept)?, most), |row| Ok(row.get(0)?))?;
    let list = encode(&keys)?;
    let entries = "SELECT count(*) FROM events WHERE task IN (SELECT value FROM json_each(?1))";
    let entries = count(connection, entries, [&list])?;
    let silent = "beat_at < ?1 AND id NOT IN (SELECT owner FROM tasks WHERE owner IS NOT NULL)";
    let owners = format!("SELECT count(*) FROM owners WHERE {silent}");
    let owners = count(connection, &owners, [before])?;
    if sweep.sweeping == Sweeping::Remove {
        // What was set aside for a task that is gone is of use to nobody, once nothing of its session runs.
        let purses = "DELETE FROM purses WHERE (session, key) IN ( \
                      SELECT session, prefix || uid FROM tasks, (SELECT 'task:' AS prefix UNION SELECT 'command:') \
                      WHERE key IN (SELECT value FROM json_each(?1)) \
                      AND (SELECT unfinished FROM sessions WHERE id = session) = 0)";
        execute(connection, purses, [&list])?;
        execute(connection, "DELETE FROM tasks WHERE key IN (SELECT value FROM json_each(?1))", [&list])?;
        execute(connection, &format!("DELETE FROM owners WHERE {silent}"), [before])?;
    }
    Ok(Swept { tasks: keys.len(), entries, owners })
}
