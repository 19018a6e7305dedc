//! Opening a database: its file, its settings and its tables. Tables change by adding a migration, never by editing
//! one that was released.

use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use rusqlite_migration::{M, MigrationDefinitionError, Migrations};

use super::failure::Failure;
use crate::store::Error;
use crate::turn;

const STEPS: &[M<'static>] = &[
    M::up(include_str!("schema.sql")),
    M::up(include_str!("schema_2.sql")),
    M::up(include_str!("schema_3.sql")),
    M::up(include_str!("schema_4.sql")),
    M::up(include_str!("schema_5.sql")),
    M::up(include_str!("schema_6.sql")),
    M::up(include_str!("schema_7.sql")),
];
const MIGRATIONS: Migrations<'static> = Migrations::from_slice(STEPS);

/// How long a write waits for the writes of other processes, each of which takes milliseconds.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Statements that stay prepared on each connection: more than there are.
const STATEMENTS_MAX: usize = 64;

/// To what the write-ahead log is cut after it was emptied; it can grow beyond that while somebody reads.
const WAL_BYTES_KEPT: i64 = 16 * 1024 * 1024;

/// Opens the database for writing; makes it if it does not exist and brings it up to date.
pub(super) fn open_writer(path: &Path) -> Result<Connection, Error> {
    prepare_directory(path).map_err(|error| cannot_open(path, error))?;
    // Making the file, switching it to a write-ahead log and migrating it are for one process at a time. The lock
    // ends with this function, or with the process.
    let _turn = take_turn(path, BUSY_TIMEOUT).map_err(|error| cannot_open(path, error))?;
    make_file(path).map_err(|error| cannot_open(path, error))?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = connect(path, flags)?;
    let settings = format!(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; \
         PRAGMA temp_store = MEMORY; PRAGMA journal_size_limit = {WAL_BYTES_KEPT};"
    );
    connection.execute_batch(&settings).map_err(|error| cannot_open(path, Failure::new(error)))?;
    migrate(&mut connection, path)?;
    Ok(connection)
}

/// Opens the database for reading, after [`open_writer`].
pub(super) fn open_reader(path: &Path) -> Result<Connection, Error> {
    connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)
}

/// What is wrong with a database, as far as SQLite sees it.
pub(super) fn check(connection: &Connection) -> Result<Vec<String>, Error> {
    let mut statement = connection.prepare("PRAGMA quick_check(20)").map_err(Failure::new)?;
    let said = statement.query_map((), |row| row.get::<_, String>(0)).map_err(Failure::new)?;
    let said: Vec<String> = said.collect::<Result<_, _>>().map_err(Failure::new)?;
    Ok(said.into_iter().filter(|line| line != "ok").collect())
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, Error> {
    let connection =
        Connection::open_with_flags(path, flags).map_err(|error| cannot_open(path, Failure::new(error)))?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(Failure::new)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    Ok(connection)
}

fn migrate(connection: &mut Connection, path: &Path) -> Result<(), Error> {
    MIGRATIONS.to_latest(connection).map_err(|error| match error {
        rusqlite_migration::Error::MigrationDefinition(MigrationDefinitionError::DatabaseTooFarAhead) => {
            let message = format!(
                "the database {} was written by a newer version of locum: update locum, or use another database",
                path.display()
            );
            Error::Failed(message.into())
        }
        rusqlite_migration::Error::RusqliteError { err, .. } => cannot_open(path, Failure::new(err)),
        other => cannot_open(path, other),
    })
}

/// A database that cannot be opened, and why.
#[derive(Debug, thiserror::Error)]
#[error("the database {} cannot be opened: {source}", path.display())]
struct CannotOpen {
    path: PathBuf,
    source: Box<dyn std::error::Error + Send + Sync>,
}

fn cannot_open(path: &Path, error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::Failed(Box::new(CannotOpen { path: path.to_owned(), source: Box::new(error) }))
}

fn prepare_directory(path: &Path) -> io::Result<()> {
    let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) else { return Ok(()) };
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

/// Waits until no other process, or thread, opens the database, but not for one that was stopped while it did. A file of
/// its own is locked: closing any handle on the database's file would end the locks that SQLite has on it.
fn take_turn(path: &Path, patience: Duration) -> io::Result<File> {
    let mut lock_path = OsString::from(path);
    lock_path.push("-lock");
    let lock = private(OpenOptions::new().create(true).truncate(false)).open(&lock_path)?;
    turn::take(&lock, Path::new(&lock_path), patience)?;
    Ok(lock)
}

/// Makes the file so that only its user can read it. SQLite gives its other files the same mode.
fn make_file(path: &Path) -> io::Result<()> {
    match private(OpenOptions::new().create_new(true)).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options.write(true)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn who_was_stopped_while_it_opened_the_database_is_not_waited_for_without_end() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("locum.db");
        let held = take_turn(&path, Duration::ZERO).unwrap();
        let begun = Instant::now();
        let refused = take_turn(&path, Duration::from_millis(30)).unwrap_err();
        assert!(begun.elapsed() < BUSY_TIMEOUT, "{:?}", begun.elapsed());
        assert_eq!(refused.kind(), io::ErrorKind::TimedOut);
        assert!(refused.to_string().contains("locum.db-lock"), "{refused}");
        drop(held);
        take_turn(&path, Duration::ZERO).unwrap();
    }
}
