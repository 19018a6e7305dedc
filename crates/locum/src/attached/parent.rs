//! The parent's work for one worker: it keeps the log, asks the models, runs the tools that the worker has not, and
//! goes on where a worker is lost.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::process::Stdio;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::{Either, select};
use locum_core::liveness::Patience;
use locum_core::task::event::{Activity, ProcessEnd, StopCause};
use locum_core::task::{Record, Step, Task, TaskEvent};
use locum_core::transcript::{Intent, ToolOutput, ToolSpec};
use locum_models::{Delta, Prefix};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::frame::{Failure, Given, LogWish, Order, Said, ToWorker, Wanted};
use super::line::{Line, Parting, Turn};
use crate::asking::{Answer, Asker, Question};
use crate::desk::Desk;
use crate::driver::{Asking, Attention, Driver, Finish, Heard, StopSignals, tool_scope};
use crate::engine::Engine;
use crate::journal::{Journal, JournalError};
use crate::store::{self, Lease};
use crate::tools::{Tool, ToolScope};
use crate::worker::{self, Moved};

/// Bytes of a reply that may wait for a worker to hear them. It gets the whole reply anyway; what it does not hear
/// before is missing only in what is left of a reply that was cut off.
const UNHEARD_BYTES_MAX: usize = 1024 * 1024;

/// What a task needs to be driven.
pub(crate) struct Post<'a> {
    pub(crate) engine: &'a Arc<Engine>,
    pub(crate) lease: Lease,
    pub(crate) signals: StopSignals,
    pub(crate) moved: &'a Moved<'a>,
}

/// Drives a task in workers of its own, as far as it goes. Dropping the future ends the worker and loses nothing that
/// was recorded.
pub(crate) async fn drive(post: Post<'_>, task: &mut Task) -> Result<Finish, JournalError> {
    loop {
        if !needs_worker(&post, task) {
            return finish(&post, task, None).await;
        }
        let mut parent = match Parent::start(&post, task).await {
            Ok(parent) => parent,
            Err(StartError::Store(error)) => return Err(error.into()),
            Err(StartError::Process(details)) => {
                return finish(&post, task, Some((StopCause::Isolation { details }, None))).await;
            }
        };
        let parting = parent.serve().await;
        let Parent { mut line, partial, .. } = parent;
        let stop = match parting {
            Err(error) => {
                line.end().await;
                return Err(error);
            }
            Ok(Parted::Ended) => return Ok(Finish::Ended),
            Ok(Parted::Left(Parting::Finished)) if post.signals.hand_over.is_cancelled() => {
                line.see_off().await;
                return Ok(Finish::HandedOver);
            }
            Ok(Parted::Left(Parting::Finished)) => {
                line.see_off().await;
                *task = note_loss(&post, "it gave its task up".to_owned()).await?;
                continue;
            }
            Ok(Parted::Left(Parting::Lost(why))) => {
                line.end().await;
                *task = note_loss(&post, why).await?;
                continue;
            }
            Ok(Parted::Left(Parting::Stalled { after_s, during })) => StopCause::Stalled { after_s, during },
            Ok(Parted::Left(Parting::Unheeded)) if post.signals.cancel.is_cancelled() => StopCause::Cancelled,
            Ok(Parted::Left(Parting::Unheeded)) => {
                line.end().await;
                return Ok(Finish::HandedOver);
            }
        };
        let end = line.end().await;
        *task = worker::load(post.engine, &post.lease.uid).await?;
        return finish_after(&post, task, stop, partial, end).await;
    }
}

/// Whether there is something to do that a worker must do.
fn needs_worker(post: &Post<'_>, task: &Task) -> bool {
    match task.next_step() {
        Step::Park | Step::Done | Step::Record(TaskEvent::Ended { .. }) => false,
        Step::Record(_)
        | Step::PrepareWorkspace
        | Step::CloseWorkspace
        | Step::CallModel { .. }
        | Step::CallTools { .. } => !post.signals.cancel.is_cancelled() && !post.signals.hand_over.is_cancelled(),
    }
}

