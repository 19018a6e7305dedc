//! Which agent a request means: the one of that name, else what the rule for missing names says. A substitution is
//! never silent: how it came about is in the receipt, and a warning names both.

use std::sync::Arc;

use crate::admission::agent_not_found;
use crate::agent::matching::best_match;
use crate::agent::roster::{Found, How};
use crate::agent::{AgentSpec, Fallbacks, MissingAgent, Roster, Source};
use crate::ids::AgentName;
use crate::limits;
use crate::protocol::{Code, FaceDefaults, Refusal};

/// What happens when nobody has the name that was asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct MissingRule<'a> {
    /// Whether a likeness counts, and whether an agent is made.
    pub(super) behaviour: MissingAgent,
    /// Who answers when nobody is found.
    pub(super) fallback: Option<&'a str>,
}

impl<'a> MissingRule<'a> {
    /// What the fallbacks say, else the face. Who names a fallback and no rule wants it used.
    pub(super) fn of(face: &FaceDefaults, fallbacks: &'a Fallbacks) -> Self {
        let said = fallbacks.missing_agent();
        let fallback = fallbacks.fallback_agent().filter(|_| said != Some(MissingAgent::Error));
        Self { behaviour: said.unwrap_or(face.missing_agent), fallback: fallback.map(AgentName::as_str) }
    }
}

/// Finds the agent, and what to tell the caller about it. Checked in this order: the agent, then trust.
pub(super) fn find(
    requested: &str,
    roster: &Roster,
    rule: MissingRule<'_>,
) -> Result<(Found, Option<String>), Refusal> {
    if let Some(agent) = roster.find_untrusted(requested) {
        return Err(not_trusted(agent));
    }
    if let Some(found) = roster.find(requested) {
        let warning = roster.is_untrusted(&found.agent.name).then(|| {
            format!("the project has an agent `{}` too, which is not trusted and was not asked", found.agent.name)
        });
        return Ok((found, warning));
    }
    let found = substitute(requested, roster, rule).ok_or_else(|| agent_not_found(requested, roster))?;
    let (shown, name) = (shown(requested), &found.agent.name);
    let warning = match found.how {
        How::Exact | How::Folded => None,
        How::Match => Some(format!("no agent is called `{shown}`; `{name}`, the nearest name, was asked instead")),
        How::Fallback => {
            Some(format!("no agent is called `{shown}`; `{name}` was asked instead, as _defaults.md says"))
        }
        How::Ephemeral => Some(format!("no agent is called `{shown}`; one was made for this task alone")),
    };
    Ok((found, warning))
}

fn substitute(requested: &str, roster: &Roster, rule: MissingRule<'_>) -> Option<Found> {
    let (may_match, may_make) = match rule.behaviour {
        MissingAgent::Error => (false, false),
        MissingAgent::Match => (true, false),
        MissingAgent::MatchOrEphemeral => (true, true),
    };
    if may_match && let Some(agent) = best_match(requested, roster.iter(), |agent| agent.name.as_str()) {
        return Some(Found { agent: Arc::clone(agent), how: How::Match });
    }
    if let Some(found) = rule.fallback.and_then(|name| roster.find(name)) {
        return Some(Found { how: How::Fallback, ..found });
    }
    let made = may_make.then(|| ephemeral(requested)).flatten()?;
    Some(Found { agent: Arc::new(made), how: How::Ephemeral })
}

/// An agent for one task, under the name that was asked for as far as that can be one.
fn ephemeral(requested: &str) -> Option<AgentSpec> {
    let lower = requested.trim().chars().take(limits::NAME_CHARS_MAX).flat_map(char::to_lowercase);
    let spelled: String = lower
        .map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' })
        .take(limits::NAME_CHARS_MAX)
        .collect();
    let name = AgentName::parse(spelled.trim_matches('-')).ok()?;
    let prompt = format!("You are a specialist called `{name}`: do the task you are given the way your name promises.");
    let mut agent = AgentSpec::new(name, "Made for one task", prompt);
    // What the face grants where an agent names no tools.
    agent.tools = None;
    agent.source = Source::Ephemeral;
    Some(agent)
}

/// A refusal for an agent of a project that is not trusted.
pub(super) fn not_trusted(agent: &AgentSpec) -> Refusal {
    let message = format!("`{}` is an agent of this project, and the project is not trusted", agent.name);
    Refusal::new(Code::NotTrusted, message)
        .hint(format!("look at it with `locum agents show {}`, then say `locum agents trust`", agent.name))
}

fn shown(name: &str) -> String {
    name.chars().take(80).collect()
}
