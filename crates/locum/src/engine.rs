//! What stands behind every desk: one store, one set of hands, the tasks of this process, and what is allowed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::try_join;
use locum_core::admission::{Caller, Commands, KnownServer, Premises, Processes, Worktrees};
use locum_core::agent::Isolation;
use locum_core::ids::{SessionKey, Timestamp, Uid};
use locum_core::limits::Limits;
use locum_core::permission::Permissions;
use locum_core::protocol::{Code, Refusal};
use locum_core::routing::Catalogue;
use locum_core::session::{Lookup, SessionChange, SessionView};
use locum_core::task::event::TaskEvent;
use locum_core::task::{Outcome, Plan, Task, TaskSummary, Worktree};
use tokio_util::sync::CancellationToken;

use crate::agents::Muster;
use crate::agents::staff::Staff;
use crate::context_changes::ContextHub;
use crate::faces::FaceSettings;
use crate::hands::Hands;
use crate::launch::Launcher;
use crate::operation_log::Operation;
use crate::process;
use crate::sandbox::Level;
use crate::store::{DecideError, Decided, Decision, Error, OwnerId, TaskQuery, TaskRow};
use crate::worker::{self, Worker};

/// One engine.
pub(crate) struct Engine {
    pub(crate) hands: Hands,
    pub(crate) worker: Worker,
    pub(crate) rules: Rules,
    pub(crate) staff: Staff,
    pub(crate) executor: Executor,
    pub(crate) launcher: Option<Launcher>,
    /// What is started to work on one task.
    pub(crate) worker_program: Option<PathBuf>,
    pub(crate) storm: crate::desk::storm::StatusCalls,
    pub(crate) context_hub: ContextHub,
    /// Set when no more tasks are taken up.
    pub(crate) closed: CancellationToken,
}

/// What is there and what is allowed, as admission sees it.
pub(crate) struct Rules {
    pub(crate) catalogue: Catalogue,
    pub(crate) limits: Limits,
    pub(crate) root: String,
    pub(crate) enabled: bool,
    /// Whether every request is judged as if it said `strict`.
    pub(crate) strict: bool,
    /// Whether every task has a process of its own, unless it asks for something else.
    pub(crate) apart: bool,
    /// What the settings say about the use of tools.
    pub(crate) permissions: Permissions,
    /// Whether keys of the shared context may have a `name:` before them.
    pub(crate) namespaces: bool,
    /// What faces need to know besides what is asked.
    pub(crate) faces: FaceSettings,
}

/// What a task that has ended was asked to do, and how it ended.
pub(crate) struct Finished {
    pub(crate) plan: Arc<Plan>,
    pub(crate) outcome: Outcome,
    pub(crate) worktree: Option<Worktree>,
}

impl Finished {
    /// From the task itself; none if it has not ended.
    pub(crate) fn of(task: &Task) -> Option<Self> {
        let (mut plan, outcome) = (Arc::clone(task.plan()), task.outcome()?.clone());
        if !plan.fallback.is_empty() {
            let changed = Arc::make_mut(&mut plan);
            changed.receipt = task.receipt();
            changed.warnings.extend(task.replacements());
        }
        if !task.forbidden().is_empty() {
            Arc::make_mut(&mut plan).warnings.extend_from_slice(task.forbidden());
        }
        Some(Self { plan, outcome, worktree: task.worktree().cloned() })
    }
}

/// Who works on accepted tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Executor {
    /// This process.
    InProcess,
    /// A process of their own, which outlives this one. It is started by the [`Launcher`].
    Detached,
}

