//! The task's side of its budget: what it has spent, what it sets aside for the next request, and when it must end.

use std::sync::Arc;

use super::outcome::Failure;
use super::{Phase, Plan, Task};
use crate::budget::{self, Draw, Drawn, Purse, Reservation, Scarce, Shortage, Wish};
use crate::limits::{ANSWER_TOKENS_KEPT, OUTPUT_TOKENS_ASSUMED};
use crate::protocol::face::TurnRule;
use crate::transcript::Reply;
use crate::usage::{TokenCount, estimate_tokens, tokens_of_chars};

/// What a task knows about its money and tokens beyond its usage.
#[derive(Debug, Clone)]
pub(super) struct Funds {
    purses: Arc<[Purse]>,
    /// Billionths of a dollar that were spent, and whether every call's price was known.
    money: u64,
    priced: bool,
    /// The limit that makes the announced request the last one.
    pub(super) closing: Option<Scarce>,
    /// What the purses lacked when they last declined, and how often they did for this request.
    declined: Option<(Shortage, u32)>,
    warning: Warning,
    /// What the model counted for the last request, and how many characters that request had.
    measured: Option<(TokenCount, usize)>,
}

/// Whether the model was told that most of a budget is used up: it is told once.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Warning {
    NotDue,
    Due(String),
    Given,
}

impl Funds {
    pub(super) fn of(plan: &Plan) -> Self {
        Self {
            purses: plan.bounds.purses.as_slice().into(),
            money: 0,
            priced: plan.price.is_some(),
            closing: None,
            declined: None,
            warning: Warning::NotDue,
            measured: None,
        }
    }

    /// What was spent, if the price of every call is known.
    pub(super) fn cost_usd(&self) -> Option<f64> {
        self.priced.then(|| budget::usd(self.money))
    }

    pub(super) fn note_nearing(&mut self, scarce: Scarce) {
        if self.warning == Warning::NotDue {
            self.warning = Warning::Due(scarce.notice());
        }
    }

    /// What the model is to be told about its budget.
    pub(super) fn warning(&self) -> Option<&str> {
        match &self.warning {
            Warning::Due(text) => Some(text),
            Warning::NotDue | Warning::Given => None,
        }
    }
}

impl Task {
    /// Whether the model was told, or is about to be, that most of a budget is used up.
    pub fn is_warned(&self) -> bool {
        self.funds.warning != Warning::NotDue
    }

    /// Counts tokens as spent, at the price of the model that answers now.
    pub(super) fn charge(&mut self, tokens: TokenCount) {
        self.spent.usage.add_tokens(tokens);
        let price = self.price();
        self.funds.priced &= price.is_some();
        self.funds.money = self.funds.money.saturating_add(Drawn::of(tokens, price).money);
        self.spent.usage.cost_usd = self.funds.cost_usd();
    }

    /// Counts an answer. One whose tokens nobody counted is taken at its estimate, where something bounds them.
    pub(super) fn charge_reply(&mut self, reply: &Reply, reserved: TokenCount) {
        let uncounted = reply.tokens == TokenCount::default() && self.is_bounded();
        let estimate = || TokenCount { output: estimate_tokens(&reply.text) as u64, ..reserved };
        let tokens = if uncounted { estimate() } else { reply.tokens };
        self.charge(tokens);
        self.funds.measured = Some((tokens, self.conversation.chars));
        self.funds.declined = None;
        if self.is_warned() {
            self.funds.warning = Warning::Given;
        }
    }

    /// Counts what a failed call had spent.
    pub(super) fn charge_failure(&mut self, tokens: TokenCount) {
        if !tokens.is_zero() {
            self.charge(tokens);
        }
    }

    /// What a call has spent that was cut after it had answered with so many characters. Providers count what they were
    /// sent and what they have written, also where nobody hears the end of it; since that count comes with the end, it is
    /// taken at its estimate.
    pub fn spent_by_cut_call(&self, chars: usize) -> TokenCount {
        let input = match self.phase {
            Phase::Asking { reserved, .. } => reserved.input,
            _ => 0,
        };
        TokenCount { input, output: tokens_of_chars(chars) as u64, ..TokenCount::default() }
    }

    /// Takes back the announcement of a turn whose request is not covered.
    pub(super) fn decline_turn(&mut self, shortage: Shortage) {
        let times = self.funds.declined.map_or(0, |(_, times)| times);
        self.funds.declined = Some((shortage, times + 1));
        self.funds.closing = None;
        self.spent.usage.turns = self.spent.usage.turns.saturating_sub(1);
        self.phase = Phase::Ready;
    }

    /// Sets aside what the request of a turn needs, beside what a lost call of the same turn may have spent.
    pub(super) fn set_aside(&self, turn: u32, lost: TokenCount) -> Result<Reservation, Shortage> {
        let wish = self.wish(turn, self.request_tokens());
        if !self.is_bounded() {
            let tokens = TokenCount { input: wish.input, ..TokenCount::default() };
            return Ok(Reservation { tokens, closing: None });
        }
        // Once it is declined as it comes, and once as the last answer: then nothing is left that could be tried.
        if let Some((shortage, 2..)) = self.funds.declined {
            return Err(shortage);
        }
        let spent = self.drawn().plus(Drawn::of(lost, wish.price));
        let declined = self.funds.declined.as_ref().map(|(shortage, _)| shortage);
        budget::reserve(&wish, &self.plan.bounds.budget, spent, declined)
    }