/// Takes the task to its end here: nothing is left of it that a worker would have to do.
async fn finish(
    post: &Post<'_>,
    task: &mut Task,
    stop: Option<(StopCause, Option<String>)>,
) -> Result<Finish, JournalError> {
    let desk = Desk::of_engine(Arc::clone(post.engine), task.plan().session.clone());
    let mut journal = Journal::new(&post.engine.hands, post.lease.clone());
    if let Some((cause, partial)) = stop {
        journal.push(task, TaskEvent::Stopped { cause, partial })?;
    }
    let (hands, signals) = (&post.engine.hands, post.signals.clone());
    Driver { task, journal, hands, desk, signals, moved: post.moved }.drive().await
}

/// The same, after a worker that had to be ended.
async fn finish_after(
    post: &Post<'_>,
    task: &mut Task,
    cause: StopCause,
    partial: Option<String>,
    end: ProcessEnd,
) -> Result<Finish, JournalError> {
    let mut journal = Journal::new(&post.engine.hands, post.lease.clone());
    journal.push(task, TaskEvent::Stopped { cause, partial })?;
    journal.push(task, TaskEvent::ProcessesEnded { processes: vec![end] })?;
    journal.flush(task).await?;
    finish(post, task, None).await
}

/// Records that a worker is gone, and returns the task as it is without it.
async fn note_loss(post: &Post<'_>, why: String) -> Result<Task, JournalError> {
    let mut task = worker::load(post.engine, &post.lease.uid).await?;
    post.engine.note(&task, "worker", &why);
    let mut journal = Journal::new(&post.engine.hands, post.lease.clone());
    journal.push(&mut task, TaskEvent::WorkerLost { why })?;
    journal.flush(&task).await?;
    Ok(task)
}

/// Why there is no worker.
enum StartError {
    Store(store::Error),
    Process(String),
}

/// How serving a worker ended.
enum Parted {
    /// The task has ended, and the worker with it.
    Ended,
    /// The worker is left to be seen to.
    Left(Parting),
}

/// A worker at work, and what it needs.
struct Parent<'a, 'b> {
    post: &'a Post<'b>,
    task: &'a mut Task,
    journal: Journal,
    desk: Desk,
    tools: Arc<[ToolSpec]>,
    prefix: Prefix,
    line: Line,
    /// What was heard of a reply that was cut off with the worker.
    partial: Option<String>,
}

impl<'a, 'b> Parent<'a, 'b> {
    /// Starts a worker and tells it what to do.
    async fn start(post: &'a Post<'b>, task: &'a mut Task) -> Result<Self, StartError> {
        let (engine, hands) = (post.engine, &post.engine.hands);
        let program = engine.worker_program.as_deref();
        let program = program
            .ok_or_else(|| StartError::Process("this program cannot be started again as a worker".to_owned()))?;
        let failed = |error: std::io::Error| StartError::Process(format!("its worker cannot be started: {error}"));
        let complaints = engine.launcher.as_ref().map_or_else(Stdio::null, crate::launch::Launcher::complaints);
        let line = Line::start(program, complaints, hands.patience, post.signals.clone()).map_err(failed)?;
        hands.jobs.note(&post.lease.uid, &line.process());
        // What is durable is the task; whatever was pushed and not written is not.
        let records = hands.store.records(&post.lease.uid, 0, usize::MAX).await.map_err(StartError::Store)?;
        let misfit = |error| StartError::Store(store::Error::Corrupt(format!("task {}: {error}", post.lease.uid)));
        *task = Task::replay(records.clone()).map_err(misfit)?;
        line.tell(&ToWorker::Order(Box::new(order(engine, task)))).map_err(failed)?;
        for record in records {
            line.tell(&ToWorker::Record(Box::new(record))).map_err(failed)?;
        }
        line.tell(&ToWorker::Begin).map_err(failed)?;
        Ok(Self {
            desk: Desk::of_engine(Arc::clone(engine), task.plan().session.clone()),
            journal: Journal::new(hands, post.lease.clone()),
            tools: hands.tools.specs(&task.plan().grants.tools),
            prefix: Prefix::default(),
            partial: None,
            post,
            task,
            line,
        })
    }

