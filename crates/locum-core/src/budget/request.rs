//! How the next request is made within what is left: as it comes, as the last answer, or not at all.

use super::{Drawn, Resource, Room, Scarce, Shortage, held_back, money};
use crate::limits::{ANSWER_TOKENS_KEPT, OUTPUT_TOKENS_ASSUMED};
use crate::usage::{Budget, Price, TokenCount};

/// A request that a task would make.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wish {
    /// Tokens that it sends, estimated.
    pub input: u64,
    /// Tokens that it is answered with, estimated.
    pub output: u64,
    /// What the model costs, where that is known.
    pub price: Option<Price>,
    /// Whether tools may be called in the answer: then another request follows.
    pub goes_on: bool,
}

/// What is set aside for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reservation {
    /// Its tokens.
    pub tokens: TokenCount,
    /// The limit that makes it the last one, if one does: its answer may call no tools.
    pub closing: Option<Scarce>,
}

/// Sets aside what a request needs: within the task's own `limit`, of which it has spent `spent`, and within what its
/// purses had left when they last declined, if they did. Such a request is the last.
pub fn reserve(
    wish: &Wish,
    limit: &Budget,
    spent: Drawn,
    declined: Option<&Shortage>,
) -> Result<Reservation, Shortage> {
    let own = Room::within(limit, spent);
    let room = declined.map_or(own, |shortage| own.and(shortage.left));
    let closing = match declined {
        Some(shortage) => wish.goes_on.then_some(shortage.scarce),
        None if !wish.goes_on => None,
        None => match wish.go_on(limit, &own) {
            Ok(reservation) => return Ok(reservation),
            Err(scarce) => Some(scarce),
        },
    };
    let tokens = wish.answer_once(limit, &room, declined)?;
    Ok(Reservation { tokens, closing })
}

impl Wish {
    /// What must be left behind a request, for one answer without tools.
    pub fn keep(&self) -> Drawn {
        if !self.goes_on {
            return Drawn::default();
        }
        let input = self.input.saturating_add(ANSWER_TOKENS_KEPT);
        let tokens = TokenCount { input, output: ANSWER_TOKENS_KEPT, ..TokenCount::default() };
        Drawn::of(tokens, self.price)
    }

    /// A request that others follow: what it needs, and an answer after it, must be covered.
    fn go_on(&self, limit: &Budget, room: &Room) -> Result<Reservation, Scarce> {
        let keep = self.keep();
        let mut output = self.output;
        for resource in Resource::ALL {
            let (Some(most), Some(left)) = (resource.allowed(limit), room.get(resource)) else { continue };
            let left = left.checked_sub(held_back(&keep, resource, most)).ok_or(Scarce { resource, limit: most })?;
            let covered = match resource {
                Resource::InputTokens if left < self.input => None,
                Resource::InputTokens => Some(output),
                Resource::OutputTokens => Some(left).filter(|left| *left >= (most / 5).clamp(1, ANSWER_TOKENS_KEPT)),
                Resource::Money => self.affordable(left).filter(|affordable| *affordable >= self.least(output)),
            };
            output = output.min(covered.ok_or(Scarce { resource, limit: most })?);
        }
        Ok(Reservation { tokens: self.tokens(output), closing: None })
    }

    /// The least answer that a request is made for that others follow. A short one can be made shorter, because a bound
    /// on it can be sent to any model; a long one would only be cut.
    fn least(&self, output: u64) -> u64 {
        if output <= OUTPUT_TOKENS_ASSUMED { output.min(ANSWER_TOKENS_KEPT) } else { output }
    }

    /// A request after which none follows: it is answered with what is left.
    fn answer_once(&self, limit: &Budget, room: &Room, declined: Option<&Shortage>) -> Result<TokenCount, Shortage> {
        let mut output = if self.goes_on { self.output.min(OUTPUT_TOKENS_ASSUMED) } else { self.output };
        for resource in Resource::ALL {
            let Some(left) = room.get(resource) else { continue };
            let own = resource.allowed(limit).map(|limit| Scarce { resource, limit });
            let scarce = declined.map(|shortage| shortage.scarce).filter(|scarce| scarce.resource == resource).or(own);
            let scarce = scarce.unwrap_or(Scarce { resource, limit: left });
            let short = |over: u64| Shortage { scarce, over, left: *room };
            let covered = match resource {
                Resource::InputTokens if left < self.input => return Err(short(self.input - left)),
                Resource::InputTokens => output,
                Resource::OutputTokens => left,
                Resource::Money => match self.affordable(left) {
                    Some(output) => output,
                    None => return Err(short(self.money(1).saturating_sub(left))),
                },
            };
            if covered == 0 {
                return Err(short(1));
            }
            output = output.min(covered);
        }
        Ok(self.tokens(output))
    }

    fn tokens(&self, output: u64) -> TokenCount {
        TokenCount { input: self.input, output, ..TokenCount::default() }
    }

    fn money(&self, output: u64) -> u64 {
        self.price.map_or(0, |price| money(price.of(self.tokens(output))))
    }

    /// How many tokens may come out for this much money; none if not even one may.
    fn affordable(&self, left: u64) -> Option<u64> {
        let Some(price) = self.price else { return Some(u64::MAX) };
        if self.money(1) > left {
            return None;
        }
        let each = price.output * 1000.0;
        if each <= 0.0 {
            return Some(u64::MAX);
        }
        // A price per million is a thousand times as many billionths per token. The cast saturates.
        let most = ((left - self.money(0)) as f64 / each).floor() as u64;
        Some(if self.money(most) > left { most.saturating_sub(1).max(1) } else { most.max(1) })
    }
}
