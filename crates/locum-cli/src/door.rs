//! From what was said to a desk: the first thing that every verb does.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use indicatif::MultiProgress;
use locum::agents::FileProblem;
use locum::asking::Asker;
use locum::protocol::{Code, FaceDefaults, Refusal, SubagentAction};
use locum::settings::environment::Environment;
use locum::setup::{Opened, SessionChoice, Setup};
use locum::{Executor, Request, Response, ToolRequest};

use crate::args::Global;
use crate::commands::trust;
use crate::output::Output;
use crate::output::question::Person;

/// Whose words a verb carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Orchestrator {
    /// A person's: the project's shared session; `--model` is for this call.
    Person,
    /// A model's: a new session; `--model` is the session's.
    Model,
    /// A model's that is itself a task of the session, and otherwise the same.
    Lead,
}

/// An open door.
pub(crate) struct Door {
    pub(crate) opened: Opened,
    pub(crate) output: Output,
    /// The model that this call names.
    pub(crate) call_model: Option<String>,
    /// The lines of progress.
    pub(crate) bars: MultiProgress,
    setup: Setup,
}

/// What a verb was told, as the engine's setup.
pub(crate) fn setup(global: &Global, orchestrator: Orchestrator, executor: Executor) -> Setup {
    let mut setup = Setup::new(Environment::of_process());
    setup.agents.clone_from(&global.agents);
    setup.record.clone_from(&global.record);
    setup.executor = executor;
    setup.session = match (&global.session, orchestrator) {
        (Some(id), _) => SessionChoice::Named(id.clone()),
        (None, Orchestrator::Person) => SessionChoice::Shared,
        (None, Orchestrator::Model | Orchestrator::Lead) => SessionChoice::New,
    };
    if let (Some(model), Orchestrator::Model | Orchestrator::Lead) = (&global.model, orchestrator) {
        setup.flags.push(("--model", "model", model.clone()));
    }
    if let Some(level) = &global.sandbox {
        setup.flags.push(("--sandbox", "sandbox.level", level.clone()));
    }
    if global.strict {
        setup.flags.push(("--strict", "subagents.strict", "true".to_owned()));
    }
    if global.log_payloads {
        setup.flags.push(("--log-payloads", "log.payloads", "true".to_owned()));
    }
    setup
}

fn is_below(file: &Path, named: &Path) -> bool {
    file.starts_with(named) || named.canonicalize().is_ok_and(|named| file.starts_with(named)) || file.ends_with(named)
}

impl Door {
    /// Opens the store and builds the desk.
    pub(crate) fn open(
        global: &Global,
        output: Output,
        orchestrator: Orchestrator,
        executor: Executor,
    ) -> anyhow::Result<Self> {
        Self::open_asking(global, output, orchestrator, executor, None)
    }

    /// The same, with somebody who can be asked where a rule wants a person to agree.
    pub(crate) fn open_asking(
        global: &Global,
        output: Output,
        orchestrator: Orchestrator,
        executor: Executor,
        asker: Option<Arc<dyn Asker>>,
    ) -> anyhow::Result<Self> {
        // Who may go to a server has looked for one before.
        anyhow::ensure!(global.server.is_none(), "a server does not do this for others: leave --server out");
        let mut setup = setup(global, orchestrator, executor);
        if orchestrator == Orchestrator::Lead {
            setup.lead().context("locum cannot start")?;
        }
        setup.asker = asker;
        let bars = MultiProgress::new();
        // Only a person who started the tasks, and waits for them here, is asked about them.
        let waits = matches!(orchestrator, Orchestrator::Person | Orchestrator::Lead);
        if waits && executor == Executor::InProcess && output.can_ask() {
            setup.asker = Some(Arc::new(Person::new(output, bars.clone())));
        }
        let opened = setup.open().context("locum cannot start")?;
        // Agents are read when they are needed; whoever names a directory wants to know at once.
        if !global.agents.is_empty() {
            let named = |problem: &&FileProblem| global.agents.iter().any(|named| is_below(&problem.file, named));
            for problem in opened.desk.muster().problems.iter().filter(named) {
                output.warn(&problem.to_string());
            }
        }
        let call_model = match orchestrator {
            Orchestrator::Person => global.model.as_deref().map(|model| setup.model_name(model)),
            Orchestrator::Model | Orchestrator::Lead => None,
        };
        Ok(Self { opened, output, call_model, bars, setup })
    }

    /// Whether somebody said which session it is.
    pub(crate) fn names_session(&self) -> bool {
        self.setup.names_session()
    }

    /// Asks the desk as a person.
    pub(crate) async fn ask(&self, action: SubagentAction) -> Result<Response, Refusal> {
        self.ask_under(action, FaceDefaults::person()).await
    }

    /// Asks the desk under given terms.
    pub(crate) async fn ask_under(&self, action: SubagentAction, face: FaceDefaults) -> Result<Response, Refusal> {
        let request = Request { tool: ToolRequest::Subagent(action), face };
        match self.opened.desk.handle(request.clone()).await {
            Err(refusal) if refusal.code == Code::NotTrusted && self.is_trusted_now(&refusal) => {
                self.opened.desk.look_at_agents_again();
                self.opened.desk.handle(request).await
            }
            answer => answer,
        }
    }

    /// Asks the person at the terminal, if there is one, whether to trust the project.
    fn is_trusted_now(&self, refusal: &Refusal) -> bool {
        if !self.output.can_ask() {
            return false;
        }
        self.output.note(&refusal.message);
        match self.setup.review().map_err(anyhow::Error::from).and_then(|review| trust::offer(&review, self.output)) {
            Ok(is_trusted) => is_trusted,
            Err(error) => {
                self.output.warn(&format!("{error:#}"));
                false
            }
        }
    }

    /// Ends what this process keeps for its tasks.
    pub(crate) async fn leave(&self) {
        for left in self.opened.desk.end_mcp_servers().await {
            self.output.warn(&format!("an MCP server is still there: {left}"));
        }
        if let Some(trouble) = self.opened.desk.finish_traces().await {
            self.output.warn(&format!("traces could not be sent: {trouble}"));
        }
    }

    /// Sees to tasks whose worker is gone. That it fails is no reason not to answer.
    pub(crate) async fn look_after_orphans(&self) {
        if let Err(refusal) = self.opened.desk.look_after_orphans().await {
            self.output.warn(&refusal.message);
        }
    }
}