    async fn serve(&mut self) -> Result<Parted, JournalError> {
        loop {
            let turn = self.line.next(&self.post.engine.hands.log).await;
            let served = match turn {
                Turn::Parted(parting) => Some(Parted::Left(parting)),
                // It was given in the meantime.
                Turn::Unwanted(_) => None,
                Turn::Wanted { id, wanted: Wanted::Append { records } } => self.append(id, records).await?,
                Turn::Wanted { id, wanted: Wanted::Reply } => self.reply(id).await?,
                Turn::Wanted { id, wanted: Wanted::Consent(asked) } => {
                    let asker = self.post.engine.hands.asker.clone();
                    self.line.run(id, Box::pin(async move { (id, consent(asker, asked.into()).await) }));
                    None
                }
                Turn::Wanted { id, wanted: Wanted::Claim { path } } => {
                    let pen = self.post.engine.hands.writers.pen(&self.post.lease.uid, self.task.root());
                    self.line.run(
                        id,
                        Box::pin(async move { (id, Given::Claimed { refused: pen.claim(&path).await.err() }) }),
                    );
                    None
                }
                Turn::Wanted { id, wanted: Wanted::Prepared { name, input } } => {
                    self.run(id, &name, None, |tool, scope| Box::pin(prepared(tool, scope, input)));
                    None
                }
                Turn::Wanted { id, wanted: Wanted::Output { name, input, intent } } => {
                    self.run(id, &name, intent, |tool, scope| Box::pin(output(tool, scope, input)));
                    None
                }
            };
            if let Some(served) = served {
                return Ok(served);
            }
        }
    }

    /// Writes what happened. The end of the task is written when its worker is gone: then nothing of it is left.
    async fn append(&mut self, id: u64, records: Vec<Record>) -> Result<Option<Parted>, JournalError> {
        let hands = &self.post.engine.hands;
        let mut ended = false;
        for record in records {
            // What was taken in and not covered comes again, with what was said to that.
            if record.seq <= self.task.seq() {
                continue;
            }
            match &record.event {
                // What was encoded for one model is not what another one is sent.
                TaskEvent::ModelReplaced { .. } => self.prefix = Prefix::default(),
                TaskEvent::Ended { .. } => {
                    ended = true;
                    if let Err(parting) = self.line.give(id, Given::Appended { nearing: None }) {
                        return Ok(Some(Parted::Left(parting)));
                    }
                    let processes = vec![self.line.hear_out(&hands.log).await];
                    self.journal.push(self.task, TaskEvent::ProcessesEnded { processes })?;
                }
                _ => {}
            }
            self.journal.push(self.task, record.event)?;
        }
        let given = match self.journal.flush(self.task).await {
            Ok(appended) => {
                if !appended.moved.is_empty() {
                    (self.post.moved)(appended.moved);
                }
                Given::Appended { nearing: appended.nearing }
            }
            Err(JournalError::Store(store::Error::Overdrawn(shortage))) => Given::Overdrawn { shortage },
            Err(error) => return Err(error),
        };
        if ended {
            return Ok(Some(Parted::Ended));
        }
        self.line.note(if self.task.is_calling_tools() { Activity::Tool } else { Activity::Model });
        Ok(self.line.give(id, given).err().map(Parted::Left))
    }

