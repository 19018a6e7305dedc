//! What a task used and how it ended, as programs of this kind count it.

use locum_core::protocol::response::Collected;
use locum_core::task::{Reason, Status};
use locum_core::usage::Usage;
use serde::Serialize;

/// What a task used.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UsageLine {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
    cost: f64,
    turns: u32,
}

impl From<&Usage> for UsageLine {
    fn from(usage: &Usage) -> Self {
        Self {
            input: usage.input_tokens,
            output: usage.output_tokens,
            cache_read: usage.cache_read_tokens,
            cache_write: usage.cache_write_tokens,
            cost: usage.cost_usd.unwrap_or_default(),
            turns: usage.turns,
        }
    }
}

/// How a task would have ended as a process.
pub(super) fn exit_code(collected: &Collected) -> i32 {
    match (collected.status, collected.reason) {
        (Status::Completed, _) => 0,
        (Status::Cancelled, _) => 130,
        (_, Some(Reason::Timeout | Reason::Stalled)) => 124,
        _ => 1,
    }
}
