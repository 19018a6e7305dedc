//! Faces: the shapes in which doors show the tools. `native` is locum's own; `tallow`, `pi`, `acai` and `picoclaw` are
//! those of other programs, so that whoever calls them can call locum instead.
//!
//! A face maps names and carries defaults as data in the request; the same desk answers behind all of them.
//!
//! ```
//! use std::sync::Arc;
//!
//! use locum::faces::Face;
//! use locum::models::scripted::{Say, Scripted};
//! use locum::{AgentName, AgentSpec, Desk};
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let model = Scripted::new().agent("reviewer", [Say::text("Looks good.")]);
//! let reviewer = AgentSpec::new(AgentName::parse("reviewer")?, "Reviews", "You review.");
//! let desk = Desk::builder().model("script", Arc::new(model)).agent(reviewer).build()?;
//! let answer = Face::Acai.handle(&desk, "Agent", json!({"type": "reviewer", "prompt": "Review it."})).await;
//! assert_eq!(answer.json, r#"{"content":[{"type":"text","text":"Looks good."}],"isError":false}"#);
//! # Ok(())
//! # }
//! ```

mod acai;
mod answer;
mod asking;
mod cut;
mod pi;
mod picoclaw;
mod settings;
mod tallow;
mod transcript;
mod usage;

use locum_core::agent::Roster;
use locum_core::protocol::Refusal;
use locum_core::protocol::schema::{ToolDefinition, native_tools};
use serde_json::Value;

use crate::desk::Desk;

pub use answer::FaceAnswer;
pub use settings::{FaceSettings, Retention};

/// The shape in which a door shows the tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Face {
    /// Locum's own.
    #[default]
    Native,
    /// Tallow's `subagent`, `subagent_status` and `manage_tasks`.
    Tallow,
    /// Pi's `subagent`.
    Pi,
    /// Acai's `Agent`.
    Acai,
    /// Picoclaw's `subagent`, `spawn` and `spawn_status`.
    Picoclaw,
}

impl Face {
    /// Every face.
    pub const ALL: [Self; 5] = [Self::Native, Self::Tallow, Self::Pi, Self::Acai, Self::Picoclaw];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Tallow => "tallow",
            Self::Pi => "pi",
            Self::Acai => "acai",
            Self::Picoclaw => "picoclaw",
        }
    }

    /// Reads the word for it.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|face| face.as_str() == text)
    }

    /// The tools as a model sees them. Some faces name the agents in them: `roster` has those that can be asked, see
    /// [`Desk::muster`].
    pub fn tools(self, roster: &Roster) -> Vec<ToolDefinition> {
        match self {
            Self::Native => native_tools(),
            Self::Tallow => tallow::tools(roster),
            Self::Pi => pi::tools(roster),
            Self::Acai => acai::tools(roster),
            Self::Picoclaw => picoclaw::tools(roster),
        }
    }

    /// What an orchestrating model is told beside the tools; nothing in faces whose tools say everything.
    ///
    /// # Errors
    ///
    /// The store failed.
    ///
    /// # Cancel safety
    ///
    /// It only reads: it may be dropped at any time.
    pub async fn instructions(self, desk: &Desk) -> Result<Option<String>, Refusal> {
        match self {
            Self::Native => desk.prompt().await.map(Some),
            Self::Tallow | Self::Pi | Self::Acai | Self::Picoclaw => Ok(None),
        }
    }

    /// Carries out a call of one of the face's tools. What goes wrong is an answer too, in the words of the face.
    ///
    /// # Cancel safety
    ///
    /// As [`Desk::handle`]: dropping the future never ends a task.
    pub async fn handle(self, desk: &Desk, tool: &str, input: Value) -> FaceAnswer {
        let input = match desk.without_secrets(input) {
            Ok(input) => input,
            Err(refusal) => return FaceAnswer::refused(&refusal),
        };
        let answer = match self {
            Self::Native => return FaceAnswer::native(&desk.call(tool, input).await),
            Self::Tallow => tallow::handle(desk, tool, input).await,
            Self::Pi => pi::handle(desk, tool, input).await,
            Self::Acai => acai::handle(desk, tool, input).await,
            Self::Picoclaw => picoclaw::handle(desk, tool, input).await,
        };
        answer.unwrap_or_else(|| FaceAnswer::refused(&self.unknown_tool(tool)))
    }

    fn unknown_tool(self, tool: &str) -> Refusal {
        let shown: String = tool.chars().take(80).collect();
        let names: Vec<String> = self.tools(&Roster::default()).into_iter().map(|tool| tool.name).collect();
        Refusal::invalid(format!("unknown tool `{shown}`")).hint(format!(
            "the tools of the face {} are {}",
            self.as_str(),
            names.join(", ")
        ))
    }
}
