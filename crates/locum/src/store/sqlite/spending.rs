//! Purses in the database: what was drawn from each, and what each task holds of it.

use std::collections::BTreeMap;

use locum_core::budget::{self, Draw, Drawn, PurseKey, PurseState, Scarce};
use rusqlite::{Connection, Row};

use super::failure::Unreadable;
use super::rows::{execute, first};
use crate::store::Error;

/// Those of these purses from which something was drawn.
pub(super) fn purses(
    connection: &Connection,
    session: i64,
    keys: &[PurseKey],
) -> Result<BTreeMap<PurseKey, PurseState>, Error> {
    let mut found = BTreeMap::new();
    for key in keys {
        found.extend(purse(connection, session, key)?.map(|state| (key.clone(), state)));
    }
    Ok(found)
}

/// Counts a task that a model started.
pub(super) fn count_spawn(connection: &Connection, session: i64, key: &PurseKey) -> Result<(), Error> {
    let statement = "INSERT INTO purses (session, key, spawned) VALUES (?1, ?2, 1) \
                     ON CONFLICT DO UPDATE SET spawned = spawned + 1";
    execute(connection, statement, (session, key.to_string()))?;
    Ok(())
}

/// Draws on the purses of a task.
pub(super) fn spend(
    connection: &Connection,
    (session, task): (i64, i64),
    draw: &Draw,
    asks: bool,
) -> Result<Option<Scarce>, Error> {
    let query = "SELECT input, output, money FROM drawn WHERE task = ?1";
    let before = first(connection, query, [task], read_drawn)?.unwrap_or_default();
    let mut drawn = Vec::with_capacity(draw.purses.len());
    for purse in draw.purses.iter() {
        drawn.push(self::purse(connection, session, &purse.key)?.unwrap_or_default().drawn);
    }
    let settled = budget::draw(draw, before, &drawn, asks).map_err(Error::Overdrawn)?;
    let statement = "INSERT INTO purses (session, key, input, output, money) VALUES (?1, ?2, ?3, ?4, ?5) \
                     ON CONFLICT DO UPDATE SET input = excluded.input, output = excluded.output, \
                     money = excluded.money";
    for (purse, drawn) in draw.purses.iter().zip(&settled.drawn) {
        let (input, output, money) = columns(*drawn);
        execute(connection, statement, (session, purse.key.to_string(), input, output, money))?;
    }
    let statement = "INSERT OR REPLACE INTO drawn (task, input, output, money) VALUES (?1, ?2, ?3, ?4)";
    let (input, output, money) = columns(draw.held());
    execute(connection, statement, (task, input, output, money))?;
    Ok(settled.nearing)
}

fn purse(connection: &Connection, session: i64, key: &PurseKey) -> Result<Option<PurseState>, Error> {
    let query = "SELECT input, output, money, spawned FROM purses WHERE session = ?1 AND key = ?2";
    first(connection, query, (session, key.to_string()), |row| {
        Ok(PurseState { drawn: read_drawn(row)?, spawned: row.get("spawned")? })
    })
}

fn read_drawn(row: &Row<'_>) -> Result<Drawn, Unreadable> {
    let number = |name: &str| Ok::<u64, Unreadable>(row.get::<_, i64>(name)?.cast_unsigned());
    Ok(Drawn { input: number("input")?, output: number("output")?, money: number("money")? })
}

fn columns(drawn: Drawn) -> (i64, i64, i64) {
    (drawn.input.cast_signed(), drawn.output.cast_signed(), drawn.money.cast_signed())
}
