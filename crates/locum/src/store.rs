//! Where tasks and sessions are kept. Two stores, memory and SQLite, under one conformance suite.
//!
//! A store keeps logs, sessions and leases; it decides nothing. What may happen is decided by the pure functions of
//! the core, which a store calls inside its transactions: the caller's decision in [`Sessions::decide`], and
//! [`locum_core::release::settle`] whenever a task was accepted or ended.
//!
#![doc = include_str!("store/custom.md")]

pub mod memory;
pub mod sqlite;

mod notice;
mod position;
mod settling;

#[cfg(test)]
mod conformance;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use locum_core::budget::{Scarce, Shortage};
use locum_core::ids::{Seq, SessionId, SessionKey, TaskId, Timestamp, Uid};
use locum_core::protocol::Refusal;
use locum_core::session::{Lookup, SessionChange, SessionView};
use locum_core::task::Record;
use locum_core::task::summary::{Standing, TaskSummary};
use serde::Serialize;
use tokio::sync::watch;

pub use position::{NoPosition, PlacedRecord, Position, Tail};

/// Everything a store does. The futures it returns run on the engine's runtime and must not block it.
pub trait Store: Sessions + Logs + Leases + Inbox {
    /// Changes whenever a task was accepted, released or ended, a command was sent, or another process wrote
    /// anything. Not with every event: who wants those reads the log.
    fn changes(&self) -> watch::Receiver<u64>;
}

/// A decision over a session: pure, and made inside the store's transaction.
pub type Decision = Box<dyn FnOnce(&SessionView) -> Result<Vec<SessionChange>, Refusal> + Send>;

/// Sessions and what is in them.
pub trait Sessions: Send + Sync {
    /// Loads what `lookup` names, lets `decision` judge it and writes its changes, all in one transaction. A session
    /// that does not exist is empty, and is made by the first change. Accepted tasks are held by `holder` from the
    /// start (epoch 1), if there is one. Once it was polled, the decision may take effect though the future is dropped.
    fn decide(
        &self,
        session: &SessionKey,
        lookup: Lookup,
        holder: Option<OwnerId>,
        decision: Decision,
    ) -> BoxFuture<'_, Result<Decided, DecideError>>;

    /// Tasks on one line each, oldest first but for [`TaskQuery::Page`]. May be dropped at any time.
    fn tasks(&self, query: TaskQuery) -> BoxFuture<'_, Result<Vec<TaskRow>, Error>>;

    /// How many tasks of a session are queued that are older than this one. May be dropped at any time.
    fn queued_before(&self, session: &SessionKey, task_id: TaskId) -> BoxFuture<'_, Result<usize, Error>>;

    /// The sessions of a project, by id.
    fn sessions(&self, project: &str) -> BoxFuture<'_, Result<Vec<SessionRow>, Error>>;
}

/// The logs of tasks.
pub trait Logs: Send + Sync {
    /// Appends to a task's log if the lease is still good and the first record follows the log's last. The records
    /// are durable when this answers. What the standing draws is taken from the session's purses in the same transaction,
    /// as [`locum_core::budget::draw`] says; records that begin a request are refused with [`Error::Overdrawn`] where it
    /// is not covered, and nothing is written. Parked tasks that may start after it are released in the same transaction. Once
    /// it was polled, the records may be written though the future is dropped.
    fn append(
        &self,
        lease: &Lease,
        records: Arc<[Record]>,
        standing: Standing,
    ) -> BoxFuture<'_, Result<Appended, Error>>;

    /// The records after `after`, at most `most` of them. May be dropped at any time.
    fn records(&self, uid: &Uid, after: Seq, most: usize) -> BoxFuture<'_, Result<Vec<Record>, Error>>;

    /// What the tasks of a session wrote after a position, in the order in which it became durable: about `most`
    /// appends, and not all of them if that would take long. Whoever goes on from where it ended misses nothing and
    /// sees nothing twice. With `most` 0 nothing is read, and it ends where everything does. May be dropped at any time.
    fn tail(&self, session: &SessionKey, after: Position, most: usize) -> BoxFuture<'_, Result<Tail, Error>>;

    /// Removes tasks that ended long ago, with their logs, or says what it would remove. What something unfinished came
    /// from or waits for stays, and so does what was written last: positions and ids go on from it. Dropped early it may
    /// be done or not.
    fn sweep(&self, sweep: Sweep) -> BoxFuture<'_, Result<Swept, Error>>;
}

/// Who works on which task.
pub trait Leases: Send + Sync {
    /// Makes a process known as an owner, or renews its sign of life. May be dropped at any time: it is repeated.
    fn beat(&self, owner: &Owner, now: Timestamp) -> BoxFuture<'_, Result<(), Error>>;

    /// Every owner that holds an unfinished task. May be dropped at any time.
    fn owners(&self) -> BoxFuture<'_, Result<Vec<OwnerRow>, Error>>;

    /// Takes an unfinished task that nobody, or one of the `dead`, holds; the epoch grows, so the old holder can no
    /// longer append. None if somebody else holds it or it has ended. Who holds it already gets the same lease, so a
    /// claim whose future was dropped can be made again.
    fn claim(&self, uid: &Uid, owner: OwnerId, dead: Vec<OwnerId>) -> BoxFuture<'_, Result<Option<Lease>, Error>>;

