//! Making an agent in a session.

use std::sync::Arc;

use crate::admission::{Premises, agent_not_found, finding, servers};
use crate::agent::tool_names::{SUBAGENT, canonical};
use crate::agent::{AgentSpec, Roster, Source, extends, roster};
use crate::ids::AgentName;
use crate::limits;
use crate::protocol::request::Define;
use crate::protocol::response::Defined;
use crate::protocol::{Code, Refusal};
use crate::session::{SessionChange, SessionView};
use crate::usage::{estimate_tokens, fits_tokens};

/// Decides about a definition. Checked in this order: shape, name, prompt size, tools, model, uniqueness.
pub fn define(
    request: &Define,
    premises: &Premises<'_>,
    view: &SessionView,
) -> Result<(Defined, SessionChange), Refusal> {
    if view.archived {
        return Err(Refusal::new(Code::SessionArchived, "the session is archived and can only be read"));
    }
    let roster = premises.roster_of(view);
    check_shape(request)?;
    let name = AgentName::parse(&request.name).map_err(|error| {
        Refusal::new(Code::InvalidAgentName, error.to_string()).hint("[a-z0-9_-], 1 to 64 characters")
    })?;
    let base = find_base(request, &roster)?;
    let (max_turns, warning) = premises.clamp_turns(request.max_turns);
    let mut agent = compose(request, name, base.as_deref());
    agent.max_turns = max_turns.or(agent.max_turns);
    check_prompt(&agent.prompt)?;
    check_tools(request, premises)?;
    if let Some(model) = request.model.as_ref().filter(|model| !premises.catalogue.knows(model)) {
        return Err(premises.catalogue.not_found(model));
    }
    if let Some(existing) = roster.get(agent.name.as_str()) {
        if request.replace != Some(true) {
            return Err(Refusal::new(Code::AgentAlreadyExists, format!("an agent is called `{}` already", agent.name))
                .hint("choose another name, or say replace: true"));
        }
        agent.version = existing.version + 1;
    }
    // What takes the place of a file's agent is one more of the session's own.
    let is_new = view.defined.iter().all(|defined| defined.name != agent.name);
    if is_new && view.defined.len() >= limits::DEFINED_AGENTS_MAX {
        return Err(Refusal::invalid(format!("a session defines at most {} agents", limits::DEFINED_AGENTS_MAX)));
    }
    let answer = Defined {
        defined: agent.name.clone(),
        description: agent.description.clone(),
        version: agent.version,
        warnings: warning.into_iter().collect(),
    };
    Ok((answer, SessionChange::Define(Box::new(agent))))
}

fn check_shape(request: &Define) -> Result<(), Refusal> {
    if request.extends.is_none() {
        let missing = |field: &str| Err(Refusal::invalid(format!("define: missing field `{field}`")));
        if request.description.is_none() {
            return missing("description");
        }
        if request.system_prompt.is_none() {
            return missing("system_prompt");
        }
        if request.system_prompt_append.is_some() {
            return Err(Refusal::invalid("define: `system_prompt_append` needs `extends`"));
        }
    }
    let blank = |field: &Option<String>| field.as_ref().is_some_and(|text| text.trim().is_empty());
    if blank(&request.description) {
        return Err(Refusal::invalid("define: `description` is empty"));
    }
    if blank(&request.system_prompt) {
        return Err(Refusal::invalid("define: `system_prompt` is empty"));
    }
    let long = |text: &String| text.chars().nth(limits::DESCRIPTION_CHARS_MAX).is_some();
    if request.description.as_ref().is_some_and(long) {
        let most = limits::DESCRIPTION_CHARS_MAX;
        return Err(Refusal::invalid(format!("define: `description` is longer than {most} characters")));
    }
    if request.tools.as_ref().is_some_and(|tools| tools.len() > limits::TOOLS_PER_AGENT_MAX) {
        return Err(Refusal::invalid(format!("define: more than {} tools", limits::TOOLS_PER_AGENT_MAX)));
    }
    Ok(())
}

fn find_base(request: &Define, roster: &Roster) -> Result<Option<Arc<AgentSpec>>, Refusal> {
    match &request.extends {
        None => Ok(None),
        Some(name) => match (roster.find_untrusted(name), roster.find(name)) {
            (Some(untrusted), _) => Err(finding::not_trusted(untrusted)),
            (None, Some(found)) => Ok(Some(found.agent)),
            (None, None) => Err(agent_not_found(name, roster)),
        },
    }
}

/// The agent that the request describes; with a base, what is left out is inherited.
fn compose(request: &Define, name: AgentName, base: Option<&AgentSpec>) -> AgentSpec {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let tools = request.tools.as_ref();
    let own = AgentSpec {
        tools: tools.map(|tools| tools.iter().map(|tool| canonical(tool).to_owned()).collect()),
        model: request.model.clone(),
        source: Source::Defined,
        ..AgentSpec::new(name, text(&request.description), text(&request.system_prompt_append))
    };
    match (base, &request.system_prompt) {
        (Some(base), None) => extends::inherit(own, base),
        // A prompt of its own takes the place of the base's.
        (Some(base), Some(prompt)) => extends::inherit(own, &AgentSpec { prompt: prompt.clone(), ..base.clone() }),
        // Without a base, an agent that names no tools has none.
        (None, prompt) => AgentSpec { prompt: text(prompt), tools: Some(own.tools.unwrap_or_default()), ..own },
    }
}

fn check_prompt(prompt: &str) -> Result<(), Refusal> {
    if fits_tokens(prompt, limits::PROMPT_TOKENS_MAX) {
        return Ok(());
    }
    let (most, is) = (limits::PROMPT_TOKENS_MAX, estimate_tokens(prompt));
    Err(Refusal::new(Code::PromptTooLarge, format!("the system prompt has {is} tokens; at most {most} are allowed"))
        .hint("keep instructions in the prompt and move knowledge to tools or shared context"))
}

fn check_tools(request: &Define, premises: &Premises<'_>) -> Result<(), Refusal> {
    for name in request.tools.iter().flatten() {
        let ours = canonical(name);
        let is_here = premises.tools.iter().any(|tool| tool.name == ours);
        if ours == SUBAGENT || is_here || servers::offers(ours, premises) {
            continue;
        }
        let shown: String = name.chars().take(80).collect();
        let refusal = Refusal::new(Code::InvalidTool, format!("there is no tool called `{shown}`"));
        if ours.starts_with(servers::PREFIX) {
            return Err(refusal.hint(servers::find(ours, premises).err().unwrap_or_default()));
        }
        let near = roster::nearest(name, premises.tools.iter(), |tool| tool.name.as_str());
        let names: Vec<&str> = match near.as_slice() {
            [] => premises.tools.iter().map(|tool| tool.name.as_str()).collect(),
            near => near.iter().map(|tool| tool.name.as_str()).collect(),
        };
        let hint = if near.is_empty() { "the tools are" } else { "did you mean" };
        return Err(refusal.hint(format!("{hint} {}", names.join(", "))));
    }
    Ok(())
}
