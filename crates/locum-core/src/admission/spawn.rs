//! Starting tasks. One or many go through the same checks in the same order, and each gets a plan or a refusal.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::admission::finding::{self, MissingRule};
use crate::admission::isolation::isolation;
use crate::admission::money::{FirstRequest, unkept};
use crate::admission::receipt::{self, Given};
use crate::admission::{Caller, Premises, prompt, tools};
use crate::agent::roster::Found;
use crate::agent::{AgentSpec, Roster, tool_names};
use crate::budget::money;
use crate::ids::{Identity, TaskId, Uid};
use crate::limits;
use crate::protocol::face::CallerKind;
use crate::protocol::{Code, FaceDefaults, Refusal, SpawnEntry};
use crate::routing::{self, Choice, Hints, Wish};
use crate::session::{Acceptance, IdempotentTask, KnownTask, SessionView};
use crate::task::event::Parked;
use crate::task::outcome::Status;
use crate::task::plan::{
    Among, Assignment, Bounds, GrantedTool, Grants, HandOn, LOG_VERSION, Lineage, Plan, StartRule, tool_chars,
};
use crate::usage::{Budget, tokens_of_chars};

/// One task to start, with what its place in the request adds.
#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    /// What was asked.
    pub entry: SpawnEntry,
    /// The id that it gets if it is admitted.
    pub uid: Uid,
    /// The order in the same request whose result it is given in the place of `{previous}`.
    pub after: Option<usize>,
    /// Whether it queues where no place is free.
    pub queue: bool,
    /// Among which tasks places are counted.
    pub among: Among,
    /// How many places there are.
    pub running_max: u32,
    /// The race that it runs in, known by its first task.
    pub race: Option<Uid>,
    /// Whether the directory that it names was looked for and is not there.
    pub lacks_directory: bool,
}

/// What becomes of an order.
#[derive(Debug, Clone, PartialEq)]
pub enum Admitted {
    /// A new task.
    New(Box<Acceptance>),
    /// The task that the same request started before.
    Same(IdempotentTask),
}

/// Decides about each order, in order. Ids are consumed by admitted orders only. Checked in this order: shape,
/// idempotency, task size, agent, trust, dependencies, depth, limits, budget, model, isolation.
pub fn admit(
    orders: &[Order],
    face: &FaceDefaults,
    premises: &Premises<'_>,
    view: &SessionView,
) -> Vec<Result<Admitted, Refusal>> {
    let mut desk = Admission {
        face,
        premises,
        view,
        roster: premises.roster_for(face, view),
        next_task: view.next_task,
        running: view.running,
        idempotent: view.idempotent.clone(),
        admitted: Vec::with_capacity(orders.len()),
        command: orders,
    };
    orders.iter().map(|order| desk.judge(order)).collect()
}

pub(super) struct Admission<'a> {
    pub(super) face: &'a FaceDefaults,
    pub(super) premises: &'a Premises<'a>,
    pub(super) view: &'a SessionView,
    roster: Roster,
    next_task: u32,
    running: u32,
    /// The tasks under idempotency keys, those of this request included.
    idempotent: BTreeMap<String, IdempotentTask>,
    /// The ids of the orders so far; none for a refused one.
    admitted: Vec<Option<TaskId>>,
    /// Every order of the request.
    pub(super) command: &'a [Order],
}

