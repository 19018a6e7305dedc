//! `_defaults.md`: what agents get that do not say otherwise, and what happens where an agent is not found.

use serde::{Deserialize, Serialize};

use super::draft::Draft;
use super::fields::Home;
use super::findings::{Findings, Origins};
use super::frontmatter;
use super::note::{self, Broken, Note, Topic};
use super::{AgentSpec, Source, extends, hidden};
use crate::ids::AgentName;

/// What one `_defaults.md` says.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentDefaults {
    /// The fallbacks, in the shape of an agent; its name, description and prompt mean nothing.
    fields: Box<AgentSpec>,
    /// What happens where an agent is not found.
    pub missing_agent: Option<MissingAgent>,
    /// Who stands in where an agent is not found.
    pub fallback_agent: Option<AgentName>,
}

impl AgentDefaults {
    /// The fallbacks, in the shape of an agent; its name, description and prompt mean nothing.
    pub fn fields(&self) -> &AgentSpec {
        &self.fields
    }

    /// Gives an agent what it leaves out.
    pub fn apply(&self, agent: &mut AgentSpec) {
        extends::fill(agent, &self.fields);
    }
}

/// What happens where an agent is not found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MissingAgent {
    /// The request is refused.
    #[default]
    Error,
    /// The agent with the most similar name stands in.
    Match,
    /// The same, and without one an agent is made for the task.
    MatchOrEphemeral,
}

/// Defaults with everything worth saying about their file.
#[derive(Debug, Clone, PartialEq)]
pub struct DefaultsReading {
    /// The defaults.
    pub defaults: AgentDefaults,
    /// Warnings and remarks, by place; no errors.
    pub notes: Vec<Note>,
    /// Where each field was written.
    pub origins: Origins,
}

/// Reads a `_defaults.md` from its bytes.
pub fn read(bytes: &[u8]) -> Result<DefaultsReading, Broken> {
    let text = frontmatter::text_of(bytes).map_err(|note| Broken::new(vec![note]))?;
    let mut findings = Findings { notes: hidden::find(text), ..Findings::default() };
    let halves = match frontmatter::read(text, &mut findings.notes) {
        Ok(halves) => halves,
        Err(note) => {
            findings.notes.push(note);
            return Err(Broken::new(findings.notes));
        }
    };
    let draft = Draft::read(&halves.entries, Home::Defaults, Source::Application, &mut findings);
    if !halves.body.trim().is_empty() {
        let message = "the text below the frontmatter is not used: defaults have no prompt";
        findings.notes.push(Note::info(halves.body_at, Topic::NotHonoured, message));
    }
    if findings.has_errors() {
        return Err(Broken::new(findings.notes));
    }
    let Findings { mut notes, origins } = findings;
    note::sort(&mut notes);
    let defaults =
        AgentDefaults { fields: Box::new(draft.agent), missing_agent: draft.missing, fallback_agent: draft.fallback };
    Ok(DefaultsReading { defaults, notes, origins })
}
