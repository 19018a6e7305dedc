//! The system prompt of a task: the agent's own, then what every subagent is told.

/// What every subagent is told (specification §8.4, word for word).
pub(super) const SUFFIX: &str = "You are a subagent. Keep your final response concise (under 1000 tokens).
Write detailed findings to shared context rather than including them
in your response. Your response will be returned to the orchestrator
as a summary of your work.";

/// The whole system prompt.
pub(super) fn assemble(prompt: &str, max_turns: u32) -> String {
    let turns = if max_turns == 1 { "one turn".to_owned() } else { format!("{max_turns} turns") };
    format!(
        "{}\n\n{SUFFIX}\n\nYou have at most {turns} (each reply is one); in the last one you can only answer.",
        prompt.trim_end()
    )
}
