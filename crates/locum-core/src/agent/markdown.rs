//! Reading an agent from Markdown with YAML frontmatter. Pure: text in, an agent with remarks or located errors out.

use super::dialect::Dialect;
use super::draft::{Draft, name_problem};
use super::fields::Home;
use super::findings::{Findings, Origins};
use super::frontmatter::{self, Halves};
use super::note::{self, Broken, Note, Place, Topic};
use super::{AgentSpec, Source, hidden};
use crate::ids::AgentName;

/// An agent as its file says, and everything worth saying about the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// The agent. Where it `extends` another, what it leaves out is still missing.
    pub agent: AgentSpec,
    /// Warnings and remarks, by place; no errors.
    pub notes: Vec<Note>,
    /// Where each of its fields was written.
    pub origins: Origins,
}

impl Reading {
    /// Whether the file has characters that a person does not see.
    pub fn has_hidden_characters(&self) -> bool {
        self.notes.iter().any(|note| note.topic == Topic::Hidden)
    }
}

/// Reads one agent from the bytes of a file. `stem` is the file's name without its ending, for files that do not name
/// their agent.
pub fn read(bytes: &[u8], stem: &str, source: Source, dialect: Dialect) -> Result<Reading, Broken> {
    let broken = |note: Note| Broken::new(vec![note]);
    let text = frontmatter::text_of(bytes).map_err(broken)?;
    let mut findings = Findings { notes: hidden::find(text), ..Findings::default() };
    let halves = match frontmatter::read(text, &mut findings.notes) {
        Ok(halves) => halves,
        Err(note) => {
            findings.notes.push(note);
            return Err(Broken::new(findings.notes));
        }
    };
    let Halves { entries, body, body_at } = halves;
    let Draft { mut agent, name, .. } = Draft::read(&entries, Home::Agent, source, &mut findings);
    agent.prompt = body.replace("\r\n", "\n").trim().to_owned();
    let name = check_name(name, stem, dialect, &mut findings);
    check_presence(&agent, body_at, &mut findings);
    let Findings { mut notes, origins } = match (findings.has_errors(), name) {
        (false, Some(name)) => {
            agent.name = name;
            findings
        }
        (true, _) | (false, None) => return Err(Broken::new(findings.notes)),
    };
    note::sort(&mut notes);
    Ok(Reading { agent, notes, origins })
}

fn check_name(
    given: Option<(String, Place)>,
    stem: &str,
    dialect: Dialect,
    findings: &mut Findings,
) -> Option<AgentName> {
    let Some((text, at)) = given else {
        let name = AgentName::parse(stem).ok();
        if name.is_none() && !findings.origins.contains_key("name") {
            let message =
                format!("the file has no `name`, and that of the file cannot stand in: {}", name_problem(stem));
            findings.error(Place::START, message);
        }
        return name;
    };
    let Ok(name) = AgentName::parse(&text) else {
        findings.error(at, name_problem(&text));
        return None;
    };
    if dialect == Dialect::Acai && name.as_str() != stem {
        let message = format!(
            "`name` must be that of the file in `.acai/subagents`: write `{stem}`, or rename the file to {name}.md"
        );
        findings.error(at, message);
        return None;
    }
    Some(name)
}

/// What an agent must have, unless it takes it from another one.
fn check_presence(agent: &AgentSpec, body_at: Place, findings: &mut Findings) {
    if agent.extends.is_some() {
        return;
    }
    // A description of the wrong kind has its own error.
    let is_wrong = findings.has_errors() && findings.origins.contains_key("description");
    if agent.description.is_empty() && !is_wrong {
        let at = findings.origins.get("description").map_or(Place::START, |origin| origin.at);
        let message = "`description` is missing: add one line that says when to delegate to this agent";
        findings.error(at, message);
    }
    if agent.prompt.is_empty() {
        findings.error(body_at, "the body is empty: write the agent's instructions below the second `---`");
    }
}
