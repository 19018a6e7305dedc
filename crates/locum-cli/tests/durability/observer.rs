//! Looking at the store while others write it, through the library that they use themselves.

use std::path::Path;

use locum::store::sqlite::SqliteStore;
use locum::store::{Leases, Logs, Sessions, TaskQuery, TaskRow};
use locum::task::Record;
use locum::{SessionKey, TaskId};
use tokio::runtime::Runtime;

/// More tasks than any session here has.
const TASKS_MAX: u32 = 1000;

/// Sees one session.
pub(crate) struct Observer {
    runtime: Runtime,
    store: SqliteStore,
    session: SessionKey,
}

impl Observer {
    pub(crate) fn open(database: &Path, session: SessionKey) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let store = runtime.block_on(async { SqliteStore::open(database) }).unwrap();
        Self { runtime, store, session }
    }

    fn query(&self, query: TaskQuery) -> Vec<TaskRow> {
        self.runtime.block_on(self.store.tasks(query)).unwrap()
    }

    /// Every task of the session, oldest first.
    pub(crate) fn tasks(&self) -> Vec<TaskRow> {
        self.query(TaskQuery::Ids(self.session.clone(), (1..=TASKS_MAX).map(TaskId::new).collect()))
    }

    /// Those that have not ended.
    pub(crate) fn unfinished(&self) -> Vec<TaskRow> {
        self.query(TaskQuery::Unfinished(Some(self.session.clone())))
    }

    /// The log of a task.
    pub(crate) fn log(&self, row: &TaskRow) -> Vec<Record> {
        self.runtime.block_on(self.store.records(&row.summary.uid, 0, usize::MAX)).unwrap()
    }

    /// The length of the log of the session's first task.
    pub(crate) fn first_seq(&self) -> u64 {
        let rows = self.query(TaskQuery::Ids(self.session.clone(), vec![TaskId::new(1)]));
        rows.first().map_or(0, |row| row.summary.seq)
    }

    /// How many events of the session's uncollected tasks are durable.
    pub(crate) fn events(&self) -> u64 {
        let rows = self.query(TaskQuery::Uncollected(self.session.clone()));
        rows.iter().map(|row| row.summary.seq).sum()
    }

    /// The processes that hold unfinished tasks.
    pub(crate) fn owners(&self) -> Vec<u32> {
        let owners = self.runtime.block_on(self.store.owners()).unwrap();
        owners.iter().map(|row| row.owner.pid).collect()
    }
}
