//! Reading a task: how it stands, and what it asks the model in the turn that was announced.

use std::sync::Arc;

use super::event::Parked;
use super::plan::{ModelName, PricedModel, Receipt};
use super::{LAST_ANSWER_NOTICE, LAST_TURN_NOTICE, Outcome, Phase, Plan, REPETITION_NOTICE, Status, Task};
use crate::ids::{Seq, Timestamp};
use crate::limits;
use crate::transcript::{Message, Prompt, ToolSpec, ToolUse};
use crate::usage::{Price, Usage};

impl Task {
    /// What it may use.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// The number of its last event.
    pub fn seq(&self) -> Seq {
        self.seq
    }

    /// How it stands.
    pub fn status(&self) -> Status {
        match &self.phase {
            Phase::Parked(Parked::Queued) => Status::Queued,
            Phase::Parked(Parked::Waiting) => Status::Waiting,
            Phase::Ready
            | Phase::Asking { .. }
            | Phase::Tooling(_)
            | Phase::Answered
            | Phase::ModelGaveUp(_)
            | Phase::Stopped(_) => Status::Running,
            Phase::Ended(outcome) => outcome.status(),
        }
    }

    /// How it ended.
    pub fn outcome(&self) -> Option<&Outcome> {
        match &self.phase {
            Phase::Ended(outcome) => Some(outcome),
            _ => None,
        }
    }

    /// What it used.
    pub fn usage(&self) -> &Usage {
        &self.spent.usage
    }

    /// Whether tool calls are under way, or were when the log was cut.
    pub fn is_calling_tools(&self) -> bool {
        matches!(self.phase, Phase::Tooling(_))
    }

    /// Failed model calls since the last answer.
    pub fn failures(&self) -> u32 {
        self.spent.failures
    }

    /// When its first turn could begin.
    pub fn started_at(&self) -> Option<Timestamp> {
        self.clock.started
    }

    /// What the model said last.
    pub fn last_text(&self) -> Option<&str> {
        self.conversation.last_text.as_deref()
    }

    /// The model that answers now.
    pub fn model(&self) -> &ModelName {
        self.replacement(self.spent.given_up.len()).map_or(&self.plan.model, |now| &now.model)
    }

    /// What the model that answers now costs, where that is known.
    pub fn price(&self) -> Option<Price> {
        match self.replacement(self.spent.given_up.len()) {
            None => self.plan.price,
            Some(now) => now.price,
        }
    }

    /// The model that answers if the one of now gives up.
    pub(super) fn next_model(&self) -> Option<&PricedModel> {
        self.plan.fallback.get(self.spent.given_up.len())
    }

    /// The model that answers after this many gave up; none for the first.
    fn replacement(&self, given_up: usize) -> Option<&PricedModel> {
        self.plan.fallback.get(given_up.checked_sub(1)?)
    }

    /// The plan's receipt, with the model that answers now.
    pub fn receipt(&self) -> Receipt {
        let mut receipt = self.plan.receipt.clone();
        if !self.spent.given_up.is_empty() {
            receipt.model.effective = self.model().to_string();
            receipt.model.why = format!("{}; {}", receipt.model.why, self.replacements().join("; "));
        }
        receipt
    }

    /// Which model took the place of which, and why, in order.
    pub fn replacements(&self) -> Vec<String> {
        let name = |given_up| self.replacement(given_up).map_or(&self.plan.model, |model| &model.model);
        let told = |(place, why): (usize, &String)| {
            format!("{} answered in the place of {}: {why}", name(place + 1), name(place))
        };
        self.spent.given_up.iter().enumerate().map(told).collect()
    }

    /// The messages so far.
    pub fn messages(&self) -> &[Message] {
        &self.conversation.messages
    }

    /// What the model is told in the turn that was announced, besides the conversation.
    fn notice(&self) -> Option<&str> {
        match self.funds.closing {
            Some(_) => Some(LAST_ANSWER_NOTICE),
            None if self.is_last_turn() => Some(LAST_TURN_NOTICE),
            None if self.repetition.count() >= limits::REPETITIONS_TOLD => Some(REPETITION_NOTICE),
            None => self.funds.warning(),
        }
    }

    /// The request for the turn that was announced.
    pub fn prompt<'a>(&'a self, tools: &'a Arc<[ToolSpec]>) -> Prompt<'a> {
        let last = self.is_last_turn() || self.funds.closing.is_some();
        Prompt {
            agent: &self.plan.agent.name,
            task: &self.conversation.task,
            model: &self.model().id,
            system: &self.conversation.system,
            messages: &self.conversation.messages,
            notice: self.notice(),
            tools,
            tool_use: if last { ToolUse::Forbidden } else { ToolUse::Allowed },
            max_output_tokens: self.output_tokens_max(),
            temperature: self.plan.agent.sampling.temperature,
            effort: self.plan.agent.sampling.effort.as_deref(),
            call: self.spent.calls,
        }
    }
}
