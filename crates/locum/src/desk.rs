//! The one entrance to the engine: a request in, a response or a refusal out, the same for every door.
//!
//! [`Desk::builder`] makes an engine and its first [`Desk`]; what an application says about it is in [`DeskBuilder`].

mod agents;
mod board;
mod browse;
mod builder;
mod cancel;
mod collect;
mod context;
mod define;
mod errand;
mod face;
mod follow;
mod glance;
mod models;
mod modes;
mod operations;
mod orchestrator;
mod race;
mod retention;
mod servers;
mod sessions;
mod spawn;
mod stalled;
mod status;
pub(crate) mod storm;
mod tail;
mod wait;
mod worktrees;

use std::sync::Arc;

use locum_core::admission::{Caller, ParentTask};
use locum_core::ids::{SessionId, SessionKey};
use locum_core::protocol::{FaceDefaults, Refusal, Request, Response, SubagentAction, ToolRequest, parse};
use locum_core::task::Task;
use serde_json::Value;
use tokio::sync::broadcast;

use crate::engine::Engine;
use crate::launch::LaunchError;
use crate::progress::Progress;
use crate::{store, worker};

pub use agents::{ListedAgent, Mark, ShownAgent, ShownValue};
pub use browse::ShownTask;
pub use builder::{BuildError, DeskBuilder};
pub use errand::ShownErrand;
pub use follow::Following;
pub use glance::Glance;
pub use models::Routed;
pub use orchestrator::ORCHESTRATOR;
pub use retention::Forgotten;
pub(crate) use sessions::fresh_session;
pub use tail::{Heard, SessionTail, TaskTail};

pub use crate::lookout::TailedRecord;

/// A handle on the engine, bound to one session and one caller. Cloning it is cheap.
///
/// Every door speaks to the engine through [`Desk::handle`]. A desk needs a tokio runtime around its calls: tasks are
/// driven there, and go on while any clone lives and the runtime runs. Call [`Desk::close`] before the process ends, so
/// that another process goes on with them.
///
#[doc = include_str!("desk/example.md")]
#[derive(Clone)]
pub struct Desk {
    engine: Arc<Engine>,
    session: SessionKey,
    caller: Arc<Caller>,
    /// The terms of the task that sits at it.
    terms: Option<Arc<FaceDefaults>>,
    awaited: Option<follow::Awaited>,
    /// Whether requests for several tasks are kept with the first of them.
    keeps_errands: bool,
}

impl Desk {
    /// Starts to build an engine. Without further words it has a store in memory, the offline model, no agents and
    /// no tools; [`DeskBuilder`] lists what can be said.
    pub fn builder() -> DeskBuilder {
        DeskBuilder::default()
    }

    /// What stands behind it.
    pub(crate) fn engine(&self) -> Arc<Engine> {
        Arc::clone(&self.engine)
    }

    pub(crate) fn of_engine(engine: Arc<Engine>, session: SessionKey) -> Self {
        let caller = Arc::new(Caller::orchestrator());
        Self { engine, session, caller, terms: None, awaited: None, keeps_errands: false }
    }

    /// The desk that a task itself sits at: it may do no more than the task was granted.
    pub(crate) fn for_task(&self, task: &Task) -> Self {
        if self.is_of(task) {
            return self.clone();
        }
        let plan = task.plan();
        let parent = ParentTask {
            uid: plan.uid.clone(),
            depth: plan.lineage.depth,
            depth_left: plan.grants.depth_left,
            tools: plan.grants.tools.iter().map(|tool| tool.name.clone()).collect(),
            purses: plan.bounds.purses.clone(),
            root: (task.root() != self.engine.rules.root).then(|| task.root().to_owned()),
            permissions: plan.grants.permissions.clone(),
        };
        let caller = Arc::new(Caller { identity: plan.lineage.identity.clone(), parent: Some(parent) });
        let terms = Some(Arc::new(plan.face.clone()));
        let (engine, session) = (Arc::clone(&self.engine), plan.session.clone());
        Self { engine, session, caller, terms, awaited: None, keeps_errands: false }
    }

    /// Whether it was made for this task, where the task is now: its directory is another once it has a worktree.
    fn is_of(&self, task: &Task) -> bool {
        let root = |parent: &ParentTask| parent.root.as_deref().unwrap_or(&self.engine.rules.root) == task.root();
        let is_its = |parent: &ParentTask| parent.uid == task.plan().uid && root(parent);
        self.session == task.plan().session && self.caller.parent.as_ref().is_some_and(is_its)
    }

    /// A desk in another session of the same project, with the same engine behind it. A session needs no making: the
    /// first change makes it.
    #[must_use]
    pub fn in_session(&self, id: SessionId) -> Self {
        let session = SessionKey { project: self.session.project.clone(), id };
        Self { session, ..self.clone() }
    }

