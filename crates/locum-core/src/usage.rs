//! What a task used, what it may use, and how tokens are counted where no model has counted them.

use serde::{Deserialize, Serialize};

use crate::limits::CHARS_PER_TOKEN;

/// Tokens of a text, as every limit counts them: characters divided by four, rounded up.
pub fn estimate_tokens(text: &str) -> usize {
    tokens_of_chars(text.chars().count())
}

/// Tokens of a text of this many characters.
pub fn tokens_of_chars(chars: usize) -> usize {
    chars.div_ceil(CHARS_PER_TOKEN)
}

/// Whether a text has at most this many tokens, without walking a text that is far longer.
pub fn fits_tokens(text: &str, tokens_max: usize) -> bool {
    text.len() <= tokens_max * CHARS_PER_TOKEN || text.chars().nth(tokens_max * CHARS_PER_TOKEN).is_none()
}

/// Tokens of one model call, as the model's API reported them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TokenCount {
    /// Tokens sent and not read from a cache.
    pub input: u64,
    /// Tokens generated.
    pub output: u64,
    /// Tokens read from the provider's cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_read: u64,
    /// Tokens written to the provider's cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_write: u64,
}

impl TokenCount {
    /// Adds another call's tokens.
    pub fn add(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
    }

    /// Whether nothing was counted.
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }

    /// Everything that went in, cached or not: what an input budget bounds.
    pub fn input_total(&self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What a task used so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Input tokens that were not read from a cache.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Input tokens read from a cache.
    pub cache_read_tokens: u64,
    /// Input tokens written to a cache.
    pub cache_write_tokens: u64,
    /// Money, where prices are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Model calls.
    pub turns: u32,
    /// Tool calls that were answered, denied ones included.
    pub tool_calls: u32,
    /// Tool calls that were denied.
    pub denials: u32,
    /// From the start of the task to its end, or to its last event.
    pub duration_ms: u64,
}

impl Usage {
    /// Adds the tokens of one call.
    pub fn add_tokens(&mut self, tokens: TokenCount) {
        self.input_tokens = self.input_tokens.saturating_add(tokens.input);
        self.output_tokens = self.output_tokens.saturating_add(tokens.output);
        self.cache_read_tokens = self.cache_read_tokens.saturating_add(tokens.cache_read);
        self.cache_write_tokens = self.cache_write_tokens.saturating_add(tokens.cache_write);
    }

    /// Everything that went in, cached or not.
    pub fn input_total(&self) -> u64 {
        self.input_tokens.saturating_add(self.cache_read_tokens).saturating_add(self.cache_write_tokens)
    }
}

/// What a model costs, in US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Price {
    /// Tokens sent and not read from a cache.
    pub input: f64,
    /// Tokens generated.
    pub output: f64,
    /// Tokens read from the provider's cache.
    pub cache_read: f64,
    /// Tokens written to the provider's cache.
    pub cache_write: f64,
}

impl Price {
    /// What a million tokens of a usual conversation cost, for comparing models: three are read for each one written.
    pub fn typical(&self) -> f64 {
        (3.0 * self.input + self.output) / 4.0
    }

    /// What these tokens cost, in US dollars.
    pub fn of(&self, tokens: TokenCount) -> f64 {
        const TOKENS_PER_PRICE: f64 = 1_000_000.0;
        let share = |count: u64, price: f64| count as f64 * price / TOKENS_PER_PRICE;
        share(tokens.input, self.input)
            + share(tokens.output, self.output)
            + share(tokens.cache_read, self.cache_read)
            + share(tokens.cache_write, self.cache_write)
    }
}

/// What a task may use. Absent means that nothing bounds it but the turns.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Budget {
    /// Input tokens over all turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_input_tokens: Option<u64>,
    /// Output tokens over all turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// Money over all turns, where prices are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost_usd: Option<f64>,
    /// Seconds of wall clock from the start of the first turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_is_per_million_tokens_of_each_kind() {
        let price = Price { input: 3.0, output: 15.0, cache_read: 0.3, cache_write: 3.75 };
        let tokens = TokenCount { input: 1_000_000, output: 100_000, cache_read: 1_000_000, cache_write: 200_000 };
        assert!((price.of(tokens) - 5.55).abs() < 1e-9);
        assert!(price.of(TokenCount::default()).abs() < f64::EPSILON);
    }

    #[test]
    fn tokens_are_characters_over_four_rounded_up_never_bytes() {
        assert_eq!(estimate_tokens(""), 0);
        assert_eq!(estimate_tokens("abcd"), 1);
        assert_eq!(estimate_tokens("abcde"), 2);
        assert_eq!(estimate_tokens(&"é".repeat(4000)), 1000);
        assert!(fits_tokens(&"é".repeat(4000), 1000));
        assert!(!fits_tokens(&"é".repeat(4001), 1000));
        assert!(fits_tokens(&"a".repeat(4000), 1000));
        assert!(!fits_tokens(&"a".repeat(4001), 1000));
    }
}
