//! What there is to be named just now. It is looked for only when a word asks for it, never longer than a moment, and
//! nothing is made by looking: no database, no entry in the operation log.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use locum::desk::ShownTask;
use locum::protocol::response::TaskStatus;
use locum::protocol::{Response, SubagentAction, request};
use locum::settings::environment::LOCUM_SERVER;
use locum::setup::Setup;
use locum::task::Status;
use locum::{Desk, Executor};

use super::subject::{Subject, Which};
use crate::args::{Cli, Global};
use crate::door::{self, Orchestrator};
use crate::entrance::Entrance;
use crate::output::{Output, counted};
use crate::roll::Roll;

/// How long a person in the middle of a line is kept waiting at most.
const PATIENCE: Duration = Duration::from_secs(1);

/// Tasks that are offered at most, the newest of them.
const TASKS_MAX: usize = 100;

/// The tools that a model is offered.
const TOOLS: [(&str, &str); 4] = [
    ("subagent", "delegate"),
    ("shared_context", "read and write what is shared"),
    ("manage_tasks", "the board"),
    ("-", "one call on each line of standard input"),
];

/// Something that can be named.
pub(super) struct Name {
    pub(super) name: String,
    pub(super) about: String,
}

impl Name {
    fn new(name: &impl ToString, about: impl Into<String>) -> Self {
        Self { name: name.to_string(), about: about.into() }
    }
}

/// What can be named on one line.
pub(super) struct Known {
    setup: Setup,
    global: Global,
}

impl Known {
    /// What is known to a line with these words: it may name a session, a server or directories with agents.
    pub(super) fn of_line(words: &[OsString]) -> Self {
        let said = &words[..words.len().saturating_sub(1)];
        let mut global = Global::default();
        // A line that is not whole yet is read as far as it goes.
        if let Ok(matches) = Cli::whole_command().ignore_errors(true).try_get_matches_from(said) {
            let one = |id: &str| matches.try_get_one::<String>(id).ok().flatten().cloned();
            (global.session, global.server) = (one("session"), one("server"));
            let mut behind = Some(&matches);
            while let Some(matches) = behind {
                let agents = matches.try_get_many::<PathBuf>("agents").ok().flatten();
                global.agents.extend(agents.into_iter().flatten().cloned());
                behind = matches.subcommand().map(|(_, matches)| matches);
            }
        }
        let setup = door::setup(&global, Orchestrator::Person, Executor::InProcess);
        Self { setup, global }
    }

    pub(super) fn working_directory(&self) -> Option<PathBuf> {
        self.setup.environment.working_directory().map(ToOwned::to_owned)
    }

    /// What there is. Where that cannot be found out, or not at once, there is nothing.
    pub(super) fn names(&self, subject: Subject) -> Vec<Name> {
        match subject {
            Subject::Word(words) => return words.iter().map(|word| Name::new(word, "")).collect(),
            Subject::Tool => return TOOLS.iter().map(|(name, about)| Name::new(name, *about)).collect(),
            _ => {}
        }
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
            return Vec::new();
        };
        let found = runtime.block_on(async { tokio::time::timeout(PATIENCE, self.look(subject)).await });
        runtime.shutdown_background();
        found.ok().and_then(Result::ok).unwrap_or_default()
    }

    async fn look(&self, subject: Subject) -> anyhow::Result<Vec<Name>> {
        if self.global.server.is_some() || self.setup.environment.get(LOCUM_SERVER).is_some() {
            return self.look_there(subject).await;
        }
        let (_, places) = self.setup.settings()?;
        let desk = if places.database().exists() {
            self.setup.open()?.desk
        } else {
            Desk::builder().agent_files(self.setup.agent_places()?).root(self.setup.project()).build()?
        };
        let found = look_here(&desk, subject).await;
        found.map_err(|refusal| anyhow::anyhow!(refusal.message))
    }

    /// What a server says; it is asked for what verbs with `--server` name most.
    async fn look_there(&self, subject: Subject) -> anyhow::Result<Vec<Name>> {
        let quiet = Output::new(false, true);
        let entrance = Entrance::open(&self.global, quiet, Executor::InProcess)?;
        let status = SubagentAction::Status(request::Status { task_id: None });
        let refused = |refusal: locum::protocol::Refusal| anyhow::anyhow!(refusal.message);
        Ok(match subject {
            Subject::Agent | Subject::AgentAndTask => agents(&entrance.roll().await.map_err(refused)?, subject),
            Subject::Task(which) => match entrance.ask(status).await.map_err(refused)? {
                Response::Tasks(all) => all.tasks.iter().filter(|task| is_meant(task, which)).map(task_name).collect(),
                _ => Vec::new(),
            },
            _ => Vec::new(),
        })
    }
}

async fn look_here(desk: &Desk, subject: Subject) -> Result<Vec<Name>, locum::protocol::Refusal> {
    Ok(match subject {
        Subject::Agent | Subject::AgentAndTask => {
            agents(&Roll::call(desk, &locum::protocol::FaceDefaults::person()).await?, subject)
        }
        Subject::Task(which) => {
            let page = desk.task_page(Some(desk.session().id.clone()), None, TASKS_MAX).await?;
            let is_meant =
                |task: &&ShownTask| is_meant(&task.status, which) && !(which == Which::Uncollected && task.collected);
            page.iter().filter(is_meant).map(|task| task_name(&task.status)).collect()
        }
        Subject::BoardTask => {
            let board = desk.glance().await?.board;
            board.into_iter().map(|task| Name::new(&task.id, task.subject)).collect()
        }
        Subject::Session => {
            let sessions = desk.sessions().await?;
            sessions.into_iter().map(|row| Name::new(&row.id, counted(row.tasks.into(), "task"))).collect()
        }
        Subject::Model => models(desk),
        Subject::McpServer => {
            desk.mcp_servers().into_iter().map(|server| Name::new(&server.name, server.target)).collect()
        }
        Subject::Word(_) | Subject::Tool => Vec::new(),
    })
}

fn agents(roll: &Roll, subject: Subject) -> Vec<Name> {
    let end = if subject == Subject::AgentAndTask { "=" } else { "" };
    let asked = roll.agents.iter().filter(|agent| agent.mark.is_none());
    asked.map(|agent| Name::new(&format!("{}{end}", agent.line.name), agent.line.description.clone())).collect()
}

fn is_meant(task: &TaskStatus, which: Which) -> bool {
    match which {
        Which::All => true,
        Which::Unfinished => !task.status.is_final(),
        Which::Ended | Which::Uncollected => task.status.is_final(),
    }
}

fn task_name(task: &TaskStatus) -> Name {
    let status: Status = task.status;
    let label = task.label.as_deref().map(|label| format!(": {label}")).unwrap_or_default();
    Name::new(&task.task_id, format!("@{} {}{label}", task.agent, status.as_str()))
}

/// Models by all of their names.
fn models(desk: &Desk) -> Vec<Name> {
    let mut names = Vec::new();
    for entry in &desk.models().models {
        names.extend(entry.aliases.iter().map(|alias| Name::new(alias, entry.name.to_string())));
        names.push(Name::new(&entry.name, entry.aliases.join(", ")));
    }
    names
}
