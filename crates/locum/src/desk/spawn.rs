//! Starting tasks: one transaction admits them, then somebody works on them.

use std::path::Path;
use std::sync::Arc;

use locum_core::admission::{self, Admitted, Order};
use locum_core::budget::PurseKey;
use locum_core::ids::{TaskId, Uid};
use locum_core::limits;
use locum_core::protocol::face::CallerKind;
use locum_core::protocol::response::Spawned;
use locum_core::protocol::{FaceDefaults, Refusal, Response, SpawnEntry};
use locum_core::session::{Acceptance, Lookup, SessionChange};
use locum_core::task::errand::Form;
use locum_core::task::plan::{Among, Plan};
use locum_core::task::{Status, Task};

use super::Desk;
use crate::engine::{Executor, store_refusal};
use crate::store::{Lease, TaskQuery, TaskRow};
use crate::worker;

/// Whether orders stand or fall together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Together {
    /// One refusal refuses all.
    AllOrNone,
    /// A refusal refuses only its own order.
    Each,
}

/// A task that an order led to.
#[derive(Debug, Clone)]
pub(super) struct Started {
    pub(super) row: TaskRow,
    pub(super) warnings: Vec<String>,
    /// Whether its agent says that it is not waited for.
    pub(super) background: bool,
}

impl Desk {
    pub(super) async fn spawn(&self, entry: SpawnEntry, face: &FaceDefaults) -> Result<Response, Refusal> {
        let queue = entry.queue.unwrap_or(false);
        let order = self.order(entry, Among::Session, queue, self.engine.rules.limits.max_running);
        let mut started = self.start(vec![order], face, Together::AllOrNone).await?;
        let Some(Ok(started)) = started.pop() else { return Err(Refusal::internal("the task was not started")) };
        self.spawned(started).await
    }

    async fn spawned(&self, Started { row, warnings, .. }: Started) -> Result<Response, Refusal> {
        let status = self.present(&row).await?;
        Ok(Response::Spawned(Spawned {
            task_id: status.task_id,
            agent: status.agent,
            status: status.status,
            uid: row.summary.uid,
            position: status.position,
            waiting_for: status.waiting_for,
            warnings,
        }))
    }

    pub(super) fn order(&self, entry: SpawnEntry, among: Among, queue: bool, running_max: u32) -> Order {
        let root = self.caller.parent.as_ref().and_then(|parent| parent.root.as_deref());
        let root = Path::new(root.unwrap_or(&self.engine.rules.root));
        let lacks_directory = entry.cwd.as_ref().is_some_and(|cwd| !root.join(cwd).is_dir());
        Order { entry, uid: new_uid(), after: None, queue, among, running_max, race: None, lacks_directory }
    }

    /// Where running tasks are counted for a foreground command: a person's command is bounded by itself.
    pub(super) fn among(&self, face: &FaceDefaults, first: &Uid) -> Among {
        match face.caller {
            CallerKind::Model => Among::Session,
            CallerKind::Person => Among::Group(first.clone()),
        }
    }

    /// Admits orders in one transaction and sees to it that somebody works on them. Once they may be accepted this
    /// goes on by itself, also if the caller no longer waits: an accepted task without a worker would be lost.
    pub(super) async fn start(
        &self,
        orders: Vec<Order>,
        face: &FaceDefaults,
        together: Together,
    ) -> Result<Vec<Result<Started, Refusal>>, Refusal> {
        self.start_errand(orders, face, together, None).await
    }

    /// The same, and keeps what was asked for with the first task where this desk is one that does.
    pub(super) async fn start_errand(
        &self,
        orders: Vec<Order>,
        face: &FaceDefaults,
        together: Together,
        form: Option<Form>,
    ) -> Result<Vec<Result<Started, Refusal>>, Refusal> {
        let (desk, face, form) = (self.clone(), face.clone(), form.filter(|_| self.keeps_errands));
        // It is handed on several times before it runs.
        let started = Box::pin(async move { desk.admit(orders, &face, together, form).await });
        worker::owned(&self.engine, started).await.map_err(Refusal::internal)?
    }

