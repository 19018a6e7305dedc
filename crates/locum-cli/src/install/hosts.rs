//! The hosts: where each keeps its servers, and in which words.

use std::path::PathBuf;

use clap::ValueEnum;
use locum::settings::environment::Environment;
use serde_json::json;

use super::merging::{Fields, Language};

/// A program that starts MCP servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Host {
    Claude,
    Codex,
    Cursor,
    Vscode,
    Zed,
    Gemini,
}

/// What is entered.
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) command: String,
    pub(super) arguments: Vec<String>,
}

impl Host {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Cursor => "cursor",
            Self::Vscode => "vscode",
            Self::Zed => "zed",
            Self::Gemini => "gemini",
        }
    }

    /// What its files are written in.
    pub(super) fn language(self) -> Language {
        match self {
            Self::Codex => Language::Toml,
            Self::Claude | Self::Cursor | Self::Vscode | Self::Zed | Self::Gemini => Language::Json,
        }
    }

    /// Where in its files servers are.
    pub(super) fn folder(self) -> &'static str {
        match self {
            Self::Claude | Self::Cursor | Self::Gemini => "mcpServers",
            Self::Vscode => "servers",
            Self::Zed => "context_servers",
            Self::Codex => "mcp_servers",
        }
    }

    /// The file for one user.
    pub(super) fn user_file(self, environment: &Environment) -> Option<PathBuf> {
        let home = environment.home()?;
        let named = |variable: &str| environment.get(variable).map(PathBuf::from).filter(|path| path.is_absolute());
        let config = || named("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
        Some(match self {
            Self::Claude => match named("CLAUDE_CONFIG_DIR") {
                Some(directory) => directory.join(".claude.json"),
                None => home.join(".claude.json"),
            },
            Self::Codex => named("CODEX_HOME").unwrap_or_else(|| home.join(".codex")).join("config.toml"),
            Self::Cursor => home.join(".cursor/mcp.json"),
            Self::Vscode if cfg!(target_os = "macos") => home.join("Library/Application Support/Code/User/mcp.json"),
            Self::Vscode => config().join("Code/User/mcp.json"),
            Self::Zed => config().join("zed/settings.json"),
            Self::Gemini => home.join(".gemini/settings.json"),
        })
    }

    /// The file of a project, below its root.
    pub(super) fn project_file(self) -> &'static str {
        match self {
            Self::Claude => ".mcp.json",
            Self::Codex => ".codex/config.toml",
            Self::Cursor => ".cursor/mcp.json",
            Self::Vscode => ".vscode/mcp.json",
            Self::Zed => ".zed/settings.json",
            Self::Gemini => ".gemini/settings.json",
        }
    }

    /// What stands under the name of the server.
    pub(super) fn fields(self, entry: &Entry) -> Fields {
        let kind = match self {
            Self::Claude | Self::Vscode => Some(("type", json!("stdio"))),
            Self::Codex | Self::Cursor | Self::Zed | Self::Gemini => None,
        };
        let Entry { command, arguments, .. } = entry;
        kind.into_iter().chain([("command", json!(command)), ("args", json!(arguments))]).collect()
    }
}
