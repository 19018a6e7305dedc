//! What `spawn` gives and what it refuses.

use std::slice;

use locum_core::admission::{Admitted, Order, Processes, Worktrees};
use locum_core::agent::Isolation;
use locum_core::budget::{Purse, PurseKey};
use locum_core::ids::TaskId;
use locum_core::permission::HostPattern;
use locum_core::protocol::{FaceDefaults, Refusal, SpawnEntry};
use locum_core::session::{Acceptance, IdempotentTask, KnownTask};
use locum_core::task::event::Parked;
use locum_core::task::plan::{Among, HandOn};
use locum_core::task::{Status, Task, TaskEvent};
use locum_core::usage::Budget;
use serde_json::{Value, json};

use crate::world::{World, agent_name, spawn_entry, uid};

/// A refusal on one line.
pub(crate) fn line<T: std::fmt::Debug>(result: Result<T, Refusal>) -> String {
    let Refusal { code, message, hint } = result.unwrap_err();
    hint.map_or_else(|| format!("{code}: {message}"), |hint| format!("{code}: {message} ({hint})"))
}

fn refused(change: impl FnOnce(&mut World), input: Value) -> String {
    let mut world = World::new();
    change(&mut world);
    line(world.spawn(input))
}

fn task(chars: usize) -> Value {
    json!({"agent": "reader", "task": "x".repeat(chars)})
}

#[test]
fn requests_of_a_wrong_shape_are_refused_by_field() {
    let cases = [
        (json!({"agent": "reader"}), "INVALID_REQUEST: spawn: missing field `task`"),
        (json!({"task": "t"}), "INVALID_REQUEST: spawn: missing field `agent`"),
        (json!({"agent": "reader", "task": " "}), "INVALID_REQUEST: `task` is empty (say what the agent should do)"),
        (
            json!({"agent": "reader", "task": "t", "label": "l".repeat(201)}),
            "INVALID_REQUEST: `label` is longer than 200 characters",
        ),
        (
            json!({"agent": "reader", "task": "t", "idempotency_key": "l".repeat(201)}),
            "INVALID_REQUEST: `idempotency_key` is longer than 200 characters",
        ),
        (
            json!({"agent": "reader", "task": "t", "depends_on": vec!["t_01"; 1001]}),
            "INVALID_REQUEST: `depends_on` names more than 1000 tasks",
        ),
        (
            json!({"agent": "reader", "task": "t", "timeout": 0}),
            "INVALID_REQUEST: `timeout` is in seconds and must be at least 1",
        ),
        (
            json!({"agent": "reader", "task": "t", "cwd": "/etc"}),
            "INVALID_REQUEST: `cwd` must be a directory below the project's root, relative to it",
        ),
        (
            json!({"agent": "reader", "task": "t", "cwd": "a/../../b"}),
            "INVALID_REQUEST: `cwd` must be a directory below the project's root, relative to it",
        ),
        (
            json!({"agent": "reader", "task": "t", "timeout": -1}),
            "INVALID_REQUEST: spawn: invalid value: integer `-1`, expected u64 at `timeout`",
        ),
    ];
    for (input, expected) in cases {
        assert_eq!(refused(|_| {}, input.clone()), expected, "{input}");
    }
}

