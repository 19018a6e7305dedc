//! Storms of tasks that spend: whatever tree they form and however their requests end, no purse gives more than its limit
//! and one request for each task, and nothing is counted twice or forgotten.

use std::sync::Arc;

use std::collections::BTreeMap;

use locum_core::admission::{Admitted, Caller, ParentTask};
use locum_core::budget::{self, Draw, Drawn, Purse, PurseKey, PurseState, Resource, Shortage};
use locum_core::ids::Identity;
use locum_core::protocol::Code;
use locum_core::task::event::{FailureKind, ModelFailure, Record, TaskEvent};
use locum_core::task::{Plan, Step, Task};
use locum_core::transcript::{Reply, Stop, ToolCall, ToolOutput};
use locum_core::usage::TokenCount;
use proptest::prelude::{Strategy, any, prop, prop_assert, prop_assert_eq, proptest};
use proptest::test_runner::TestCaseError;
use serde_json::json;

use crate::budget::{PRICE, priced};
use crate::stage::record;
use crate::world::{World, spawn_entry, uid};

const RESOURCES: [Resource; 3] = [Resource::InputTokens, Resource::OutputTokens, Resource::Money];

/// How a request ends.
#[derive(Debug, Clone)]
enum End {
    /// With an answer that calls a tool.
    Calls,
    /// With an answer.
    Answers,
    /// After so many characters, and it is tried again.
    Cut(usize),
    /// Before anything was said, and it is tried again.
    Fails,
    /// With its process.
    Crash,
}

/// What happens next in a storm.
#[derive(Debug, Clone)]
struct Gust {
    /// Which task goes on, or is started.
    task: prop::sample::Index,
    /// What its model takes, if it is asked.
    tokens: TokenCount,
    /// How that ends.
    end: End,
}

fn gust() -> impl Strategy<Value = Gust> {
    let tokens =
        (0u64..30_000, 0u64..15_000).prop_map(|(input, output)| TokenCount { input, output, ..TokenCount::default() });
    let end = (0u32..20, 0usize..40_000).prop_map(|(kind, chars)| match kind {
        0..12 => End::Calls,
        12..15 => End::Answers,
        15..17 => End::Cut(chars),
        17 => End::Fails,
        _ => End::Crash,
    });
    (any::<prop::sample::Index>(), tokens, end).prop_map(|(task, tokens, end)| Gust { task, tokens, end })
}

/// A task, its log, what it holds of its purses, and the most that one of its requests has used.
struct Actor {
    task: Task,
    log: Vec<Record>,
    held: Drawn,
    dearest: Drawn,
}

/// What every purse has given, kept as a store keeps it.
#[derive(Default)]
struct Till {
    drawn: BTreeMap<PurseKey, Drawn>,
}

impl Till {
    fn given(&self, draw: &Draw) -> Vec<Drawn> {
        draw.purses.iter().map(|purse| self.drawn.get(&purse.key).copied().unwrap_or_default()).collect()
    }
}

fn most(one: Drawn, other: Drawn) -> Drawn {
    Drawn { input: one.input.max(other.input), output: one.output.max(other.output), money: one.money.max(other.money) }
}

impl Actor {
    fn new(plan: Plan) -> Self {
        let first = record(1, TaskEvent::Accepted { plan: Arc::new(plan), parked: None });
        let task = Task::accepted(first.clone()).unwrap();
        Self { task, log: vec![first], held: Drawn::default(), dearest: Drawn::default() }
    }

    /// Appends as a store does, or says what is missing; then nothing has happened.
    fn append(&mut self, till: &mut Till, events: Vec<TaskEvent>) -> Result<Result<(), Shortage>, TestCaseError> {
        let mut task = self.task.clone();
        let mut records = Vec::new();
        for event in events {
            let record = record(task.seq() + 1, event);
            task.apply(record.clone()).unwrap();
            records.push(record);
        }
        let asks = budget::asks(&records);
        let draw = task.standing().draw.unwrap();
        let settled = match budget::draw(&draw, self.held, &till.given(&draw), asks) {
            Ok(settled) => settled,
            Err(shortage) => return Ok(Err(shortage)),
        };
        for (purse, after) in draw.purses.iter().zip(settled.drawn) {
            for resource in RESOURCES.into_iter().filter(|_| asks) {
                let covered = resource.allowed(&purse.limit).is_none_or(|limit| after.get(resource) <= limit);
                prop_assert!(covered, "{resource:?} of {} is asked for and not there: {after:?}", purse.key);
            }
            till.drawn.insert(purse.key.clone(), after);
        }
        self.held = draw.held();
        self.task = task;
        self.log.extend(records);
        Ok(Ok(()))
    }

