//! A task is a log: this module folds it.
//!
//! [`Task::apply`] is the only place that changes a task, [`Task::next_step`] (in `step`) the only one that decides
//! what it does next. Both are pure, so a task can be cut after any event and continued by another process.

mod beginning;
pub mod errand;
pub mod event;
pub mod files;
mod funds;
pub mod outcome;
pub mod plan;
mod reading;
mod repetition;
pub mod step;
pub mod summary;
mod tooling;
pub mod workspace;

use std::sync::Arc;

use crate::budget::Scarce;
use crate::ids::{Seq, Timestamp};
use crate::transcript::{Message, Reply, Stop, ToolCall};
use crate::usage::{TokenCount, Usage};

pub use event::{Record, TaskEvent};
pub use files::KnownFiles;
pub use outcome::{Outcome, Reason, Status};
pub use plan::Plan;
pub use step::Step;
pub use summary::TaskSummary;
pub use workspace::{Workspace, Worktree};

use event::{HandedOn, ModelFailure, Parked, StopCause};
use funds::Funds;
use plan::{HandOn, ModelName};
use repetition::Repetition;
use tooling::{PendingCall, ToolState, chars_of};

/// Told to the model in its last turn.
pub const LAST_TURN_NOTICE: &str =
    "This is your last turn. You cannot call tools any more: give your final answer now, with what you have.";

/// Told to the model where its budget allows no more than one answer.
pub const LAST_ANSWER_NOTICE: &str = "Your budget is used up with this reply. You cannot call tools any more: give your final answer now, with what you \
                                      have.";

/// Told to the model when it does the same again and again.
pub const REPETITION_NOTICE: &str = "You have done the same several times in a row, with the same result. Do something else, or give your answer with \
                                     what you have.";

/// A log that no version of locum can have written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the log of the task does not fit at entry {seq}: {why}")]
pub struct Misfit {
    /// The entry.
    pub seq: Seq,
    /// What is wrong with it.
    pub why: &'static str,
}

/// A task, as its log tells it.
#[derive(Debug, Clone)]
pub struct Task {
    plan: Arc<Plan>,
    seq: Seq,
    phase: Phase,
    conversation: Conversation,
    spent: Spent,
    funds: Funds,
    surroundings: workspace::Surroundings,
    files: Arc<KnownFiles>,
    repetition: Repetition,
    clock: Times,
}

/// Where a task stands between two events.
#[derive(Debug, Clone)]
enum Phase {
    Parked(Parked),
    /// The next turn may begin.
    Ready,
    /// A model call is under way, or was when the log was cut.
    Asking {
        reserved: TokenCount,
        call: CallState,
    },
    /// The last reply's tool calls are being answered.
    Tooling(Vec<PendingCall>),
    /// The last reply calls no tools: it is the answer, one way or another.
    Answered,
    /// The last model call failed for good.
    ModelGaveUp(ModelFailure),
    Stopped(StopCause),
    Ended(Outcome),
}

/// Whether this process made the model call that the log's last entry announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallState {
    /// It was announced just now and may be made.
    Announced,
    /// Another process announced it and was lost: it must be announced, and paid for, again.
    Lost,
}

#[derive(Debug, Clone, Default)]
struct Conversation {
    system: String,
    task: String,
    messages: Vec<Message>,
    /// Characters of everything that is sent with the next request.
    chars: usize,
    /// What the model said last, whole or cut off.
    last_text: Option<String>,
}

#[derive(Debug, Clone, Default)]
struct Spent {
    usage: Usage,
    /// Model calls that were answered or failed: the position in a script.
    calls: u32,
    /// Failed calls since the last answer.
    failures: u32,
    /// Replies that called tools.
    tool_replies: u32,
    /// The models that gave up, in order, each with what it said.
    given_up: Vec<String>,
    /// Workers that ended before it did.
    workers_lost: u32,
    /// What the rules did not allow, each once.
    forbidden: Vec<String>,
}

#[derive(Debug, Clone, Copy)]
struct Times {
    created: Timestamp,
    started: Option<Timestamp>,
    last: Timestamp,
}

impl Task {
    /// Folds a whole log. A call that the log announces and does not answer is in doubt: another process made it.
    pub fn replay(records: impl IntoIterator<Item = Record>) -> Result<Self, Misfit> {
        let mut records = records.into_iter();
        let first = records.next().ok_or(Misfit { seq: 0, why: "it is empty" })?;
        let mut task = Self::accepted(first)?;
        for record in records {
            task.apply(record)?;
        }
        task.doubt_call();
        Ok(task)
    }

    fn lose_worker(&mut self) {
        self.spent.workers_lost += 1;
        self.doubt_call();
    }

    /// A call that was announced and not answered was made by somebody else, or is lost with whoever made it.
    fn doubt_call(&mut self) {
        if let Phase::Asking { call, .. } = &mut self.phase {
            *call = CallState::Lost;
        }
    }

