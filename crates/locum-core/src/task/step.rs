//! What a task does next: a pure decision over its state.

use serde_json::Value;

use super::event::{ModelFailure, StopCause, TaskEvent};
use super::outcome::{Failure, Outcome};
use super::{CallState, PendingCall, Phase, Task, ToolState};
use crate::budget::Reservation;
use crate::limits;
use crate::protocol::face::TurnRule;
use crate::transcript::{Message, Repeat, Reply, Stop, ToolCall, ToolOutput};
use crate::usage::TokenCount;

/// What the driver has to do now.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Nothing: the task waits for a place or for other tasks.
    Park,
    /// Append this; it follows from the log alone.
    Record(TaskEvent),
    /// Make a worktree for the task, and append it or why there is none.
    PrepareWorkspace,
    /// See to what is in the task's worktree, and append what was seen.
    CloseWorkspace,
    /// Ask the model, and append its answer or its failure.
    CallModel {
        /// The turn that was announced.
        turn: u32,
    },
    /// Run these tool calls at once, and append their ends.
    CallTools {
        /// The turn.
        turn: u32,
        /// Either several that may be repeated, or one that may not, or not always.
        calls: Vec<ToolCall>,
        /// Whether their start must be on disk before they act.
        repeat: Repeat,
    },
    /// Nothing: the task has ended.
    Done,
}

impl Task {
    /// Decides what happens next.
    pub fn next_step(&self) -> Step {
        self.before_the_end(self.decide())
    }

    fn decide(&self) -> Step {
        if let Some(failure) = self.gave_up_on() {
            return self.fail(&failure);
        }
        match &self.phase {
            Phase::Parked(_) => Step::Park,
            Phase::Ready if self.needs_workspace() => Step::PrepareWorkspace,
            Phase::Ready => self.begin_turn(),
            Phase::Asking { call: CallState::Announced, .. } => Step::CallModel { turn: self.spent.usage.turns },
            Phase::Asking { call: CallState::Lost, reserved } => self.announce(self.spent.usage.turns, *reserved),
            Phase::Tooling(pending) => self.answer_calls(pending),
            Phase::Answered => self.judge_answer(),
            Phase::ModelGaveUp(failure) => self.ask_another(failure),
            Phase::Stopped(cause) => self.stop(cause),
            Phase::Ended(_) => Step::Done,
        }
    }

    /// A task that ends its workers is not tried for ever.
    fn gave_up_on(&self) -> Option<Failure> {
        let lost = self.spent.workers_lost;
        let is_over = matches!(self.phase, Phase::Stopped(_) | Phase::Ended(_));
        (lost >= limits::WORKERS_LOST_MAX && !is_over)
            .then(|| Failure::Interrupted(format!("its worker process ended {lost} times before it did")))
    }

    /// Asks the next model of the plan, if there is one and another model can help.
    fn ask_another(&self, failure: &ModelFailure) -> Step {
        match self.next_model().filter(|_| failure.kind.may_be_replaced()) {
            None => self.fail(&Failure::Model(failure.message.clone())),
            Some(next) => Step::Record(TaskEvent::ModelReplaced {
                turn: self.spent.usage.turns,
                from: self.model().clone(),
                to: next.model.clone(),
                why: failure.message.clone(),
            }),
        }
    }

    /// Whether the turn that was announced is the last one in which the model is heard.
    pub(super) fn is_last_turn(&self) -> bool {
        match self.plan.face.turns {
            TurnRule::ModelCalls => self.spent.usage.turns >= self.plan.bounds.max_turns,
            TurnRule::ToolReplies => false,
        }
    }

    /// How a task fails whose last answer is none.
    fn after_last_answer(&self) -> Option<Failure> {
        self.cut_by_budget().or_else(|| self.is_last_turn().then_some(Failure::MaxTurns))
    }

    fn begin_turn(&self) -> Step {
        let times = self.repetition.count();
        if times >= limits::REPETITIONS_STOPPED {
            return self.fail(&Failure::Loop { times });
        }
        let used = match self.plan.face.turns {
            TurnRule::ModelCalls => self.spent.usage.turns,
            TurnRule::ToolReplies => self.spent.tool_replies,
        };
        if used >= self.plan.bounds.max_turns {
            return self.fail(&Failure::MaxTurns);
        }
        if let Some(scarce) = self.nears_a_limit() {
            return Step::Record(TaskEvent::BudgetNearing { scarce });
        }
        self.announce(self.spent.usage.turns + 1, TokenCount::default())
    }

    /// Announces a turn, unless the budget does not cover it beside what a lost call of the same turn may have spent.
    fn announce(&self, turn: u32, lost: TokenCount) -> Step {
        match self.set_aside(turn, lost) {
            Ok(Reservation { tokens: reserved, closing }) => {
                Step::Record(TaskEvent::TurnStarted { turn, reserved, closing })
            }
            Err(shortage) => self.fail(&shortage.scarce.failure()),
        }
    }

