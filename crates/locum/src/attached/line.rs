//! The parent's way to a worker: what it says, what it is given, what may end it, and its end.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::{AbortHandle, Abortable, BoxFuture};
use futures_util::stream::FuturesUnordered;
use locum_core::limits;
use locum_core::liveness::{self, Patience, Pulse, Silence, Verdict};
use locum_core::task::event::{Activity, ProcessEnd};
use tokio::process::{Child, ChildStdout};
use tokio::time::Instant;

use super::frame::{Frames, Given, Outbox, ToParent, ToWorker, Wanted};
use crate::driver::StopSignals;
use crate::operation_log::OperationLog;
use crate::process;

/// How long a worker may take to do as it is told: it ends its commands first.
const OBEY: Duration = Duration::from_millis(limits::COMMAND_GRACE_MS + 1_500);

/// What a worker does that concerns its parent.
#[derive(Debug)]
pub(super) enum Turn {
    /// It asks for something.
    Wanted { id: u64, wanted: Wanted },
    /// It no longer waits for this.
    Unwanted(u64),
    /// It works no more.
    Parted(Parting),
}

/// Why a worker works no more.
#[derive(Debug)]
pub(super) enum Parting {
    /// It has done what it could: the task has ended, or is given up as it is.
    Finished,
    /// It ended before, or said something that makes no sense.
    Lost(String),
    /// It shows no sign of life.
    Stalled { after_s: u64, during: Activity },
    /// It was told to stop, and did not.
    Unheeded,
}

/// A worker, seen from its parent.
pub(super) struct Line {
    child: Child,
    pid: u32,
    started: String,
    frames: Frames<ChildStdout>,
    pub(super) outbox: Arc<Outbox>,
    /// Writes what is in the outbox; none once the worker does not read any more.
    writing: Option<Pin<Box<dyn Future<Output = io::Error> + Send>>>,
    /// Calls of tools that the parent runs.
    running: FuturesUnordered<Abortable<BoxFuture<'static, (u64, Given)>>>,
    wanted: HashMap<u64, AbortHandle>,
    signals: StopSignals,
    told: Told,
    watch: Watch,
}

/// What the worker was told.
#[derive(Default)]
struct Told {
    cancel: bool,
    hand_over: bool,
    /// When it must have done so.
    obeyed_by: Option<Instant>,
}

/// Whether the worker lives.
struct Watch {
    since: Instant,
    silence: Silence,
    patience: Patience,
    activity: Activity,
}

impl Line {
    /// Starts a worker. It waits to be told what to do.
    pub(super) fn start(
        program: &Path,
        complaints: Stdio,
        patience: Patience,
        signals: StopSignals,
    ) -> io::Result<Self> {
        let arguments = [crate::launch::WORKER_ARGUMENT, super::ATTACHED];
        let mut child = process::start_attached(program, &arguments, complaints)?;
        let pipe = || io::Error::other("it has no standard input or output");
        let stdin = child.stdin.take().ok_or_else(pipe)?;
        let stdout = child.stdout.take().ok_or_else(pipe)?;
        let pid = child.id().ok_or_else(|| io::Error::other("it ended at once"))?;
        let outbox = Arc::new(Outbox::default());
        let theirs = Arc::clone(&outbox);
        Ok(Self {
            child,
            pid,
            started: process::start_time_of(pid),
            frames: Frames::new(stdout),
            outbox,
            writing: Some(Box::pin(async move { theirs.run(stdin).await })),
            running: FuturesUnordered::new(),
            wanted: HashMap::new(),
            signals,
            told: Told::default(),
            watch: Watch { since: Instant::now(), silence: Silence::default(), patience, activity: Activity::Startup },
        })
    }

    /// The worker, as a process.
    pub(super) fn process(&self) -> ProcessEnd {
        ProcessEnd { pid: self.pid, started: self.started.clone(), ended: false }
    }

    /// Tells the worker something.
    pub(super) fn tell(&self, said: &ToWorker) -> io::Result<()> {
        self.outbox.push(said)
    }

    /// Gives the worker what it asked for. What is too long to be given ends the worker.
    pub(super) fn give(&self, id: u64, given: Given) -> Result<(), Parting> {
        self.tell(&ToWorker::Given { id, given }).map_err(|error| Parting::Lost(error.to_string()))
    }

    /// Lets a call run; its answer is given when it is there.
    pub(super) fn run(&mut self, id: u64, call: BoxFuture<'static, (u64, Given)>) {
        let (handle, registration) = AbortHandle::new_pair();
        self.wanted.insert(id, handle);
        self.running.push(Abortable::new(call, registration));
    }

    /// Notes what the worker is doing.
    pub(super) fn note(&mut self, activity: Activity) {
        self.watch.activity = activity;
    }

    /// What the worker does next that concerns its parent. Dropping the future loses nothing.
    pub(super) async fn next(&mut self, log: &OperationLog) -> Turn {
        loop {
            let look_again = match self.look() {
                Ok(at) => at,
                Err(parting) => return Turn::Parted(parting),
            };
            tokio::select! {
                biased;
                () = self.signals.cancel.cancelled(), if !self.told.cancel => {
                    self.told.cancel = true;
                    self.order(&ToWorker::Cancel);
                }
                () = self.signals.hand_over.cancelled(), if !self.told.hand_over => {
                    self.told.hand_over = true;
                    self.order(&ToWorker::HandOver);
                }
                _ = written(&mut self.writing), if self.writing.is_some() => self.writing = None,
                frame = self.frames.next::<ToParent>() => {
                    self.watch.heard();
                    if let Some(turn) = self.hear(frame, log) {
                        return turn;
                    }
                }
                Some(done) = self.running.next() => {
                    if let Ok((id, given)) = done {
                        self.wanted.remove(&id);
                        if let Err(parting) = self.give(id, given) {
                            return Turn::Parted(parting);
                        }
                    }
                }
                () = tokio::time::sleep_until(look_again) => {}
            }
        }
    }

