//! The programs whose agent files locum reads.

/// Whose conventions a file follows, by the directory it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dialect {
    /// Locum's own.
    Native,
    /// Claude Code's: `.claude/agents`.
    Claude,
    /// acai's: `.acai/subagents`, where a file is called as its agent.
    Acai,
    /// pi's: `.pi/agents`.
    Pi,
    /// tallow's: `.tallow/agents`.
    Tallow,
}