#[test]
fn each_refusal_names_its_thing() {
    let plain = || json!({"agent": "reader", "task": "t"});
    insta::assert_snapshot!(refused(|world| world.view.archived = true, plain()), @"SESSION_ARCHIVED: the session is archived and can only be read");
    insta::assert_snapshot!(refused(|_| {}, json!({"agent": "raeder", "task": "t"})), @"AGENT_NOT_FOUND: no agent is called `raeder` (did you mean reader? list_agents shows all)");
    insta::assert_snapshot!(refused(|_| {}, json!({"agent": "zzz", "task": "t"})), @"AGENT_NOT_FOUND: no agent is called `zzz` (the agents are reader, worker)");
    insta::assert_snapshot!(refused(|_| {}, json!({"agent": "reader", "task": "t", "depends_on": ["t_09"]})), @"TASK_NOT_FOUND: depends_on names `t_09`, which is no task of this session");
    insta::assert_snapshot!(refused(|_| {}, json!({"agent": "reader", "task": "t", "depends_on": ["soon"]})), @"TASK_NOT_FOUND: depends_on names `soon`, which is no task of this session");
    insta::assert_snapshot!(refused(|world| world.called_by_task(&["read"], 0), plain()), @"DEPTH_EXCEEDED: this task may not delegate: the depth limit is reached (do the work yourself, or let the orchestrator delegate it)");
    insta::assert_snapshot!(refused(|world| world.limits.max_depth = Some(0), plain()), @"DEPTH_EXCEEDED: this task may not delegate: the depth limit is reached (do the work yourself, or let the orchestrator delegate it)");
    insta::assert_snapshot!(refused(|world| world.view.running = 5, plain()), @"MAX_TASKS_EXCEEDED: 5 tasks are running; 5 may run at once (wait for one to end, or say queue: true)");
    insta::assert_snapshot!(refused(|world| world.view.spawned = 50, plain()), @"SPAWN_LIMIT_EXCEEDED: the session has started 50 tasks; 50 are allowed (limits.max_spawns raises it)");
    insta::assert_snapshot!(refused(|_| {}, json!({"agent": "reader", "task": "t", "max_input_tokens": 1})), @"BUDGET_EXCEEDED: the first request needs about 86 input tokens, 85 more than the budget (raise max_input_tokens)");
    insta::assert_snapshot!(refused(|_| {}, json!({"agent": "reader", "task": "t", "max_output_tokens": 0})), @"BUDGET_EXCEEDED: max_output_tokens leaves nothing for an answer");
    insta::assert_snapshot!(refused(|_| {}, json!({"agent": "reader", "task": "t", "model": "lrage"})), @"MODEL_NOT_FOUND: no model is called `lrage` (did you mean large or large-1?)");
    let apart = || json!({"agent": "reader", "task": "t", "isolation": "worktree"});
    insta::assert_snapshot!(refused(|world| world.worktrees = Worktrees::NoRepository, apart()), @"ISOLATION_FAILED: isolation `worktree` cannot be had here: the project is not a git repository (run `git init` and commit in the project, or leave `isolation` out)");
    insta::assert_snapshot!(refused(|world| world.worktrees = Worktrees::NoPlace, apart()), @"ISOLATION_FAILED: isolation `worktree` cannot be had here: nobody said where worktrees are kept (name a directory with DeskBuilder::worktrees, or leave `isolation` out)");
    let process = json!({"agent": "reader", "task": "t", "isolation": "process"});
    insta::assert_snapshot!(refused(|world| world.processes = Processes::NoProgram, process), @"ISOLATION_FAILED: isolation `process` cannot be had here: this program cannot be started again as a worker (call locum::launch::intercept() first in its main, or leave `isolation` out)");
    insta::assert_snapshot!(refused(|_| {}, task(4001)), @"TASK_TOO_LARGE: the task has 1001 tokens; at most 1000 are allowed (write the context to shared_context and name its key in the task)");
}

#[test]
fn a_worktree_is_had_by_call_or_agent_and_the_call_wins() {
    let check = |agent: Option<Isolation>, call: Option<&str>, expected: Isolation| {
        let mut world = World::new();
        world.add("apart", |spec| spec.isolation = agent);
        let plan = world.accept(json!({"agent": "apart", "task": "t", "isolation": call})).plan;
        assert_eq!((plan.grants.isolation, plan.receipt.isolation), (expected, expected), "{agent:?} {call:?}");
    };
    check(None, None, Isolation::None);
    check(None, Some("worktree"), Isolation::Worktree);
    check(Some(Isolation::Worktree), None, Isolation::Worktree);
    check(Some(Isolation::Worktree), Some("none"), Isolation::None);
}

#[test]
fn a_process_is_had_where_it_is_asked_for_or_usual() {
    let check = |processes: Processes, call: Option<&str>, expected: Isolation| {
        let mut world = World::new();
        world.processes = processes;
        let plan = world.accept(json!({"agent": "reader", "task": "t", "isolation": call})).plan;
        assert_eq!((plan.grants.isolation, plan.receipt.isolation), (expected, expected), "{processes:?} {call:?}");
    };
    check(Processes::Possible, None, Isolation::None);
    check(Processes::Possible, Some("process"), Isolation::Process);
    check(Processes::Usual, None, Isolation::Process);
    check(Processes::Usual, Some("none"), Isolation::None);
    check(Processes::Usual, Some("worktree"), Isolation::Worktree);
    check(Processes::NoProgram, None, Isolation::None);
}

