//! Tasks that start tasks that spend: random trees, storms below a command, and what the task at the top keeps. What
//! writes much to a disk runs on the real clock: a paused one would pass while the disk is waited for.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};

use locum::models::scripted::{Say, Scripted};
use locum::models::{BoxFuture, Deltas, Model, ModelError, Prefix};
use locum::store::Store;
use locum::transcript::{Prompt, Repeat, Reply, Stop, ToolCall, ToolUse};
use locum::usage::TokenCount;
use locum::{AgentSpec, Limits};
use serde_json::{Value, json};

use crate::budgets::{PRICE, cents, costing, look, stores};
use crate::cast::Witness;
use crate::stage::{Ledger, agent, ask, ask_as_person, builder, check, noting_tool, run};

/// What the calls of each task cost, in cents, by the name of the task.
type Bills = Arc<Mutex<BTreeMap<String, Vec<f64>>>>;

/// A model that delegates, looks or answers by chance, and takes what it likes. What it does depends on nothing but the
/// seed, the task and the number of the call. Tasks are named after those that started them: `a`, `a.1`, `a.1.2`.
struct Gambler {
    seed: u64,
    bills: Bills,
}

impl Gambler {
    fn reply(&self, prompt: &Prompt<'_>) -> Reply {
        let mut hasher = DefaultHasher::new();
        (self.seed, prompt.task, prompt.call).hash(&mut hasher);
        let mut chance = fastrand::Rng::with_seed(hasher.finish());
        let output = chance.u64(0..20_000);
        // A cent for a thousand.
        let cost = output as f64 / 1000.0;
        self.bills.lock().unwrap().entry(prompt.task.to_owned()).or_default().push(cost);
        let has = |name: &str| prompt.tools.iter().any(|tool| tool.name == name);
        let (name, input) = match chance.u8(0..10) {
            0..5 if has("subagent") => {
                let below =
                    |number: u8| json!({"agent": "lead", "task": format!("{}.{}{number}", prompt.task, prompt.call)});
                let tasks: Vec<Value> = (0..chance.u8(1..4)).map(below).collect();
                ("subagent", json!({"action": "parallel", "tasks": tasks}))
            }
            _ => ("look", json!({})),
        };
        let ends = prompt.tool_use == ToolUse::Forbidden || chance.u8(0..10) == 0;
        let call = ToolCall { id: "c".to_owned(), name: name.to_owned(), input };
        Reply {
            text: "So far.".to_owned(),
            tool_calls: if ends { Vec::new() } else { vec![call] },
            stop: Stop::End,
            tokens: TokenCount { input: 1, output, ..TokenCount::default() },
            opaque: None,
        }
    }
}

impl Model for Gambler {
    fn respond<'a>(
        &'a self,
        prompt: &'a Prompt<'a>,
        _: &'a mut Prefix,
        _: &'a mut Deltas<'a>,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            // Long enough that others are asked meanwhile.
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            Ok(self.reply(prompt))
        })
    }
}

/// Lets three tasks loose with these limits on a task and on their session, in dollars; what everything cost.
async fn gamble(
    seed: u64,
    store: Arc<dyn Store>,
    task: Option<f64>,
    session: Option<f64>,
) -> BTreeMap<String, Vec<f64>> {
    let bills = Bills::default();
    let limits = Limits {
        max_cost_usd: task,
        session_cost_usd: session,
        max_depth: Some(3),
        max_running: 100,
        max_spawns: 60,
        ..Limits::default()
    };
    let desk = builder(Gambler { seed, bills: Arc::clone(&bills) })
        .price("cast", PRICE)
        .store(store)
        .tool(noting_tool("look", Repeat::Safe, &Ledger::default()))
        .agent(AgentSpec { max_turns: Some(6), ..agent("lead", &["look", "subagent"]) })
        .limits(limits)
        .build()
        .unwrap();
    let tasks = ["a", "b", "c"].map(|task| json!({"agent": "lead", "task": task}));
    let answer = ask(&desk, json!({"action": "parallel", "tasks": tasks})).await;
    assert_eq!(answer["results"].as_array().map(Vec::len), Some(3), "{answer}");
    desk.close().await.unwrap();
    bills.lock().unwrap().clone()
}

/// What a limit in cents was passed by, beyond one request of each task, by those whose names begin so.
fn passed(bills: &BTreeMap<String, Vec<f64>>, top: &str, limit: f64) -> f64 {
    let below = |task: &&String| top.is_empty() || *task == top || task.starts_with(&format!("{top}."));
    let (mut spent, mut dearest) = (0.0, 0.0);
    for task in bills.keys().filter(below) {
        spent += bills[task].iter().sum::<f64>();
        dearest += bills[task].iter().copied().fold(0.0, f64::max);
    }
    spent - limit - dearest
}

