//! What may be spent, and by whom: a request is paid for before it is sent, from everything that bounds it.
//!
//! A task's own limits are judged from its own log. What several tasks share (a session, a command, a task with those
//! below it) is a [`Purse`]; a store keeps what was drawn from each and asks [`draw`] inside the transaction that
//! writes the start of a request, so that two processes cannot both take the last cent. Money is counted in billionths
//! of a US dollar, rounded up: sums of whole numbers are the same in every order.

mod request;

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::Uid;
use crate::protocol::face::CallerKind;
use crate::task::event::{Record, TaskEvent};
use crate::task::outcome::Failure;
use crate::task::plan::Plan;
use crate::usage::{Budget, Price, TokenCount};

pub use request::{Reservation, Wish, reserve};

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Tokens that go in, cached or not.
    InputTokens,
    /// Tokens that come out.
    OutputTokens,
    /// Billionths of a US dollar.
    Money,
}

impl Resource {
    const ALL: [Self; 3] = [Self::InputTokens, Self::OutputTokens, Self::Money];

    /// The word for it in messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InputTokens => "input tokens",
            Self::OutputTokens => "output tokens",
            Self::Money => "cost",
        }
    }

    /// An amount of it, for people.
    pub fn amount(self, amount: u64) -> String {
        match self {
            Self::InputTokens | Self::OutputTokens => format!("{amount} {}", self.as_str()),
            Self::Money => dollars(amount),
        }
    }

    /// A limit of it, as failure texts name it.
    fn limit(self, limit: u64) -> String {
        match self {
            Self::InputTokens | Self::OutputTokens => limit.to_string(),
            Self::Money => dollars(limit),
        }
    }

    /// What a budget allows of it.
    pub fn allowed(self, budget: &Budget) -> Option<u64> {
        match self {
            Self::InputTokens => budget.max_input_tokens,
            Self::OutputTokens => budget.max_output_tokens,
            Self::Money => budget.max_cost_usd.map(money),
        }
    }
}

const BILLIONTHS: f64 = 1_000_000_000.0;

/// US dollars in billionths, rounded up.
pub fn money(usd: f64) -> u64 {
    // The cast saturates, and makes nothing of what is no number. The share taken off is far below a billionth and
    // keeps a product like 0.1 * 3 from being rounded up.
    (usd * BILLIONTHS - 1e-4).ceil() as u64
}

/// Billionths in US dollars.
pub fn usd(money: u64) -> f64 {
    money as f64 / BILLIONTHS
}

/// An amount of money for people: cents, and more digits where there are some, up to a millionth.
pub fn dollars(money: u64) -> String {
    let text = format!("{:.6}", usd(money));
    let kept = text.trim_end_matches('0');
    let digits = kept.len() - kept.find('.').map_or(kept.len(), |point| point + 1);
    format!("US${}{}", kept, "0".repeat(2_usize.saturating_sub(digits)))
}

/// An amount of each resource.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drawn {
    /// Tokens that went in.
    pub input: u64,
    /// Tokens that came out.
    pub output: u64,
    /// Billionths of a US dollar.
    pub money: u64,
}

impl Drawn {
    /// These tokens at this price.
    pub fn of(tokens: TokenCount, price: Option<Price>) -> Self {
        let money = price.map_or(0, |price| money(price.of(tokens)));
        Self { input: tokens.input_total(), output: tokens.output, money }
    }

    /// How much of one resource.
    pub fn get(&self, resource: Resource) -> u64 {
        match resource {
            Resource::InputTokens => self.input,
            Resource::OutputTokens => self.output,
            Resource::Money => self.money,
        }
    }

    fn each(self, other: Self, combine: fn(u64, u64) -> u64) -> Self {
        Self {
            input: combine(self.input, other.input),
            output: combine(self.output, other.output),
            money: combine(self.money, other.money),
        }
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.each(other, u64::saturating_add)
    }

    /// What is left of it without the other.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        self.each(other, u64::saturating_sub)
    }
}

/// Something that several tasks spend from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Purse {
    /// Which one, in its session.
    pub key: PurseKey,
    /// What may be drawn from it in all.
    pub limit: Budget,
}

impl Purse {
    /// The purse of a task as those below it see it: a tenth is out of their reach, for the task's own answer.
    #[must_use]
    pub fn below(&self) -> Self {
        let less = |most: u64| most - most.div_ceil(10);
        let limit = Budget {
            max_input_tokens: self.limit.max_input_tokens.map(less),
            max_output_tokens: self.limit.max_output_tokens.map(less),
            max_cost_usd: self.limit.max_cost_usd.map(|most| usd(less(money(most)))),
            timeout_s: self.limit.timeout_s,
        };
        Self { key: self.key.clone(), limit }
    }
}

/// Which purse of a session.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PurseKey {
    /// That of the session: what its model may spend.
    Session,
    /// That of a person's command, known by its first task.
    Command(Uid),
    /// That of a task and of all below it.
    Task(Uid),
}

impl fmt::Display for PurseKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session => f.write_str("session"),
            Self::Command(uid) => write!(f, "command:{uid}"),
            Self::Task(uid) => write!(f, "task:{uid}"),
        }
    }
}

impl PurseKey {
    /// Whose it is, for people.
    pub fn owner(&self) -> &'static str {
        match self {
            Self::Session => "the session",
            Self::Command(_) => "the command",
            Self::Task(_) => "the task above",
        }
    }
}

/// How a purse stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PurseState {
    /// What was drawn from it, by tasks that have ended and by tasks that have not.
    pub drawn: Drawn,
    /// Tasks that models have started on it.
    pub spawned: u32,
}