impl Admission<'_> {
    fn judge(&mut self, order: &Order) -> Result<Admitted, Refusal> {
        let verdict = self.check(order);
        self.admitted.push(match &verdict {
            Ok(Admitted::New(acceptance)) => {
                self.next_task += 1;
                self.running += u32::from(acceptance.parked.is_none());
                self.idempotent.extend(idempotent_task(acceptance));
                Some(acceptance.plan.task_id)
            }
            Ok(Admitted::Same(task)) => Some(task.task_id),
            Err(_) => None,
        });
        verdict
    }

    fn check(&self, order: &Order) -> Result<Admitted, Refusal> {
        let entry = &order.entry;
        if self.view.archived {
            return Err(Refusal::new(Code::SessionArchived, "the session is archived and can only be read"));
        }
        check_shape(entry)?;
        let fingerprint = fingerprint(entry);
        if let Some(same) = self.same_request(entry, fingerprint)? {
            return Ok(Admitted::Same(same));
        }
        check_task_size(&entry.task, self.face.task_chars_max)?;
        let rule = MissingRule::of(self.face, self.premises.fallbacks);
        let (found, substitution) = finding::find(&entry.agent, &self.roster, rule)?;
        let depends_on = self.dependencies(order)?;
        self.check_directory(order, &depends_on)?;
        let depth_left = self.premises.depth_left(self.face).ok_or_else(depth_exceeded)?;
        let depth_left = depth_left.min(found.agent.locum.max_depth.unwrap_or(depth_left));
        let parked = self.place(order, &depends_on)?;
        let start = StartRule {
            depends_on,
            hand_on: if order.after.is_some() { HandOn::Previous } else { HandOn::Blocks },
            running_max: order.running_max,
            among: order.among.clone(),
            race: order.race.clone(),
        };
        let mut plan = self.plan(order, &found, start, depth_left)?;
        plan.warnings.extend(substitution);
        if self.face.strict {
            receipt::check_losses(&plan)?;
        }
        let idempotency = entry.idempotency_key.clone().map(|key| (key, fingerprint));
        Ok(Admitted::New(Box::new(Acceptance { plan: Arc::new(plan), parked, idempotency, first_turn: None })))
    }

    fn same_request(&self, entry: &SpawnEntry, fingerprint: u64) -> Result<Option<IdempotentTask>, Refusal> {
        let Some(same) = entry.idempotency_key.as_ref().and_then(|key| self.idempotent.get(key)) else {
            return Ok(None);
        };
        if same.fingerprint == fingerprint {
            return Ok(Some(same.clone()));
        }
        let message = format!("the idempotency key was used for another request, task {}", same.task_id);
        Err(Refusal::new(Code::IdempotencyConflict, message).hint("use a new key for a new request"))
    }

    /// Refuses a directory that is not there: tools would work elsewhere. What it waits for may still make it.
    fn check_directory(&self, order: &Order, depends_on: &[TaskId]) -> Result<(), Refusal> {
        match &order.entry.cwd {
            Some(cwd) if order.lacks_directory && depends_on.is_empty() => {
                let shown: String = cwd.chars().take(80).collect();
                let message = format!("`cwd` names `{shown}`, and {} has no such directory", root_of(self.premises));
                Err(Refusal::invalid(message).hint("name one that is there, relative to that, or leave it out"))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn dependencies(&self, order: &Order) -> Result<Vec<TaskId>, Refusal> {
        let mut depends_on = Vec::new();
        for text in order.entry.depends_on.iter().flatten() {
            let known = TaskId::parse(text).ok().filter(|id| self.view.tasks.contains_key(id));
            let shown: String = text.chars().take(80).collect();
            let id = known.ok_or_else(|| {
                Refusal::new(
                    Code::TaskNotFound,
                    format!("depends_on names `{shown}`, which is no task of this session"),
                )
            })?;
            if !depends_on.contains(&id) {
                depends_on.push(id);
            }
        }
        if let Some(after) = order.after {
            let previous = self.admitted.get(after).copied().flatten();
            let previous = previous.ok_or_else(|| Refusal::invalid("the step before it was refused"))?;
            // Its result is handed on once, in the place of `{previous}`: it comes last.
            depends_on.retain(|id| *id != previous);
            depends_on.push(previous);
        }
        Ok(depends_on)
    }

    /// Whether there is a place for it now.
    fn place(&self, order: &Order, depends_on: &[TaskId]) -> Result<Option<Parked>, Refusal> {
        let limits = self.premises.limits;
        let spawned = match self.face.caller {
            CallerKind::Model => self.spawned_before().saturating_add(self.next_task - self.view.next_task),
            CallerKind::Person => 0,
        };
        if spawned >= limits.max_spawns {
            let whole = if self.command_above().is_some() { "command" } else { "session" };
            let message = format!("the {whole} has started {spawned} tasks; {} are allowed", limits.max_spawns);
            return Err(Refusal::new(Code::SpawnLimitExceeded, message).hint("limits.max_spawns raises it"));
        }
        if !depends_on.is_empty() {
            return Ok(Some(Parked::Waiting));
        }
        if order.queue {
            return Ok(Some(Parked::Queued));
        }
        if order.among == Among::Session && self.running >= order.running_max {
            let message = format!("{} tasks are running; {} may run at once", self.running, order.running_max);
            return Err(Refusal::new(Code::MaxTasksExceeded, message).hint("wait for one to end, or say queue: true"));
        }
        Ok(None)
    }

    fn plan(&self, order: &Order, found: &Found, start: StartRule, depth_left: u32) -> Result<Plan, Refusal> {
        let completed = &self.premises.fallbacks.complete(&found.agent);
        let agent = &completed.agent;
        let (entry, premises) = (&order.entry, self.premises);
        let (max_turns, clamped) = premises.turns_of(agent, self.face);
        let system_prompt = prompt::assemble(&agent.prompt, max_turns, self.face);
        let mut budget = budget_of(entry, agent, self.face);
        let granted = tools::grant(agent, self.face, premises, depth_left);
        let first = first_request(&system_prompt, &entry.task, &granted.tools);
        check_budget(&budget, first)?;
        let wish = Wish {
            call: entry.model.as_deref(),
            hints: Hints::from(entry),
            agent: agent.model.as_deref(),
            agent_fallback: completed.origin("model"),
            task: &entry.task,
            tools: !granted.tools.is_empty(),
        };
        let choice = routing::choose(&wish, premises.catalogue)?;
        let own = agent.locum.fallback_models.as_deref().unwrap_or_default();
        let (fallback, unknown) = routing::fallback(&choice, own, premises.catalogue);
        let isolation = isolation(entry, agent, premises)?;
        let runs_commands = granted.tools.iter().any(|tool| premises.commands.tools.contains(&tool.name));
        let (clamped, timeout_s) = (clamped.as_deref(), budget.timeout_s);
        let given =
            Given { entry, completed, choice: &choice, granted: &granted, max_turns, clamped, isolation, timeout_s };
        let receipt = given.receipt(found, premises.commands.sandbox.filter(|_| runs_commands));
        let Choice { model, warning, .. } = choice;
        let price = premises.catalogue.price_of(&model);
        let delegates = granted.tools.iter().any(|tool| tool.name == tool_names::SUBAGENT);
        let first = FirstRequest { model: &model, price, input: first, delegates };
        let purses = self.fund(order, &mut budget, &first)?;
        let unkept = unkept(agent, &first);
        let task_id = TaskId::new(self.next_task);
        Ok(Plan {
            log_version: LOG_VERSION,
            uid: order.uid.clone(),
            task_id,
            session: premises.session.clone(),
            created_at: premises.now,
            lineage: lineage(premises.caller, agent, task_id),
            agent: agent.clone(),
            assignment: Assignment { task: entry.task.clone(), label: entry.label.clone(), system_prompt },
            price,
            model,
            fallback,
            bounds: Bounds { max_turns, budget, purses },
            grants: Grants {
                tools: granted.tools,
                root: root_of(premises).to_owned(),
                cwd: entry.cwd.clone().unwrap_or_default(),
                isolation,
                depth_left,
                permissions: premises.permissions_of(agent),
            },
            start,
            face: self.face.in_plan(),
            receipt,
            warnings: clamped
                .map(str::to_owned)
                .into_iter()
                .chain(warning)
                .chain(unknown)
                .chain(unkept)
                .chain(premises.about_network(agent).filter(|_| runs_commands))
                .chain(granted.unreached)
                .collect(),
            errand: None,
        })
    }
}

/// What another order of the same request finds under the key of this one.
fn idempotent_task(acceptance: &Acceptance) -> Option<(String, IdempotentTask)> {
    let (key, fingerprint) = acceptance.idempotency.clone()?;
    let plan = &acceptance.plan;
    let status = match acceptance.parked {
        None => Status::Running,
        Some(Parked::Queued) => Status::Queued,
        Some(Parked::Waiting) => Status::Waiting,
    };
    let known = KnownTask { uid: plan.uid.clone(), agent: plan.agent.name.clone(), status, collected: false };
    Some((key, IdempotentTask { fingerprint, task_id: plan.task_id, known }))
}

fn lineage(caller: &Caller, agent: &AgentSpec, task_id: TaskId) -> Lineage {
    Lineage {
        identity: Identity::Subagent { agent: agent.name.clone(), task_id },
        caller: caller.identity.clone(),
        parent: caller.parent.as_ref().map(|parent| parent.uid.clone()),
        depth: caller.parent.as_ref().map_or(1, |parent| parent.depth + 1),
    }
}

fn check_shape(entry: &SpawnEntry) -> Result<(), Refusal> {
    if entry.task.trim().is_empty() {
        return Err(Refusal::invalid("`task` is empty").hint("say what the agent should do"));
    }
    let long = |text: &Option<String>, most: usize| text.as_ref().is_some_and(|text| text.chars().nth(most).is_some());
    for (field, text, most) in [
        ("label", &entry.label, limits::LABEL_CHARS_MAX),
        ("idempotency_key", &entry.idempotency_key, limits::IDEMPOTENCY_KEY_CHARS_MAX),
        ("model_scope", &entry.model_scope, limits::MODEL_SCOPE_CHARS_MAX),
    ] {
        if long(text, most) {
            return Err(Refusal::invalid(format!("`{field}` is longer than {most} characters")));
        }
    }
    if entry.depends_on.as_ref().is_some_and(|ids| ids.len() > limits::TASKS_PER_REQUEST_MAX) {
        return Err(Refusal::invalid(format!("`depends_on` names more than {} tasks", limits::TASKS_PER_REQUEST_MAX)));
    }
    if entry.model_scope.as_ref().is_some_and(|scope| scope.trim().is_empty()) {
        return Err(Refusal::invalid("`model_scope` is empty").hint("name a model or a part of its name"));
    }
    if entry.complexity.is_some_and(|complexity| !(1..=limits::COMPLEXITY_MAX).contains(&complexity)) {
        return Err(Refusal::invalid(format!("`complexity` must be from 1 to {}", limits::COMPLEXITY_MAX)));
    }
    if entry.max_cost_usd.is_some_and(|most| !most.is_finite() || most < 0.0) {
        return Err(Refusal::invalid("`max_cost_usd` must be an amount of US dollars"));
    }
    if entry.timeout == Some(0) {
        return Err(Refusal::invalid("`timeout` is in seconds and must be at least 1"));
    }
    let climbs = |path: &String| path.starts_with('/') || path.split('/').any(|part| part == "..");
    if entry.cwd.as_ref().is_some_and(climbs) {
        return Err(Refusal::invalid("`cwd` must be a directory below the project's root, relative to it"));
    }
    Ok(())
}

fn check_task_size(task: &str, chars_max: usize) -> Result<(), Refusal> {
    if task.len() <= chars_max || task.chars().nth(chars_max).is_none() {
        return Ok(());
    }
    let (is, most) = (tokens_of_chars(task.chars().count()), tokens_of_chars(chars_max));
    Err(Refusal::new(Code::TaskTooLarge, format!("the task has {is} tokens; at most {most} are allowed"))
        .hint("write the context to shared_context and name its key in the task"))
}

fn budget_of(entry: &SpawnEntry, agent: &AgentSpec, face: &FaceDefaults) -> Budget {
    let own = agent.locum.budget.clone().unwrap_or_default();
    Budget {
        max_input_tokens: entry.max_input_tokens.or(own.max_input_tokens),
        max_output_tokens: entry.max_output_tokens.or(own.max_output_tokens),
        max_cost_usd: entry.max_cost_usd.or(own.max_cost_usd),
        timeout_s: face.bounds.timeout_s(entry.timeout.or(agent.timeout_s)),
    }
}

/// Input tokens of the first request, estimated.
fn first_request(system: &str, task: &str, tools: &[GrantedTool]) -> u64 {
    tokens_of_chars(system.chars().count() + task.chars().count() + tool_chars(tools)) as u64
}

/// A budget that does not cover the first request is refused at once.
fn check_budget(budget: &Budget, needed: u64) -> Result<(), Refusal> {
    if let Some(most) = budget.max_input_tokens.filter(|most| *most < needed) {
        let message =
            format!("the first request needs about {needed} input tokens, {} more than the budget", needed - most);
        return Err(Refusal::new(Code::BudgetExceeded, message).hint("raise max_input_tokens"));
    }
    if budget.max_cost_usd.is_some_and(|most| money(most) == 0) {
        return Err(Refusal::new(Code::BudgetExceeded, "max_cost_usd leaves nothing for an answer"));
    }
    if budget.max_output_tokens == Some(0) {
        return Err(Refusal::new(Code::BudgetExceeded, "max_output_tokens leaves nothing for an answer"));
    }
    Ok(())
}

/// A task sees no more than the one that delegates it: a worktree's task delegates within its worktree.
fn root_of<'a>(premises: &Premises<'a>) -> &'a str {
    premises.caller.parent.as_ref().and_then(|parent| parent.root.as_deref()).unwrap_or(premises.root)
}

fn depth_exceeded() -> Refusal {
    Refusal::new(Code::DepthExceeded, "this task may not delegate: the depth limit is reached")
        .hint("do the work yourself, or let the orchestrator delegate it")
}

/// Shortens a request to a number, the same in every process and version (FNV-1a over its JSON).
fn fingerprint(entry: &SpawnEntry) -> u64 {
    let json = serde_json::to_vec(entry).unwrap_or_default();
    json.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
