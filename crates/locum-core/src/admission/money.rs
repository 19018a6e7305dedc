//! What a new task may spend: its own budget, and what it shares with its session, its command and the tasks above it.
//! A task never gets more than is left of what it spends from.

use super::spawn::{Admission, Order};
use crate::agent::AgentSpec;
use crate::budget::{self, Purse, PurseKey, PurseState, Room, Wish, dollars, money, usd};
use crate::ids::Uid;
use crate::limits::OUTPUT_TOKENS_ASSUMED;
use crate::protocol::face::CallerKind;
use crate::protocol::{Code, Refusal};
use crate::task::plan::{Among, ModelName};
use crate::usage::{Budget, Price};

/// The first request of a task that is to be admitted.
pub(super) struct FirstRequest<'a> {
    /// The model that answers.
    pub(super) model: &'a ModelName,
    /// What it costs, where that is known.
    pub(super) price: Option<Price>,
    /// Its input tokens, estimated.
    pub(super) input: u64,
    /// Whether the task may start others.
    pub(super) delegates: bool,
}

impl Admission<'_> {
    /// Completes a task's budget and says what it spends from.
    pub(super) fn fund(
        &self,
        order: &Order,
        budget: &mut Budget,
        first: &FirstRequest<'_>,
    ) -> Result<Vec<Purse>, Refusal> {
        self.set_money(order, budget, first)?;
        let mut purses = self.purses_above(order, first);
        for purse in &purses {
            let state = self.view.purses.get(&purse.key).copied().unwrap_or_default();
            let room = Room::within(&purse.limit, state.drawn);
            check_covered(first, &room, purse, state)?;
            narrow(budget, &room, first.price);
        }
        let limited = Budget { timeout_s: None, ..budget.clone() };
        if let Some(money) = limited.max_cost_usd.map(money) {
            check_first_cost(first, money)?;
        }
        if first.delegates && limited != Budget::default() {
            purses.push(Purse { key: PurseKey::Task(order.uid.clone()), limit: limited });
        }
        Ok(purses)
    }

    /// The money of a task: what was asked for, else what its agent names, else the default. A model cannot raise what
    /// the settings allow.
    fn set_money(&self, order: &Order, budget: &mut Budget, first: &FirstRequest<'_>) -> Result<(), Refusal> {
        let asked = order.entry.max_cost_usd;
        if first.price.is_none() {
            budget.max_cost_usd = None;
            let message = format!("the price of {} is not known, so that max_cost_usd cannot be kept", first.model);
            let refusal = || Refusal::invalid(message).hint("bound it with max_input_tokens and max_output_tokens");
            return asked.map_or(Ok(()), |_| Err(refusal()));
        }
        let Some(most) = self.premises.limits.max_cost_usd else { return Ok(()) };
        match (asked, self.face.caller) {
            (Some(asked), CallerKind::Model) if asked > most => {
                let (asked, most) = (money(asked), money(most));
                let (by, most) = (dollars(asked.saturating_sub(most)), dollars(most));
                let message = format!("max_cost_usd is {by} more than a task may cost ({most})");
                Err(Refusal::new(Code::BudgetExceeded, message).hint("limits.max_cost_usd raises it"))
            }
            (Some(_), CallerKind::Model | CallerKind::Person) => Ok(()),
            (None, _) => {
                budget.max_cost_usd = Some(budget.max_cost_usd.map_or(most, |own| own.min(most)));
                Ok(())
            }
        }
    }

    /// What bounds the task from above.
    fn purses_above(&self, order: &Order, first: &FirstRequest<'_>) -> Vec<Purse> {
        if let Some(parent) = &self.premises.caller.parent {
            let own = PurseKey::Task(parent.uid.clone());
            let share = |purse: &Purse| if purse.key == own { purse.below() } else { purse.clone() };
            return parent.purses.iter().map(share).collect();
        }
        let max_cost_usd = self.premises.limits.session_cost_usd;
        let spends = max_cost_usd.is_some() && (first.price.is_some() || first.delegates);
        match self.face.caller {
            CallerKind::Model if spends => {
                vec![Purse { key: PurseKey::Session, limit: Budget { max_cost_usd, ..Budget::default() } }]
            }
            // What a task of a person delegates is counted there too, also where nothing bounds the money.
            CallerKind::Person if first.delegates || (spends && self.command.len() > 1) => {
                let key = PurseKey::Command(self.command_uid(order));
                vec![Purse { key, limit: Budget { max_cost_usd: self.command_cost_usd(), ..Budget::default() } }]
            }
            CallerKind::Model | CallerKind::Person => Vec::new(),
        }
    }

    fn command_uid(&self, order: &Order) -> Uid {
        match &order.among {
            Among::Group(first) => first.clone(),
            Among::Session => order.uid.clone(),
        }
    }

    /// What a command of a person may cost: as much as a session, or as the person said for one of its tasks.
    fn command_cost_usd(&self) -> Option<f64> {
        let most = self.premises.limits.session_cost_usd?;
        let asked = self.command.iter().filter_map(|order| order.entry.max_cost_usd);
        Some(asked.fold(most, f64::max))
    }

    /// The command of a person above the task that asks.
    pub(super) fn command_above(&self) -> Option<&PurseKey> {
        budget::command_of(&self.premises.caller.parent.as_ref()?.purses)
    }

    /// Tasks that models started before, in the session or below the command.
    pub(super) fn spawned_before(&self) -> u32 {
        match self.command_above() {
            Some(key) => self.view.purses.get(key).map_or(0, |state| state.spawned),
            None => self.view.spawned,
        }
    }
}