    fn answer_calls(&self, pending: &[PendingCall]) -> Step {
        let turn = self.spent.usage.turns;
        if let Some(failure) = self.after_last_answer() {
            // It was told that it may call no tools.
            return self.fail(&failure);
        }
        let Some(place) = pending.iter().position(PendingCall::is_open) else { return self.begin_turn() };
        let first = &pending[place];
        if let Some(output) = self.answer_without_running(first, place) {
            let call_id = first.call.id.clone();
            return Step::Record(TaskEvent::ToolEnded { turn, call_id, output, duration_ms: 0 });
        }
        let repeat = self.repeat_of(&first.call.name);
        let calls = match repeat {
            Repeat::Unsafe | Repeat::Guarded => vec![first.call.clone()],
            Repeat::Safe => self.run_together(&pending[place..limits::TOOL_CALLS_PER_REPLY_MAX.min(pending.len())]),
        };
        Step::CallTools { turn, calls, repeat }
    }

    /// The open calls that may run at once: each repeatable, up to the first that is not. No two have the same id,
    /// because the end of a call names nothing else.
    fn run_together(&self, pending: &[PendingCall]) -> Vec<ToolCall> {
        let mut calls: Vec<ToolCall> = Vec::new();
        for pending in pending.iter().filter(|pending| pending.is_open()) {
            let runs = self.repeat_of(&pending.call.name) == Repeat::Safe
                && self.answer_without_running(pending, 0).is_none()
                && calls.iter().all(|call| call.id != pending.call.id);
            if !runs {
                break;
            }
            calls.push(pending.call.clone());
        }
        calls
    }

    /// The answer to a call that is not, or not again, run.
    fn answer_without_running(&self, pending: &PendingCall, place: usize) -> Option<ToolOutput> {
        let call = &pending.call;
        if place >= limits::TOOL_CALLS_PER_REPLY_MAX {
            let text = format!("Not run: a reply may make at most {} tool calls.", limits::TOOL_CALLS_PER_REPLY_MAX);
            return Some(ToolOutput::failed(text));
        }
        let Some(tool) = self.plan.grants.tools.iter().find(|tool| tool.name == call.name) else {
            let names: Vec<&str> = self.plan.grants.tools.iter().map(|tool| tool.name.as_str()).collect();
            let have = if names.is_empty() {
                "You have no tools.".to_owned()
            } else {
                format!("You have: {}.", names.join(", "))
            };
            let name: String = call.name.chars().take(80).collect();
            return Some(ToolOutput::denied(format!("You have no tool named `{name}`. {have}")));
        };
        if !call.input.is_object() {
            return Some(ToolOutput::failed(explain_input(&call.input)));
        }
        if matches!(pending.state, ToolState::Started(_)) && tool.repeat == Repeat::Unsafe {
            let text = "Interrupted: the process ended during this call. Whether it had an effect is unknown. \
                        Check before you repeat it.";
            return Some(ToolOutput::unknown(text));
        }
        None
    }

    fn repeat_of(&self, name: &str) -> Repeat {
        self.plan.grants.tools.iter().find(|tool| tool.name == name).map_or(Repeat::Unsafe, |tool| tool.repeat)
    }

    /// The last reply calls no tools: decides whether it is an answer.
    fn judge_answer(&self) -> Step {
        let Some(Message::Assistant(reply)) = self.conversation.messages.last() else {
            return self.fail(&Failure::Internal("the answer is missing from the log".to_owned()));
        };
        let Reply { text, stop, .. } = reply;
        match stop {
            Stop::Refused(details) => self.fail(&Failure::Refused(details.clone())),
            Stop::Length => self.fail(&self.cut_by_budget().unwrap_or(Failure::Cut)),
            Stop::End | Stop::ToolUse if text.trim().is_empty() => {
                self.fail(&self.after_last_answer().unwrap_or(Failure::Empty))
            }
            Stop::End | Stop::ToolUse => {
                Step::Record(TaskEvent::Ended { outcome: Outcome::Completed { text: text.clone() } })
            }
        }
    }

    fn stop(&self, cause: &StopCause) -> Step {
        let failure = match cause {
            StopCause::Cancelled => {
                let outcome = Outcome::Cancelled { partial: self.conversation.last_text.clone() };
                return Step::Record(TaskEvent::Ended { outcome });
            }
            StopCause::TimedOut { after_s } => Failure::Timeout { after_s: *after_s },
            StopCause::Stalled { after_s, during } => Failure::Stalled { after_s: *after_s, during: during.as_str() },
            StopCause::ToolLayer { turn, details } => Failure::Tool { turn: *turn, details: details.clone() },
            StopCause::Isolation { details } => Failure::Isolation(details.clone()),
            StopCause::Interrupted { details } => Failure::Interrupted(details.clone()),
            StopCause::Internal { details } => Failure::Internal(details.clone()),
        };
        self.fail(&failure)
    }

    fn fail(&self, failure: &Failure) -> Step {
        let outcome = Outcome::failed(failure, self.conversation.last_text.clone());
        Step::Record(TaskEvent::Ended { outcome })
    }
}

fn explain_input(input: &Value) -> String {
    match input {
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Err(error) => format!("The input is not valid JSON: {error}. Send one JSON object."),
            Ok(_) => "The input must be a JSON object.".to_owned(),
        },
        _ => "The input must be a JSON object.".to_owned(),
    }
}
