//! What SQLite reports, in words that say what to do about it.

use std::sync::Arc;

use rusqlite::ErrorCode;

use crate::store::Error;

/// A failure of the database. It can be handed to everybody whose work was in the same transaction.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{what}: {source}")]
pub(super) struct Failure {
    what: &'static str,
    source: Arc<rusqlite::Error>,
}

impl Failure {
    pub(super) fn new(error: rusqlite::Error) -> Self {
        Self { what: describe(error.sqlite_error_code()), source: Arc::new(error) }
    }

    /// The failure of the database that an error tells of, if it does.
    pub(super) fn behind(error: &Error) -> Option<&Self> {
        match error {
            Error::Failed(source) => source.downcast_ref(),
            Error::Conflict | Error::NotFound | Error::Overdrawn(_) | Error::Corrupt(_) => None,
        }
    }
}

fn describe(code: Option<ErrorCode>) -> &'static str {
    match code {
        Some(ErrorCode::DiskFull) => "the disk is full",
        Some(ErrorCode::ReadOnly) => "the database can only be read; check the mode of its file and directory",
        Some(ErrorCode::PermissionDenied | ErrorCode::AuthorizationForStatementDenied) => "access is denied",
        Some(ErrorCode::CannotOpen) => "the database's file cannot be opened",
        Some(ErrorCode::DatabaseCorrupt) => "the database is damaged; restore it from a backup, or move it away",
        Some(ErrorCode::NotADatabase) => "the file is not a database; move it away, or name another one",
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => "another process keeps the database locked",
        Some(ErrorCode::SystemIoFailure) => "the disk, or the file system, failed",
        Some(_) | None => "the database failed",
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Self::Failed(Box::new(failure))
    }
}

/// Why a row could not be read. It is a type of its own so that no public error can be made from one of SQLite's.
#[derive(Debug)]
pub(super) struct Unreadable(Error);

impl From<rusqlite::Error> for Unreadable {
    fn from(error: rusqlite::Error) -> Self {
        Self(Failure::new(error).into())
    }
}

impl From<Error> for Unreadable {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl From<Unreadable> for Error {
    fn from(Unreadable(error): Unreadable) -> Self {
        error
    }
}
