//! A model call that fails: which failures are tried again, how often, and how long is waited.

use std::time::Duration;

use locum::models::ModelError;
use locum::models::scripted::{Say, Scripted};
use locum::transcript::Repeat;
use locum_core::task::event::FailureKind;
use serde_json::json;
use tokio::time::Instant;

use crate::cast::{Beat, Speaker, Witness};
use crate::stage::{Ledger, agent, ask, builder, check, collect, desk, noting_tool, pass, run, spawn, status};

const PASSING: [FailureKind; 7] = [
    FailureKind::RateLimit,
    FailureKind::Overloaded,
    FailureKind::Server,
    FailureKind::Network,
    FailureKind::Timeout,
    FailureKind::CutStream,
    FailureKind::Malformed,
];

const LASTING: [FailureKind; 5] = [
    FailureKind::TooLarge,
    FailureKind::Auth,
    FailureKind::BadRequest,
    FailureKind::NotFound,
    FailureKind::ContextOverflow,
];

/// A model whose calls fail so often, and then succeed.
fn failing(kind: FailureKind, times: usize, retry_after: Option<Duration>) -> Witness {
    let error = ModelError { retry_after, ..ModelError::new(kind, "not now") };
    let mut calls = vec![vec![Beat::Fails(error)]; times];
    calls.push(vec![Beat::Says("Here I am."), Beat::Ends]);
    Witness::new(Speaker(calls))
}

#[tokio::test(start_paused = true)]
async fn a_passing_failure_is_tried_five_times_more_and_no_further() {
    for kind in PASSING {
        let model = failing(kind, 5, None);
        let answer = run(&desk(model.clone()), "ann", "Try.").await;
        check(&answer, &json!({"status": "completed", "result": "Here I am.", "turns_used": 1}));
        assert_eq!(model.calls(), 6, "{kind:?}");

        let model = failing(kind, 6, None);
        let answer = run(&desk(model.clone()), "ann", "Try.").await;
        check(&answer, &json!({"status": "failed", "reason": "model", "error": "Model API error: not now"}));
        assert_eq!(model.calls(), 6, "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lasting_failure_is_not_tried_again() {
    for kind in LASTING {
        let model = failing(kind, 1, None);
        let answer = run(&desk(model.clone()), "ann", "Try.").await;
        check(&answer, &json!({"status": "failed", "reason": "model", "error": "Model API error: not now"}));
        assert_eq!(model.calls(), 1, "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn waits_are_jittered_up_to_twice_the_one_before_and_are_in_the_log() {
    let model = failing(FailureKind::Overloaded, 5, None);
    let desk = desk(model.clone());
    run(&desk, "ann", "Try.").await;
    let asked = model.asked();
    let log = desk.log_of("t_01").await.unwrap();
    let logged = log.iter().filter_map(|record| json!(record.event)["retry_in_ms"].as_u64());
    for ((pair, most_ms), logged_ms) in asked.windows(2).zip([500, 1000, 2000, 4000, 8000]).zip(logged) {
        let waited = u64::try_from((pair[1].at - pair[0].at).as_millis()).unwrap();
        assert!(waited <= most_ms + 1, "{waited} ms of at most {most_ms}");
        // Timers go off at whole milliseconds.
        assert!(waited.abs_diff(logged_ms) <= 1, "{waited} ms, and the log says {logged_ms}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_the_api_asks_for_is_kept_unless_it_is_longer_than_anybody_waits() {
    for (asked_s, calls) in [(7, 6), (120, 6), (121, 1)] {
        let model = failing(FailureKind::RateLimit, 5, Some(Duration::from_secs(asked_s)));
        let started = Instant::now();
        let desk = desk(model.clone());
        let id = spawn(&desk, "ann", "Try.").await;
        let answer = collect(&desk, &id).await;
        assert_eq!(model.calls(), calls, "{answer}");
        assert_eq!(started.elapsed().as_secs(), if calls == 6 { asked_s * 5 } else { 0 });
    }
}

#[tokio::test(start_paused = true)]
async fn failures_are_counted_anew_after_every_answer() {
    let fails = || Say::error(FailureKind::Server, "not now");
    let mut replies: Vec<Say> = std::iter::repeat_with(fails).take(5).collect();
    replies.push(Say::calls([("look", json!({}))]));
    replies.extend(std::iter::repeat_with(fails).take(5));
    replies.push(Say::text("Seen."));
    let model = Witness::new(Scripted::new().agent("eve", replies));
    let tool = noting_tool("look", Repeat::Safe, &Ledger::default());
    let desk = builder(model.clone()).tool(tool).agent(agent("eve", &["look"])).build().unwrap();
    check(&run(&desk, "eve", "Look.").await, &json!({"status": "completed", "result": "Seen.", "turns_used": 2}));
    assert_eq!(model.calls(), 12);
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_provider_is_shown_is_no_stall_and_can_be_cancelled() {
    let model = failing(FailureKind::RateLimit, 5, Some(Duration::from_secs(100)));
    let patience =
        locum::Patience { startup_ms: 1_000, inactivity_ms: 1_000, tool_ms: 1_000, ..locum::Patience::default() };
    let desk = builder(model.clone()).patience(patience).build().unwrap();
    let id = spawn(&desk, "ann", "Try.").await;
    pass(250.0).await;
    let shown = status(&desk, &id).await;
    check(&shown, &json!({"status": "running", "turns_used": 1}));
    // A little more than was asked for, so that several processes do not come back at the same moment.
    let activity = shown["activity"].as_str().unwrap();
    let expected = ["turn 1: waiting for cast: rate limit, 50 s", "turn 1: waiting for cast: rate limit, 51 s"];
    assert!(expected.contains(&activity), "{activity}");
    let started = Instant::now();
    let cancelled = ask(&desk, json!({"action": "cancel", "task_id": id})).await;
    check(&cancelled, &json!({"status": "cancelled", "receipt": {"confirmed": true}}));
    assert_eq!((model.calls(), started.elapsed()), (3, Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn a_model_that_breaks_is_a_failed_call_and_never_a_lost_task() {
    for beat in [Beat::Panics, Beat::PanicsAtOnce] {
        let desk = desk(Speaker::once([beat.clone()]));
        let expected = json!({
            "status": "failed", "reason": "model", "error": "Model API error: the model's adapter panicked",
        });
        check(&run(&desk, "ann", "Break.").await, &expected);
    }
    let desk = desk(Speaker::once([Beat::Says("Half a "), Beat::Panics]));
    check(&run(&desk, "ann", "Break.").await, &json!({"reason": "model", "partial_result": "Half a "}));
}

#[tokio::test(start_paused = true)]
async fn what_was_said_before_a_cut_stream_is_kept_if_no_attempt_says_more() {
    let cut = || Say::error(FailureKind::CutStream, "the line broke").with_text("Half of it is told.");
    let desk = desk(Scripted::new().agent("ann", std::iter::repeat_with(cut).take(6)));
    check(&run(&desk, "ann", "Tell.").await, &json!({"status": "failed", "partial_result": "Half of i"}));
}