    /// Gives a task back, for anybody to claim. A lease that is no longer good leaves nothing to give back, and that
    /// is no error. Once it was polled, it may take effect though the future is dropped.
    fn release(&self, lease: &Lease) -> BoxFuture<'_, Result<(), Error>>;
}

/// Commands to whoever holds a task.
pub trait Inbox: Send + Sync {
    /// Leaves a command for the holder of a task, or for whoever will hold it. A task that has ended takes none, and
    /// that is no error: its end may have been a moment ago. Once it was polled, the command may be left though the
    /// future is dropped.
    fn send(&self, uid: &Uid, command: Command) -> BoxFuture<'_, Result<(), Error>>;

    /// Takes the commands for all tasks that this owner holds, oldest first. Wait for the answer: what was taken by a
    /// future that was dropped is lost.
    fn drain(&self, owner: OwnerId) -> BoxFuture<'_, Result<Vec<(Uid, Command)>, Error>>;
}

/// What is old, and what is done about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sweep {
    /// Tasks that ended before this, and owners that hold nothing and were not heard of since.
    pub before: Timestamp,
    /// Tasks that stay whatever their age.
    pub kept: Vec<Uid>,
    /// How many tasks at once: whoever writes meanwhile waits.
    pub most: usize,
    /// What is done about it.
    pub sweeping: Sweeping,
}

/// What is done about what is old.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sweeping {
    /// It is counted.
    Look,
    /// It is removed.
    Remove,
}

/// What was old.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Swept {
    /// Tasks.
    pub tasks: usize,
    /// Appends to their logs.
    pub entries: usize,
    /// Processes that once worked on tasks.
    pub owners: usize,
}

/// What can be said to whoever holds a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// End it, keeping what it has.
    Cancel,
}

/// What a decision led to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Decided {
    /// The tasks that were accepted, as they stand after it, in the order of the changes.
    pub accepted: Vec<TaskRow>,
    /// Tasks that were parked and have started, or have ended because of a dependency, through it; those among
    /// `accepted` are named here too.
    pub moved: Vec<Uid>,
}

/// What an append led to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Appended {
    /// Other tasks that were parked and have started, or have ended because of a dependency, through it.
    pub moved: Vec<Uid>,
    /// A limit of a purse that the task spends from, if most of it is used up.
    pub nearing: Option<Scarce>,
}

/// Which tasks to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskQuery {
    /// Those of a session that were not collected.
    Uncollected(SessionKey),
    /// These of a session, collected or not; unknown ones are left out.
    Ids(SessionKey, Vec<TaskId>),
    /// These; unknown ones are left out.
    Uids(Vec<Uid>),
    /// Those of these that are not parked.
    Unparked(Vec<Uid>),
    /// Those that a task delegated, directly.
    Children(Uid),
    /// Those that have not ended, of one session or of all.
    Unfinished(Option<SessionKey>),
    /// A page of all tasks of a project, or of one session of it, newest first.
    Page {
        /// The project.
        project: String,
        /// The session; every one if left out.
        session: Option<SessionId>,
        /// Only what was accepted before this task.
        before: Option<Uid>,
        /// How many at most.
        most: usize,
    },
}

/// A task in a list.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskRow {
    /// The session.
    pub session: SessionKey,
    /// The task on one line.
    pub summary: TaskSummary,
    /// Whether it was collected.
    pub collected: bool,
    /// Who works on it; nobody once it has ended.
    pub owner: Option<OwnerId>,
}

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// Its id in the project.
    pub id: SessionId,
    /// Whether it can only be read.
    pub archived: bool,
    /// Tasks that were ever accepted.
    pub tasks: u32,
    /// Tasks that have not ended.
    pub unfinished: u32,
    /// Keys of the shared context that have a value.
    pub keys: u32,
}

/// An owner's id: unique for each process that ever was one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnerId(pub u64);

/// A process that works on tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Its id here.
    pub id: OwnerId,
    /// Its process id.
    pub pid: u32,
    /// When it started, in the system's own words; a process id alone is reused.
    pub started: String,
    /// The boot during which it runs; another one means another machine, or a restart.
    pub boot: String,
    /// Whether it lives for its tasks alone and ends with them.
    pub detached: bool,
}

/// An owner and its last sign of life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnerRow {
    /// The owner.
    pub owner: Owner,
    /// When it was last heard of.
    pub beat_at: Timestamp,
}

/// The right to append to a task's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The task.
    pub uid: Uid,
    /// Who holds it.
    pub owner: OwnerId,
    /// Which claim it is.
    pub epoch: u64,
}

/// Why a store did not do as it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Somebody else holds the task now, or has written to its log.
    #[error("the task is held by another worker")]
    Conflict,
    /// There is no such task.
    #[error("there is no such task")]
    NotFound,
    /// What the records set aside is not covered.
    #[error("a budget does not cover it: {0}")]
    Overdrawn(Shortage),
    /// What was read does not make sense.
    #[error("the store holds something that does not make sense: {0}")]
    Corrupt(String),
    /// The store itself failed.
    #[error("the store failed: {0}")]
    Failed(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Why a decision did not take effect.
#[derive(Debug, thiserror::Error)]
pub enum DecideError {
    /// The decision was no.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] Error),
}
