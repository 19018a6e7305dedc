//! The system prompt of a task: the agent's own, then what every subagent is told.

use crate::limits;
use crate::protocol::FaceDefaults;
use crate::protocol::face::TurnRule;

/// What every subagent is told whose result is bounded (specification §8.4, word for word).
pub(super) const SUFFIX: &str = "You are a subagent. Keep your final response concise (under 1000 tokens).
Write detailed findings to shared context rather than including them
in your response. Your response will be returned to the orchestrator
as a summary of your work.";

/// The whole system prompt.
pub(super) fn assemble(prompt: &str, max_turns: u32, face: &FaceDefaults) -> String {
    let mut whole = prompt.trim_end().to_owned();
    // Whoever hands on whole results must not ask for short ones.
    if face.result_chars_max <= limits::RESULT_TOKENS_MAX * limits::CHARS_PER_TOKEN {
        whole.push_str("\n\n");
        whole.push_str(SUFFIX);
    }
    whole.push_str("\n\n");
    whole.push_str(&budget(max_turns, face.turns));
    whole
}

/// What a model is told about its turns; where only tool use is counted, in the words that such agents know.
fn budget(max_turns: u32, rule: TurnRule) -> String {
    match (rule, max_turns) {
        (TurnRule::ModelCalls, 1) => {
            "You have at most one turn (each reply is one); in the last one you can only answer.".to_owned()
        }
        (TurnRule::ModelCalls, _) => {
            format!("You have at most {max_turns} turns (each reply is one); in the last one you can only answer.")
        }
        (TurnRule::ToolReplies, _) => format!(
            "You have a maximum of {max_turns} tool-use turns for this task. Plan your approach to complete within \
             this budget. If you are running low, output your best result immediately."
        ),
    }
}
