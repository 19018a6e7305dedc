//! A store in one SQLite file, shared by all processes of a user. All SQL of the project is below this module.
//!
//! One thread writes and commits together whatever is waiting for it; one thread reads. Work goes to them as
//! functions over a connection, and this file says which function goes where.

mod accepting;
mod attic;
mod board;
mod context;
mod failure;
mod job;
mod leases;
mod logs;
mod reader;
mod rows;
mod schema;
mod sessions;
mod shelf;
mod spending;
mod standing;
mod tail;
mod writer;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use locum_core::ids::{Seq, SessionKey, TaskId, Timestamp, Uid};
use locum_core::session::Lookup;
use locum_core::task::Record;
use locum_core::task::summary::Standing;
use tokio::sync::watch;

use self::logs::Append;
use self::reader::Reader;
use self::writer::Writer;
use super::notice::Notice;
use super::{
    Appended, Command, DecideError, Decided, Decision, Error, Inbox, Lease, Leases, Logs, Owner, OwnerId, OwnerRow,
    Position, SessionRow, Sessions, Store, Sweep, Sweeping, Swept, Tail, TaskQuery, TaskRow,
};

/// Keeps tasks and sessions in a SQLite database.
///
/// ```
/// use std::sync::Arc;
///
/// use locum::store::sqlite::SqliteStore;
/// use locum::{Desk, Stay};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("tasks.db");
/// let store = SqliteStore::open(&path)?;
/// let desk = Desk::builder().store(Arc::new(store)).bundled_agents().build()?;
/// // What an earlier process of this project left behind goes on here.
/// assert_eq!(desk.adopt_orphans(Stay::Long).await?, 0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct SqliteStore {
    // Dropped first: the last connection that closes empties the write-ahead log, and this one cannot write.
    reader: Reader,
    writer: Writer,
    changes: Arc<watch::Sender<u64>>,
}

impl SqliteStore {
    /// Opens the database in this file, and makes it if it does not exist, for its user alone. Several processes may
    /// have it open at once; a database that a newer version has written is refused.
    ///
    /// # Errors
    ///
    /// The file cannot be opened or made, is no database, or was written by a newer version; the message says what to
    /// do about it.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let writer = schema::open_writer(path)?;
        let reader = schema::open_reader(path)?;
        let changes = Arc::new(watch::Sender::new(0));
        let writer = Writer::start(writer, Arc::clone(&changes))?;
        Ok(Self { reader: Reader::start(reader)?, writer, changes })
    }

    /// Looks at the whole database; what is wrong with it, if anything is.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    ///
    /// # Cancel safety
    ///
    /// It only reads: it may be dropped at any time.
    pub async fn check(&self) -> Result<Vec<String>, Error> {
        self.reader.read(schema::check).await
    }

    /// How many transactions this handle has committed: many writes share one. For measurements.
    pub fn commits(&self) -> u64 {
        self.writer.commits()
    }
}

impl Store for SqliteStore {
    fn changes(&self) -> watch::Receiver<u64> {
        let receiver = self.changes.subscribe();
        self.writer.watched();
        receiver
    }
}

impl Sessions for SqliteStore {
    fn decide(
        &self,
        session: &SessionKey,
        lookup: Lookup,
        holder: Option<OwnerId>,
        decision: Decision,
    ) -> BoxFuture<'_, Result<Decided, DecideError>> {
        let session = session.clone();
        let mut decision = Some(decision);
        let work = self.writer.write_undoing(move |connection| {
            let Some(decision) = decision.take() else { return Err(Error::Failed("it was decided before".into())) };
            let decided = sessions::decide(connection, &session, &lookup, holder, decision)?;
            let notice = Notice::when(decided.as_ref().is_ok_and(|decided| !decided.accepted.is_empty()));
            Ok((decided, notice))
        });
        Box::pin(async move { Ok(work.await??) })
    }

    fn tasks(&self, query: TaskQuery) -> BoxFuture<'_, Result<Vec<TaskRow>, Error>> {
        Box::pin(self.reader.read(move |connection| sessions::tasks(connection, &query)))
    }

    fn queued_before(&self, session: &SessionKey, task_id: TaskId) -> BoxFuture<'_, Result<usize, Error>> {
        let session = session.clone();
        Box::pin(self.reader.read(move |connection| sessions::queued_before(connection, &session, task_id)))
    }

    fn sessions(&self, project: &str) -> BoxFuture<'_, Result<Vec<SessionRow>, Error>> {
        let project = project.to_owned();
        Box::pin(self.reader.read(move |connection| sessions::sessions(connection, &project)))
    }
}

