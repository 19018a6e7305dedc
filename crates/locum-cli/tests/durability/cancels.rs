//! Trees of tasks, with commands and worker processes, cancelled at random moments: the receipt is true, nothing is
//! alive, and nothing is called afterwards.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use locum::models::model::Deltas;
use locum::models::{BoxFuture, Model, ModelError, Prefix};
use locum::sandbox::{Level, Sandbox};
use locum::settings::Places;
use locum::settings::environment::Environment;
use locum::transcript::{Prompt, Reply, Stop, ToolCall};
use locum::usage::TokenCount;
use locum::{AgentName, AgentSpec, Desk, Limits};
use serde_json::{Value, json};

/// Trees of one campaign.
const TREES: u64 = 50;

/// Does what the task says, which is a tree: starts what is below it and its commands, then waits for ever or answers.
#[derive(Default)]
struct Trees {
    calls: AtomicUsize,
}

impl Model for Trees {
    fn respond<'a>(
        &'a self,
        prompt: &'a Prompt<'a>,
        _prefix: &'a mut Prefix,
        _deltas: &'a mut Deltas<'a>,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let node: Value = serde_json::from_str(prompt.task).unwrap();
        let is_first = prompt.call == 0;
        Box::pin(async move {
            let calls: Vec<Value> = node["calls"].as_array().cloned().unwrap_or_default();
            let calls = calls.into_iter().enumerate().map(|(place, call)| ToolCall {
                id: format!("c{place}"),
                name: call["name"].as_str().unwrap().to_owned(),
                input: call["input"].clone(),
            });
            let tool_calls: Vec<ToolCall> = if is_first { calls.collect() } else { Vec::new() };
            if tool_calls.is_empty() && node["hangs"] == true {
                std::future::pending::<()>().await;
            }
            let stop = if tool_calls.is_empty() { Stop::End } else { Stop::ToolUse };
            Ok(Reply { text: "So far.".to_owned(), tool_calls, stop, tokens: TokenCount::default(), opaque: None })
        })
    }
}

/// A random tree of at most this depth. Its commands can be told by a number that nobody else sleeps for.
fn tree(random: &mut fastrand::Rng, depth: u32, marker: &str) -> Value {
    let mut calls = Vec::new();
    for _ in 0..if depth > 1 { random.usize(0..3) } else { 0 } {
        let below = tree(random, depth - 1, marker);
        let isolation = if random.u8(0..3) == 0 { "process" } else { "none" };
        let action = if random.u8(0..4) == 0 { "run" } else { "spawn" };
        let input = json!({"action": action, "agent": "node", "task": below.to_string(), "isolation": isolation});
        calls.push(json!({"name": "subagent", "input": input}));
    }
    let sleep = match random.u8(0..40) {
        // One that does not listen; its shell stays, so that there are two of them.
        0 => format!("trap '' TERM; sleep {marker}; true"),
        1..20 => format!("sleep {marker}; true"),
        _ => format!("exec sleep {marker}"),
    };
    for background in [true, false] {
        if random.u8(0..3) == 0 {
            calls.push(json!({"name": "bash", "input": {"command": sleep, "background": background}}));
        }
    }
    random.shuffle(&mut calls);
    json!({"calls": calls, "hangs": random.u8(0..5) > 0})
}

fn desk(home: &std::path::Path, model: &Arc<Trees>) -> Desk {
    let program = env!("CARGO_BIN_EXE_locum");
    let project = home.join("project");
    fs::create_dir_all(&project).unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let environment = Environment::new([("PATH".to_owned(), path)], project.clone());
    let sandbox = Sandbox::new(Level::None, &environment, &Places::below(&home.join("own"))).launcher(program);
    let mut node = AgentSpec::new(AgentName::parse("node").unwrap(), "A node", "You are a node.");
    node.tools = Some(["bash", "job", "subagent"].map(str::to_owned).to_vec());
    let limits = Limits { max_running: 100, max_spawns: 1000, max_depth: Some(3), ..Limits::default() };
    Desk::builder()
        .standard_tools()
        .root(project)
        .agent(node)
        .model("trees", Arc::clone(model) as Arc<dyn Model>)
        .limits(limits)
        .sandbox(sandbox)
        .worker_program(program)
        .build()
        .unwrap()
}

