//! The worker itself: one task, driven as everywhere, with its parent behind it.

use std::convert::Infallible;
use std::io;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select, try_join3};
use locum_core::liveness::Patience;
use locum_core::task::Task;
use tokio::net::unix::pipe;

use super::frame::{Frames, LogWish, Order, ToParent, ToWorker};
use super::link::{Answer, Link, ParentAsker, ParentModel, ParentTool};
use crate::desk::{BuildError, Desk};
use crate::driver::{Driver, StopSignals};
use crate::journal::Journal;
use crate::launch::WorkerError;
use crate::operation_log::OperationLog;
use crate::tools::standard_tools;
use crate::writers::Others;

/// How often a worker says that it is there: often enough that one missing word means nothing to any limit.
const ALIVE: Duration = Duration::from_secs(1);

/// How long the last words of a worker may take: its parent reads them at once.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How long work of tools that nobody waits for may go on when the worker ends.
const LEFT_BEHIND: Duration = Duration::from_millis(200);

/// Does a worker's work, until the task has ended or its parent is gone. What it is told comes through its standard
/// input, what it says goes to its standard output.
pub(crate) fn run() -> Result<(), WorkerError> {
    let failed = |error: io::Error| WorkerError::Order(Box::new(error));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let worked = runtime.block_on(async {
        let from = std::io::stdin().as_fd().try_clone_to_owned().and_then(pipe::Receiver::from_owned_fd);
        let to = standard_output().and_then(pipe::Sender::from_owned_fd);
        work(from.map_err(failed)?, to.map_err(failed)?).await
    });
    // Blocking work may hang on a file for ever; the end of the parent must not.
    runtime.shutdown_timeout(LEFT_BEHIND);
    worked
}

fn standard_output() -> io::Result<std::os::fd::OwnedFd> {
    std::io::stdout().as_fd().try_clone_to_owned()
}

async fn work(from: pipe::Receiver, to: pipe::Sender) -> Result<(), WorkerError> {
    let failed = |error: io::Error| WorkerError::Order(Box::new(error));
    let mut frames = Frames::new(from);
    // A parent that is gone before it has said anything wants nothing.
    let Some((order, mut task)) = listen(&mut frames).await.map_err(failed)? else { return Ok(()) };
    let link = Arc::new(Link::default());
    let session = order.session.clone();
    let desk = desk(order, &link).map_err(|error| WorkerError::Order(Box::new(error)))?;
    let engine = desk.engine();
    let desk = Desk::of_engine(Arc::clone(&engine), session);
    let signals = StopSignals::default();
    let uid = task.plan().uid.clone();
    let driven = async {
        let driver = Driver {
            task: &mut task,
            journal: Journal::of_parent(&engine.hands, Arc::clone(&link)),
            hands: &engine.hands,
            desk: desk.clone(),
            signals: signals.clone(),
            // The parent knows whom it has released.
            moved: &|_| {},
        };
        // Whether the task has ended is in its log, which the parent has.
        driver.drive().await.ok();
        // Given up or ended, nothing that the task started outlives this process.
        engine.hands.jobs.end(&uid, &engine.hands.pool).await;
    };
    let minding = async {
        let all = try_join3(hear(&mut frames, &link, &signals), speak(&link, to), live(&link));
        all.await.map(|(never, _, _)| never)
    };
    match select(std::pin::pin!(driven), std::pin::pin!(minding)).await {
        Either::Left(((), minding)) => {
            link.outbox.push(&ToParent::Finished).map_err(failed)?;
            // The parent closes its end when it has heard this.
            tokio::time::timeout(LAST_WORDS, minding).await.ok();
            Ok(())
        }
        // Whoever has no parent any more has nobody to work for.
        Either::Right(_) => Ok(()),
    }
}

/// What the parent says first: the order and the task.
async fn listen(frames: &mut Frames<pipe::Receiver>) -> io::Result<Option<(Order, Task)>> {
    let Some(ToWorker::Order(order)) = frames.next().await? else { return Ok(None) };
    let mut records = Vec::new();
    loop {
        match frames.next().await? {
            Some(ToWorker::Record(record)) => records.push(*record),
            Some(ToWorker::Begin) => break,
            Some(_) | None => return Ok(None),
        }
    }
    let task = Task::replay(records).map_err(io::Error::other)?;
    Ok(Some((*order, task)))
}

/// A desk with the tools of this process, and the parent for everything else.
fn desk(order: Order, link: &Arc<Link>) -> Result<Desk, BuildError> {
    let patience = Patience { inactivity_ms: order.inactivity_ms, tool_ms: order.tool_ms, ..Patience::default() };
    let log = match order.log {
        LogWish::Nothing => OperationLog::default(),
        LogWish::Calls => OperationLog::of_parent(Arc::clone(link), false),
        LogWish::CallsWithPayloads => OperationLog::of_parent(Arc::clone(link), true),
    };
    let mut builder = Desk::builder()
        .answered_by(Arc::new(ParentModel(Arc::clone(link))))
        .writing_among(Others::Parent(Arc::clone(link)))
        .session(order.session.id.as_str())
        .root(order.root)
        .patience(patience)
        .log(log);
    for tool in standard_tools() {
        builder = builder.tool(tool);
    }
    for granted in order.forwarded {
        builder = builder.tool(Arc::new(ParentTool::new(granted, Arc::clone(link))));
    }
    if order.can_ask {
        builder = builder.asker(Arc::new(ParentAsker(Arc::clone(link))));
    }
    if let Some(directory) = order.worktrees {
        builder = builder.worktrees(directory);
    }
    if let Some(sandbox) = order.sandbox {
        builder = builder.sandbox(sandbox);
    }
    builder.build()
}

/// Hears what the parent says, until it says no more.
async fn hear(frames: &mut Frames<pipe::Receiver>, link: &Link, signals: &StopSignals) -> io::Result<Infallible> {
    loop {
        match frames.next().await? {
            Some(ToWorker::Heard { id, piece }) => link.take(id, Answer::Heard(piece)).await,
            Some(ToWorker::Given { id, given }) => link.take(id, Answer::Given(given)).await,
            Some(ToWorker::Cancel) => signals.cancel.cancel(),
            Some(ToWorker::HandOver) => signals.hand_over.cancel(),
            Some(ToWorker::Order(_) | ToWorker::Record(_) | ToWorker::Begin) | None => {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

async fn speak(link: &Link, to: pipe::Sender) -> io::Result<Infallible> {
    Err(link.outbox.run(to).await)
}

async fn live(link: &Link) -> io::Result<Infallible> {
    loop {
        link.outbox.push(&ToParent::Alive)?;
        tokio::time::sleep(ALIVE).await;
    }
}
