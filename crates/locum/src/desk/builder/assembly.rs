//! Putting together what a builder was told: the engine, and the first desk of it.

use std::path::PathBuf;
use std::sync::Arc;

use locum_core::agent::{AgentSpec, Roster};
use locum_core::ids::{InvalidName, SessionId, SessionKey};
use locum_models::Registry;

use super::{DeskBuilder, models};
use crate::agents::staff::Staff;
use crate::clock::Clock;
use crate::context_changes::ContextHub;
use crate::desk::Desk;
use crate::desk::storm::StatusCalls;
use crate::ears::Ears;
use crate::engine::{Engine, Rules};
use crate::hands::{Hands, Toolbox};
use crate::jobs::Jobs;
use crate::lookout::Lookout;
use crate::mcp_servers::{McpServers, Network};
use crate::pool::Pool;
use crate::process;
use crate::progress::Hub;
use crate::redact::Redactor;
use crate::store::Store;
use crate::store::memory::MemoryStore;
use crate::traces::{Collector, Traces};
use crate::waits::Waits;
use crate::worker::Worker;
use crate::writers::{Others, Writers};

/// Why an engine cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The session's name is not one.
    #[error(transparent)]
    Session(#[from] InvalidName),
    /// What an agent is cannot be kept without a secret.
    #[error("an agent cannot be used: its name holds a secret")]
    Secret(#[from] serde_json::Error),
    /// Tasks should run in processes of their own, and this program cannot be started again as one.
    #[error("tasks cannot have processes of their own here: call locum::launch::intercept() first in main")]
    NoWorker,
    /// The collector of traces cannot be reached in the way that was asked for.
    #[error("traces cannot be sent: {0}")]
    Traces(String),
    /// The session's model is not known, or cannot be used.
    #[error("the model `{name}` cannot be used: {why}")]
    Model {
        /// What was asked for.
        name: String,
        /// Why not.
        why: String,
    },
}

impl DeskBuilder {
    /// Builds the engine and the first desk of it. The process's own limit of open files is raised as far as it may, so
    /// that a crowd of tasks has connections.
    ///
    /// # Errors
    ///
    /// The session's name is not one, the session's model is not known or cannot be used, or an agent's name holds a
    /// secret. A mistake is told here, not by the first task.
    pub fn build(self) -> Result<Desk, BuildError> {
        process::raise_descriptor_limit();
        let root = self.root.unwrap_or_else(|| PathBuf::from("."));
        let root = root.canonicalize().unwrap_or(root).to_string_lossy().into_owned();
        let session = SessionKey { project: root.as_str().into(), id: SessionId::parse(&self.session)? };
        let worker_program = self.worker_program.or_else(crate::launch::intercepting_program);
        if self.apart && worker_program.is_none() {
            return Err(BuildError::NoWorker);
        }
        let network = Network::of(&self.access, &self.dialer);
        let others = self.others.unwrap_or_else(|| Others::in_store(self.store.as_ref()));
        let store = self.store.unwrap_or_else(|| Arc::new(MemoryStore::new()));
        let traces = self.collector.map(|collector| traces(&collector, &network, &store, &self.clock)).transpose()?;
        let mut registry = Registry::new(self.access);
        if let Some(everyone) = self.everyone {
            registry = registry.answered_by(everyone);
        }
        self.models.into_iter().for_each(|(name, model)| registry.register(&name, model));
        if let Some(known) = self.known_models {
            registry.know(known);
        }
        let catalogue = crate::desk::models::catalogue(&registry, self.model, &self.fallback, self.routing)?;
        let catalogue = models::priced(catalogue, &self.prices)?;
        let staff = Staff::new(cleaned(&self.roster, &self.redactor)?, self.search, self.redactor.clone());
        let servers =
            Arc::new(McpServers::new(self.servers, self.left_out_servers, self.pins, self.sandbox.clone(), network));
        let engine = Engine {
            hands: Hands {
                store,
                models: registry,
                tools: Toolbox::new(self.tools, Arc::clone(&servers)),
                clock: self.clock,
                pool: Arc::new(Pool::default()),
                jobs: Arc::new(Jobs::new(self.sandbox, self.dialer)),
                servers,
                worktrees: self.worktrees,
                writers: Arc::new(Writers::among(others)),
                seals: Arc::default(),
                hub: Hub::new(self.ears.map(Ears::in_directory)),
                lookout: Lookout::default(),
                redactor: self.redactor,
                log: self.log,
                patience: self.patience,
                waits: Waits::default(),
                recorder: self.recorder,
                traces,
                asker: self.asker,
            },
            worker: Worker::new(process::this_process(self.life)),
            staff,
            rules: Rules {
                catalogue,
                limits: self.limits,
                root,
                enabled: self.enabled,
                strict: self.strict,
                apart: self.apart,
                namespaces: self.namespaces,
                faces: self.faces,
                permissions: self.permissions,
            },
            executor: self.executor,
            launcher: self.launcher,
            worker_program,
            storm: StatusCalls::default(),
            context_hub: ContextHub::default(),
            closed: tokio_util::sync::CancellationToken::new(),
        };
        Ok(Desk::of_engine(Arc::new(engine), session))
    }
}

/// The agents without secrets: what an agent is becomes part of every task's log.
fn cleaned(roster: &Roster, redactor: &Redactor) -> Result<Roster, serde_json::Error> {
    let mut cleaned = Roster::default();
    for agent in roster.iter() {
        cleaned.insert(redactor.value(AgentSpec::clone(agent))?);
    }
    Ok(cleaned)
}

fn traces(
    collector: &Collector,
    network: &Network,
    store: &Arc<dyn Store>,
    clock: &Arc<dyn Clock>,
) -> Result<Arc<Traces>, BuildError> {
    let way = (&network.proxy, network.ca_file.as_deref());
    let traces = Traces::to(collector, way, Arc::clone(store), Arc::clone(clock));
    traces.map(Arc::new).map_err(BuildError::Traces)
}
