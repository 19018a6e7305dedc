//! The one thread that writes. It takes whatever is waiting and commits it together, so that many small writes cost
//! one sync of the disk; between writes it notices what other processes have written.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio::sync::{Semaphore, watch};

use super::failure::Failure;
use super::job::{Job, Posted, Undo, Undoing};
use super::reader::join;
use crate::store::Error;
use crate::store::notice::Notice;

/// Jobs that wait for the writer; whoever comes later waits before handing over.
const JOBS_WAITING_MAX: usize = 1024;

/// Jobs of one commit: the first of them should not wait for long.
const JOBS_PER_COMMIT_MAX: usize = 256;

/// How long a commit waits for the next of a crowd, as long as more keep coming.
const GATHERING: Duration = Duration::from_millis(3);

/// How long a commit waits for the rest of a crowd in all. A model call takes a hundred times as long, and a commit costs
/// as much as a dozen turns.
const GATHERING_MAX: Duration = Duration::from_millis(12);

/// Jobs that came together before, and must be expected meanwhile: a few tasks never wait for each other.
const GATHERED_JOBS_MIN: u32 = 3;

/// Jobs that are not kept waiting for more.
const GATHERED_JOBS_ENOUGH: usize = 192;

/// How often another process's writes are looked for, while somebody watches.
const FOREIGN_CHANGES_EVERY: Duration = Duration::from_millis(50);

/// A handle on the writer thread. Dropping it waits for the jobs that were handed over.
#[derive(Debug)]
pub(super) struct Writer {
    messages: Option<Sender<Message>>,
    room: Arc<Semaphore>,
    commits: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

enum Message {
    Job(Box<dyn Job>),
    /// Somebody began to watch.
    Watched,
}

impl Writer {
    /// Starts the thread on this connection.
    pub(super) fn start(connection: Connection, changes: Arc<watch::Sender<u64>>) -> Result<Self, Error> {
        let (sender, messages) = channel();
        let commits = Arc::new(AtomicU64::new(0));
        // Looked at before anybody can watch: what is written from now on is noticed, however late the watching begins.
        let foreign = (data_version(&connection).map_err(Failure::new)?, Instant::now());
        let arrivals = Arrivals { jobs: 0, since: Instant::now() };
        let mut writing =
            WriterLoop { connection, messages, changes, commits: Arc::clone(&commits), arrivals, foreign };
        let builder = thread::Builder::new().name("locum-store-writer".to_owned());
        let thread = builder.spawn(move || writing.run()).map_err(|error| Error::Failed(Box::new(error)))?;
        let room = Arc::new(Semaphore::new(JOBS_WAITING_MAX));
        Ok(Self { messages: Some(sender), room, commits, thread: Some(thread) })
    }

    /// Runs work on the writer thread; answers when it is durable, or when nothing of it was kept. A future that
    /// is dropped before it could hand the work over leaves it undone; afterwards the work is done all the same.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        work: impl FnMut(&Connection) -> Result<(T, Notice), Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.post(work, Undoing::Alone).await
    }

    /// The same for work that undoes by itself what it has written, whatever it fails of, or ends the transaction if it
    /// cannot. It is spared a savepoint of its own.
    pub(super) async fn write_undoing<T: Send + 'static>(
        &self,
        work: impl FnMut(&Connection) -> Result<(T, Notice), Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.post(work, Undoing::Done).await
    }

    async fn post<T: Send + 'static>(
        &self,
        work: impl FnMut(&Connection) -> Result<(T, Notice), Error> + Send + 'static,
        undoing: Undoing,
    ) -> Result<T, Error> {
        let permit = Arc::clone(&self.room).acquire_owned().await.map_err(|_| gone())?;
        let (job, answered) = Posted::new(work, permit, undoing);
        let messages = self.messages.as_ref().ok_or_else(gone)?;
        messages.send(Message::Job(job)).map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?.into_done().ok_or_else(gone)?
    }

    /// Wakes the thread, which looks for foreign changes only while somebody watches.
    pub(super) fn watched(&self) {
        if let Some(messages) = &self.messages {
            // Fails only if the thread is gone, and then nothing changes any more.
            messages.send(Message::Watched).ok();
        }
    }

    /// Transactions that were committed so far.
    pub(super) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.messages = None;
        join(self.thread.take());
    }
}

fn gone() -> Error {
    Error::Failed("the thread that writes the database has ended".into())
}

/// How fast jobs come: what the last commit took together, and when it began to.
#[derive(Debug, Clone, Copy)]
struct Arrivals {
    jobs: usize,
    since: Instant,
}

impl Arrivals {
    /// Whether enough jobs to wait for are likely to come soon, if they come as they did.
    fn are_crowded(self, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.since);
        let jobs = u32::try_from(self.jobs).unwrap_or(u32::MAX);
        jobs >= GATHERED_JOBS_MIN && GATHERING.saturating_mul(jobs) >= passed.saturating_mul(GATHERED_JOBS_MIN)
    }
}

struct WriterLoop {
    connection: Connection,
    messages: Receiver<Message>,
    changes: Arc<watch::Sender<u64>>,
    commits: Arc<AtomicU64>,
    arrivals: Arrivals,
    /// What was last seen of other connections' writes, and when.
    foreign: (i64, Instant),
}