    async fn admit(
        &self,
        orders: Vec<Order>,
        face: &FaceDefaults,
        together: Together,
        form: Option<Form>,
    ) -> Result<Vec<Result<Started, Refusal>>, Refusal> {
        self.check_enabled()?;
        self.follow(orders.iter().map(|order| &order.uid));
        if self.is_unwanted().await? {
            return Err(Refusal::invalid("the task that delegates was cancelled"));
        }
        if orders.len() > limits::TASKS_PER_REQUEST_MAX {
            return Err(Refusal::invalid(format!("more than {} tasks in one request", limits::TASKS_PER_REQUEST_MAX)));
        }
        let lookup = Lookup { purses: self.purses(&orders, face), ..lookup_for(&orders) };
        let requested: Vec<String> = orders.iter().map(|order| order.entry.agent.clone()).collect();
        let (desk, caller, session, face) = (self.clone(), self.caller.clone(), self.session.clone(), face.clone());
        let muster = self.engine.staff.now();
        self.meet_servers_of(&orders, &muster).await?;
        let (now, servers) = (self.engine.hands.clock.now(), self.engine.hands.servers.known());
        let decision = move |engine: &crate::engine::Engine, view: &locum_core::session::SessionView| {
            let premises = engine.premises(&session, &caller, (&muster, &servers), now);
            let mut verdicts = admission::admit(&orders, &face, &premises, view);
            if together == Together::AllOrNone
                && let Some((place, refusal)) = first_refusal(&verdicts)
            {
                return Err(desk.explained(&requested[place], refusal.clone()));
            }
            if let Some(form) = form {
                admission::errand::keep(form, &orders, &mut verdicts);
            }
            let accepted = verdicts.iter_mut().filter_map(|verdict| match verdict {
                Ok(Admitted::New(acceptance)) => {
                    if engine.asks_at_once(&acceptance.plan) {
                        acceptance.announce_first_turn();
                    }
                    Some(SessionChange::Accept(acceptance.clone()))
                }
                Ok(Admitted::Same(_)) | Err(_) => None,
            });
            Ok((accepted.collect(), verdicts))
        };
        if self.engine.executor == Executor::InProcess {
            worker::be_known(&self.engine).await.map_err(|error| store_refusal(&error))?;
        }
        let (decided, verdicts) = self.engine.decide(&self.session, lookup, decision).await?;
        let warning = self.put_to_work(&decided.accepted, &verdicts).await?;
        worker::wake(&Arc::downgrade(&self.engine), decided.moved);
        if self.is_unwanted().await? {
            // It was cancelled while it delegated; whoever cancelled it may have looked for children before.
            for row in &decided.accepted {
                worker::cancel(&self.engine, &row.summary.uid).await;
            }
        }
        let mut answers = self.answer(decided.accepted, verdicts).await?;
        for started in answers.iter_mut().flatten() {
            started.warnings.extend(warning.clone());
        }
        Ok(answers)
    }

    /// What may bound new tasks from above. A session's money is looked at here only where it is likely to be spent: what
    /// is missed is met by the first request.
    fn purses(&self, orders: &[Order], face: &FaceDefaults) -> Vec<PurseKey> {
        let catalogue = &self.engine.rules.catalogue;
        let may_cost = || {
            catalogue.price_of(&catalogue.session.name).is_some()
                || orders.iter().any(|order| order.entry.model.is_some())
        };
        match (&self.caller.parent, face.caller) {
            (Some(parent), _) => parent.purses.iter().map(|purse| purse.key.clone()).collect(),
            (None, CallerKind::Model) if self.engine.rules.limits.session_cost_usd.is_some() && may_cost() => {
                vec![PurseKey::Session]
            }
            (None, CallerKind::Model | CallerKind::Person) => Vec::new(),
        }
    }

    /// Whether the task that asks was cancelled.
    async fn is_unwanted(&self) -> Result<bool, Refusal> {
        let Some(parent) = &self.caller.parent else { return Ok(false) };
        if self.engine.worker.is_cancelled(&parent.uid) {
            return Ok(true);
        }
        let rows = self.engine.rows(TaskQuery::Uids(vec![parent.uid.clone()])).await?;
        Ok(rows.iter().any(|row| row.summary.standing.status == Status::Cancelled))
    }

