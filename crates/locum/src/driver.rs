//! The one loop: ask the task what comes next, do it, record what happened.
//!
//! Foreground, background, chain, parallel and resume all come through here; they differ only in data.

mod asking;
mod attend;
mod tooling;
mod workspace;

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use locum_core::liveness::Patience;
use locum_core::task::event::{Activity, ModelFailure, StopCause};
use locum_core::task::{Step, Task, TaskEvent};
use locum_core::transcript::{Repeat, ToolCall, ToolSpec};
use locum_core::usage::TokenCount;
use locum_models::{ModelError, Prefix, retry};
use tokio::time::Instant;

use crate::desk::Desk;
use crate::hands::Hands;
use crate::journal::{Journal, JournalError};
use crate::store::{self, Appended};
use crate::worker::Moved;

pub(crate) use asking::Asking;
pub(crate) use attend::{Attention, Heard, StopSignals};
use attend::{Deadline, Interrupt};
pub(crate) use tooling::scope as tool_scope;
use tooling::{Cleared, Granted, Running};

/// How a drive ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finish {
    /// The task has ended.
    Ended,
    /// The task waits for a place or for other tasks.
    Parked,
    /// This process gives the task up as it is; another one goes on.
    HandedOver,
}

/// Whether the loop goes on after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    GoOn,
    HandOver,
}

/// One task being driven.
pub(crate) struct Driver<'a> {
    pub(crate) task: &'a mut Task,
    pub(crate) journal: Journal,
    pub(crate) hands: &'a Hands,
    pub(crate) desk: Desk,
    pub(crate) signals: StopSignals,
    /// Told about tasks that may start because of what was recorded.
    pub(crate) moved: &'a Moved<'a>,
}

