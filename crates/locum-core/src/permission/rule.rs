//! One rule as a user writes it: `deny bash(rm *)`, `ask write(src/**)`, `allow web_fetch`.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::pattern;
use crate::agent::tool_names;
use crate::limits;

/// What a rule says about the calls that it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// They may be made.
    Allow,
    /// A person has to agree.
    Ask,
    /// They may not be made.
    Deny,
}

/// One rule. It is written down as its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Rule {
    /// What it says.
    pub effect: Effect,
    /// The tool that it is about, or `*`.
    pub tool: String,
    /// What the call must be about; every call if it is left out.
    pub pattern: Option<String>,
}

/// A text that is no rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{said}` is not a rule: {why}; write for example \"deny bash(rm *)\" or \"ask write(src/**)\"")]
pub struct WrongRule {
    said: String,
    why: &'static str,
}

const EFFECTS: [(&str, Effect); 3] = [("allow", Effect::Allow), ("ask", Effect::Ask), ("deny", Effect::Deny)];

impl Rule {
    /// Reads a rule.
    pub fn parse(text: &str) -> Result<Self, WrongRule> {
        let wrong = |why| WrongRule { said: text.chars().take(limits::RULE_CHARS_MAX).collect(), why };
        if text.chars().nth(limits::RULE_CHARS_MAX).is_some() {
            return Err(wrong("it is too long"));
        }
        let (word, rest) = text.trim().split_once(char::is_whitespace).ok_or(wrong("it names no tool"))?;
        let effect = EFFECTS.iter().find(|(name, _)| *name == word).map(|(_, effect)| *effect);
        let effect = effect.ok_or(wrong("it must begin with allow, ask or deny"))?;
        let rest = rest.trim();
        let (tool, pattern) = match rest.split_once('(') {
            None => (rest, None),
            Some((tool, pattern)) => {
                let pattern = pattern.strip_suffix(')').ok_or(wrong("its parenthesis is not closed"))?;
                (tool.trim_end(), Some(pattern.trim()))
            }
        };
        if tool.is_empty() || tool.contains(char::is_whitespace) {
            return Err(wrong("it must name one tool"));
        }
        if pattern.is_some_and(str::is_empty) {
            return Err(wrong("its pattern is empty"));
        }
        let tool = tool_names::canonical(tool).to_owned();
        Ok(Self { effect, tool, pattern: pattern.map(str::to_owned) })
    }

    /// Whether it is about a tool. What is said about `write` and `read` holds for all tools that write or read files.
    pub(super) fn is_about(&self, tool: &str) -> bool {
        let files = |group: &[&str]| group.first() == Some(&self.tool.as_str()) && group.contains(&tool);
        self.tool == "*"
            || tool_names::covers(&self.tool, tool)
            || files(&tool_names::WRITING)
            || files(&tool_names::READING_FILES)
    }

    /// Whether one of the spellings of what a call is about fits its pattern.
    pub(super) fn fits(&self, spellings: &[String]) -> bool {
        let Some(wanted) = &self.pattern else { return true };
        let is_path = tool_names::WRITING.contains(&self.tool.as_str())
            || tool_names::READING_FILES.contains(&self.tool.as_str());
        spellings.iter().any(
            |text| {
                if is_path { pattern::fits_path(wanted, text) } else { pattern::fits_text(wanted, text) }
            },
        )
    }

    /// Whether its pattern spells a name out, instead of covering it with a wildcard.
    pub(super) fn names(&self, name: &str) -> bool {
        let is_named = |pattern: &String| pattern.split('/').any(|part| part.eq_ignore_ascii_case(name));
        self.pattern.as_ref().is_some_and(is_named)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.effect {
            Effect::Allow => "allow",
            Effect::Ask => "ask",
            Effect::Deny => "deny",
        };
        write!(f, "{word} {}", self.tool)?;
        self.pattern.as_ref().map_or(Ok(()), |pattern| write!(f, "({pattern})"))
    }
}

impl TryFrom<String> for Rule {
    type Error = WrongRule;

    fn try_from(text: String) -> Result<Self, WrongRule> {
        Self::parse(&text)
    }
}

impl From<Rule> for String {
    fn from(rule: Rule) -> Self {
        rule.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_and_written() {
        for text in ["deny bash(rm *)", "ask write(src/**)", "allow web_fetch", "deny *", "allow write(a(b).txt)"] {
            assert_eq!(Rule::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Rule::parse("  deny   Bash( rm * ) ").unwrap().to_string(), "deny bash(rm *)");
        for (text, why) in [
            ("", "it names no tool"),
            ("deny", "it names no tool"),
            ("forbid bash", "it must begin with allow, ask or deny"),
            ("Deny bash", "it must begin with allow, ask or deny"),
            ("deny bash(rm", "its parenthesis is not closed"),
            ("deny bash()", "its pattern is empty"),
            ("deny (rm)", "it must name one tool"),
            ("deny bash write", "it must name one tool"),
            (&format!("deny {}", "x".repeat(2_000)), "it is too long"),
        ] {
            assert_eq!(Rule::parse(text).unwrap_err().why, why, "{text}");
        }
    }
}