    /// Appends what is a fact and cannot be refused.
    fn note(&mut self, till: &mut Till, events: Vec<TaskEvent>) -> Result<(), TestCaseError> {
        let noted = self.append(till, events)?;
        prop_assert_eq!(noted, Ok(()));
        Ok(())
    }

    /// Carries the task on until its model was asked once, or it has ended.
    fn go_on(&mut self, till: &mut Till, gust: &Gust) -> Result<(), TestCaseError> {
        for _ in 0..20 {
            match self.task.next_step() {
                Step::Done | Step::Park => return Ok(()),
                Step::Record(event @ TaskEvent::TurnStarted { turn, .. }) => {
                    if let Err(shortage) = self.append(till, vec![event.clone()])? {
                        self.note(till, vec![event, TaskEvent::TurnDeclined { turn, shortage }])?;
                    }
                }
                Step::Record(event) => self.note(till, vec![event])?,
                Step::CallModel { turn } => return self.ask(till, gust, turn),
                Step::PrepareWorkspace | Step::CloseWorkspace => {
                    prop_assert!(false, "no task here has a worktree");
                }
                Step::CallTools { turn, calls, repeat } => {
                    for call in calls {
                        let (call_id, name) = (call.id.clone(), call.name);
                        let started = TaskEvent::ToolStarted {
                            turn,
                            call_id: call.id,
                            name,
                            repeat,
                            consent: None,
                            intent: None,
                        };
                        let output = ToolOutput::ok("fine");
                        let ended = TaskEvent::ToolEnded { turn, call_id, output, duration_ms: 1 };
                        self.note(till, vec![started, ended])?;
                    }
                }
            }
        }
        prop_assert!(false, "no end: {:?}", self.log);
        Ok(())
    }

    fn ask(&mut self, till: &mut Till, gust: &Gust, turn: u32) -> Result<(), TestCaseError> {
        let failed = |tokens: TokenCount| {
            let failure = ModelFailure { kind: FailureKind::Network, message: "cut".to_owned(), partial: None };
            TaskEvent::ModelFailed { turn, failure, retry_in_ms: Some(1), tokens }
        };
        let (event, used) = match gust.end {
            End::Crash => {
                self.task = Task::replay(self.log.clone()).unwrap();
                return Ok(());
            }
            End::Fails => (failed(TokenCount::default()), TokenCount::default()),
            End::Cut(chars) => {
                let tokens = self.task.spent_by_cut_call(chars);
                (failed(tokens), tokens)
            }
            End::Calls | End::Answers => {
                let call = ToolCall { id: "c".to_owned(), name: "read".to_owned(), input: json!({}) };
                let tool_calls = if matches!(gust.end, End::Calls) { vec![call] } else { Vec::new() };
                let text = "So far".to_owned();
                let reply = Reply { text, tool_calls, stop: Stop::End, tokens: gust.tokens, opaque: None };
                (TaskEvent::Replied { turn, reply }, gust.tokens)
            }
        };
        self.dearest = most(self.dearest, Drawn::of(used, Some(PRICE)));
        self.note(till, vec![event])
    }
}

/// What a session does: tasks that start each other, each below the one that the shape says, or below nobody.
struct Storm {
    world: World,
    shape: Vec<Option<prop::sample::Index>>,
    actors: Vec<Option<Actor>>,
    till: Till,
}

impl Storm {
    fn new(session: f64, task: f64, shape: Vec<Option<prop::sample::Index>>) -> Self {
        let mut world = priced();
        world.limits.max_depth = Some(5);
        world.limits.session_cost_usd = Some(session);
        world.limits.max_cost_usd = Some(task);
        world.limits.max_running = 100;
        let actors = shape.iter().map(|_| None).collect();
        Self { world, shape, actors, till: Till::default() }
    }

