//! A request that breaks two rules is refused for the one that is checked first.

use locum_core::session::{IdempotentTask, KnownTask};
use locum_core::task::Status;
use serde_json::{Map, Value, json};

use crate::admission::line;
use crate::world::{World, agent_name, uid};

/// One way to break one rule: fields of the request, and a change of the world.
type Rule = (&'static str, Value, fn(&mut World));

fn nothing(_: &mut World) {}

fn no_program(world: &mut World) {
    world.processes = locum_core::admission::Processes::NoProgram;
}

fn take_key(world: &mut World) {
    let known = KnownTask { uid: uid(1), agent: agent_name("reader"), status: Status::Running, collected: false };
    let task_id = locum_core::ids::TaskId::new(1);
    world.view.idempotent.insert("k".to_owned(), IdempotentTask { fingerprint: 0, task_id, known });
}

/// Each pair of rules is broken at once; the message must be that of the earlier.
fn check(rules: &[Rule], valid: &Value, refuse: fn(&mut World, Value) -> String) {
    let input_of = |broken: &[&Rule]| {
        let mut world = World::new();
        let mut input: Map<String, Value> = valid.as_object().unwrap().clone();
        // The earlier rule's fields stand where both set the same.
        for (_, fields, change) in broken.iter().rev() {
            input.extend(fields.as_object().unwrap().clone());
            change(&mut world);
        }
        refuse(&mut world, Value::Object(input))
    };
    for (place, first) in rules.iter().enumerate() {
        assert!(input_of(&[first]).starts_with(first.0), "{} alone: {}", first.0, input_of(&[first]));
        for second in &rules[place + 1..] {
            let refusal = input_of(&[first, second]);
            assert!(refusal.starts_with(first.0), "{} before {}: {refusal}", first.0, second.0);
        }
    }
}

#[test]
fn of_spawn() {
    let rules: [Rule; 11] = [
        ("SESSION_ARCHIVED", json!({}), |world| world.view.archived = true),
        ("INVALID_REQUEST", json!({"timeout": 0}), nothing),
        ("IDEMPOTENCY_CONFLICT", json!({"idempotency_key": "k"}), take_key),
        ("TASK_TOO_LARGE", json!({"task": "x".repeat(4001)}), nothing),
        ("AGENT_NOT_FOUND", json!({"agent": "nobody"}), nothing),
        ("TASK_NOT_FOUND", json!({"depends_on": ["t_99"]}), nothing),
        ("DEPTH_EXCEEDED", json!({}), |world| world.limits.max_depth = Some(0)),
        ("SPAWN_LIMIT_EXCEEDED", json!({}), |world| world.view.spawned = 50),
        ("MAX_TASKS_EXCEEDED", json!({}), |world| world.view.running = 5),
        ("BUDGET_EXCEEDED", json!({"max_input_tokens": 1}), nothing),
        ("MODEL_NOT_FOUND", json!({"model": "nothing"}), nothing),
    ];
    let valid = json!({"agent": "reader", "task": "t"});
    check(&rules, &valid, |world, input| line(world.spawn(input)));
    let last: [Rule; 2] = [rules[10].clone(), ("ISOLATION_FAILED", json!({"isolation": "process"}), no_program)];
    check(&last, &valid, |world, input| line(world.spawn(input)));
}

#[test]
fn of_define() {
    let rules: [Rule; 7] = [
        ("SESSION_ARCHIVED", json!({}), |world| world.view.archived = true),
        ("INVALID_REQUEST", json!({"description": ""}), nothing),
        ("INVALID_AGENT_NAME", json!({"name": "No Name"}), nothing),
        ("PROMPT_TOO_LARGE", json!({"system_prompt": "x".repeat(16_001)}), nothing),
        ("INVALID_TOOL", json!({"tools": ["fly"]}), nothing),
        ("MODEL_NOT_FOUND", json!({"model": "nothing"}), nothing),
        ("AGENT_ALREADY_EXISTS", json!({}), |world| world.add("new", |_| {})),
    ];
    let valid = json!({"name": "new", "description": "d", "system_prompt": "p"});
    check(&rules, &valid, |world, input| line(world.define(input)));
}
