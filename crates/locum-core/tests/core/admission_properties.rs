//! Admission under random orders: ids, places and widths hold whatever is asked.

use std::collections::HashSet;

use locum_core::admission::{Admitted, Order};
use locum_core::permission::{Permissions, Rule, Subject, Verdict};
use locum_core::protocol::{Code, SpawnEntry};
use locum_core::task::plan::Among;
use proptest::prelude::{Strategy, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::sample::select;
use proptest::strategy::Just;

use crate::world::{World, uid};

const NAMES: [&str; 9] =
    ["read", "grep", "find", "think", "shared_context", "write", "bash", "subagent", "no_such_tool"];

fn orders() -> impl Strategy<Value = Vec<Order>> {
    let agent = select(vec!["reader", "worker", "Reader", "nobody"]);
    let task = prop_oneof![9 => Just("t".to_owned()), 1 => Just(String::new()), 1 => Just("x".repeat(4001))];
    let key = prop_oneof![3 => Just(None), 1 => select(vec!["k", "l"]).prop_map(|key| Some(key.to_owned()))];
    let after = prop_oneof![3 => Just(None), 1 => any::<prop::sample::Index>().prop_map(Some)];
    let flags = (any::<bool>(), prop_oneof![4 => Just(false), 1 => Just(true)]);
    let order = (agent, task, key, after, flags).prop_map(|(agent, task, key, after, (queue, in_group))| {
        let entry = SpawnEntry { agent: agent.into(), task, idempotency_key: key, ..SpawnEntry::default() };
        let among = if in_group { Among::Group(uid(1)) } else { Among::Session };
        (
            Order { entry, uid: uid(1), after: None, queue, among, running_max: 5, race: None, lacks_directory: false },
            after,
        )
    });
    prop::collection::vec(order, 1..20).prop_map(|orders| {
        let place = |(place, (mut order, after)): (usize, (Order, Option<prop::sample::Index>))| {
            order.after = after.filter(|_| place > 0).map(|index| index.index(place));
            order
        };
        orders.into_iter().enumerate().map(place).collect()
    })
}

proptest! {
    #[test]
    fn ids_are_consecutive_and_places_are_kept(
        orders in orders(),
        running in 0u32..7,
        spawned in 0u32..60,
        next_task in 1u32..1000,
    ) {
        let mut world = World::new();
        (world.view.running, world.view.spawned, world.view.next_task) = (running, spawned, next_task);
        let mut expected_id = next_task;
        let mut running_now = running;
        let mut keys = HashSet::new();
        for (order, verdict) in orders.iter().zip(world.admit(&orders)) {
            match verdict {
                Ok(Admitted::New(acceptance)) => {
                    prop_assert_eq!(acceptance.plan.task_id.number(), expected_id);
                    expected_id += 1;
                    prop_assert!(spawned + (expected_id - next_task) <= 50);
                    let runs = acceptance.parked.is_none();
                    prop_assert!(!runs || order.among != Among::Session || running_now < 5);
                    prop_assert!(!runs || acceptance.plan.start.depends_on.is_empty());
                    running_now += u32::from(runs);
                    prop_assert!(acceptance.plan.start.depends_on.iter().all(|id| id.number() < expected_id - 1));
                    if let Some((key, _)) = acceptance.idempotency {
                        prop_assert!(keys.insert(key), "a key has one task");
                    }
                }
                Ok(Admitted::Same(same)) => {
                    prop_assert!(keys.contains(order.entry.idempotency_key.as_ref().unwrap()));
                    prop_assert!((next_task..expected_id).contains(&same.task_id.number()));
                }
                Err(refusal) => prop_assert!(refusal.code != Code::Internal, "{refusal}"),
            }
        }
    }

    #[test]
    fn a_child_is_never_wider_than_its_parent(
        parent_tools in prop::collection::vec(select(NAMES.to_vec()), 0..9),
        child_tools in prop::option::of(prop::collection::vec(select(NAMES.to_vec()), 0..9)),
        depth_left in 0u32..6,
        max_depth in 0u32..9,
    ) {
        let mut world = World::new();
        world.limits.max_depth = Some(max_depth);
        world.called_by_task(&parent_tools, depth_left);
        world.add("child", |agent| {
            agent.tools = child_tools.map(|tools| tools.iter().map(|tool| (*tool).to_owned()).collect());
        });
        let spawned = world.spawn(serde_json::json!({"agent": "child", "task": "t"}));
        prop_assert_eq!(spawned.is_ok(), depth_left > 0);
        if let Ok(Admitted::New(acceptance)) = spawned {
            let plan = acceptance.plan;
            prop_assert_eq!(plan.grants.depth_left, depth_left - 1);
            prop_assert_eq!(plan.lineage.depth, 2);
            let names: Vec<&str> = plan.grants.tools.iter().map(|tool| tool.name.as_str()).collect();
            prop_assert!(names.iter().all(|name| parent_tools.contains(name) && *name != "no_such_tool"));
            prop_assert!(!names.contains(&"subagent") || plan.grants.depth_left > 0);
            prop_assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len(), "each tool once");
        }
    }

    #[test]
    fn a_child_may_do_nothing_that_its_parent_may_not(
        parent in permissions(),
        settings in permissions(),
        scope in prop::option::of(prop::collection::vec(select(GLOBS.to_vec()), 0..3)),
        tool in select(vec!["write", "edit", "read", "bash", "web_fetch"]),
        about in select(SUBJECTS.to_vec()),
    ) {
        let mut world = World::new();
        world.called_by_task(&["read"], 1);
        world.caller.parent.as_mut().unwrap().permissions = parent.clone();
        world.permissions = settings;
        world.add("child", |agent| {
            agent.locum.write_scope = scope.map(|globs| globs.into_iter().map(str::to_owned).collect());
        });
        let Ok(Admitted::New(acceptance)) = world.spawn(serde_json::json!({"agent": "child", "task": "t"})) else {
            panic!("not admitted");
        };
        let child = acceptance.plan.grants.permissions.clone();
        for subject in [Subject::Path(about.into()), Subject::Command(about.into()), Subject::Nothing] {
            let (above, below) = (strictness(&parent.judge(tool, &subject)), strictness(&child.judge(tool, &subject)));
            prop_assert!(below >= above, "{} {:?}: {:?} under {:?}", tool, subject, child, parent);
        }
    }
}