impl Engine {
    /// What admission may look at for this caller, with the agents and the servers as they were before the
    /// decision.
    pub(crate) fn premises<'a>(
        &'a self,
        session: &'a SessionKey,
        caller: &'a Caller,
        (muster, servers): (&'a Muster, &'a [KnownServer]),
        now: Timestamp,
    ) -> Premises<'a> {
        Premises {
            session,
            roster: &muster.roster,
            fallbacks: &muster.fallbacks,
            tools: self.hands.tools.granted(),
            servers,
            catalogue: &self.rules.catalogue,
            limits: &self.rules.limits,
            permissions: &self.rules.permissions,
            root: &self.rules.root,
            commands: Commands {
                tools: self.hands.tools.running_commands(),
                sandbox: self.hands.jobs.level().map(Level::as_str),
            },
            worktrees: self.worktrees(),
            processes: self.processes(),
            caller,
            now,
        }
    }

    /// Whether tasks can have worktrees, as far as that is seen without running git.
    fn worktrees(&self) -> Worktrees {
        match &self.hands.worktrees {
            None => Worktrees::NoPlace,
            Some(_) if Path::new(&self.rules.root).join(".git").exists() => Worktrees::Possible,
            Some(_) => Worktrees::NoRepository,
        }
    }

    fn processes(&self) -> Processes {
        match (&self.worker_program, self.rules.apart) {
            (None, _) => Processes::NoProgram,
            (Some(_), true) => Processes::Usual,
            (Some(_), false) => Processes::Possible,
        }
    }

    /// Whether a task runs in a process of its own.
    pub(crate) fn is_apart(&self, plan: &Plan) -> bool {
        match plan.grants.isolation {
            Isolation::None => false,
            Isolation::Process => true,
            Isolation::Worktree => self.rules.apart,
        }
    }

    /// Whether a task that may start is driven here from the moment in which it is accepted.
    pub(crate) fn asks_at_once(&self, plan: &Plan) -> bool {
        self.executor == Executor::InProcess && !self.is_apart(plan)
    }

    /// Takes a decision inside the store's transaction, and brings out what it said.
    pub(crate) async fn decide<T: Send + 'static>(
        self: &Arc<Self>,
        session: &SessionKey,
        lookup: Lookup,
        decision: impl FnOnce(&Self, &SessionView) -> Result<(Vec<SessionChange>, T), Refusal> + Send + 'static,
    ) -> Result<(Decided, T), Refusal> {
        let said = Arc::new(std::sync::Mutex::new(None));
        let (slot, engine) = (Arc::clone(&said), Arc::clone(self));
        let boxed: Decision = Box::new(move |view| {
            let (changes, answer) = decision(&engine, view)?;
            // Only this closure and the line below ever hold the lock.
            *slot.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(answer);
            Ok(changes)
        });
        let holder = match self.executor {
            Executor::InProcess => Some(self.worker.owner.id),
            Executor::Detached => None,
        };
        let decided = self.hands.store.decide(session, lookup, holder, boxed).await.map_err(|error| match error {
            DecideError::Refused(refusal) => refusal,
            DecideError::Store(error) => store_refusal(&error),
        })?;
        let answer = said.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        answer.map(|answer| (decided, answer)).ok_or_else(|| Refusal::internal("the store made no decision"))
    }

    /// Tasks on one line each.
    pub(crate) async fn rows(&self, query: TaskQuery) -> Result<Vec<TaskRow>, Refusal> {
        self.hands.store.tasks(query).await.map_err(|error| store_refusal(&error))
    }

    /// The plan and the outcome of a task that has ended. The plan's receipt and warnings tell which model answered in
    /// the end.
    pub(crate) async fn finished(&self, row: &TaskRow) -> Result<Finished, Refusal> {
        let store = &self.hands.store;
        let (uid, before_last) = (&row.summary.uid, row.summary.seq.saturating_sub(1));
        let both = try_join(store.records(uid, 0, 1), store.records(uid, before_last, 1));
        let (mut first, mut last) = both.await.map_err(|error| store_refusal(&error))?;
        match (first.pop().map(|record| record.event), last.pop().map(|record| record.event)) {
            (Some(TaskEvent::Accepted { plan, .. }), Some(TaskEvent::Ended { outcome })) => {
                // What lies between the first and the last entry changes the answer only for these.
                let is_plain = plan.fallback.is_empty() && row.summary.standing.usage.denials == 0;
                if is_plain && plan.grants.isolation != Isolation::Worktree {
                    return Ok(Finished { plan, outcome, worktree: None });
                }
                let task = crate::worker::load(self, uid).await.map_err(|error| store_refusal(&error))?;
                Finished::of(&task).ok_or_else(|| Refusal::internal("the task has not ended"))
            }
            _ => Err(Refusal::internal(format!("the log of task {} is not whole", row.summary.task_id))),
        }
    }

    /// The owners of unfinished tasks that can no longer work on them.
    pub(crate) async fn dead_owners(&self) -> Result<Vec<OwnerId>, Error> {
        let now = self.hands.clock.now();
        let rows = self.hands.store.owners().await?;
        Ok(rows.iter().filter(|row| process::is_dead(row, now)).map(|row| row.owner.id).collect())
    }

    /// The unfinished tasks of a session that nobody works on.
    pub(crate) async fn orphans(&self, session: &SessionKey) -> Result<(Vec<TaskRow>, Vec<OwnerId>), Error> {
        let rows = self.hands.store.tasks(TaskQuery::Unfinished(Some(session.clone()))).await?;
        if rows.is_empty() {
            return Ok((Vec::new(), Vec::new()));
        }
        let dead = self.dead_owners().await?;
        let mut orphans = Vec::new();
        for row in rows.into_iter().filter(|row| row.owner.is_none_or(|owner| dead.contains(&owner))) {
            match self.missing_key(&row.summary.uid).await {
                Ok(None) => orphans.push(row),
                // A task whose model has no key here waits for a process that has one.
                Ok(Some(_)) => {}
                // Nobody can go on with what nobody can read.
                Err(error @ Error::Corrupt(_)) => {
                    self.note_about(&row.session, &row.summary, "adopt", &error.to_string());
                }
                Err(error) => return Err(error),
            }
        }
        Ok((orphans, dead))
    }

    /// The key that a task's model lacks in this process. Where others may have taken its place, the whole log says
    /// which one answers now.
    pub(crate) async fn missing_key(&self, uid: &Uid) -> Result<Option<String>, Error> {
        let first = self.hands.store.records(uid, 0, 1).await?.pop();
        let Some(TaskEvent::Accepted { plan, .. }) = first.map(|record| record.event) else { return Ok(None) };
        if plan.fallback.is_empty() {
            return Ok(self.hands.models.missing_key(&plan.model));
        }
        Ok(self.hands.models.missing_key(worker::load(self, uid).await?.model()))
    }

    /// Notes a fault that no caller is told of.
    pub(crate) fn note(&self, task: &Task, action: &str, fault: &str) {
        self.note_about(&task.plan().session, &task.summary(), action, fault);
    }

    /// The same, about a task that was not read.
    pub(crate) fn note_about(&self, session: &SessionKey, task: &TaskSummary, action: &str, fault: &str) {
        self.hands.log.write(&Operation {
            timestamp: self.hands.clock.now(),
            session: session.id.as_str(),
            task: Some(task.task_id.to_string()),
            agent: Some(task.agent.as_str()),
            action,
            status: fault,
            turns: Some(task.standing.usage.turns),
            change: None,
            payload: None,
        });
    }
}

/// What a caller is told when the store failed.
pub(crate) fn store_refusal(error: &Error) -> Refusal {
    Refusal::new(Code::Internal, error.to_string())
}
