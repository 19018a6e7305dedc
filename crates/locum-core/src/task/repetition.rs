//! Whether a task goes round in circles: the same failing call turn after turn, or a round of different turns that comes
//! again with the same answers. One call that succeeds again and again is none, whatever it answers: it may wait for
//! something, and its turns are counted.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

use crate::limits::{REPETITION_PERIOD_MAX, REPETITIONS_STOPPED};
use crate::transcript::{ToolCall, ToolEnd, ToolOutput};

/// What the last turns called, and how that ended. Only numbers are kept: they are made from the log again.
#[derive(Debug, Clone, Default)]
pub(super) struct Repetition {
    /// Calls and results of each of the last turns, the newest last.
    turns: VecDeque<u64>,
    /// The calls that failed in the last turn, each with in how many turns in a row it has.
    failing: Vec<(u64, u32)>,
}

impl Repetition {
    /// Takes in the answered calls of a turn.
    pub(super) fn note<'a>(&mut self, calls: impl Iterator<Item = (&'a ToolCall, &'a ToolOutput)>) {
        let mut turn = DefaultHasher::new();
        let mut failing: Vec<(u64, u32)> = Vec::new();
        for (call, output) in calls {
            let print = print_of(call);
            (print, &output.text).hash(&mut turn);
            let failed = matches!(output.end, ToolEnd::Failed | ToolEnd::Denied);
            failed.hash(&mut turn);
            if failed && failing.iter().all(|(other, _)| *other != print) {
                let before = self.failing.iter().find(|(other, _)| *other == print).map_or(0, |(_, count)| *count);
                failing.push((print, before + 1));
            }
        }
        self.failing = failing;
        self.turns.push_back(turn.finish());
        while self.turns.len() > REPETITION_PERIOD_MAX * REPETITIONS_STOPPED as usize {
            self.turns.pop_front();
        }
    }

    /// How many times in a row the same was done.
    pub(super) fn count(&self) -> u32 {
        let failing = self.failing.iter().map(|(_, count)| *count);
        (2..=REPETITION_PERIOD_MAX).map(|period| self.rounds(period)).chain(failing).max().unwrap_or(0)
    }

    /// How many times in a row the last turns, so many of them, came in the same order. Equal turns are no round.
    fn rounds(&self, period: usize) -> u32 {
        let turns = self.turns.len();
        let back = |place: usize| self.turns[turns - 1 - place];
        if turns < period || (1..period).all(|place| back(place) == back(0)) {
            return 0;
        }
        let is_same = |round: &usize| (0..period).all(|place| back(round * period + place) == back(place));
        let same = (0..turns / period).take_while(is_same).count();
        u32::try_from(same).unwrap_or(u32::MAX)
    }
}

/// The tool and its input, whatever order the fields were written in.
fn print_of(call: &ToolCall) -> u64 {
    let mut print = DefaultHasher::new();
    call.name.hash(&mut print);
    hash_value(&call.input, &mut print);
    print.finish()
}

/// Inputs are no deeper than what the parser of a reply takes.
fn hash_value(value: &Value, print: &mut DefaultHasher) {
    std::mem::discriminant(value).hash(print);
    match value {
        Value::Null => {}
        Value::Bool(flag) => flag.hash(print),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => number.hash(print),
            (None, Some(number)) => number.hash(print),
            (None, None) => number.as_f64().map(f64::to_bits).hash(print),
        },
        Value::String(text) => text.hash(print),
        Value::Array(items) => {
            items.len().hash(print);
            items.iter().for_each(|item| hash_value(item, print));
        }
        Value::Object(fields) => {
            let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            fields.len().hash(print);
            for (name, value) in fields {
                name.hash(print);
                hash_value(value, print);
            }
        }
    }
}
