//! Whether everything that locum needs is there: models, sandbox, git, store, agents. Each line says how it stands, and
//! what to do where it does not stand well. Nothing of the project is run for it.

use std::path::Path;

use locum_core::task::event::FailureKind;
use locum_models::Probed;
use serde::Serialize;

use crate::desk::Desk;
use crate::git;
use crate::sandbox::{Level, Sandbox};
use crate::setup::{Opened, Setup};
use crate::store::sqlite::SqliteStore;

/// Problems of one kind that are shown one by one.
const SHOWN_MAX: usize = 5;

/// How something stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Health {
    /// As it should.
    Good,
    /// It works, with something missing.
    Fair,
    /// Something does not work.
    Poor,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// What it is about.
    pub topic: &'static str,
    /// How it stands.
    pub health: Health,
    /// What was found.
    pub found: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

impl Checked {
    fn good(topic: &'static str, found: impl Into<String>) -> Self {
        Self { topic, health: Health::Good, found: found.into(), advice: None }
    }

    fn with(topic: &'static str, health: Health, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { topic, health, found: found.into(), advice: Some(advice.into()) }
    }
}

impl Setup {
    /// Looks at everything that tasks need here. Servers of models are asked only if the user named them.
    ///
    /// # Cancel safety
    ///
    /// It only looks, but for empty directories that killed commands left in the project, which it removes: it may be
    /// dropped at any time.
    pub async fn checkup(&self) -> Vec<Checked> {
        let (settings, places) = match self.settings() {
            Ok(read) => read,
            Err(error) => {
                let advice = "mend the setting; `locum config show` lists all of them";
                return vec![Checked::with("settings", Health::Poor, error.to_string(), advice)];
            }
        };
        let file = places.config_file();
        let found = if file.exists() { file.display().to_string() } else { format!("{} (none yet)", file.display()) };
        let mut checked = vec![Checked::good("settings", found)];
        let store = store(&places.database()).await;
        let has_store = store.health != Health::Poor;
        checked.push(store);
        match self.open() {
            Err(_) if !has_store => {
                let found = "models and agents were not looked at, as the store cannot be opened";
                checked.push(Checked::with("models", Health::Fair, found, "see to the store first"));
            }
            Err(error) => {
                checked.push(Checked::with(
                    "models",
                    Health::Poor,
                    error.to_string(),
                    "name another model with --model",
                ));
            }
            Ok(Opened { desk, .. }) => {
                checked.extend(models(&desk).await);
                checked.extend(agents(&desk));
            }
        }
        let sandbox = Sandbox::new(settings.sandbox_level(), &self.environment, &places);
        checked.push(sandbox_line(&sandbox).await);
        checked.extend(left_behind(&self.project()));
        checked.push(git_line(&self.project()));
        checked
    }
}

async fn store(path: &Path) -> Checked {
    let checked = match SqliteStore::open(path) {
        Ok(store) => store.check().await,
        Err(error) => Err(error),
    };
    let bytes = path.metadata().map_or(0, |file| file.len());
    match checked {
        Ok(problems) if problems.is_empty() => {
            Checked::good("store", format!("{} ({} KiB, sound)", path.display(), bytes / 1024))
        }
        Ok(problems) => {
            let advice = format!("stop every locum, keep a copy, and move {} away", path.display());
            Checked::with("store", Health::Poor, problems.join("; "), advice)
        }
        Err(error) => {
            let advice = "see to the file and its directory, or set LOCUM_HOME to another one";
            Checked::with("store", Health::Poor, error.to_string(), advice)
        }
    }
}

async fn models(desk: &Desk) -> Vec<Checked> {
    let (name, why) = desk.session_model();
    let mut checked = vec![if name == "offline" {
        let advice = "set ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY or OPENROUTER_API_KEY, or OLLAMA_HOST";
        Checked::with(
            "models",
            Health::Fair,
            format!("the session's model is offline, which only searches: {why}"),
            advice,
        )
    } else {
        Checked::good("models", format!("the session's model is {name}: {why}"))
    }];
    let reachable = desk.models().reachable.iter().filter(|provider| provider.as_str() != "offline");
    let reachable: Vec<&str> = reachable.map(String::as_str).collect();
    if !reachable.is_empty() {
        checked.push(Checked::good("models", format!("a key or an address is set for {}", reachable.join(", "))));
    }
    for server in desk.probe_models().await {
        checked.extend(server_line(&server, reachable.contains(&server.provider.as_str()), &name));
    }
    checked
}