    /// A limit of its own of which most is used, if the model was not told so yet.
    pub(super) fn nears_a_limit(&self) -> Option<Scarce> {
        if self.is_warned() || !self.is_bounded() {
            return None;
        }
        budget::nearing(&self.plan.bounds.budget, self.drawn())
    }

    /// How a task fails whose budget allowed one more answer, if that is none.
    pub(super) fn cut_by_budget(&self) -> Option<Failure> {
        self.funds.closing.as_ref().map(Scarce::failure)
    }

    /// The most tokens that the announced request may be answered with.
    pub(super) fn output_tokens_max(&self) -> Option<u64> {
        let own = self.plan.agent.sampling.max_tokens;
        if !self.is_bounded() {
            return own;
        }
        let held_back = |limit: u64| {
            let goes_on = self.funds.closing.is_none() && self.goes_on(self.spent.usage.turns);
            if goes_on { ANSWER_TOKENS_KEPT.min(limit / 5) } else { 0 }
        };
        let left =
            self.plan.bounds.budget.max_output_tokens.map(|limit| {
                limit.saturating_sub(self.spent.usage.output_tokens).saturating_sub(held_back(limit)).max(1)
            });
        // What was set aside for it is sent as a bound only where every model takes it as one.
        let sent = if self.funds.closing.is_some() { OUTPUT_TOKENS_ASSUMED } else { OUTPUT_TOKENS_ASSUMED - 1 };
        let reserved = match self.phase {
            Phase::Asking { reserved, .. } => Some(reserved.output).filter(|output| *output <= sent),
            _ => None,
        };
        [own, left, reserved.filter(|output| *output > 0)].into_iter().flatten().min()
    }

    /// What the task draws from its purses; none where it spends nothing that one of them bounds.
    pub(super) fn draw(&self) -> Option<Draw> {
        if !self.draws() {
            return None;
        }
        let reserved = match self.phase {
            Phase::Asking { reserved, .. } => reserved,
            _ => TokenCount::default(),
        };
        let wish = self.wish(self.spent.usage.turns, reserved.input_total());
        let keep = if self.funds.closing.is_some() { Drawn::default() } else { wish.keep() };
        let purses = Arc::clone(&self.funds.purses);
        Some(Draw { purses, spent: self.drawn(), reserved: Drawn::of(reserved, wish.price), keep })
    }

    /// Whether anything but the turns bounds the task.
    fn is_bounded(&self) -> bool {
        let budget = &self.plan.bounds.budget;
        let money = budget.max_cost_usd.is_some() && self.is_priced();
        money || budget.max_input_tokens.is_some() || budget.max_output_tokens.is_some() || self.draws()
    }

    fn draws(&self) -> bool {
        let counts = |purse: &Purse| purse.limit.max_input_tokens.is_some() || purse.limit.max_output_tokens.is_some();
        let costs = |purse: &Purse| purse.limit.max_cost_usd.is_some() && self.is_priced();
        self.funds.purses.iter().any(|purse| counts(purse) || costs(purse))
    }

    /// Whether a model that may answer has a price.
    fn is_priced(&self) -> bool {
        self.plan.price.is_some() || self.plan.fallback.iter().any(|model| model.price.is_some())
    }

    fn drawn(&self) -> Drawn {
        let usage = &self.spent.usage;
        Drawn { input: usage.input_total(), output: usage.output_tokens, money: self.funds.money }
    }

    fn wish(&self, turn: u32, input: u64) -> Wish {
        Wish { input, output: self.output_expected(), price: self.price(), goes_on: self.goes_on(turn) }
    }

    /// Tokens of the next answer, estimated: what the agent allows, else as many as the last one had, and no fewer than
    /// are assumed of any.
    fn output_expected(&self) -> u64 {
        let last = self.funds.measured.map_or(0, |(tokens, _)| tokens.output);
        self.plan.agent.sampling.max_tokens.unwrap_or(last.max(OUTPUT_TOKENS_ASSUMED))
    }

    /// Whether another request may follow that of this turn.
    fn goes_on(&self, turn: u32) -> bool {
        let last = match self.plan.face.turns {
            TurnRule::ModelCalls => turn >= self.plan.bounds.max_turns,
            TurnRule::ToolReplies => false,
        };
        !last && !self.plan.grants.tools.is_empty()
    }

    /// Tokens of the next request, estimated: what the model counted last, and what was added since.
    fn request_tokens(&self) -> u64 {
        let chars = self.conversation.chars;
        let estimate = tokens_of_chars(chars) as u64;
        let measured = self.funds.measured.map_or(0, |(tokens, then)| {
            tokens.input_total().saturating_add(tokens_of_chars(chars.saturating_sub(then)) as u64)
        });
        estimate.max(measured)
    }
}