    /// The session that requests are made in.
    pub fn session(&self) -> &SessionKey {
        &self.session
    }

    /// The model of the session, by name, and why it is that.
    pub fn session_model(&self) -> (String, &str) {
        let session = &self.engine.rules.catalogue.session;
        (session.name.to_string(), &session.why)
    }

    /// Carries out a request. Known secrets are taken out of it first.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] with a [`Code`](crate::Code) to branch on; nothing was written. A task that fails is an answer,
    /// not an error.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the wait, never a task: what was accepted goes on. A request that was dropped before
    /// it answered may have been carried out; name an `idempotency_key` to make it again without doing it twice.
    pub async fn handle(&self, request: impl Into<Request>) -> Result<Response, Refusal> {
        let request = self.engine.hands.redactor.value(request.into()).map_err(Refusal::internal)?;
        let payload = self.engine.hands.log.wants_payloads().then(|| serde_json::json!(request.tool));
        let action = operations::action_name(&request.tool);
        let (answer, changes) = match request.tool {
            ToolRequest::SharedContext(action) => match self.shared_context(action).await {
                Ok((response, changes)) => (Ok(response), changes),
                Err(refusal) => (Err(refusal), Vec::new()),
            },
            ToolRequest::ManageTasks(action) => (self.manage_tasks(action).await, Vec::new()),
            ToolRequest::Subagent(action) => {
                let face = self.under_settings(request.face);
                (self.subagent(action, &face).await, Vec::new())
            }
        };
        self.log_operation(action, payload, &answer, &changes);
        answer
    }

    /// Carries out a call of one of the native tools, `subagent`, `shared_context` or `manage_tasks`, from its JSON
    /// input: what an orchestrating model writes can be handed on as it is.
    ///
    /// # Errors
    ///
    /// As [`Desk::handle`], and for an unknown tool, action or field, by its name.
    ///
    /// # Cancel safety
    ///
    /// As [`Desk::handle`]: dropping the future never ends a task.
    pub async fn call(&self, tool: &str, input: Value) -> Result<Response, Refusal> {
        self.call_under(tool, input, FaceDefaults::native()).await
    }

    /// The same as [`Desk::call`], under other terms than those of the native tools.
    ///
    /// # Errors
    ///
    /// As [`Desk::call`].
    ///
    /// # Cancel safety
    ///
    /// As [`Desk::handle`]: dropping the future never ends a task.
    pub async fn call_under(&self, tool: &str, input: Value, face: FaceDefaults) -> Result<Response, Refusal> {
        let read = parse::tool_request(tool, input);
        let tool = read.map_err(|refusal| self.engine.hands.redactor.refusal(refusal))?;
        self.handle(Request { tool, face }).await
    }

    async fn subagent(&self, action: SubagentAction, face: &FaceDefaults) -> Result<Response, Refusal> {
        // A call is as large as the largest of these, and most of them wait: none is larger than `run`.
        match action {
            SubagentAction::ListAgents(_) => Box::pin(self.list_agents(face)).await,
            SubagentAction::Define(define) => Box::pin(self.define(define)).await,
            SubagentAction::Spawn(entry) => Box::pin(self.spawn(entry, face)).await,
            SubagentAction::Status(status) => Box::pin(self.status(status)).await,
            SubagentAction::Wait(wait) => Box::pin(self.wait(wait)).await,
            SubagentAction::Collect(collect) => Box::pin(self.collect(&collect.task_id, face)).await,
            SubagentAction::Result(page) => Box::pin(self.result(&page)).await,
            SubagentAction::Cancel(cancel) => Box::pin(self.cancel(&cancel.task_id, face)).await,
            SubagentAction::Run(run) => self.run(run, face).await,
            SubagentAction::Parallel(many) => Box::pin(self.parallel(many, face)).await,
            SubagentAction::Chain(many) => Box::pin(self.chain(many, face)).await,
            SubagentAction::Race(many) => Box::pin(self.race(many, face)).await,
            SubagentAction::Map(over) => Box::pin(self.map(over, face)).await,
        }
    }

    /// What an orchestrating model is told: how to delegate, and who is there. Put it into its system prompt.
    ///
    /// # Errors
    ///
    /// The store failed.
    ///
    /// # Cancel safety
    ///
    /// It only reads: it may be dropped at any time.
    pub async fn prompt(&self) -> Result<String, Refusal> {
        match self.list_agents(&FaceDefaults::native()).await? {
            Response::Agents(agents) => Ok(crate::prompt::text(&agents)),
            other => Err(Refusal::internal(format!("an unexpected list of agents: {other:?}"))),
        }
    }