    /// A task that was accepted just now.
    pub fn accepted(record: Record) -> Result<Self, Misfit> {
        let TaskEvent::Accepted { plan, parked } = record.event else {
            return Err(Misfit { seq: record.seq, why: "it does not begin with an acceptance" });
        };
        if record.seq != 1 {
            return Err(Misfit { seq: record.seq, why: "its first number is not 1" });
        }
        if plan.log_version > plan::LOG_VERSION {
            return Err(Misfit { seq: record.seq, why: "it was written by a newer version of locum" });
        }
        let funds = Funds::of(&plan);
        let mut task = Self {
            plan,
            seq: record.seq,
            phase: parked.map_or(Phase::Ready, Phase::Parked),
            conversation: Conversation::default(),
            spent: Spent::default(),
            funds,
            surroundings: workspace::Surroundings::default(),
            files: Arc::default(),
            repetition: Repetition::default(),
            clock: Times { created: record.at, started: None, last: record.at },
        };
        task.spent.usage.cost_usd = task.funds.cost_usd();
        if parked.is_none() {
            task.open(record.at, &[]);
        }
        Ok(task)
    }

    /// Takes in what happened. The only place that changes a task.
    pub fn apply(&mut self, record: Record) -> Result<(), Misfit> {
        let misfit = |why| Misfit { seq: record.seq, why };
        if record.seq != self.seq + 1 {
            return Err(misfit("its number does not follow"));
        }
        if matches!(self.phase, Phase::Ended(_)) {
            return Err(misfit("the task had ended"));
        }
        match record.event {
            TaskEvent::Accepted { .. } => return Err(misfit("the task was accepted before")),
            TaskEvent::Released { inputs } => {
                if !matches!(self.phase, Phase::Parked(_)) {
                    return Err(misfit("the task was not waiting"));
                }
                self.open(record.at, &inputs);
                self.phase = Phase::Ready;
            }
            TaskEvent::WorkspaceReady { workspace } => self.enter(workspace).map_err(misfit)?,
            TaskEvent::WorkspaceClosed { worktree } => self.leave(worktree).map_err(misfit)?,
            TaskEvent::TurnStarted { turn, reserved, closing } => {
                if !self.may_announce(turn) {
                    return Err(misfit("the turn does not follow"));
                }
                self.start_turn(turn, reserved, closing);
            }
            TaskEvent::TurnDeclined { turn, shortage } => {
                self.asked_in(turn).ok_or(misfit("no turn was announced"))?;
                self.decline_turn(shortage);
            }
            TaskEvent::BudgetNearing { scarce } => self.funds.note_nearing(scarce),
            TaskEvent::Replied { turn, reply } => {
                let reserved = self.asked_in(turn).ok_or(misfit("nothing was asked"))?;
                self.charge_reply(&reply, reserved);
                self.take_reply(reply);
            }
            TaskEvent::ModelFailed { turn, failure, retry_in_ms, tokens } => {
                let reserved = self.asked_in(turn).ok_or(misfit("nothing was asked"))?;
                self.charge_failure(tokens);
                self.take_failure(failure, retry_in_ms, tokens.is_zero().then_some(reserved));
            }
            TaskEvent::ModelReplaced { turn, to, why, .. } => self.replace_model(turn, &to, why).map_err(misfit)?,
            TaskEvent::ToolStarted { turn, call_id, repeat, intent, .. } => {
                self.start_tool(turn, &call_id, repeat, intent).map_err(misfit)?;
            }
            TaskEvent::ToolEnded { turn, call_id, output, .. } => {
                self.end_tool(turn, &call_id, output).map_err(misfit)?;
            }
            TaskEvent::Stopped { cause, partial } => {
                self.count_unanswered();
                self.keep_text(partial);
                self.phase = Phase::Stopped(cause);
            }
            TaskEvent::WorkerLost { .. } => self.lose_worker(),
            // It tells what was seen; nothing follows from it.
            TaskEvent::ProcessesEnded { .. } => {}
            TaskEvent::Ended { outcome } => {
                self.count_unanswered();
                self.phase = Phase::Ended(outcome);
                // A finished task holds no transcript: whoever wants it reads the log.
                self.conversation = Conversation::default();
                self.files = Arc::default();
                self.repetition = Repetition::default();
            }
        }
        self.seq = record.seq;
        self.clock.last = record.at;
        self.spent.usage.duration_ms = self.clock.started.map_or(0, |started| record.at.millis_since(started));
        Ok(())
    }