/// What a task with a worktree delegates stays within that worktree.
#[test]
fn a_child_has_the_root_of_its_parent() {
    let mut world = World::new();
    world.limits.max_depth = Some(3);
    world.called_by_task(&["read"], 2);
    let root = |world: &World| world.accept(json!({"agent": "reader", "task": "t"})).plan.grants.root.clone();
    assert_eq!(root(&world), "/project");
    world.caller.parent.as_mut().unwrap().root = Some("/state/worktrees/u".to_owned());
    assert_eq!(root(&world), "/state/worktrees/u");
}

/// What is in each list is reached; a task that reaches nothing hands nothing on.
#[test]
fn a_child_reaches_no_more_hosts_than_its_parent() {
    let hosts = |names: &[&str]| names.iter().map(|name| HostPattern::parse(name).unwrap()).collect::<Vec<_>>();
    let mut world = World::new();
    world.limits.max_depth = Some(3);
    world.add("net", |spec| spec.locum.network = Some(hosts(&["docs.rs", "*.crates.io"])));
    let network = |world: &World, agent: &str| {
        world.accept(json!({"agent": agent, "task": "t"})).plan.grants.permissions.network.clone()
    };
    let own = hosts(&["docs.rs", "*.crates.io"]);
    assert_eq!(network(&world, "net"), slice::from_ref(&own));
    assert_eq!(network(&world, "reader"), Vec::<Vec<HostPattern>>::new());
    world.called_by_task(&["read"], 2);
    assert_eq!(network(&world, "net"), Vec::<Vec<HostPattern>>::new());
    let above = hosts(&["docs.rs"]);
    world.caller.parent.as_mut().unwrap().permissions.network = vec![above.clone()];
    assert_eq!(network(&world, "net"), [above.clone(), own.clone()]);
    world.caller.parent.as_mut().unwrap().permissions.network = vec![above.clone(), own.clone()];
    assert_eq!(network(&world, "net"), [above, own]);
    assert_eq!(network(&world, "reader"), Vec::<Vec<HostPattern>>::new());
}

#[test]
fn a_task_has_at_most_1000_tokens_of_characters() {
    let world = World::new();
    for letter in ["x", "é", "漢", "🦀"] {
        let spawn = |chars| world.spawn(json!({"agent": "reader", "task": letter.repeat(chars)}));
        assert!(spawn(4000).is_ok(), "{letter}");
        assert!(line(spawn(4001)).starts_with("TASK_TOO_LARGE: the task has 1001 tokens"), "{letter}");
    }
    let mut person = World::new();
    person.face = FaceDefaults::person();
    assert!(person.spawn(task(100_000)).is_ok());
    assert!(line(person.spawn(task(100_001))).starts_with("TASK_TOO_LARGE: the task has 25001 tokens"));
}

#[test]
fn the_fifth_place_is_free_and_the_sixth_is_not() {
    let mut world = World::new();
    world.view.running = 4;
    let order = world.order(spawn_entry(task(1)).unwrap());
    let verdicts = world.admit(&[order.clone(), order.clone()]);
    assert!(matches!(&verdicts[0], Ok(Admitted::New(acceptance)) if acceptance.parked.is_none()));
    assert!(line(verdicts[1].clone()).starts_with("MAX_TASKS_EXCEEDED: 5 tasks are running"));
    let mut queued = order.clone();
    queued.queue = true;
    let mut grouped = order;
    grouped.among = Among::Group(uid(1));
    world.view.running = 5;
    let parked = |verdict: &Result<Admitted, Refusal>| match verdict {
        Ok(Admitted::New(acceptance)) => acceptance.parked,
        other => panic!("{other:?}"),
    };
    let verdicts = world.admit(&[queued, grouped]);
    assert_eq!(parked(&verdicts[0]), Some(Parked::Queued), "it queues instead of being refused");
    assert_eq!(parked(&verdicts[1]), None, "a person's command is bounded by itself");
}

#[test]
fn a_person_is_not_bounded_by_what_the_session_started() {
    let mut world = World::new();
    world.view.spawned = 50;
    world.face = FaceDefaults::person();
    assert!(world.spawn(task(1)).is_ok());
}

#[test]
fn a_refusal_consumes_no_id() {
    let mut world = World::new();
    world.view.next_task = 7;
    let order =
        |agent: &str| world.order(SpawnEntry { agent: agent.into(), task: "t".into(), ..SpawnEntry::default() });
    let verdicts = world.admit(&[order("reader"), order("nobody"), order("worker")]);
    let ids: Vec<Option<String>> = verdicts.iter().map(|verdict| id_of(verdict).map(|id| id.to_string())).collect();
    assert_eq!(ids, [Some("t_07".to_owned()), None, Some("t_08".to_owned())]);
}