    /// Asks the model what the task says next, unless the worker no longer waits for it.
    async fn reply(&mut self, id: u64) -> Result<Option<Parted>, JournalError> {
        let lost = |why: &str| Ok(Some(Parted::Left(Parting::Lost(why.to_owned()))));
        if !matches!(self.task.next_step(), Step::CallModel { .. }) {
            return lost("it asked for a reply that its task did not announce");
        }
        let hands = &self.post.engine.hands;
        // The worker minds the clock and the task's stop; this side only does as it says.
        let patience = Patience { inactivity_ms: u64::MAX, ..hands.patience };
        let attention = Attention { signals: StopSignals::default(), deadline: None, patience };
        let heard = Heard::new();
        let outbox = Arc::clone(&self.line.outbox);
        let mut relay = move |delta: Delta<'_>| {
            if outbox.len() < UNHEARD_BYTES_MAX {
                // What is too long for one message is in the reply.
                outbox.push(&ToWorker::Heard { id, piece: delta.into() }).ok();
            }
        };
        let asking = Asking { hands, task: self.task, tools: &self.tools, attention: &attention, heard: &heard };
        let answer = {
            let mut call = pin!(asking.ask(&mut self.prefix, &mut relay));
            loop {
                match select(call.as_mut(), pin!(self.line.next(&hands.log))).await {
                    Either::Left((answer, _)) => break Ok(answer),
                    Either::Right((Turn::Unwanted(unwanted), _)) if unwanted == id => return Ok(None),
                    Either::Right((Turn::Unwanted(_), _)) => {}
                    Either::Right((Turn::Wanted { .. }, _)) => {
                        return lost("it asked for something while it waited for a reply");
                    }
                    Either::Right((Turn::Parted(parting), _)) => break Err(parting),
                }
            }
        };
        let given = match answer {
            Err(parting) => {
                self.partial = heard.into_text();
                return Ok(Some(Parted::Left(parting)));
            }
            // Nothing interrupts it on this side.
            Ok(Err(_)) => return lost("its model call was interrupted"),
            Ok(Ok(Ok(reply))) => Given::Reply(Box::new(hands.redactor.value(reply)?)),
            Ok(Ok(Err(error))) => Given::Failure(hands.redactor.value(Failure::from(error))?),
        };
        Ok(self.line.give(id, given).err().map(Parted::Left))
    }

    /// Runs a tool that the worker has not.
    fn run(
        &mut self,
        id: u64,
        name: &str,
        intent: Option<Intent>,
        call: impl FnOnce(Arc<dyn Tool>, ToolScope) -> futures_util::future::BoxFuture<'static, Given>,
    ) {
        let hands = &self.post.engine.hands;
        let granted = self.task.plan().grants.tools.iter().any(|tool| tool.name == name);
        let Some(tool) = hands.tools.get(name).filter(|_| granted) else {
            let given = Given::Output(ToolOutput::failed(format!("The tool `{name}` is not available here any more.")));
            self.line.run(id, Box::pin(async move { (id, given) }));
            return;
        };
        let stop = CancellationToken::new();
        let scope = ToolScope { intent, ..tool_scope(self.task, hands, &self.desk, stop.clone()) };
        let (name, running) = (name.to_owned(), call(tool, scope));
        let guarded = async move {
            // Blocking work that outlives its future sees this and ends.
            let _ended = stop.drop_guard();
            let given = AssertUnwindSafe(running).catch_unwind().await;
            let broken = || ToolOutput::failed(format!("The tool `{name}` failed inside and gave no answer."));
            (id, given.unwrap_or_else(|_| Given::Output(broken())))
        };
        self.line.run(id, Box::pin(guarded));
    }
}

async fn consent(asker: Option<Arc<dyn Asker>>, question: Question) -> Given {
    let Some(asker) = asker else { return Given::Consent(Said::Nobody) };
    Given::Consent(match asker.ask(&question).await {
        Answer::Yes => Said::Yes,
        Answer::No => Said::No,
        Answer::Nobody => Said::Nobody,
    })
}

async fn prepared(tool: Arc<dyn Tool>, scope: ToolScope, input: Value) -> Given {
    match tool.prepare(&input, &scope).await {
        Ok(prepared) => Given::Prepared { subject: prepared.subject, intent: prepared.intent },
        Err(output) => Given::Output(output),
    }
}

async fn output(tool: Arc<dyn Tool>, scope: ToolScope, input: Value) -> Given {
    match tool.call(input, &scope).await {
        Ok(output) => Given::Output(output),
        Err(error) => Given::ToolLayer { why: error.to_string() },
    }
}

/// What a worker for this task is told.
fn order(engine: &Engine, task: &Task) -> Order {
    let (hands, plan) = (&engine.hands, task.plan());
    let is_own = |name: &str| hands.tools.get(name).is_some_and(|tool| tool.comes_with_locum());
    let log = match (hands.log.is_open(), hands.log.wants_payloads()) {
        (false, _) => LogWish::Nothing,
        (true, false) => LogWish::Calls,
        (true, true) => LogWish::CallsWithPayloads,
    };
    Order {
        session: plan.session.clone(),
        root: engine.rules.root.clone(),
        worktrees: hands.worktrees.clone(),
        sandbox: hands.jobs.sandbox().cloned(),
        inactivity_ms: hands.patience.inactivity_ms,
        tool_ms: hands.patience.tool_ms,
        forwarded: plan.grants.tools.iter().filter(|tool| !is_own(&tool.name)).cloned().collect(),
        log,
        can_ask: hands.asker.is_some(),
    }
}