    /// Tells the worker to stop; it has so long for it.
    fn order(&mut self, said: &ToWorker) {
        self.told.obeyed_by.get_or_insert_with(|| Instant::now() + OBEY);
        // A worker that cannot be told is not there any more, which is heard soon.
        self.tell(said).ok();
    }

    fn hear(&mut self, frame: io::Result<Option<ToParent>>, log: &OperationLog) -> Option<Turn> {
        match frame {
            Ok(Some(ToParent::Alive)) => {
                if self.watch.activity == Activity::Startup {
                    self.watch.activity = Activity::Model;
                }
                None
            }
            Ok(Some(ToParent::Wanted { id, wanted })) => Some(Turn::Wanted { id, wanted }),
            Ok(Some(ToParent::Unwanted { id })) => match self.wanted.remove(&id) {
                Some(call) => {
                    call.abort();
                    None
                }
                None => Some(Turn::Unwanted(id)),
            },
            Ok(Some(ToParent::Log { line })) => {
                log.write_line(line);
                None
            }
            Ok(Some(ToParent::Finished)) => Some(Turn::Parted(Parting::Finished)),
            Ok(None) => Some(Turn::Parted(Parting::Lost("it ended before its task".to_owned()))),
            Err(error) => Some(Turn::Parted(Parting::Lost(error.to_string()))),
        }
    }

    /// When to look again, or what has run out.
    fn look(&mut self) -> Result<Instant, Parting> {
        let now = Instant::now();
        if self.told.obeyed_by.is_some_and(|by| by <= now) {
            return Err(Parting::Unheeded);
        }
        let left = self.watch.look(now)?;
        let again = now + left;
        Ok(self.told.obeyed_by.map_or(again, |by| by.min(again)))
    }

    /// Hears a worker out that has nothing more to ask for, and sees it off.
    pub(super) async fn hear_out(&mut self, log: &OperationLog) -> ProcessEnd {
        let heard_out = async { while !matches!(self.next(log).await, Turn::Parted(_)) {} };
        // One that does not finish is ended.
        tokio::time::timeout(OBEY, heard_out).await.ok();
        self.see_off().await
    }

    /// Waits until the worker is gone, which it should be by itself: after a grace period it is asked to end, and after
    /// another one it is killed.
    pub(super) async fn see_off(&mut self) -> ProcessEnd {
        let grace = Duration::from_millis(self.watch.patience.kill_grace_ms);
        // With this its standard input ends: nobody wants anything any more.
        self.writing = None;
        if tokio::time::timeout(grace, self.child.wait()).await.is_err() {
            return self.end().await;
        }
        ProcessEnd { ended: true, ..self.process() }
    }

    /// Ends the worker: TERM, a grace period, KILL.
    pub(super) async fn end(&mut self) -> ProcessEnd {
        let grace = Duration::from_millis(self.watch.patience.kill_grace_ms);
        self.writing = None;
        process::terminate(&self.child);
        let mut ended = tokio::time::timeout(grace, self.child.wait()).await.is_ok();
        if !ended {
            // It may have ended in this moment.
            self.child.start_kill().ok();
            ended = tokio::time::timeout(grace, self.child.wait()).await.is_ok();
        }
        ProcessEnd { ended, ..self.process() }
    }
}

async fn written(writing: &mut Option<Pin<Box<dyn Future<Output = io::Error> + Send>>>) -> io::Error {
    match writing {
        Some(writing) => writing.await,
        None => std::future::pending().await,
    }
}

impl Watch {
    fn now_ms(&self, now: Instant) -> u64 {
        u64::try_from(now.saturating_duration_since(self.since).as_millis()).unwrap_or(u64::MAX)
    }

    fn heard(&mut self) {
        let now_ms = self.now_ms(Instant::now());
        self.silence.broken(now_ms);
    }

    fn look(&mut self, now: Instant) -> Result<Duration, Parting> {
        let silent_ms = self.silence.look(self.now_ms(now));
        match liveness::judge(Pulse { activity: self.activity, silent_ms }, &self.patience) {
            Verdict::Alive { left_ms } => Ok(Duration::from_millis(left_ms.min(liveness::LOOK_MS_MAX))),
            Verdict::Stalled { limit_ms } => Err(Parting::Stalled { after_s: limit_ms / 1000, during: self.activity }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks every second, and says after how many of them the watch gave up. Between two looks so much time is lost.
    fn found_after(activity: Activity, asleep_at: Option<u64>) -> (u64, u64) {
        let since = Instant::now();
        let patience = Patience::default();
        let mut watch = Watch { since, silence: Silence::default(), patience, activity };
        let mut slept = 0;
        for second in 1..10_000 {
            slept += if asleep_at == Some(second) { 3_600 } else { 0 };
            if let Err(Parting::Stalled { after_s, during }) = watch.look(since + Duration::from_secs(second + slept)) {
                assert_eq!(during, activity);
                return (second, after_s);
            }
        }
        panic!("it is waited for without end")
    }

    #[test]
    fn a_silent_worker_is_found_at_its_limit_and_a_machine_that_slept_is_not_blamed_on_it() {
        for (activity, limit_s) in [(Activity::Startup, 60), (Activity::Model, 180), (Activity::Tool, 600)] {
            assert_eq!(found_after(activity, None), (limit_s, limit_s));
            let (second, after_s) = found_after(activity, Some(30));
            // The hour counts as one look.
            assert_eq!(after_s, limit_s);
            assert!((limit_s - 5..=limit_s).contains(&second), "{activity:?}: {second}");
        }
    }
}
