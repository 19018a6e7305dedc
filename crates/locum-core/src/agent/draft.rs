//! The fields of a file, set one by one: what was said, before it is decided whether it makes an agent.

use super::fields::{self, Field, Home, Row};
use super::findings::Findings;
use super::locum_fields;
use super::note::{Place, Topic};
use super::roster::nearest;
use super::tool_list::{self, List};
use super::values::{self, found};
use super::yaml::{Entry, Value, short};
use super::{AgentSpec, Isolation, MissingAgent, Source};
use crate::ids::AgentName;
use crate::limits;

/// The words of `missingAgentBehavior`.
const MISSING_AGENT: [(&str, MissingAgent); 3] = [
    ("error", MissingAgent::Error),
    ("match", MissingAgent::Match),
    ("match-or-ephemeral", MissingAgent::MatchOrEphemeral),
];

/// What a file says.
pub(super) struct Draft {
    /// Its fields; the name is not yet its own.
    pub(super) agent: AgentSpec,
    pub(super) name: Option<(String, Place)>,
    pub(super) missing: Option<MissingAgent>,
    pub(super) fallback: Option<AgentName>,
}

impl Draft {
    /// Reads the entries of a file of this kind.
    pub(super) fn read(entries: &[Entry], home: Home, source: Source, findings: &mut Findings) -> Self {
        let unnamed = AgentName::parse("unnamed").expect("a plain word is a name");
        let agent = AgentSpec { source, tools: None, ..AgentSpec::new(unnamed, "", "") };
        let mut draft = Self { agent, name: None, missing: None, fallback: None };
        for entry in entries {
            match fields::find(&entry.key) {
                None => unknown(entry, home, findings),
                Some(row) if row.home != Home::Both && row.home != home => misplaced(entry, row, findings),
                Some(row) => draft.take(row, entry, findings),
            }
        }
        draft
    }

    fn take(&mut self, row: &Row, entry: &Entry, findings: &mut Findings) {
        if !findings.place(row.field.as_str(), entry) {
            return;
        }
        let remedy = match row.field {
            Field::Tools => "; write `tools: []` for no tools",
            _ => "",
        };
        if !findings.is_given(entry, remedy) {
            findings.origins.remove(row.field.as_str());
            return;
        }
        if let Some(why) = row.kept {
            findings.info(entry.at, format!("`{}` is kept and not honoured: {why}", entry.key));
        }
        self.set(row.field, entry, findings);
    }

    fn set(&mut self, field: Field, entry: &Entry, findings: &mut Findings) {
        let agent = &mut self.agent;
        match field {
            Field::Name => self.name = findings.text(entry).map(|text| (text, entry.value.at)),
            Field::Description => agent.description = description(entry, findings),
            Field::Model => agent.model = findings.line(entry),
            Field::Tools => agent.tools = tool_list::read(entry, List::Allowed, findings),
            Field::DisallowedTools => agent.denied_tools = tool_list::read(entry, List::Denied, findings),
            Field::MaxTurns => agent.max_turns = turns(entry, findings),
            Field::Timeout => agent.timeout_s = timeout(entry, findings),
            Field::McpServers => agent.mcp_servers = servers(entry, findings),
            Field::Isolation => agent.isolation = isolation(entry, findings),
            Field::Readonly => agent.readonly = findings.boolean(entry),
            Field::Background => agent.background = findings.boolean(entry),
            Field::Effort => agent.sampling.effort = findings.line(entry),
            Field::Temperature => agent.sampling.temperature = temperature(entry, findings),
            Field::MaxTokens => agent.sampling.max_tokens = locum_fields::tokens(entry, findings),
            Field::Extends => agent.extends = agent_name(entry, findings),
            Field::Color => agent.color = findings.line(entry),
            Field::Skills | Field::Memory | Field::Hooks | Field::PermissionMode | Field::InitialPrompt => {
                agent.kept.insert(field.as_str().to_owned(), values::json(&entry.value));
            }
            Field::Locum => agent.locum = locum_fields::read(entry, findings).unwrap_or_default(),
            Field::MissingAgentBehavior => self.missing = findings.word(entry, &MISSING_AGENT),
            Field::FallbackAgent => self.fallback = agent_name(entry, findings),
        }
    }
}

/// Why a text is no agent's name, with one that would be.
pub(super) fn name_problem(text: &str) -> String {
    let mut slug = String::new();
    for character in text.chars().take(limits::NAME_CHARS_MAX) {
        match character.to_ascii_lowercase() {
            c @ ('a'..='z' | '0'..='9' | '_') => slug.push(c),
            _ if slug.is_empty() || slug.ends_with('-') => {}
            _ => slug.push('-'),
        }
    }
    let slug = slug.trim_end_matches('-');
    let rule = match AgentName::parse(text) {
        Err(error) => error.why,
        Ok(_) => "it is not allowed here",
    };
    // What other letters would become is not for us to guess.
    let hint = if slug.is_empty() || !text.is_ascii() { String::new() } else { format!("; `{slug}` would do") };
    format!("`{}` is not a valid agent name: {rule}{hint}", short(text))
}