/// What is said about a budget of the agent's own that cannot be kept, because nobody knows what the model costs.
pub(super) fn unkept(agent: &AgentSpec, first: &FirstRequest<'_>) -> Option<String> {
    let own = agent.locum.budget.as_ref()?.max_cost_usd.filter(|_| first.price.is_none())?;
    let (model, own) = (first.model, dollars(money(own)));
    Some(format!("the price of {model} is not known, so that the agent's max_cost_usd of {own} is not kept"))
}

/// A task that could not even make its first request is not started.
fn check_covered(first: &FirstRequest<'_>, room: &Room, purse: &Purse, state: PurseState) -> Result<(), Refusal> {
    let wish = Wish { input: first.input, output: OUTPUT_TOKENS_ASSUMED, price: first.price, goes_on: false };
    let Err(shortage) = budget::reserve(&wish, &purse.limit, state.drawn, None) else { return Ok(()) };
    let resource = shortage.scarce.resource;
    let (owner, left) = (purse.key.owner(), room.get(resource).unwrap_or_default());
    let (over, left) = (resource.amount(shortage.over), resource.amount(left));
    let limit = resource.amount(shortage.scarce.limit);
    let message =
        format!("the first request needs {over} more than is left of the budget of {owner} ({left} of {limit})");
    let hint = match purse.key {
        PurseKey::Session | PurseKey::Command(_) => "limits.session_cost_usd raises it",
        PurseKey::Task(_) => "do the rest yourself, with what is left",
    };
    Err(Refusal::new(Code::BudgetExceeded, message).hint(hint))
}

/// A budget of its own that does not cover the first request.
fn check_first_cost(first: &FirstRequest<'_>, most: u64) -> Result<(), Refusal> {
    let limit = Budget { max_cost_usd: Some(usd(most)), ..Budget::default() };
    let wish = Wish { input: first.input, output: OUTPUT_TOKENS_ASSUMED, price: first.price, goes_on: false };
    let Err(shortage) = budget::reserve(&wish, &limit, budget::Drawn::default(), None) else { return Ok(()) };
    let message =
        format!("the first request costs {} more than the budget ({})", dollars(shortage.over), dollars(most));
    Err(Refusal::new(Code::BudgetExceeded, message).hint("raise max_cost_usd"))
}

/// A child gets no more than is left above it.
fn narrow(budget: &mut Budget, room: &Room, price: Option<Price>) {
    let least = |own: Option<u64>, left: Option<u64>| own.map(|own| left.map_or(own, |left| own.min(left)));
    budget.max_input_tokens = least(budget.max_input_tokens, room.input);
    budget.max_output_tokens = least(budget.max_output_tokens, room.output);
    if price.is_some() {
        let own = budget.max_cost_usd.map(money);
        if own.zip(room.money).is_some_and(|(own, left)| left < own) {
            budget.max_cost_usd = room.money.map(usd);
        }
    }
}