/// The processes whose arguments have this among them, besides zombies.
fn with_argument(wanted: &str, parent: Option<u32>) -> Vec<u32> {
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let arguments = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let Some((_, rest)) = stat.rsplit_once(") ") else { return false };
        let mut fields = rest.split(' ');
        let is_there = fields.next().is_some_and(|state| state != "Z" && state != "X");
        let is_below = parent.is_none_or(|parent| fields.next() == Some(&parent.to_string()));
        is_there && is_below && arguments.contains(wanted)
    })
    .collect()
}

async fn ask(desk: &Desk, input: Value) -> Value {
    match desk.call("subagent", input).await {
        Ok(answer) => serde_json::to_value(answer).unwrap(),
        Err(refusal) => panic!("{refusal:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trees_that_are_cancelled_are_gone_when_the_receipt_says_so() {
    let seed = fastrand::u64(..1_000_000);
    println!("seed {seed}");
    let mut models = Vec::new();
    let (mut tasks, mut processes) = (0, 0);
    for number in 0..TREES {
        let mut random = fastrand::Rng::with_seed(seed + number);
        let home = tempfile::tempdir().unwrap();
        let marker = format!("600.{}{number:02}", std::process::id());
        let model = Arc::new(Trees::default());
        let desk = desk(home.path(), &model);
        let (root, isolation) = (tree(&mut random, 3, &marker), ["none", "process"][random.usize(0..2)]);
        let task = root.to_string();
        let spawned =
            ask(&desk, json!({"action": "spawn", "agent": "node", "task": task, "isolation": isolation})).await;
        assert_eq!(spawned["task_id"], "t_01", "{spawned}");
        // Not a wait for anything: any moment will do.
        tokio::time::sleep(Duration::from_millis(random.u64(0..500))).await;

        let started = Instant::now();
        let answer = ask(&desk, json!({"action": "cancel", "task_id": "t_01"})).await;
        let calls = model.calls.load(Ordering::SeqCst);
        let (sleeping, workers) = (with_argument(&marker, None), with_argument("__worker", Some(std::process::id())));
        let place = format!("seed {seed}, tree {number}: {root}\n{answer}");
        // Ten seconds are promised; the rest is what a busy machine takes to say so.
        assert!(started.elapsed() < Duration::from_secs(12), "{:?}, {place}", started.elapsed());
        let receipt = &answer["receipt"];
        assert_eq!(receipt["confirmed"], true, "{place}");
        assert_eq!((sleeping, workers), (Vec::new(), Vec::new()), "{place}");
        let told = receipt["tasks"].as_array().unwrap();
        assert!(told.iter().all(|task| task["status"] != "running" && task["status"] != "queued"), "{place}");
        let all = ask(&desk, json!({"action": "status"})).await;
        let all = all["tasks"].as_array().unwrap();
        assert!(all.iter().all(|task| task["status"] != "running"), "{all:?}, {place}");
        for process in receipt["processes"].as_array().unwrap() {
            assert_eq!(process["ended"], true, "{place}");
        }
        tasks += told.len();
        processes += receipt["processes"].as_array().unwrap().len();
        models.push((model, calls, desk, home));
    }
    println!("{tasks} tasks and {processes} processes ended");
    for (number, (model, calls, _, _)) in models.iter().enumerate() {
        assert_eq!(
            model.calls.load(Ordering::SeqCst),
            *calls,
            "seed {seed}, tree {number}: nothing is called afterwards"
        );
    }
    assert!(tasks > TREES as usize && processes > 0, "the trees were empty");
}