/// What a task has drawn from its purses, and what it asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Draw {
    /// The purses.
    pub purses: Arc<[Purse]>,
    /// What it has spent.
    pub spent: Drawn,
    /// What is set aside for the request under way.
    pub reserved: Drawn,
    /// What must be left behind it, for one answer without tools.
    pub keep: Drawn,
}

impl Draw {
    /// What it holds in all.
    pub fn held(&self) -> Drawn {
        self.spent.plus(self.reserved)
    }
}

/// A limit that is near, or reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scarce {
    /// Of what.
    pub resource: Resource,
    /// The limit.
    pub limit: u64,
}

impl Scarce {
    /// The failure of a task that ends because of it.
    pub fn failure(&self) -> Failure {
        Failure::Budget { what: self.resource.as_str(), limit: self.resource.limit(self.limit) }
    }

    /// What a model is told about it, once.
    pub fn notice(&self) -> String {
        let limit = self.resource.amount(self.limit);
        format!("Four fifths of your budget ({limit}) are used up: finish soon, and spend the rest on the answer.")
    }
}

/// What is left of each resource that has a limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Room {
    /// Input tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
    /// Output tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
    /// Billionths of a US dollar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub money: Option<u64>,
}

impl Room {
    /// What a budget leaves beside what was drawn.
    pub fn within(budget: &Budget, drawn: Drawn) -> Self {
        let left = |resource: Resource| resource.allowed(budget).map(|most| most.saturating_sub(drawn.get(resource)));
        Self { input: left(Resource::InputTokens), output: left(Resource::OutputTokens), money: left(Resource::Money) }
    }

    /// How much of one resource.
    pub fn get(&self, resource: Resource) -> Option<u64> {
        match resource {
            Resource::InputTokens => self.input,
            Resource::OutputTokens => self.output,
            Resource::Money => self.money,
        }
    }

    /// What both leave.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let least = |one: Option<u64>, other: Option<u64>| match (one, other) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        Self {
            input: least(self.input, other.input),
            output: least(self.output, other.output),
            money: least(self.money, other.money),
        }
    }
}

/// A request that is not covered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{} would pass {} by {}", .scarce.resource.as_str(), .scarce.resource.limit(.scarce.limit), .scarce.resource.amount(*.over))]
pub struct Shortage {
    /// Which limit.
    #[serde(flatten)]
    pub scarce: Scarce,
    /// By how much it would be passed.
    pub over: u64,
    /// What is left.
    pub left: Room,
}

/// What a draw led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// What each purse has given after it, in the order of the task's purses.
    pub drawn: Vec<Drawn>,
    /// The first limit of which four fifths are used.
    pub nearing: Option<Scarce>,
}

/// Whether records begin a request, which must be covered; everything else is a fact and is taken as it is.
pub fn asks(records: &[Record]) -> bool {
    records.last().is_some_and(|record| matches!(record.event, TaskEvent::TurnStarted { .. }))
}

/// Draws on the purses of a task. `drawn` is what each of them has given so far, `before` what the task had of it.
/// A request (`asks`) is refused where a purse does not cover it together with what it must leave behind.
pub fn draw(request: &Draw, before: Drawn, drawn: &[Drawn], asks: bool) -> Result<Settled, Shortage> {
    let others = |purse: usize| drawn.get(purse).copied().unwrap_or_default().minus(before);
    let after = |purse: usize| others(purse).plus(request.held());
    if asks {
        let mut left = Room::default();
        for (place, purse) in request.purses.iter().enumerate() {
            left = left.and(Room::within(&purse.limit, others(place).plus(request.spent)));
        }
        for (place, purse) in request.purses.iter().enumerate() {
            check(&purse.limit, after(place), &request.keep, left)?;
        }
    }
    let places = 0..request.purses.len();
    let nearing = request.purses.iter().enumerate().find_map(|(place, purse)| nearing(&purse.limit, after(place)));
    Ok(Settled { drawn: places.map(after).collect(), nearing })
}

fn check(limit: &Budget, drawn: Drawn, keep: &Drawn, left: Room) -> Result<(), Shortage> {
    for resource in Resource::ALL {
        let Some(most) = resource.allowed(limit) else { continue };
        let needed = drawn.get(resource).saturating_add(held_back(keep, resource, most));
        if needed > most {
            return Err(Shortage { scarce: Scarce { resource, limit: most }, over: needed - most, left });
        }
    }
    Ok(())
}

/// How much of a limit is held back for the last answer. What is kept beyond the conversation itself is no more than a
/// fifth of a limit on tokens, so that small limits leave something to work with.
fn held_back(keep: &Drawn, resource: Resource, limit: u64) -> u64 {
    let beyond = keep.output.saturating_sub(limit / 5);
    match resource {
        Resource::InputTokens => keep.input.saturating_sub(beyond),
        Resource::OutputTokens => keep.output.saturating_sub(beyond),
        Resource::Money => keep.money,
    }
}

/// The first limit of which four fifths are used.
pub fn nearing(limit: &Budget, drawn: Drawn) -> Option<Scarce> {
    Resource::ALL.into_iter().find_map(|resource| {
        let limit = resource.allowed(limit)?;
        let near = drawn.get(resource) >= limit - limit / 5;
        near.then_some(Scarce { resource, limit })
    })
}

/// Where a task counts as started by a model; none if a person started it.
pub fn counted_in(plan: &Plan) -> Option<PurseKey> {
    match plan.face.caller {
        CallerKind::Person => None,
        CallerKind::Model => Some(command_of(&plan.bounds.purses).cloned().unwrap_or(PurseKey::Session)),
    }
}

/// The command that bounds a task, if one does.
pub fn command_of(purses: &[Purse]) -> Option<&PurseKey> {
    purses.iter().map(|purse| &purse.key).find(|key| matches!(key, PurseKey::Command(_)))
}