fn id_of(verdict: &Result<Admitted, Refusal>) -> Option<TaskId> {
    match verdict {
        Ok(Admitted::New(acceptance)) => Some(acceptance.plan.task_id),
        Ok(Admitted::Same(same)) => Some(same.task_id),
        Err(_) => None,
    }
}

#[test]
fn dependencies_park_a_task_and_are_named_once() {
    let mut world = World::new();
    world.know(1, Status::Running);
    world.know(2, Status::Failed);
    let Acceptance { plan, parked, .. } =
        world.accept(json!({"agent": "reader", "task": "t", "depends_on": ["t_02", "t_01", "t_02"]}));
    assert_eq!(parked, Some(Parked::Waiting));
    assert_eq!(plan.start.depends_on, [TaskId::new(2), TaskId::new(1)]);
    assert_eq!(plan.start.hand_on, HandOn::Blocks);
    assert_eq!(plan.task_id, TaskId::new(3));
}

#[test]
fn a_directory_that_is_not_there_is_refused_unless_something_before_it_may_make_it() {
    let mut world = World::new();
    world.know(1, Status::Running);
    let admit = |entry: Value, lacks_directory| {
        let order = Order { lacks_directory, ..world.order(spawn_entry(entry).unwrap()) };
        world.admit(&[order]).remove(0)
    };
    assert!(admit(json!({"agent": "reader", "task": "t", "cwd": "src"}), false).is_ok());
    assert_eq!(
        line(admit(json!({"agent": "reader", "task": "t", "cwd": "srcc"}), true)),
        "INVALID_REQUEST: `cwd` names `srcc`, and /project has no such directory (name one that is there, relative to \
         that, or leave it out)"
    );
    assert!(admit(json!({"agent": "reader", "task": "t", "cwd": "out", "depends_on": ["t_01"]}), true).is_ok());
}

#[test]
fn a_first_turn_is_announced_with_the_acceptance_where_nothing_comes_before_it() {
    let mut world = World::new();
    world.know(1, Status::Running);
    let announced = |world: &World, more: Value| {
        let mut entry = json!({"agent": "reader", "task": "t"});
        entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let mut acceptance = world.accept(entry);
        acceptance.announce_first_turn();
        let (task, records) = acceptance.begin().unwrap();
        assert_eq!(task.seq(), records.len() as u64);
        // Whoever reads it back sees the same task, whose call may be lost.
        assert_eq!(Task::replay(records).unwrap().status(), task.status());
        matches!(acceptance.first_turn, Some(TaskEvent::TurnStarted { turn: 1, .. }))
    };
    assert!(announced(&world, json!({})));
    assert!(!announced(&world, json!({"depends_on": ["t_01"]})), "it waits");
    let above =
        Purse { key: PurseKey::Session, limit: Budget { max_input_tokens: Some(100_000), ..Budget::default() } };
    world.called_by_task(&["read"], 1);
    world.caller.parent.as_mut().unwrap().purses = vec![above];
    assert!(!announced(&world, json!({})), "it draws from a purse");
}

#[test]
fn steps_of_a_chain_follow_each_other() {
    let mut world = World::new();
    world.know(1, Status::Completed);
    let step = |agent: &str, after, depends_on: Option<&str>| {
        let depends_on = depends_on.map(|id| vec![id.to_owned()]);
        let entry = SpawnEntry { agent: agent.into(), task: "t".into(), depends_on, ..SpawnEntry::default() };
        let mut order = world.order(entry);
        order.after = after;
        order
    };
    let orders = [
        step("reader", None, None),
        step("worker", Some(0), Some("t_01")),
        step("nobody", Some(1), None),
        step("reader", Some(2), None),
    ];
    let verdicts = world.admit(&orders);
    let Ok(Admitted::New(second)) = &verdicts[1] else { panic!("{verdicts:?}") };
    assert_eq!(second.plan.start.depends_on, [TaskId::new(1), TaskId::new(2)], "the step before it comes last");
    assert_eq!(second.plan.start.hand_on, HandOn::Previous);
    assert_eq!(second.parked, Some(Parked::Waiting));
    assert!(line(verdicts[2].clone()).starts_with("AGENT_NOT_FOUND"));
    assert_eq!(line(verdicts[3].clone()), "INVALID_REQUEST: the step before it was refused");
}

