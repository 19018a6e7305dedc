//! The one thread that reads, on a connection that cannot write. Each job is a short statement or two, so a reader
//! never keeps the write-ahead log from being emptied.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use rusqlite::Connection;
use tokio::sync::{Semaphore, oneshot};

use crate::store::Error;

/// Jobs that wait for the reader; whoever comes later waits before handing over.
const JOBS_WAITING_MAX: usize = 1024;

type Job = Box<dyn FnOnce(&Connection) + Send>;

/// A handle on the reader thread.
#[derive(Debug)]
pub(super) struct Reader {
    jobs: Option<Sender<Job>>,
    room: Arc<Semaphore>,
    thread: Option<JoinHandle<()>>,
}

impl Reader {
    /// Starts the thread on this connection.
    pub(super) fn start(connection: Connection) -> Result<Self, Error> {
        let (sender, jobs) = channel::<Job>();
        let builder = thread::Builder::new().name("locum-store-reader".to_owned());
        let thread = builder.spawn(move || {
            for job in jobs {
                job(&connection);
            }
        });
        let thread = thread.map_err(|error| Error::Failed(Box::new(error)))?;
        Ok(Self { jobs: Some(sender), room: Arc::new(Semaphore::new(JOBS_WAITING_MAX)), thread: Some(thread) })
    }

    /// Runs work on the reader thread. The future may be dropped at any time.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let permit = Arc::clone(&self.room).acquire_owned().await.map_err(|_| gone())?;
        let (answer, answered) = oneshot::channel();
        let job = move |connection: &Connection| {
            if !answer.is_closed() {
                // Whoever asked may have stopped waiting in the meantime.
                answer.send(work(connection)).ok();
            }
            drop(permit);
        };
        self.jobs.as_ref().ok_or_else(gone)?.send(Box::new(job)).map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.jobs = None;
        join(self.thread.take());
    }
}

fn gone() -> Error {
    Error::Failed("the thread that reads the database has ended".into())
}

/// Waits for a thread whose channel was closed, unless it is the thread itself that drops the last handle.
pub(super) fn join(thread: Option<JoinHandle<()>>) {
    if let Some(thread) = thread.filter(|thread| thread.thread().id() != thread::current().id()) {
        // A panic of the thread was told to whoever waited for it: its channel was closed.
        thread.join().ok();
    }
}
