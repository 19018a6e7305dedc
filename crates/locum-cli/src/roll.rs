//! Everybody who is there, also those who cannot be asked, and what could not be read.

use locum::agents::{FileProblem, ProjectStanding};
use locum::protocol::{FaceDefaults, Refusal};
use locum::{Desk, ListedAgent};
use serde::{Deserialize, Serialize};

/// The agents as `agents list` shows them.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Roll {
    pub(crate) agents: Vec<ListedAgent>,
    pub(crate) problems: Vec<FileProblem>,
    pub(crate) project: Option<ProjectStanding>,
}

impl Roll {
    /// Asks a desk who is there.
    pub(crate) async fn call(desk: &Desk, face: &FaceDefaults) -> Result<Self, Refusal> {
        let agents = desk.all_agents(face).await?;
        let muster = desk.muster();
        Ok(Self { agents, problems: muster.problems.clone(), project: muster.project.clone() })
    }
}