/// A session in which a task was accepted under the key `k`.
fn with_key(entry: &Value) -> World {
    let mut world = World::new();
    let acceptance = world.accept(entry.clone());
    let (key, fingerprint) = acceptance.idempotency.unwrap();
    let known = KnownTask { uid: uid(1), agent: agent_name("reader"), status: Status::Failed, collected: true };
    world.view.idempotent.insert(key, IdempotentTask { fingerprint, task_id: TaskId::new(1), known });
    world.view.next_task = 2;
    world
}

#[test]
fn the_same_key_and_request_find_the_same_task() {
    let entry = json!({"agent": "reader", "task": "t", "idempotency_key": "k"});
    let mut world = with_key(&entry);
    world.view.running = 5;
    let Ok(Admitted::Same(same)) = world.spawn(entry) else { panic!("a new task") };
    assert_eq!((same.task_id, same.known.status), (TaskId::new(1), Status::Failed));
    let other = json!({"agent": "reader", "task": "u", "idempotency_key": "k"});
    insta::assert_snapshot!(line(world.spawn(other)), @"IDEMPOTENCY_CONFLICT: the idempotency key was used for another request, task t_01 (use a new key for a new request)");
    let other = json!({"agent": "reader", "task": "t", "idempotency_key": "l"});
    assert!(line(world.spawn(other)).starts_with("MAX_TASKS_EXCEEDED"), "another key is another task");
}

#[test]
fn two_entries_of_one_request_with_the_same_key_are_one_task() {
    let world = World::new();
    let order = |text: &str| {
        world.order(spawn_entry(json!({"agent": "reader", "task": text, "idempotency_key": "k"})).unwrap())
    };
    let verdicts = world.admit(&[order("t"), order("t"), order("u")]);
    assert!(matches!(&verdicts[0], Ok(Admitted::New(_))));
    let Ok(Admitted::Same(same)) = &verdicts[1] else { panic!("{verdicts:?}") };
    assert_eq!((same.task_id, same.known.status), (TaskId::new(1), Status::Running));
    assert!(line(verdicts[2].clone()).starts_with("IDEMPOTENCY_CONFLICT"));
}

#[test]
fn a_plan_holds_what_was_asked() {
    let mut world = World::new();
    world.add("slow", |agent| (agent.timeout_s, agent.isolation) = (Some(60), Some(Isolation::None)));
    let entry = json!({"agent": "Slow", "task": "t", "label": "l", "model": "large", "cwd": "src", "isolation": "none",
        "max_input_tokens": u64::MAX, "max_output_tokens": u64::MAX});
    let plan = world.accept(entry).plan;
    assert_eq!(
        json!({"lineage": plan.lineage, "model": plan.model, "bounds": plan.bounds, "grants": plan.grants}),
        json!({
            "lineage": {
                "identity": {"subagent": {"agent": "slow", "task_id": "t_01"}}, "caller": "orchestrator", "depth": 1,
            },
            "model": {"provider": "acme", "id": "large-1"},
            "bounds": {"max_turns": 10, "budget": {
                "max_input_tokens": u64::MAX, "max_output_tokens": u64::MAX, "timeout_s": 60,
            }},
            "grants": {"tools": [], "root": "/project", "cwd": "src", "isolation": "none", "depth_left": 0},
        })
    );
    assert_eq!(
        json!({"label": plan.assignment.label, "receipt": plan.receipt, "warnings": plan.warnings}),
        json!({
            "label": "l",
            "receipt": {
                "agent": {"requested": "Slow", "resolved": "slow", "how": "folded", "source": "bundled"},
                "model": {"requested": "large", "effective": "acme:large-1", "why": "named by the call"},
                "tools": {"requested": [], "effective": [], "dropped": []},
                "max_turns": 10, "isolation": "none", "sandbox": null, "mcp_servers": [],
                "origins": {
                    "model": {"from": "call"}, "tools": {"from": "agent (bundled)"},
                    "max_turns": {"effective": 10, "from": "built-in"},
                    "isolation": {"requested": "none", "effective": "none", "from": "call"},
                    "mcp_servers": {"effective": [], "from": "built-in"},
                    "timeout": {"requested": 60, "effective": 60, "from": "agent (bundled)"},
                },
            },
            "warnings": [],
        })
    );
    assert_eq!(world.accept(json!({"agent": "slow", "task": "t", "timeout": 5})).plan.bounds.budget.timeout_s, Some(5));
}
