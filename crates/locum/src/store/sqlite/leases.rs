//! Leases, owners and commands in the database.

use locum_core::ids::{Timestamp, Uid};
use rusqlite::{Connection, Row};

use super::failure::Unreadable;
use super::logs::task_key;
use super::rows::{all, execute, first};
use crate::store::{Command, Error, Lease, Owner, OwnerId, OwnerRow};

/// Makes an owner known, or renews its sign of life.
pub(super) fn beat(connection: &Connection, owner: &Owner, now: Timestamp) -> Result<(), Error> {
    let statement = "INSERT INTO owners (id, pid, started, boot, detached, beat_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
                     ON CONFLICT DO UPDATE SET pid = excluded.pid, started = excluded.started, boot = excluded.boot, \
                     detached = excluded.detached, beat_at = excluded.beat_at";
    let Owner { id, pid, started, boot, detached } = owner;
    execute(connection, statement, (id.0.cast_signed(), pid, started, boot, detached, now.millis()))?;
    Ok(())
}

/// Every owner that holds an unfinished task.
pub(super) fn owners(connection: &Connection) -> Result<Vec<OwnerRow>, Error> {
    let query = "SELECT id, pid, started, boot, detached, beat_at FROM owners \
                 WHERE id IN (SELECT owner FROM tasks WHERE owner IS NOT NULL)";
    let mut owners = all(connection, query, [], |row| {
        let owner = Owner {
            id: OwnerId(row.get::<_, i64>("id")?.cast_unsigned()),
            pid: row.get("pid")?,
            started: row.get("started")?,
            boot: row.get("boot")?,
            detached: row.get("detached")?,
        };
        Ok(OwnerRow { owner, beat_at: Timestamp::from_millis(row.get("beat_at")?) })
    })?;
    // The database orders by the sign that it sees in the upper half of the ids.
    owners.sort_unstable_by_key(|row| row.owner.id);
    Ok(owners)
}

/// Who holds a task, and whether there is anything left to hold.
struct Hold {
    owner: Option<OwnerId>,
    epoch: u64,
    ended: bool,
}

fn read_hold(row: &Row<'_>) -> Result<Hold, Unreadable> {
    Ok(Hold {
        owner: row.get::<_, Option<i64>>("owner")?.map(|id| OwnerId(id.cast_unsigned())),
        epoch: row.get::<_, i64>("epoch")?.cast_unsigned(),
        ended: row.get::<_, Option<i64>>("completed_at")?.is_some(),
    })
}

fn hold(connection: &Connection, uid: &Uid) -> Result<Hold, Error> {
    let query = "SELECT owner, epoch, completed_at FROM tasks WHERE uid = ?1";
    first(connection, query, [uid.as_str()], read_hold)?.ok_or(Error::NotFound)
}

/// Takes a task that nobody, or somebody dead, holds.
pub(super) fn claim(
    connection: &Connection,
    uid: Uid,
    owner: OwnerId,
    dead: &[OwnerId],
) -> Result<Option<Lease>, Error> {
    let hold = hold(connection, &uid)?;
    if hold.ended {
        return Ok(None);
    }
    match hold.owner {
        Some(holder) if holder == owner => Ok(Some(Lease { uid, owner, epoch: hold.epoch })),
        Some(holder) if !dead.contains(&holder) => Ok(None),
        Some(_) | None => {
            let epoch = hold.epoch + 1;
            let statement = "UPDATE tasks SET owner = ?2, epoch = ?3 WHERE uid = ?1";
            execute(connection, statement, (uid.as_str(), owner.0.cast_signed(), epoch.cast_signed()))?;
            Ok(Some(Lease { uid, owner, epoch }))
        }
    }
}

/// Gives a task back; whether it was still held under this lease.
pub(super) fn release(connection: &Connection, lease: &Lease) -> Result<bool, Error> {
    let statement = "UPDATE tasks SET owner = NULL WHERE uid = ?1 AND owner = ?2 AND epoch = ?3";
    let parameters = (lease.uid.as_str(), lease.owner.0.cast_signed(), lease.epoch.cast_signed());
    Ok(execute(connection, statement, parameters)? > 0)
}

/// Leaves a command for the holder of a task; whether there is anybody who may ever read it.
pub(super) fn send(connection: &Connection, uid: &Uid, command: Command) -> Result<bool, Error> {
    if hold(connection, uid)?.ended {
        return Ok(false);
    }
    let task = task_key(connection, uid)?;
    execute(connection, "INSERT INTO inbox (task, command) VALUES (?1, ?2)", (task, word(command)))?;
    Ok(true)
}

/// The commands for the tasks of an owner, oldest first.
pub(super) fn commands(connection: &Connection, owner: OwnerId) -> Result<Vec<(Uid, Command)>, Error> {
    // A cross join begins with the inbox, which is mostly empty, and not with the tasks, of which there may be many.
    let query = "SELECT uid, command FROM inbox CROSS JOIN tasks ON tasks.key = inbox.task \
                 WHERE owner = ?1 ORDER BY inbox.id";
    all(connection, query, [owner.0.cast_signed()], |row| {
        Ok((Uid::try_from(row.get::<_, String>("uid")?)?, command(&row.get::<_, String>("command")?)?))
    })
}

/// Takes the commands for the tasks of an owner.
pub(super) fn drain(connection: &Connection, owner: OwnerId) -> Result<Vec<(Uid, Command)>, Error> {
    let commands = commands(connection, owner)?;
    let statement = "DELETE FROM inbox WHERE (SELECT owner FROM tasks WHERE key = inbox.task) = ?1";
    execute(connection, statement, [owner.0.cast_signed()])?;
    Ok(commands)
}

fn word(command: Command) -> &'static str {
    match command {
        Command::Cancel => "cancel",
    }
}

fn command(word: &str) -> Result<Command, Error> {
    match word {
        "cancel" => Ok(Command::Cancel),
        _ => Err(Error::Corrupt(format!("`{word}` is no command"))),
    }
}
