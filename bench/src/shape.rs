//! The shape of a benchmark's conversations, carried in the model's name so that the server needs no state.

use std::fmt;
use std::str::FromStr;

use anyhow::Context as _;

/// What the model server does with a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Model calls; all but the last call one tool.
    pub(crate) turns: u32,
    /// Milliseconds before each answer.
    pub(crate) latency_ms: u64,
    /// Pieces of the final answer.
    pub(crate) chunks: u32,
    /// Bytes that the tool returns.
    pub(crate) tool_bytes: usize,
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "k{}-l{}-c{}-t{}", self.turns, self.latency_ms, self.chunks, self.tool_bytes)
    }
}

impl FromStr for Shape {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let mut parts = text.split('-');
        let mut part = |letter: char| {
            let part = parts.next().and_then(|part| part.strip_prefix(letter));
            part.with_context(|| format!("`{text}` is no shape: `{letter}` is missing"))
        };
        Ok(Self {
            turns: part('k')?.parse()?,
            latency_ms: part('l')?.parse()?,
            chunks: part('c')?.parse()?,
            tool_bytes: part('t')?.parse()?,
        })
    }
}

/// The tool that every turn but the last calls.
pub(crate) const TOOL: &str = "fetch";
