//! Something to be written, and whoever waits for it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::failure::Failure;
use crate::store::Error;
use crate::store::notice::Notice;

/// Something to be written, and whoever waits for it.
pub(super) trait Job: Send {
    /// How what it has written is undone.
    fn undoing(&self) -> Undoing;

    /// Does the work inside a transaction. Whatever an `Err` has written must be undone.
    fn run(&mut self, connection: &Connection) -> Result<Notice, Undo>;

    /// Answers that the work was kept, or was refused for a reason of its own.
    fn answer(self: Box<Self>);

    /// Notes that the whole transaction failed.
    fn fail(&mut self, failure: Failure);
}

/// Work that failed, and the database's failure if that was the reason.
pub(super) struct Undo {
    pub(super) cause: Option<Failure>,
}

/// How what a job has written is undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Undoing {
    /// By itself.
    Alone,
    /// It does that itself.
    Done,
}

/// Work that was posted. It goes back to whoever posted it as a whole: what one thread allocates and another frees makes
/// both wait for the allocator.
pub(super) struct Posted<T, W> {
    work: W,
    done: Option<Result<T, Error>>,
    answer: Option<oneshot::Sender<Box<Self>>>,
    /// The room that the job takes up until it is answered.
    permit: Option<OwnedSemaphorePermit>,
    undoing: Undoing,
}

impl<T, W> Posted<T, W>
where
    T: Send + 'static,
    W: FnMut(&Connection) -> Result<(T, Notice), Error> + Send + 'static,
{
    /// A job, and its way back.
    pub(super) fn new(
        work: W,
        permit: OwnedSemaphorePermit,
        undoing: Undoing,
    ) -> (Box<Self>, oneshot::Receiver<Box<Self>>) {
        let (answer, answered) = oneshot::channel();
        let job = Self { work, done: None, answer: Some(answer), permit: Some(permit), undoing };
        (Box::new(job), answered)
    }

    /// What came of it; none if it was never run.
    pub(super) fn into_done(self) -> Option<Result<T, Error>> {
        self.done
    }
}

impl<T, W> Job for Posted<T, W>
where
    T: Send,
    W: FnMut(&Connection) -> Result<(T, Notice), Error> + Send,
{
    fn undoing(&self) -> Undoing {
        self.undoing
    }

    fn run(&mut self, connection: &Connection) -> Result<Notice, Undo> {
        // A decision that panics must not end the thread, and what was written before it is undone.
        let done = catch_unwind(AssertUnwindSafe(|| (self.work)(connection)));
        let done = done.unwrap_or_else(|_| Err(Error::Failed("the work panicked; nothing of it was kept".into())));
        let (done, verdict) = match done {
            Ok((answer, notice)) => (Ok(answer), Ok(notice)),
            Err(error) => {
                let cause = Failure::behind(&error).cloned();
                (Err(error), Err(Undo { cause }))
            }
        };
        self.done = Some(done);
        verdict
    }

    fn answer(mut self: Box<Self>) {
        drop(self.permit.take());
        if let Some(answer) = self.answer.take() {
            // Nobody may be waiting any more; the work is done all the same.
            answer.send(self).ok();
        }
    }

    fn fail(&mut self, failure: Failure) {
        self.done = Some(Err(failure.into()));
    }
}
