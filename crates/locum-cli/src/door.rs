//! From what was said to a desk: the first thing that every verb does.

use anyhow::Context as _;
use locum::protocol::{FaceDefaults, Refusal, SubagentAction};
use locum::settings::environment::Environment;
use locum::setup::{Opened, SessionChoice, Setup};
use locum::{Executor, Request, Response, ToolRequest};

use crate::args::Global;
use crate::output::Output;

/// Whose words a verb carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Orchestrator {
    /// A person's: the project's shared session; `--model` is for this call.
    Person,
    /// A model's: a new session; `--model` is the session's.
    Model,
}

/// An open door.
pub(crate) struct Door {
    pub(crate) opened: Opened,
    pub(crate) output: Output,
    /// The model that this call names.
    pub(crate) call_model: Option<String>,
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
        (None, Orchestrator::Model) => SessionChoice::New,
    };
    if let (Some(model), Orchestrator::Model) = (&global.model, orchestrator) {
        setup.flags.push(("--model", "model", model.clone()));
    }
    if let Some(level) = &global.sandbox {
        setup.flags.push(("--sandbox", "sandbox.level", level.clone()));
    }
    if global.log_payloads {
        setup.flags.push(("--log-payloads", "log.payloads", "true".to_owned()));
    }
    setup
}

impl Door {
    /// Opens the store and builds the desk.
    pub(crate) fn open(
        global: &Global,
        output: Output,
        orchestrator: Orchestrator,
        executor: Executor,
    ) -> anyhow::Result<Self> {
        let setup = setup(global, orchestrator, executor);
        let opened = setup.open().context("locum cannot start")?;
        for problem in &opened.problems {
            let place = format!("{}:{}:{}", problem.file.display(), problem.line, problem.column);
            output.warn(&format!("{place}: {}", problem.message));
        }
        let call_model = match orchestrator {
            Orchestrator::Person => global.model.as_deref().map(|model| setup.model_name(model)),
            Orchestrator::Model => None,
        };
        Ok(Self { opened, output, call_model })
    }

    /// Asks the desk as a person.
    pub(crate) async fn ask(&self, action: SubagentAction) -> Result<Response, Refusal> {
        self.ask_under(action, FaceDefaults::person()).await
    }

    /// Asks the desk under given terms.
    pub(crate) async fn ask_under(&self, action: SubagentAction, face: FaceDefaults) -> Result<Response, Refusal> {
        let tool = ToolRequest::Subagent(action);
        self.opened.desk.handle(Request { tool, face }).await
    }

    /// Sees to tasks whose worker is gone. That it fails is no reason not to answer.
    pub(crate) async fn look_after_orphans(&self) {
        if let Err(refusal) = self.opened.desk.look_after_orphans().await {
            self.output.warn(&refusal.message);
        }
    }
}