    fn open(&mut self, at: Timestamp, inputs: &[HandedOn]) {
        let assignment = &self.plan.assignment;
        // The task before it in a chain comes after those that it names itself.
        let (task, blocks) = match (self.plan.start.hand_on, inputs) {
            (HandOn::Previous, [blocks @ .., previous]) => {
                (assignment.task.replace("{previous}", &previous.text), blocks)
            }
            (HandOn::Previous | HandOn::Blocks, blocks) => (assignment.task.clone(), blocks),
        };
        let in_prompt = assignment.system_prompt.contains("{{task}}");
        let system = if in_prompt {
            assignment.system_prompt.replace("{{task}}", &task)
        } else {
            assignment.system_prompt.clone()
        };
        let mut said = if in_prompt { "Begin.".to_owned() } else { task.clone() };
        for input in blocks {
            said.push_str(&format!("\n\n[{} {}]\n{}", input.task_id, input.agent, input.text));
        }
        self.clock.started = Some(at);
        let chars = system.chars().count() + said.chars().count() + self.plan.grants.tool_chars();
        self.conversation = Conversation { system, task, messages: vec![Message::User(said)], chars, last_text: None };
    }

    /// Whether a model call may be announced: in the next turn, or again in a turn whose call was lost.
    fn may_announce(&self, turn: u32) -> bool {
        match self.phase {
            Phase::Ready => turn == self.spent.usage.turns + 1,
            Phase::Asking { .. } => turn == self.spent.usage.turns,
            Phase::Parked(_)
            | Phase::Tooling(_)
            | Phase::Answered
            | Phase::ModelGaveUp(_)
            | Phase::Stopped(_)
            | Phase::Ended(_) => false,
        }
    }

    /// What was set aside for the request of this turn, if one is under way.
    fn asked_in(&self, turn: u32) -> Option<TokenCount> {
        match self.phase {
            Phase::Asking { reserved, .. } if turn == self.spent.usage.turns => Some(reserved),
            _ => None,
        }
    }

    /// A call whose answer will never be recorded may have been paid for: what was set aside counts as spent.
    fn count_unanswered(&mut self) {
        if let Phase::Asking { reserved, .. } = self.phase {
            self.charge(reserved);
        }
    }

    fn start_turn(&mut self, turn: u32, reserved: TokenCount, closing: Option<Scarce>) {
        self.count_unanswered();
        self.funds.closing = closing;
        self.spent.usage.turns = turn;
        self.phase = Phase::Asking { reserved, call: CallState::Announced };
    }

    fn take_reply(&mut self, reply: Reply) {
        self.spent.calls += 1;
        self.spent.failures = 0;
        self.keep_text(Some(reply.text.clone()));
        self.conversation.chars += reply.text.chars().count();
        // What a refused reply asks for may be cut anywhere: none of it is run.
        let refused = matches!(reply.stop, Stop::Refused(_));
        let calls = reply.tool_calls.clone();
        self.conversation.messages.push(Message::Assistant(reply));
        if calls.is_empty() || refused {
            self.phase = Phase::Answered;
            return;
        }
        self.spent.tool_replies += 1;
        let pending = |call: ToolCall| {
            self.conversation.chars += call.name.chars().count() + chars_of(&call.input);
            PendingCall { call, state: ToolState::Asked }
        };
        self.phase = Phase::Tooling(calls.into_iter().map(pending).collect());
    }

    /// A call that failed before it was answered spent nothing: the next attempt has what was `held` for it. One that was
    /// cut is paid for, so that the next attempt is announced, and must be covered, like any other request.
    fn take_failure(&mut self, failure: ModelFailure, retry_in_ms: Option<u64>, held: Option<TokenCount>) {
        self.spent.calls += 1;
        self.spent.failures += 1;
        self.keep_text(failure.partial.clone());
        self.phase = match (retry_in_ms, held) {
            (Some(_), Some(reserved)) => Phase::Asking { reserved, call: CallState::Announced },
            (Some(_), None) => Phase::Asking { reserved: TokenCount::default(), call: CallState::Lost },
            (None, _) => Phase::ModelGaveUp(failure),
        };
    }

    /// The next model of the plan answers, in the turn in which the one before gave up.
    fn replace_model(&mut self, turn: u32, to: &ModelName, why: String) -> Result<(), &'static str> {
        let next = self.next_model().is_some_and(|next| next.model == *to);
        if !next || turn != self.spent.usage.turns || !matches!(self.phase, Phase::ModelGaveUp(_)) {
            return Err("the model does not follow");
        }
        self.spent.given_up.push(why);
        self.spent.failures = 0;
        // A script of its own begins at its beginning.
        self.spent.calls = 0;
        // The failed call was answered, with an error: nothing was spent, and the turn is announced once more.
        self.phase = Phase::Asking { reserved: TokenCount::default(), call: CallState::Lost };
        Ok(())
    }

    fn keep_text(&mut self, text: Option<String>) {
        if let Some(text) = text.filter(|text| !text.trim().is_empty()) {
            self.conversation.last_text = Some(text);
        }
    }
}
