//! A provider that limits how often it is asked, and a crowd of tasks that share it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use locum::Limits;
use locum::models::{BoxFuture, Deltas, Model, ModelError, Prefix};
use locum::transcript::{Prompt, Reply, Stop};
use locum_core::task::event::FailureKind;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::stage::{ask, builder, check, pass, spawn, status};

/// A provider that takes so many calls in every second, and says when the next second begins.
#[derive(Clone)]
struct Limited {
    per_second: u32,
    second: Arc<Mutex<(Instant, u32)>>,
}

impl Limited {
    fn new(per_second: u32) -> Self {
        Self { per_second, second: Arc::new(Mutex::new((Instant::now(), 0))) }
    }

    fn take(&self) -> Result<(), ModelError> {
        let mut second = self.second.lock().unwrap();
        if second.0.elapsed() >= Duration::from_secs(1) {
            *second = (Instant::now(), 0);
        }
        second.1 += 1;
        if second.1 <= self.per_second {
            return Ok(());
        }
        let retry_after = Some(Duration::from_secs(1).saturating_sub(second.0.elapsed()));
        Err(ModelError { retry_after, ..ModelError::new(FailureKind::RateLimit, "too many requests") })
    }
}

impl Model for Limited {
    fn respond<'a>(
        &'a self,
        _: &'a Prompt<'a>,
        _: &'a mut Prefix,
        _: &'a mut Deltas<'a>,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            self.take()?;
            tokio::time::sleep(Duration::from_millis(300)).await;
            let tokens = locum_core::usage::TokenCount::default();
            Ok(Reply { text: "Done.".to_owned(), tool_calls: Vec::new(), stop: Stop::End, tokens, opaque: None })
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_thousand_tasks_of_one_process_share_a_limit_of_fifty_a_second_and_all_complete() {
    let limits = Limits { max_running: 1000, max_spawns: 1000, ..Limits::default() };
    let desk = builder(Limited::new(50)).limits(limits).build().unwrap();
    let started = Instant::now();
    let tasks: Vec<Value> = (0..1000).map(|n| json!({"agent": "ann", "task": format!("number {n}")})).collect();
    let answer = ask(&desk, json!({"action": "parallel", "tasks": tasks})).await;
    check(&answer, &json!({"completed": 1000, "failed": 0, "stalled": 0}));
    let took = started.elapsed().as_secs_f64();
    assert!(took <= 1000.0 / 50.0 / 0.9, "{took} s, and 20 would be the least");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_waits_because_of_another_says_so_does_not_stall_and_ends_at_once_when_cancelled() {
    let patience =
        locum::Patience { startup_ms: 1_000, inactivity_ms: 1_000, tool_ms: 1_000, ..locum::Patience::default() };
    let desk = builder(Limited::new(0)).patience(patience).build().unwrap();
    let first = spawn(&desk, "ann", "Ask.").await;
    pass(0.5).await;
    let second = spawn(&desk, "bob", "Ask too.").await;
    pass(0.1).await;
    for id in [&first, &second] {
        let expected = json!({"status": "running", "activity": "turn 1: waiting for cast: rate limit, 1 s"});
        check(&status(&desk, id).await, &expected);
    }
    let before = Instant::now();
    let cancelled = ask(&desk, json!({"action": "cancel", "task_id": second})).await;
    check(&cancelled, &json!({"status": "cancelled", "receipt": {"confirmed": true}}));
    assert_eq!(before.elapsed(), Duration::ZERO);
    pass(20.0).await;
    check(&status(&desk, &first).await, &json!({"status": "failed", "reason": "model"}));
}