const GLOBS: [&str; 8] = ["src/**", "src", "*.md", "**/*.rs", ".git/config", "**", "docs/*", "rm *"];
const SUBJECTS: [&str; 7] = ["src/a.rs", "README.md", ".git/config", "docs/x", "rm -rf x", "ls; rm x", ".bashrc"];

fn permissions() -> impl Strategy<Value = Permissions> {
    let effect = select(vec!["allow", "ask", "deny"]);
    let tool = select(vec!["write", "edit", "read", "bash", "*"]);
    let rule = (effect, tool, prop::option::of(select(GLOBS.to_vec()))).prop_map(|(effect, tool, glob)| {
        let text = glob.map_or_else(|| format!("{effect} {tool}"), |glob| format!("{effect} {tool}({glob})"));
        Rule::parse(&text).unwrap()
    });
    let scope = prop::collection::vec(select(GLOBS.to_vec()).prop_map(str::to_owned), 0..3);
    let rules = prop::collection::vec(prop::collection::vec(rule, 0..4), 0..3);
    (rules, prop::collection::vec(scope, 0..2)).prop_map(|(rules, write_scopes)| Permissions {
        rules,
        write_scopes,
        ..Permissions::default()
    })
}

fn strictness(verdict: &Verdict) -> u8 {
    match verdict {
        Verdict::Allowed => 0,
        Verdict::Ask { .. } => 1,
        Verdict::Denied { .. } => 2,
    }
}
