//! Who may read and write an entry: patterns over identities, in which `*` stands for any characters.
//!
//! An empty list means everyone, and the orchestrator may always do everything.

use crate::ids::Identity;
use crate::limits;
use crate::protocol::Refusal;

/// Whether a list of patterns lets a participant pass.
pub(super) fn allows(patterns: &[String], participant: &Identity) -> bool {
    let named = || participant.to_string();
    match participant {
        Identity::Orchestrator => true,
        Identity::Subagent { .. } => patterns.is_empty() || patterns.iter().any(|pattern| matches(pattern, &named())),
    }
}

/// Whether a pattern stands for a text.
pub fn matches(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(head) else { return false };
    // Each part is taken where it first occurs, which leaves the most for those after it; the last one ends the text.
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(place) = text.find(part) else { return false };
        text = &text[place + part.len()..];
    }
    text.ends_with(last)
}

/// Checks patterns that a participant sets.
pub(super) fn check(field: &str, patterns: &[String], participant: &Identity) -> Result<(), Refusal> {
    if *participant != Identity::Orchestrator {
        return Err(Refusal::invalid(format!("`{field}` is set by the orchestrator only")).hint("leave it out"));
    }
    if patterns.len() > limits::CONTEXT_PATTERNS_MAX {
        let message = format!("`{field}` has {} patterns; at most {}", patterns.len(), limits::CONTEXT_PATTERNS_MAX);
        return Err(Refusal::invalid(message));
    }
    match patterns.iter().find(|pattern| !is_pattern(pattern)) {
        None => Ok(()),
        Some(wrong) => {
            let shown: String = wrong.chars().take(80).collect();
            Err(Refusal::invalid(format!("`{shown}` in `{field}` is no pattern of participants"))
                .hint("for example orchestrator, subagent:* or subagent:researcher:*"))
        }
    }
}

fn is_pattern(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-:*".contains(c);
    !text.is_empty() && text.len() <= limits::CONTEXT_PATTERN_CHARS_MAX && text.chars().all(allowed)
}