    async fn answer(
        &self,
        accepted: Vec<TaskRow>,
        verdicts: Vec<Result<Admitted, Refusal>>,
    ) -> Result<Vec<Result<Started, Refusal>>, Refusal> {
        let mut accepted = accepted.into_iter();
        let mut answers = Vec::with_capacity(verdicts.len());
        for verdict in verdicts {
            answers.push(match verdict {
                Err(refusal) => Err(refusal),
                Ok(Admitted::New(acceptance)) => {
                    let row = accepted.next().ok_or_else(|| Refusal::internal("an accepted task is missing"))?;
                    let Plan { agent, warnings, .. } = &*acceptance.plan;
                    Ok(Started { row, warnings: warnings.clone(), background: agent.background == Some(true) })
                }
                Ok(Admitted::Same(same)) => {
                    let rows = self.engine.rows(TaskQuery::Uids(vec![same.known.uid])).await?;
                    let row = rows.into_iter().next().ok_or_else(|| Refusal::internal("the earlier task is gone"))?;
                    let task = worker::load(&self.engine, &row.summary.uid).await;
                    let task = task.map_err(|error| store_refusal(&error))?;
                    Ok(Started { row, warnings: Vec::new(), background: task.plan().agent.background == Some(true) })
                }
            });
        }
        Ok(answers)
    }

    /// Hands accepted tasks to this process's worker, or to a process of their own; what to say if that cannot be
    /// started.
    async fn put_to_work(
        &self,
        rows: &[TaskRow],
        verdicts: &[Result<Admitted, Refusal>],
    ) -> Result<Option<String>, Refusal> {
        if rows.is_empty() {
            return Ok(None);
        }
        if self.engine.executor == Executor::Detached {
            return Ok(self.launch_worker(rows));
        }
        let accepted = verdicts.iter().filter_map(|verdict| match verdict {
            Ok(Admitted::New(acceptance)) => Some(acceptance),
            Ok(Admitted::Same(_)) | Err(_) => None,
        });
        for (row, acceptance) in rows.iter().zip(accepted) {
            worker::tell(&self.engine, &row.summary.uid, 0).await;
            let lease = Lease { uid: row.summary.uid.clone(), owner: self.engine.worker.owner.id, epoch: 1 };
            if row.summary.standing.status.is_final() {
                continue;
            }
            match task_of(row, acceptance) {
                Some(task) => worker::take_up(&self.engine, lease, task),
                None => {
                    let task = worker::load(&self.engine, &row.summary.uid).await;
                    worker::take_up(&self.engine, lease, task.map_err(|error| store_refusal(&error))?);
                }
            }
        }
        Ok(None)
    }

    /// Starts a process for these tasks. They are accepted either way: whoever looks next finds them without a worker
    /// and starts one.
    fn launch_worker(&self, rows: &[TaskRow]) -> Option<String> {
        let uids: Vec<Uid> = rows.iter().map(|row| row.summary.uid.clone()).collect();
        let failure = match &self.engine.launcher {
            Some(launcher) => launcher.launch(&uids).err()?.to_string(),
            None => "there is no program to start a worker with".to_owned(),
        };
        Some(format!("{failure}; the next command that looks at the task tries again"))
    }
}

/// The first order that was refused, by its place.
fn first_refusal(verdicts: &[Result<Admitted, Refusal>]) -> Option<(usize, &Refusal)> {
    verdicts.iter().enumerate().find_map(|(place, verdict)| Some((place, verdict.as_ref().err()?)))
}

/// The task as it was accepted, without reading it back, where nothing has happened to it since.
fn task_of(row: &TaskRow, acceptance: &Acceptance) -> Option<Task> {
    let (task, _) = acceptance.begin().ok()?;
    (row.summary.seq == task.seq()).then_some(task)
}

fn lookup_for(orders: &[Order]) -> Lookup {
    let named = orders.iter().flat_map(|order| order.entry.depends_on.iter().flatten());
    Lookup {
        agents: true,
        tasks: named.filter_map(|text| TaskId::parse(text).ok()).collect(),
        idempotency_keys: orders.iter().filter_map(|order| order.entry.idempotency_key.clone()).collect(),
        ..Lookup::default()
    }
}

/// A new globally unique id.
pub(crate) fn new_uid() -> Uid {
    let text = ulid::Ulid::generate().to_string().to_ascii_lowercase();
    Uid::parse(&text).expect("a ULID in lower case is letters and digits")
}

/// Whether a task counts as started for a caller that waits.
pub(super) fn is_open(row: &TaskRow) -> bool {
    let status: Status = row.summary.standing.status;
    !status.is_final()
}