impl WriterLoop {
    fn run(&mut self) {
        let mut jobs = Vec::with_capacity(JOBS_PER_COMMIT_MAX);
        loop {
            match self.next() {
                Ok(Message::Job(job)) => jobs.push(job),
                Ok(Message::Watched) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.gather(&mut jobs);
            if !jobs.is_empty() {
                self.write(&mut jobs);
            }
            self.look_for_foreign_changes();
        }
    }

    /// Takes what waits beside the first job, and where many tasks are at work, what comes in a moment.
    fn gather(&mut self, jobs: &mut Vec<Box<dyn Job>>) {
        self.take_waiting(jobs);
        let now = Instant::now();
        if self.arrivals.are_crowded(now) {
            let mut before = 0;
            while (before + 1..GATHERED_JOBS_ENOUGH).contains(&jobs.len()) && now.elapsed() < GATHERING_MAX {
                before = jobs.len();
                // Asleep and not waiting for messages: nobody who sends one has to wake it.
                thread::sleep(GATHERING);
                self.take_waiting(jobs);
            }
        }
        if !jobs.is_empty() {
            self.arrivals = Arrivals { jobs: jobs.len(), since: now };
        }
    }

    fn take_waiting(&self, jobs: &mut Vec<Box<dyn Job>>) {
        while jobs.len() < JOBS_PER_COMMIT_MAX {
            match self.messages.try_recv() {
                Ok(Message::Job(job)) => jobs.push(job),
                Ok(Message::Watched) => {}
                Err(_) => break,
            }
        }
    }

    fn next(&self) -> Result<Message, RecvTimeoutError> {
        if self.changes.receiver_count() == 0 {
            return self.messages.recv().map_err(|_| RecvTimeoutError::Disconnected);
        }
        self.messages.recv_timeout(FOREIGN_CHANGES_EVERY)
    }

    fn write(&mut self, jobs: &mut Vec<Box<dyn Job>>) {
        match self.commit(jobs) {
            Ok(Notice::None) => {}
            Ok(Notice::Changed) => self.changes.send_modify(|count| *count += 1),
            Err(failure) => {
                if !self.connection.is_autocommit() {
                    // If even this fails, the next transaction cannot begin and says why.
                    self.connection.execute_batch("ROLLBACK").ok();
                }
                jobs.iter_mut().for_each(|job| job.fail(failure.clone()));
            }
        }
        // One by one from outside: a runtime that is woken so does what it has before, and a crowd does not open a
        // connection each at the same moment.
        jobs.drain(..).for_each(|job| job.answer());
    }

    /// Runs jobs in one transaction. One that fails does not undo the others: it has a savepoint, or undoes itself.
    fn commit(&self, jobs: &mut [Box<dyn Job>]) -> Result<Notice, Failure> {
        let run = |statement: &str| {
            let mut statement = self.connection.prepare_cached(statement).map_err(Failure::new)?;
            statement.execute([]).map_err(Failure::new)
        };
        run("BEGIN IMMEDIATE")?;
        let mut notice = Notice::None;
        for job in jobs {
            let alone = job.undoing() == Undoing::Alone;
            if alone {
                run("SAVEPOINT job")?;
            }
            match job.run(&self.connection) {
                Ok(Notice::None) => {}
                Ok(Notice::Changed) => notice = Notice::Changed,
                // Fails if SQLite has undone the whole transaction, as it may when the disk is full or broken.
                Err(Undo { cause }) if alone => {
                    run("ROLLBACK TO job").map_err(|failure| cause.unwrap_or(failure))?;
                }
                // Nothing of the transaction is left.
                Err(Undo { cause: Some(cause) }) if self.connection.is_autocommit() => return Err(cause),
                // It refused, or failed, and left nothing behind.
                Err(_) => {}
            }
            if alone {
                run("RELEASE job")?;
            }
        }
        run("COMMIT")?;
        self.commits.fetch_add(1, Ordering::Relaxed);
        Ok(notice)
    }

    /// Tells watchers if another connection has written.
    fn look_for_foreign_changes(&mut self) {
        let (seen, looked_at) = self.foreign;
        if looked_at.elapsed() < FOREIGN_CHANGES_EVERY || self.changes.receiver_count() == 0 {
            return;
        }
        // A database that cannot be read shows itself to whoever reads or writes next.
        let Ok(version) = data_version(&self.connection) else { return };
        if version != seen {
            self.changes.send_modify(|count| *count += 1);
        }
        self.foreign = (version, Instant::now());
    }
}

/// A number that changes when another connection writes; what this one writes does not count.
fn data_version(connection: &Connection) -> Result<i64, rusqlite::Error> {
    connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_crowd_is_waited_for() {
        let ms = Duration::from_millis;
        for (jobs, passed, is_crowded) in [
            (0, ms(0), false),
            (1, ms(0), false),
            (2, ms(1), false),
            (3, ms(3), true),
            (3, ms(4), false),
            (8, ms(8), true),
            (8, ms(9), false),
            (256, ms(250), true),
            (256, ms(1000), false),
        ] {
            let since = Instant::now();
            assert_eq!(Arrivals { jobs, since }.are_crowded(since + passed), is_crowded, "{jobs} in {passed:?}");
        }
    }
}