impl Driver<'_> {
    /// Drives the task as far as it goes. Dropping the future loses nothing that was recorded: another drive goes on
    /// from the log.
    pub(crate) async fn drive(mut self) -> Result<Finish, JournalError> {
        let mut prefix = Prefix::default();
        let tools = self.hands.tools.specs(&self.task.plan().grants.tools);
        loop {
            let next = match self.task.next_step() {
                Step::Done => {
                    self.flush().await?;
                    return Ok(Finish::Ended);
                }
                Step::Park if !self.signals.cancel.is_cancelled() => return Ok(Finish::Parked),
                Step::Park => self.interrupted(Interrupt::Stop(StopCause::Cancelled), None)?,
                Step::Record(event) => {
                    match &event {
                        // What was encoded for one model is not what another one is sent.
                        TaskEvent::ModelReplaced { .. } => prefix = Prefix::default(),
                        TaskEvent::Ended { .. } => self.end_processes().await?,
                        _ => {}
                    }
                    self.journal.push(self.task, event)?;
                    Next::GoOn
                }
                // What few tasks do, or few times, must not make the drives of all tasks larger.
                Step::PrepareWorkspace => Box::pin(self.prepare_workspace()).await?,
                Step::CloseWorkspace => Box::pin(self.close_workspace()).await?,
                Step::CallModel { turn } => self.call_model(turn, &tools, &mut prefix).await?,
                Step::CallTools { turn, calls, repeat } => self.call_tools(turn, calls, repeat).await?,
            };
            if next == Next::HandOver {
                return Ok(Finish::HandedOver);
            }
        }
    }

    /// Ends what the task has under way: when the log says that it has ended, nothing of it is left.
    async fn end_processes(&mut self) -> Result<(), JournalError> {
        let processes = self.hands.jobs.end(&self.task.plan().uid, &self.hands.pool).await;
        if processes.is_empty() {
            return Ok(());
        }
        self.journal.push(self.task, TaskEvent::ProcessesEnded { processes })
    }

    async fn flush(&mut self) -> Result<(), JournalError> {
        let appended = self.journal.flush(self.task).await?;
        self.take_in(appended)
    }

    /// Tells what an append has moved, and notes once that a budget is nearly used up.
    fn take_in(&mut self, appended: Appended) -> Result<(), JournalError> {
        if !appended.moved.is_empty() {
            (self.moved)(appended.moved);
        }
        match appended.nearing {
            Some(scarce) if !self.task.is_warned() && self.task.outcome().is_none() => {
                self.journal.push(self.task, TaskEvent::BudgetNearing { scarce })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Ends what was under way as the interrupt says.
    fn interrupted(&mut self, interrupt: Interrupt, partial: Option<String>) -> Result<Next, JournalError> {
        match interrupt {
            Interrupt::HandOver => Ok(Next::HandOver),
            Interrupt::Stop(cause) => {
                self.journal.push(self.task, TaskEvent::Stopped { cause, partial })?;
                Ok(Next::GoOn)
            }
        }
    }

    /// How long the task may be silent.
    fn patience(&self) -> Patience {
        let idle_s = self.task.plan().face.bounds.idle_s;
        idle_s.map_or(self.hands.patience, |idle_s| self.hands.patience.at_most(idle_s.saturating_mul(1000)))
    }

    fn attention(&self, patience: Patience) -> Attention {
        Attention { signals: self.signals.clone(), deadline: self.deadline(), patience }
    }

    /// When the task's wall clock ends, counted from its first start, also if that was in another process.
    fn deadline(&self) -> Option<Deadline> {
        let after_s = self.task.plan().bounds.budget.timeout_s?;
        let passed = self.hands.clock.now().millis_since(self.task.started_at()?);
        let left = Duration::from_secs(after_s).saturating_sub(Duration::from_millis(passed));
        // A deadline beyond the clock's end is none.
        Instant::now().checked_add(left).map(|at| Deadline { at, after_s })
    }

    async fn call_model(
        &mut self,
        turn: u32,
        tools: &Arc<[ToolSpec]>,
        prefix: &mut Prefix,
    ) -> Result<Next, JournalError> {
        match self.flush().await {
            Ok(()) => {}
            Err(JournalError::Store(store::Error::Overdrawn(shortage))) => {
                self.journal.push(self.task, TaskEvent::TurnDeclined { turn, shortage })?;
                return Ok(Next::GoOn);
            }
            Err(error) => return Err(error),
        }
        let heard = Heard::new();
        let attention = self.attention(self.patience());
        let asking = Asking { hands: self.hands, task: self.task, tools, attention: &attention, heard: &heard };
        match asking.ask(prefix, &mut |_| {}).await {
            Ok(Ok(reply)) => {
                self.journal.push(self.task, TaskEvent::Replied { turn, reply })?;
                Ok(Next::GoOn)
            }
            Ok(Err(error)) => Box::pin(self.model_failed(turn, error, heard)).await,
            Err(interrupt) => self.interrupted(interrupt, heard.into_text()),
        }
    }

    async fn model_failed(&mut self, turn: u32, error: ModelError, heard: Heard) -> Result<Next, JournalError> {
        let wait = retry::wait_before_retry(&error, self.task.failures() + 1, fastrand::f64());
        let retry_in_ms = wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        let is_cut = error.partial.is_some() || heard.has_begun();
        let partial = error.partial.or(heard.into_text());
        let chars = partial.as_ref().map_or(0, |text| text.chars().count());
        let tokens = if is_cut { self.task.spent_by_cut_call(chars) } else { TokenCount::default() };
        let failure = ModelFailure { kind: error.kind, message: error.message, partial };
        self.journal.push(self.task, TaskEvent::ModelFailed { turn, failure, retry_in_ms, tokens })?;
        // What the governor holds back waits there, in the order in which it may go.
        let Some(wait) = wait.filter(|_| error.held_for.is_none()) else { return Ok(Next::GoOn) };
        self.flush().await?;
        // Waiting for a provider is not silence of the task: only a stop or the wall clock ends it.
        let attention = self.attention(Patience { inactivity_ms: u64::MAX, ..self.patience() });
        match attention.attend(tokio::time::sleep(wait), Activity::Model, &Heard::new()).await {
            Ok(()) => Ok(Next::GoOn),
            Err(interrupt) => self.interrupted(interrupt, None),
        }
    }

    async fn call_tools(&mut self, turn: u32, calls: Vec<ToolCall>, repeat: Repeat) -> Result<Next, JournalError> {
        let attention = self.attention(self.patience());
        // Made once: what it says of the task is the same for every call.
        self.desk = self.desk.for_task(self.task);
        let is_judged = repeat == Repeat::Guarded || self.task.plan().grants.permissions.has_rules();
        let mut cleared = if is_judged {
            match Box::pin(tooling::clear(self.task, self.hands, &self.desk, &attention, calls)).await {
                Ok(cleared) => cleared,
                Err(interrupt) => return self.interrupted(interrupt, None),
            }
        } else {
            Cleared::freely(calls)
        };
        for (call, output) in cleared.refused.drain(..) {
            self.journal.push(self.task, TaskEvent::ToolEnded { turn, call_id: call.id, output, duration_ms: 0 })?;
        }
        let mut calls = Vec::with_capacity(cleared.granted.len());
        let mut intent = None;
        for Granted { call, intent: announced, consent } in cleared.granted {
            let (call_id, name) = (call.id.clone(), call.name.clone());
            let event = TaskEvent::ToolStarted { turn, call_id, name, repeat, intent: announced.clone(), consent };
            self.journal.push(self.task, event)?;
            intent = announced;
            calls.push(call);
        }
        if calls.is_empty() {
            return Ok(Next::GoOn);
        }
        self.run_tools(turn, Running { calls, intent, repeat }, &attention).await
    }

    async fn run_tools(&mut self, turn: u32, running: Running, attention: &Attention) -> Result<Next, JournalError> {
        let mut appended = Appended::default();
        // What cannot be repeated must be on disk before it acts; what can be, may act meanwhile.
        let ran = match running.repeat {
            Repeat::Unsafe | Repeat::Guarded => {
                self.flush().await?;
                Box::pin(tooling::run(self.task, self.hands, &self.desk, attention, &running)).await
            }
            Repeat::Safe => {
                let mut run = pin!(tooling::run(self.task, self.hands, &self.desk, attention, &running));
                // What answers at once is recorded with its answer: nothing was waited for in between.
                match poll_fn(|context| Poll::Ready(run.as_mut().poll(context))).await {
                    Poll::Ready(ran) => ran,
                    Poll::Pending => {
                        let (flushed, ran) = futures_util::future::join(self.journal.flush(self.task), run).await;
                        appended = flushed?;
                        ran
                    }
                }
            }
        };
        self.take_in(appended)?;
        match ran {
            Err(interrupt) => self.interrupted(interrupt, None),
            Ok(ran) => {
                for (call, ran) in running.calls.into_iter().zip(ran) {
                    let tooling::Ran { output, duration_ms } = ran;
                    let event = TaskEvent::ToolEnded { turn, call_id: call.id, output, duration_ms };
                    self.journal.push(self.task, event)?;
                }
                Ok(Next::GoOn)
            }
        }
    }
}