#[tokio::test]
async fn no_tree_of_tasks_spends_more_than_its_limits_and_one_request_of_each() {
    let mut sizes = BTreeSet::new();
    let mut unbounded: f64 = 0.0;
    for seed in 0..8 {
        for store in stores() {
            let bills = gamble(seed, store, Some(1.0), Some(1.5)).await;
            sizes.insert(bills.len());
            assert!(passed(&bills, "", 150.0) < 0.001, "seed {seed}, the session: {bills:?}");
            for task in bills.keys() {
                assert!(passed(&bills, task, 100.0) < 0.001, "seed {seed}, {task}: {bills:?}");
            }
        }
        let [memory, _] = stores().try_into().unwrap_or_else(|_| panic!("two stores"));
        unbounded = unbounded.max(passed(&gamble(seed, memory, None, None).await, "", 150.0));
    }
    assert!(sizes.len() > 2, "trees of several sizes: {sizes:?}");
    assert!(unbounded > 0.0, "without limits they spend more");
}

/// Fifty tasks may be started by models below one command, whatever was started before or elsewhere.
#[tokio::test(start_paused = true)]
async fn a_storm_below_a_command_ends_at_its_limit_and_what_a_person_types_is_not_counted() {
    let helper = || ("subagent", json!({"action": "run", "agent": "ann", "task": "Help."}));
    let storm = |calls: usize| Say::calls((0..calls).map(|_| helper()));
    let lead = vec![storm(30), storm(30), Say::text("Done.")];
    let model = Witness::new(Scripted::new().agent("lead", lead).agent("ann", [Say::text("Helped.")]));
    let desk = builder(model.clone())
        .agent(agent("lead", &["subagent"]))
        .limits(Limits { max_depth: Some(2), ..Limits::default() })
        .build()
        .unwrap();
    let helped = || model.asked().iter().filter(|asked| asked.agent == "ann").count();
    let person = |agent: &str| ask_as_person(&desk, None, json!({"action": "run", "agent": agent, "task": "Go."}));
    for _ in 0..55 {
        check(&person("ann").await, &json!({"status": "completed"}));
    }
    for command in 1..=2 {
        check(&person("lead").await, &json!({"status": "completed", "result": "Done."}));
        assert_eq!(helped(), 55 + 50 * command);
    }
    let refused = model.asked().last().unwrap().tool_answers();
    let told = refused.iter().filter(|answer| answer.contains("SPAWN_LIMIT_EXCEEDED")).count();
    assert_eq!((refused.len(), told), (30, 10), "{refused:?}");
    assert!(refused[29].contains("the command has started 50 tasks; 50 are allowed"), "{}", refused[29]);
    // The model that orchestrates has all of its own fifty still.
    for _ in 0..50 {
        check(&run(&desk, "ann", "Go.").await, &json!({"status": "completed"}));
    }
    let message = "the session has started 50 tasks; 50 are allowed";
    check(&run(&desk, "ann", "Go.").await, &json!({"error": "SPAWN_LIMIT_EXCEEDED", "message": message}));
    check(&person("ann").await, &json!({"status": "completed"}));
}

#[tokio::test]
async fn a_tenth_is_kept_for_the_answer_of_the_task_that_delegates() {
    for store in stores() {
        let delegate = Say::calls([("subagent", json!({"action": "run", "agent": "spender", "task": "Help."}))]);
        let lead = [costing(delegate, 4), costing(Say::text("Done."), 4)];
        let helper = (0..30).map(|_| costing(look(), 4));
        let model = Witness::new(Scripted::new().agent("lead", lead).agent("spender", helper));
        let desk = builder(model.clone())
            .price("cast", PRICE)
            .store(store)
            .tool(noting_tool("look", Repeat::Safe, &Ledger::default()))
            .agent(AgentSpec { max_turns: Some(25), ..agent("spender", &["look"]) })
            .agent(agent("lead", &["subagent", "look"]))
            .limits(Limits { max_depth: Some(2), max_cost_usd: Some(0.8), ..Limits::default() })
            .build()
            .unwrap();
        let answer = run(&desk, "lead", "Lead.").await;
        check(&answer, &json!({"status": "completed", "result": "Done."}));
        assert_eq!(cents(&answer), 8.0);
        let asked = model.asked();
        let helped = asked.iter().filter(|asked| asked.agent == "spender").count();
        // Four cents of the lead and seventeen calls are 72: a tenth below 80.
        assert_eq!(helped, 17, "{asked:?}");
        assert!(asked[0].agent == "lead" && asked.last().is_some_and(|last| last.agent == "lead"));
    }
}