    /// Starts a task below another one, if that one was started and something is left for it.
    fn start(&mut self, place: usize) -> Result<(), TestCaseError> {
        let above = self.shape[place].filter(|_| place > 0).map(|above| above.index(place));
        self.world.caller = match above.map(|above| self.actors[above].as_ref()) {
            None => Caller::orchestrator(),
            Some(None) => return Ok(()),
            Some(Some(above)) => {
                let plan = above.task.plan();
                let tools = plan.grants.tools.iter().map(|tool| tool.name.clone()).collect();
                let (depth, depth_left) = (plan.lineage.depth, plan.grants.depth_left);
                let purses = plan.bounds.purses.clone();
                let parent = ParentTask {
                    uid: plan.uid.clone(),
                    depth,
                    depth_left,
                    tools,
                    purses,
                    root: None,
                    permissions: plan.grants.permissions.clone(),
                };
                Caller { identity: Identity::Orchestrator, parent: Some(parent) }
            }
        };
        let state = |(key, drawn): (&PurseKey, &Drawn)| (key.clone(), PurseState { drawn: *drawn, spawned: 0 });
        self.world.view.purses = self.till.drawn.iter().map(state).collect();
        let mut entry = json!({"agent": "worker", "task": "t", "model": "large"});
        if place.is_multiple_of(3) {
            entry["max_input_tokens"] = json!(60_000);
        }
        let mut order = self.world.order(spawn_entry(entry).unwrap());
        order.uid = uid(u32::try_from(place).unwrap());
        match self.world.admit(&[order]).remove(0) {
            Ok(Admitted::New(acceptance)) => {
                self.actors[place] = Some(Actor::new(Arc::unwrap_or_clone(acceptance.plan)));
            }
            Ok(Admitted::Same(_)) => prop_assert!(false, "nothing has a key"),
            Err(refusal) => {
                prop_assert!(matches!(refusal.code, Code::BudgetExceeded | Code::DepthExceeded), "{refusal}");
            }
        }
        Ok(())
    }

    fn blow(&mut self, gust: &Gust) -> Result<(), TestCaseError> {
        let place = gust.task.index(self.actors.len());
        if self.actors[place].is_none() {
            self.start(place)?;
        }
        match &mut self.actors[place] {
            Some(actor) => actor.go_on(&mut self.till, gust),
            None => Ok(()),
        }
    }

    fn check(&self) -> Result<(), TestCaseError> {
        for (key, given) in &self.till.drawn {
            let spends = |actor: &&Actor| actor.task.plan().bounds.purses.iter().any(|purse| purse.key == *key);
            let spenders: Vec<&Actor> = self.actors.iter().flatten().filter(spends).collect();
            let held = spenders.iter().fold(Drawn::default(), |held, actor| held.plus(actor.held));
            prop_assert_eq!(held, *given, "what {} has given is what its tasks hold", key);
            let beyond = spenders.iter().fold(Drawn::default(), |beyond, actor| beyond.plus(actor.dearest));
            // Those below see a purse with a tenth less: the whole of it is the most that anybody sees.
            for resource in RESOURCES {
                let seen = |purse: &Purse| if purse.key == *key { resource.allowed(&purse.limit) } else { None };
                let limits = spenders.iter().flat_map(|actor| actor.task.plan().bounds.purses.iter().filter_map(seen));
                let Some(limit) = limits.max() else { continue };
                let (given, beyond) = (given.get(resource), beyond.get(resource));
                prop_assert!(given <= limit + beyond, "{key}: {given} of {limit} {resource:?}, and {beyond}");
            }
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn no_purse_gives_more_than_its_limit_and_one_request_of_each_task(
        gusts in prop::collection::vec(gust(), 1..150),
        shape in prop::collection::vec(prop::option::weighted(0.8, any::<prop::sample::Index>()), 1..12),
        session in 0.1f64..2.0,
        task in 0.1f64..1.0,
    ) {
        let mut storm = Storm::new(session, task, shape);
        for gust in &gusts {
            storm.blow(gust)?;
            storm.check()?;
        }
    }
}