    /// Cancels everything that this process works on, in all sessions, and waits until it has ended.
    ///
    /// # Cancel safety
    ///
    /// Tasks that were told to end do so without being waited for; dropped early, some may not have been told. Calling
    /// it again is harmless.
    pub async fn cancel_held(&self) {
        worker::cancel_all(&self.engine).await;
    }

    /// News about the tasks of this process, from now on. A reader that falls behind loses the oldest, and is told how
    /// many; the log has them all. See [`progress`](crate::progress) for an example.
    pub fn progress(&self) -> broadcast::Receiver<Arc<Progress>> {
        self.engine.hands.hub.subscribe()
    }

    /// The log of a task of this session, collected or not: everything that has happened to it, in order.
    ///
    /// # Errors
    ///
    /// There is no such task in the session, or the store failed.
    ///
    /// # Cancel safety
    ///
    /// It only reads: it may be dropped at any time.
    pub async fn log_of(&self, task_id: &str) -> Result<Vec<locum_core::task::Record>, Refusal> {
        let row = self.row(task_id).await?;
        let records = self.engine.hands.store.records(&row.summary.uid, 0, usize::MAX).await;
        records.map_err(|error| crate::engine::store_refusal(&error))
    }

    /// Goes on with the unfinished tasks of this session that nobody works on any more: in this process, or in one of
    /// their own where this one does not stay. Returns how many there were. A program that keeps its tasks in a file
    /// calls this when it starts.
    ///
    /// # Errors
    ///
    /// The store failed, or a process could not be started. A task whose log makes no sense is left alone.
    ///
    /// # Cancel safety
    ///
    /// Tasks that were claimed are worked on; the others stay orphans, for the next call.
    pub async fn adopt_orphans(&self, stay: Stay) -> Result<usize, store::Error> {
        let (orphans, dead) = self.engine.orphans(&self.session).await?;
        match (stay, &self.engine.launcher) {
            (Stay::Long, _) => worker::claim_all(&self.engine, &orphans, &dead).await?,
            (Stay::Short, Some(launcher)) if !orphans.is_empty() => {
                let uids: Vec<_> = orphans.iter().map(|row| row.summary.uid.clone()).collect();
                launcher.launch(&uids).map_err(|error| store::Error::Failed(Box::new(error)))?;
            }
            (Stay::Short, _) => {}
        }
        Ok(orphans.len())
    }

    /// Works on these tasks, as far as nobody else does, until all of them have ended.
    pub(crate) async fn work_on(&self, uids: &[locum_core::ids::Uid]) -> Result<(), store::Error> {
        let dead = self.engine.dead_owners().await?;
        let rows = self.engine.hands.store.tasks(store::TaskQuery::Uids(uids.to_vec())).await?;
        let claimed = worker::claim_all(&self.engine, &rows, &dead).await;
        // One that is no longer held has ended already.
        let held: Vec<_> = uids.iter().filter_map(|uid| self.engine.worker.ending(uid)).collect();
        for ending in held {
            ending.reached().await;
        }
        claimed
    }

    /// Ends this process's work. Unfinished tasks are handed to a process of their own; without a launcher they stay
    /// in the store until another process adopts them. Returns how many there were.
    ///
    /// What other clones of this desk accept from now on is not worked on here either. Model calls and repeatable tool
    /// calls under way are given up and made again by whoever goes on.
    ///
    /// # Errors
    ///
    /// The process for the unfinished tasks could not be started, or the store did not say which they are. They stay
    /// in the store either way.
    ///
    /// # Cancel safety
    ///
    /// Wait for it. Dropped early, tasks stop or go on with the runtime, and no process is started for them; their
    /// logs stay whole, and the next process that opens the store can adopt them.
    pub async fn close(self) -> Result<usize, LaunchError> {
        let uids = worker::hand_over(&self.engine).await;
        self.end_mcp_servers().await;
        self.finish_traces().await;
        let unfinished = self.engine.hands.store.tasks(store::TaskQuery::Uids(uids)).await;
        let open = |row: &store::TaskRow| !row.summary.standing.status.is_final();
        let rows = unfinished.map_err(|error| LaunchError::Store(error.to_string()))?;
        let uids: Vec<_> = rows.iter().filter(|row| open(row)).map(|row| row.summary.uid.clone()).collect();
        if let (Some(launcher), false) = (&self.engine.launcher, uids.is_empty()) {
            launcher.launch(&uids)?;
        }
        Ok(uids.len())
    }
}

/// Whether a process stays long enough to work on tasks itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stay {
    /// It serves a door until its caller leaves.
    Long,
    /// It answers and ends.
    Short,
}
