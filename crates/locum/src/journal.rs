//! The one place that writes a task's log: what is recorded is cleaned of secrets, applied to the task and appended
//! to the store, in that order, so that a resumed task knows exactly what the running one knew.

use std::sync::Arc;
use std::time::Duration;

use locum_core::ids::Timestamp;
use locum_core::task::{Misfit, Record, Task, TaskEvent};

use crate::attached::Link;
use crate::clock::Clock;
use crate::hands::Hands;
use crate::progress::{Hub, News};
use crate::redact::Redactor;
use crate::store::{self, Appended, Lease, Store};
use crate::traces::Traces;

/// How often an append is tried before the driver is told that it failed.
const APPEND_ATTEMPTS: u32 = 4;

/// Writes the log of one task.
pub(crate) struct Journal {
    pages: Pages,
    clock: Arc<dyn Clock>,
    redactor: Redactor,
    hub: Hub,
    traces: Option<Arc<Traces>>,
    /// Applied to the task, not yet durable.
    pending: Vec<Record>,
}

/// Where records become durable.
enum Pages {
    /// In the store, under a lease.
    Store(Arc<dyn Store>, Lease),
    /// Wherever the process that this one works for keeps them.
    Parent(Arc<Link>),
}

/// Why a record could not be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JournalError {
    /// The store did not take it.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The task did not take it.
    #[error(transparent)]
    Misfit(#[from] Misfit),
    /// It could not be cleaned of secrets.
    #[error("a record could not be cleaned of secrets: {0}")]
    Redaction(#[from] serde_json::Error),
}

impl Journal {
    pub(crate) fn new(hands: &Hands, lease: Lease) -> Self {
        Self::on(Pages::Store(Arc::clone(&hands.store), lease), hands)
    }

    /// A journal that the parent of this process writes.
    pub(crate) fn of_parent(hands: &Hands, link: Arc<Link>) -> Self {
        Self::on(Pages::Parent(link), hands)
    }

    fn on(pages: Pages, hands: &Hands) -> Self {
        Self {
            pages,
            clock: Arc::clone(&hands.clock),
            redactor: hands.redactor.clone(),
            hub: hands.hub.clone(),
            traces: hands.traces.clone(),
            pending: Vec::new(),
        }
    }

    /// Applies an event to the task. It is durable after the next [`Journal::flush`].
    pub(crate) fn push(&mut self, task: &mut Task, event: TaskEvent) -> Result<(), JournalError> {
        let event = self.redactor.value(event)?;
        let record = Record { seq: task.seq() + 1, at: self.now(), event };
        task.apply(record.clone())?;
        self.pending.push(record);
        Ok(())
    }

    /// Makes everything pushed so far durable. Where a budget does not cover it, nothing is written and nothing is
    /// forgotten: with the next event the log says so.
    pub(crate) async fn flush(&mut self, task: &Task) -> Result<Appended, JournalError> {
        if self.pending.is_empty() {
            return Ok(Appended::default());
        }
        let records: Arc<[Record]> = std::mem::take(&mut self.pending).into();
        let appended = match self.append(&records, task).await {
            Err(error @ store::Error::Overdrawn(_)) => {
                self.pending = records.to_vec();
                return Err(error.into());
            }
            appended => appended?,
        };
        if self.hub.is_heard() {
            for record in records.iter() {
                self.hub.tell(task.plan(), News::Event(Arc::new(record.clone())));
            }
        }
        if let (Some(traces), Some(Record { event: TaskEvent::Ended { .. }, .. })) = (&self.traces, records.last()) {
            traces.ended(task.plan());
        }
        Ok(appended)
    }

    /// Appends, again if the store fails for a moment: what was paid for, or cannot be done twice, is not forgotten so
    /// easily. An append that was written though the store said otherwise is a conflict the next time, and the log
    /// decides.
    async fn append(&self, records: &Arc<[Record]>, task: &Task) -> Result<Appended, store::Error> {
        let (store, lease) = match &self.pages {
            Pages::Store(store, lease) => (store, lease),
            Pages::Parent(link) => return link.append(records).await,
        };
        for attempt in 1..APPEND_ATTEMPTS {
            match store.append(lease, Arc::clone(records), task.standing()).await {
                Err(store::Error::Failed(_)) => {
                    tokio::time::sleep(Duration::from_millis(100 * u64::from(attempt))).await;
                }
                answer => return answer,
            }
        }
        store.append(lease, Arc::clone(records), task.standing()).await
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }
}