impl Logs for SqliteStore {
    fn append(
        &self,
        lease: &Lease,
        records: Arc<[Record]>,
        standing: Standing,
    ) -> BoxFuture<'_, Result<Appended, Error>> {
        let append = Append::encode(lease, &records, standing);
        Box::pin(async move {
            let Some(append) = append? else { return Ok(Appended::default()) };
            let notice = Notice::when(append.ends());
            self.writer.write_undoing(move |connection| Ok((append.write(connection)?, notice))).await
        })
    }

    fn records(&self, uid: &Uid, after: Seq, most: usize) -> BoxFuture<'_, Result<Vec<Record>, Error>> {
        let uid = uid.clone();
        let events = self.reader.read(move |connection| logs::events(connection, &uid, after, most));
        Box::pin(async move { logs::decode_events(&events.await?, after, most) })
    }

    fn tail(&self, session: &SessionKey, after: Position, most: usize) -> BoxFuture<'_, Result<Tail, Error>> {
        let session = session.clone();
        let look = self.reader.read(move |connection| tail::look(connection, &session, after, most));
        Box::pin(async move { look.await?.decode(after) })
    }

    fn sweep(&self, sweep: Sweep) -> BoxFuture<'_, Result<Swept, Error>> {
        match sweep.sweeping {
            Sweeping::Look => Box::pin(self.reader.read(move |connection| attic::sweep(connection, &sweep))),
            Sweeping::Remove => {
                Box::pin(self.writer.write(move |connection| Ok((attic::sweep(connection, &sweep)?, Notice::None))))
            }
        }
    }
}

impl Leases for SqliteStore {
    fn beat(&self, owner: &Owner, now: Timestamp) -> BoxFuture<'_, Result<(), Error>> {
        let owner = owner.clone();
        Box::pin(self.writer.write(move |connection| Ok((leases::beat(connection, &owner, now)?, Notice::None))))
    }

    fn owners(&self) -> BoxFuture<'_, Result<Vec<OwnerRow>, Error>> {
        Box::pin(self.reader.read(leases::owners))
    }

    fn claim(&self, uid: &Uid, owner: OwnerId, dead: Vec<OwnerId>) -> BoxFuture<'_, Result<Option<Lease>, Error>> {
        let uid = uid.clone();
        Box::pin(
            self.writer
                .write(move |connection| Ok((leases::claim(connection, uid.clone(), owner, &dead)?, Notice::None))),
        )
    }

    fn release(&self, lease: &Lease) -> BoxFuture<'_, Result<(), Error>> {
        let lease = lease.clone();
        Box::pin(self.writer.write(move |connection| {
            let released = leases::release(connection, &lease)?;
            Ok(((), Notice::when(released)))
        }))
    }
}

impl Inbox for SqliteStore {
    fn send(&self, uid: &Uid, command: Command) -> BoxFuture<'_, Result<(), Error>> {
        let uid = uid.clone();
        Box::pin(self.writer.write(move |connection| {
            let sent = leases::send(connection, &uid, command)?;
            Ok(((), Notice::when(sent)))
        }))
    }

    fn drain(&self, owner: OwnerId) -> BoxFuture<'_, Result<Vec<(Uid, Command)>, Error>> {
        Box::pin(async move {
            // Mostly there is nothing to take, and looking costs no turn at writing.
            if self.reader.read(move |connection| leases::commands(connection, owner)).await?.is_empty() {
                return Ok(Vec::new());
            }
            self.writer.write(move |connection| Ok((leases::drain(connection, owner)?, Notice::None))).await
        })
    }
}
