//! What a person sees before a project is trusted: every file that would act, and what it says, with nothing hidden.
//! What is trusted is what was shown, whatever the files have become meanwhile.

use std::path::{Path, PathBuf};

use locum_core::agent::hidden::{self, escape};
use locum_core::ids::Timestamp;
use serde::Serialize;

use super::files::FileRead;
use super::gathering::{read_agent, read_defaults};
use super::muster::judge;
use super::places::{Place, Search};
use super::project::ProjectFiles;
use super::trust::{Trust, TrustError, TrustList, TrustedProject};
use crate::settings;

/// A project as it was looked at, before it is trusted.
#[derive(Debug, Clone, Serialize)]
pub struct Review {
    /// Its root.
    pub root: PathBuf,
    /// How it stands.
    pub trust: Trust,
    /// What it is, as one number.
    pub hash: String,
    /// Every file that would act.
    pub files: Vec<ReviewedFile>,
    #[serde(skip)]
    trust_file: PathBuf,
}

/// A file that would act if its project were trusted.
#[derive(Debug, Clone, Serialize)]
pub struct ReviewedFile {
    /// Its path below the root, with hidden characters escaped.
    pub path: String,
    /// What it is and says, on one line, with hidden characters escaped.
    pub says: String,
    /// How many characters it has that a person does not see and a model reads.
    pub hidden_characters: usize,
    /// Why it cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl Review {
    pub(crate) fn of(search: &Search) -> Self {
        let (root, trust_file) = (&search.root, &search.trust_file);
        let files = ProjectFiles::read(search);
        let trust = judge(&files, trust_file).unwrap_or(Trust::Untrusted);
        let mut reviewed = Vec::new();
        for (place, walked) in &files.places {
            reviewed.extend(walked.defaults.iter().map(|file| defaults(file, root)));
            reviewed.extend(walked.agents.iter().map(|file| agent(file, place, root)));
        }
        reviewed.extend(files.settings.iter().map(|file| project_settings(file, root)));
        Self { root: files.root, trust, hash: files.hash, files: reviewed, trust_file: trust_file.to_owned() }
    }

    /// Trusts the project as it was looked at.
    ///
    /// # Errors
    ///
    /// The list of trusted projects cannot be read or written.
    pub fn trust(&self, now: Timestamp) -> Result<(), TrustError> {
        let project = TrustedProject { root: self.root.clone(), hash: self.hash.clone(), trusted_at: now };
        TrustList::at(&self.trust_file).add(project)
    }

    /// Why the project cannot be trusted as it is: it sets what only a user may set.
    pub fn obstacle(&self) -> Option<&str> {
        let settings = self.files.iter().find(|file| file.path == super::project::SETTINGS_FILE)?;
        settings.problem.as_deref()
    }
}

fn reviewed(file: &FileRead, root: &Path, says: Result<String, String>) -> ReviewedFile {
    let path = file.path.strip_prefix(root).unwrap_or(&file.path).to_string_lossy().into_owned();
    let text = file.bytes.as_ref().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default();
    let hidden_characters = text.chars().filter(|c| hidden::kind(*c).is_some()).count();
    let (says, problem) = match says {
        Ok(says) => (escape(&says), None),
        Err(problem) => ("cannot be used".to_owned(), Some(escape(&problem))),
    };
    ReviewedFile { path: escape(&path), says, hidden_characters, problem }
}

fn agent(file: &FileRead, place: &Place, root: &Path) -> ReviewedFile {
    let says = read_agent(file, place).map_err(|problem| problem.message).map(|reading| {
        let agent = reading.agent;
        let tools = match &agent.tools {
            Some(tools) if tools.is_empty() => "no tools".to_owned(),
            Some(tools) => format!("tools {}", tools.join(" ")),
            None => "default tools".to_owned(),
        };
        let model = agent.model.map(|model| format!(", model {model}")).unwrap_or_default();
        format!("agent {}: {tools}{model}: {}", agent.name, agent.description)
    });
    reviewed(file, root, says)
}

fn defaults(file: &FileRead, root: &Path) -> ReviewedFile {
    let says = read_defaults(file).map_err(|problem| problem.message);
    reviewed(file, root, says.map(|_| "fallbacks for every agent".to_owned()))
}

fn project_settings(file: &FileRead, root: &Path) -> ReviewedFile {
    let says = file.bytes.clone().and_then(|bytes| {
        let text = String::from_utf8(bytes).map_err(|_| "the file is not UTF-8".to_owned())?;
        settings::check_project(&file.path, &text).map_err(|error| error.to_string())?;
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        Ok(format!("settings: {}", lines.collect::<Vec<_>>().join("; ")))
    });
    reviewed(file, root, says)
}