fn agent_name(entry: &Entry, findings: &mut Findings) -> Option<AgentName> {
    let text = findings.text(entry)?;
    match AgentName::parse(&text) {
        Ok(name) => Some(name),
        Err(_) => {
            findings.error(entry.value.at, format!("`{}`: {}", entry.key, name_problem(&text)));
            None
        }
    }
}

fn description(entry: &Entry, findings: &mut Findings) -> String {
    let text = findings.line(entry).unwrap_or_default();
    let most = limits::DESCRIPTION_CHARS_MAX;
    let is = text.chars().count();
    if is > most {
        let message = format!(
            "`description` has {is} characters; every model that delegates reads it: keep it below {most} and move \
             the rest to the body"
        );
        findings.warn(entry.value.at, Topic::Value, message);
    }
    text
}

fn turns(entry: &Entry, findings: &mut Findings) -> Option<u32> {
    let turns = findings.whole(entry, "10")?;
    if turns < 1 {
        return findings.wrong(entry, "a whole number from 1");
    }
    Some(u32::try_from(turns).unwrap_or(u32::MAX))
}

/// Seconds, from whatever unit the key names. A fraction of a second is rounded up: 0 would mean no time at all.
fn timeout(entry: &Entry, findings: &mut Findings) -> Option<u64> {
    let (example, seconds_each) = match entry.key.as_str() {
        "timeout_mins" | "timeoutMins" => ("5", 60.0),
        "timeoutMs" | "timeout_ms" => ("300000", 0.001),
        _ => ("300", 1.0),
    };
    let given = findings.number(entry, example)?;
    // Thousandths have no exact value: a whole number of seconds must not become one more.
    let seconds = (given * seconds_each * 1000.0).round() / 1000.0;
    if given <= 0.0 {
        return findings.wrong(entry, "a number above 0");
    }
    if seconds > limits::AGENT_TIMEOUT_SECONDS_MAX as f64 {
        return findings.wrong(entry, "at most a year");
    }
    Some(seconds.ceil() as u64)
}

fn temperature(entry: &Entry, findings: &mut Findings) -> Option<f64> {
    let temperature = findings.number(entry, "0.2")?;
    if !(0.0..=2.0).contains(&temperature) {
        return findings.wrong(entry, "a number from 0 to 2");
    }
    Some(temperature)
}

fn isolation(entry: &Entry, findings: &mut Findings) -> Option<Isolation> {
    let words =
        [Isolation::Worktree, Isolation::Process, Isolation::None].map(|isolation| (isolation.as_str(), isolation));
    findings.word(entry, &words)
}

/// The names of servers. What defines a server in place is skipped: who may start programs is the user's settings' to say.
fn servers(entry: &Entry, findings: &mut Findings) -> Option<Vec<String>> {
    let skip = |findings: &mut Findings, at: Place, what: &str| {
        let message = format!("{what} is skipped: name a server that the settings configure, for example `github`");
        findings.warn(at, Topic::Value, message);
    };
    if let Value::Map(_) = &entry.value.value {
        skip(findings, entry.value.at, "a server that is defined in the file");
        return Some(Vec::new());
    }
    let items = findings.items(entry, |findings, node| match &node.value {
        Value::Map(_) => skip(findings, node.at, "a server that is defined in the file"),
        Value::Scalar { .. } | Value::List(_) => skip(findings, node.at, &found(node)),
    })?;
    Some(items.into_iter().map(|item| item.text).collect())
}

fn unknown(entry: &Entry, home: Home, findings: &mut Findings) {
    let key = short(&entry.key);
    let hint = match fields::ELSEWHERE.iter().find(|(elsewhere, _)| *elsewhere == entry.key) {
        Some((_, instead)) => (*instead).to_owned(),
        None => match nearest(&entry.key, fields::spellings(home), |spelling| spelling).first() {
            Some(near) => format!("did you mean `{near}`?"),
            None => "remove it, or see `locum agents new` for a file with every usual key".to_owned(),
        },
    };
    findings.warn(entry.at, Topic::UnknownKey, format!("unknown key `{key}` is ignored: {hint}"));
}

fn misplaced(entry: &Entry, row: &Row, findings: &mut Findings) {
    let message = match row.home {
        Home::Defaults => format!("`{}` is ignored here: it belongs in a file `_defaults.md`", entry.key),
        Home::Agent | Home::Both => {
            format!("`{}` is ignored in `_defaults.md`: it belongs in an agent's own file", entry.key)
        }
    };
    findings.warn(entry.at, Topic::UnknownKey, message);
}
