//! Who is waited for, and for how long: slow work is not silence, and silence is found.

use std::sync::Arc;
use std::time::Duration;

use locum::models::scripted::{Say, Scripted};
use locum::models::{BoxFuture, Delta, Deltas, Model, ModelError, Prefix};
use locum::transcript::{Message, Prompt, Repeat, Reply, Stop, ToolCall, ToolOutput};
use locum::usage::TokenCount;
use locum_core::task::event::FailureKind;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::cast::{Narrowed, Witness};
use crate::stage::{agent, ask, ask_as_person, builder, check, collect, desk, pass, spawn, status, tool};

/// The longest silence that is none.
const MODEL_S: f64 = 179.9;
const TOOL_S: f64 = 599.9;

/// A model that is as slow as it may be, differently each time: it pings, writes a word at a time, calls a tool that
/// takes long, fails in between, and answers in the end.
struct Slow;

impl Model for Slow {
    fn respond<'a>(
        &'a self,
        prompt: &'a Prompt<'a>,
        _prefix: &'a mut Prefix,
        deltas: &'a mut Deltas<'a>,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            let mut random =
                fastrand::Rng::with_seed(prompt.task.parse::<u64>().unwrap() * 100 + u64::from(prompt.call));
            for _ in 0..random.u32(0..6) {
                pass(random.f64() * MODEL_S).await;
                deltas(if random.bool() { Delta::Alive } else { Delta::Text("word ") });
            }
            pass(MODEL_S).await;
            if random.u8(0..10) == 0 {
                return Err(ModelError::new(FailureKind::Server, "not now"));
            }
            let answered = prompt.messages.iter().filter(|message| matches!(message, Message::Tool { .. })).count();
            let call = ToolCall { id: format!("c{answered}"), name: "dig".to_owned(), input: json!({}) };
            let tool_calls = if answered < 2 { vec![call] } else { Vec::new() };
            Ok(Reply {
                text: "done".to_owned(),
                stop: if tool_calls.is_empty() { Stop::End } else { Stop::ToolUse },
                tool_calls,
                tokens: TokenCount::default(),
                opaque: None,
            })
        })
    }
}

#[tokio::test(start_paused = true)]
async fn two_hundred_slow_tasks_are_all_waited_for() {
    let dig = tool("dig", Repeat::Safe, |_, _| async {
        pass(TOOL_S).await;
        Ok(ToolOutput::ok("dug"))
    });
    let desk = builder(Slow).tool(dig).agent(agent("eve", &["dig"])).build().unwrap();
    let entries: Vec<Value> = (0..200).map(|seed| json!({"agent": "eve", "task": seed.to_string()})).collect();
    let answer = ask_as_person(&desk, Some(50), json!({"action": "parallel", "tasks": entries})).await;
    check(&answer, &json!({"completed": 200, "failed": 0, "stalled": 0}));
}

/// A model that answers when it is told to.
struct Told(Arc<Notify>);

impl Model for Told {
    fn respond<'a>(
        &'a self,
        _prompt: &'a Prompt<'a>,
        _prefix: &'a mut Prefix,
        _deltas: &'a mut Deltas<'a>,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            self.0.notified().await;
            let text = "Back.".to_owned();
            Ok(Reply { text, tool_calls: Vec::new(), stop: Stop::End, tokens: TokenCount::default(), opaque: None })
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_slept_stalls_nobody() {
    let notify = Arc::new(Notify::new());
    let desk = desk(Told(Arc::clone(&notify)));
    let id = spawn(&desk, "ann", "Wait.").await;
    pass(100.0).await;
    tokio::time::advance(Duration::from_secs(7_200)).await;
    pass(60.0).await;
    check(&status(&desk, &id).await, &json!({"status": "running"}));
    notify.notify_one();
    check(&collect(&desk, &id).await, &json!({"status": "completed", "result": "Back."}));
}

#[tokio::test(start_paused = true)]
async fn what_stalls_in_a_parallel_is_tried_once_more_alone_and_with_less_to_do() {
    let script = Scripted::new().agent("ann", [Say::text("fine")]).agent("bob", [Say::hang()]);
    let model = Witness::new(script);
    let act = tool("act", Repeat::Unsafe, |_, _| async { Ok(ToolOutput::ok("acted")) });
    let eve = [Say::calls([("act", json!({}))]), Say::hang()];
    let both = Witness::new(Scripted::new().agent("eve", eve).agent("bob", [Say::hang()]));
    let parallel = |agents: &[&str]| {
        let entry = |name: &&str| json!({"agent": name, "task": "Go."});
        json!({"action": "parallel", "tasks": agents.iter().map(entry).collect::<Vec<_>>()})
    };

    let desk = builder(model.clone()).build().unwrap();
    let answer = ask(&desk, parallel(&["ann", "bob"])).await;
    check(&answer, &json!({"completed": 1, "stalled": 1}));
    let warnings = answer["results"][1]["warnings"].to_string();
    assert!(warnings.contains("t_02 stalled; t_03 tried it once more"), "{warnings}");
    assert!(warnings.contains("split the task into smaller ones"), "{warnings}");
    let asked = model.asked();
    assert_eq!(asked.len(), 3, "once more, and no more");
    assert!(asked[2].task().starts_with("Go.") && asked[2].task().contains("Narrow its scope"), "{}", asked[2].task());
    check(&answer["results"][1], &json!({"task_id": "t_03", "receipt": {"model": {"requested": "cast"}}}));

    // Whoever has acted is not tried again.
    let desk = builder(both.clone()).tool(act).agent(agent("eve", &["act"])).build().unwrap();
    let answer = ask(&desk, parallel(&["eve"])).await;
    check(&answer, &json!({"stalled": 1, "results": [{"task_id": "t_01"}]}));
    assert!(answer["results"][0]["warnings"].to_string().contains("must not be done twice"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_second_attempt_that_answers_counts_as_completed() {
    let desk = desk(Narrowed);
    let answer = ask(&desk, json!({"action": "parallel", "tasks": [{"agent": "ann", "task": "Go."}]})).await;
    check(&answer, &json!({"completed": 1, "stalled": 0, "results": [{"task_id": "t_02", "result": "Answered."}]}));
}
