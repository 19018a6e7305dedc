//! Where locum keeps its own files.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::environment::{Environment, LOCUM_HOME};

/// Locum's own directories.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Places {
    /// What the user writes.
    pub config: PathBuf,
    /// What must not be lost: the store.
    pub data: PathBuf,
    /// What may be lost: logs.
    pub state: PathBuf,
}

impl Places {
    /// The directories that the environment names: below `LOCUM_HOME`, else the XDG ones.
    pub fn find(environment: &Environment) -> Result<Self, String> {
        if let Some(home) = environment.get(LOCUM_HOME) {
            return Ok(Self::below(&absolute(Path::new(home), environment)));
        }
        let home = environment.home().ok_or("there is no home directory: set HOME or LOCUM_HOME")?;
        let xdg = |variable: &str, fallback: &str| {
            let named = environment.get(variable).map(PathBuf::from).filter(|path| path.is_absolute());
            named.unwrap_or_else(|| home.join(fallback)).join("locum")
        };
        Ok(Self {
            config: xdg("XDG_CONFIG_HOME", ".config"),
            data: xdg("XDG_DATA_HOME", ".local/share"),
            state: xdg("XDG_STATE_HOME", ".local/state"),
        })
    }

    /// All directories below one.
    pub fn below(home: &Path) -> Self {
        Self { config: home.join("config"), data: home.join("data"), state: home.join("state") }
    }

    /// The user's settings.
    pub fn config_file(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    /// The user's own rows of the catalogue of models.
    pub fn catalogue_file(&self) -> PathBuf {
        self.config.join("catalogue.toml")
    }

    /// The store.
    pub fn database(&self) -> PathBuf {
        self.data.join("locum.db")
    }

    /// The git worktrees of tasks.
    pub fn worktrees(&self) -> PathBuf {
        self.state.join("worktrees")
    }

    /// What was said in tasks, for callers that want a file of it.
    pub fn transcripts(&self) -> PathBuf {
        self.state.join("transcripts")
    }

    /// The list of trusted projects.
    pub fn trust_file(&self) -> PathBuf {
        self.state.join("trust.json")
    }

    /// The token that clients of `locum serve` show.
    pub fn server_token(&self) -> PathBuf {
        self.state.join("server.token")
    }

    /// What `locum serve` holds while it runs: one for each of these directories.
    pub fn server_lock(&self) -> PathBuf {
        self.state.join("server.lock")
    }

    /// Where `locum serve` listens, while it runs.
    pub fn server_note(&self) -> PathBuf {
        self.state.join("server.json")
    }

    /// What MCP servers offered when they were first seen.
    pub fn mcp_servers(&self) -> PathBuf {
        self.state.join("mcp")
    }

    /// Where processes listen that want to hear what tasks of others say.
    pub fn ears(&self) -> PathBuf {
        self.state.join("ears")
    }

    /// The operation logs.
    pub fn logs(&self) -> PathBuf {
        self.state.join("logs")
    }
}

fn absolute(path: &Path, environment: &Environment) -> PathBuf {
    match environment.working_directory() {
        Some(directory) => directory.join(path),
        None => path.to_owned(),
    }
}

/// The root of the project around a directory: the nearest one with a `.git`, found without running git; else the
/// directory itself.
pub fn project_root(directory: &Path) -> PathBuf {
    let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    let root = directory.ancestors().find(|ancestor| ancestor.join(".git").exists());
    root.unwrap_or(&directory).to_owned()
}