/// What a server of models said. One that the user did not name is only worth a line where it would help.
fn server_line(server: &Probed, is_named: bool, session_model: &str) -> Option<Checked> {
    let Probed { provider, url, models } = server;
    match models {
        Ok(models) if is_named => {
            let models = if models.len() == 1 { "1 model".to_owned() } else { format!("{} models", models.len()) };
            Some(Checked::good("models", format!("{provider} answers at {url} and has {models}")))
        }
        Ok(models) if session_model == "offline" => {
            let example = models.first().map_or("MODEL", String::as_str);
            let found = format!("{provider} answers at {url}, and nobody named it");
            Some(Checked::with("models", Health::Fair, found, format!("ask it with --model {provider}:{example}")))
        }
        Err(error) if is_named => {
            let is_away = matches!(error.kind, FailureKind::Network | FailureKind::Timeout);
            let is_needed = session_model.split(':').next() == Some(provider.as_str());
            let health = if is_away && is_needed { Health::Poor } else { Health::Fair };
            let found = format!("{provider} at {url} does not say which models it has: {}", error.message);
            let advice = "start it, or correct its address; `locum models probe` asks again";
            Some(Checked::with("models", health, found, advice))
        }
        Ok(_) | Err(_) => None,
    }
}

fn agents(desk: &Desk) -> Vec<Checked> {
    let muster = desk.muster();
    let mut checked = vec![Checked::good("agents", format!("{} can be asked", muster.roster.iter().count()))];
    for problem in muster.problems.iter().take(SHOWN_MAX) {
        checked.push(Checked::with(
            "agents",
            Health::Poor,
            problem.to_string(),
            "mend the file; `locum agents lint` says more",
        ));
    }
    if muster.problems.len() > SHOWN_MAX {
        let more = format!("{} more files cannot be read", muster.problems.len() - SHOWN_MAX);
        checked.push(Checked::with("agents", Health::Poor, more, "`locum agents lint` lists them"));
    }
    if let Some(project) = &muster.project
        && !project.trust.is_in_force()
    {
        let found = format!("the agents and settings of {} are not trusted", project.root.display());
        checked.push(Checked::with("agents", Health::Fair, found, "look at them, then `locum agents trust`"));
    }
    checked
}

async fn sandbox_line(sandbox: &Sandbox) -> Checked {
    let levels = sandbox.probe().await;
    let refused = |level: Level| levels.iter().find(|(known, _)| *known == level).and_then(|(_, why)| why.clone());
    match (sandbox.level(), refused(sandbox.level())) {
        (Level::None, _) => {
            Checked::with("sandbox", Health::Fair, "commands run without a sandbox", "set sandbox.level to full")
        }
        (level, None) => Checked::good("sandbox", format!("commands run at level {}", level.as_str())),
        (level, Some(why)) => {
            let advice = match refused(Level::Landlock) {
                None if level == Level::Full => "allow user namespaces, or set sandbox.level to landlock",
                _ => "commands of agents are refused until this is there; reading tools work",
            };
            Checked::with("sandbox", Health::Poor, format!("level {} is not possible: {why}", level.as_str()), advice)
        }
    }
}

/// What commands left in the project that were killed with their launcher.
fn left_behind(project: &Path) -> Option<Checked> {
    let count = crate::sandbox::clear_left(project);
    let found = format!("{count} empty directories that a killed command left in the project were removed");
    (count > 0).then(|| Checked::good("sandbox", found))
}

fn git_line(project: &Path) -> Checked {
    match git::program(project) {
        Ok(program) => Checked::good("git", program.display().to_string()),
        Err(error) => {
            let advice = error.hint().unwrap_or("worktrees need git; everything else works without it");
            Checked::with("git", Health::Fair, error.to_string(), advice)
        }
    }
}
