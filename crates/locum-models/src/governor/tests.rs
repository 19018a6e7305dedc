//! A crowd against simulated providers, on the paused clock.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;
use locum_core::ids::AgentName;
use locum_core::limits;
use locum_core::transcript::{Stop, ToolUse};
use locum_core::usage::TokenCount;

use super::*;

/// How a provider says how long to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    /// In whole seconds, rounded up.
    Seconds,
    /// To the millisecond.
    Exactly,
    Nothing,
}

/// A provider that takes so many calls a second, and saves up to `burst` of them.
struct Bucket {
    per_second: f64,
    burst: f64,
    latency: Duration,
    says: Says,
    level: Mutex<(f64, Instant)>,
    turned_away: AtomicUsize,
}

impl Bucket {
    fn new(per_second: f64, burst: f64, latency_ms: u64, says: Says) -> Self {
        let level = Mutex::new((burst, Instant::now()));
        let latency = Duration::from_millis(latency_ms);
        Self { per_second, burst, latency, says, level, turned_away: AtomicUsize::new(0) }
    }

    fn take(&self) -> Result<(), ModelError> {
        let mut level = self.level.lock().unwrap();
        let now = Instant::now();
        let gained = (now - level.1).as_secs_f64() * self.per_second;
        *level = ((level.0 + gained).min(self.burst), now);
        if level.0 >= 1.0 {
            level.0 -= 1.0;
            return Ok(());
        }
        self.turned_away.fetch_add(1, Ordering::Relaxed);
        let missing = (1.0 - level.0) / self.per_second;
        let retry_after = match self.says {
            Says::Seconds => Some(Duration::from_secs_f64(missing.ceil())),
            Says::Exactly => Some(Duration::from_secs_f64(missing)),
            Says::Nothing => None,
        };
        Err(ModelError { retry_after, ..ModelError::new(FailureKind::RateLimit, "too many requests") })
    }
}

fn reply() -> Reply {
    Reply { text: "Yes".to_owned(), tool_calls: vec![], stop: Stop::End, tokens: TokenCount::default(), opaque: None }
}

impl Model for Bucket {
    fn respond<'a>(
        &'a self,
        _: &'a Prompt<'a>,
        _: &'a mut Prefix,
        _: &'a mut Deltas<'a>,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            let taken = self.take();
            // Being turned away takes a moment too, so that more than one call hears of a limit.
            let latency = if taken.is_ok() { self.latency } else { self.latency.min(Duration::from_millis(50)) };
            tokio::time::sleep(latency).await;
            taken?;
            Ok(reply())
        })
    }
}

/// Never answers, and counts how often it was asked.
#[derive(Default)]
struct Silent {
    asked: AtomicUsize,
}

impl Model for Silent {
    fn respond<'a>(
        &'a self,
        _: &'a Prompt<'a>,
        _: &'a mut Prefix,
        _: &'a mut Deltas<'a>,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Box::pin(std::future::pending())
    }
}

/// One call as the driver makes it; what it heard of being held.
async fn ask(model: &dyn Model, call: u32, replies: usize) -> (Result<Reply, ModelError>, Vec<Hold>) {
    let agent = AgentName::parse("a").unwrap();
    let tools = Arc::from([]);
    let messages = vec![Message::Assistant(reply()); replies];
    let prompt = Prompt {
        agent: &agent,
        task: "",
        model: "m",
        system: "",
        messages: &messages,
        notice: None,
        tools: &tools,
        tool_use: ToolUse::Allowed,
        max_output_tokens: None,
        temperature: None,
        effort: None,
        call,
    };
    let (mut prefix, mut holds) = (Prefix::default(), Vec::new());
    let mut hear = |delta: Delta<'_>| {
        if let Delta::Held { hold, .. } = delta {
            holds.push(hold);
        }
    };
    let answer = model.respond(&prompt, &mut prefix, &mut hear).await;
    (answer, holds)
}

/// A task of so many turns; the most failures that it met in a row. It gives up as the driver does.
async fn work(model: &dyn Model, turns: usize) -> u32 {
    let (mut call, mut worst) = (0, 0);
    for turn in 0..turns {
        let mut failures = 0;
        while let Err(error) = ask(model, call, turn).await.0 {
            failures += 1;
            call += 1;
            worst = worst.max(failures);
            let wait = retry::wait_before_retry(&error, failures, 0.5);
            assert!(wait.is_some(), "a task met {failures} failures in a row: {error}");
            assert_eq!(wait, error.held_for, "the governor waits, not the task");
        }
        call += 1;
    }
    worst
}

#[tokio::test(start_paused = true)]
async fn a_thousand_tasks_use_what_a_provider_allows_and_none_of_them_fails() {
    fastrand::seed(7);
    let cases = [
        (50.0, 50.0, 0, Says::Seconds),
        (50.0, 50.0, 200, Says::Seconds),
        (50.0, 50.0, 2000, Says::Seconds),
        (50.0, 50.0, 200, Says::Exactly),
        (50.0, 50.0, 200, Says::Nothing),
        (50.0, 10.0, 200, Says::Seconds),
        (50.0, 10.0, 200, Says::Exactly),
        (50.0, 5.0, 100, Says::Exactly),
        (500.0, 500.0, 50, Says::Seconds),
    ];
    for (per_second, burst, latency_ms, says) in cases {
        let case = format!("{per_second}/s, burst {burst}, {latency_ms} ms, {says:?}");
        let bucket = Arc::new(Bucket::new(per_second, burst, latency_ms, says));
        let model = Governed::new("p", Arc::clone(&bucket) as Arc<dyn Model>);
        let started = Instant::now();
        // A minute's work: what is learned at the start must not cost much.
        let (tasks, turns) = (1000, if per_second > 100.0 { 20 } else { 3 });
        let worst = join_all((0..tasks).map(|_| work(&model, turns))).await.into_iter().max().unwrap();
        let took = started.elapsed().as_secs_f64();
        let ideal = (f64::from(tasks) * turns as f64 - burst) / per_second;
        let share = ideal / took;
        let turned_away = bucket.turned_away.load(Ordering::Relaxed);
        assert!(share >= 0.9, "{case}: {share:.3} of the allowance, {turned_away} turned away");
        assert!(worst <= limits::MODEL_RETRIES_MAX, "{case}: {worst} failures in a row");
    }
}

#[tokio::test(start_paused = true)]
async fn a_small_allowance_is_shared_without_a_failure_and_not_forgotten_to_be_used() {
    fastrand::seed(7);
    for (per_minute, burst, says) in [(5.0, 1.0, Says::Seconds), (60.0, 1.0, Says::Seconds), (60.0, 5.0, Says::Nothing)]
    {
        let bucket = Arc::new(Bucket::new(per_minute / 60.0, burst, 1000, says));
        let model = Governed::new("p", Arc::clone(&bucket) as Arc<dyn Model>);
        let started = Instant::now();
        let worst = join_all((0..30).map(|_| work(&model, 2))).await.into_iter().max().unwrap();
        let minutes = started.elapsed().as_secs_f64() / 60.0;
        assert!(worst <= limits::MODEL_RETRIES_MAX, "{per_minute} a minute: {worst} failures in a row");
        assert!(60.0 / minutes >= per_minute * 0.5, "{per_minute} a minute: {minutes} minutes for 60 calls");
    }
}

#[tokio::test(start_paused = true)]
async fn what_one_task_is_told_holds_for_all_and_whoever_failed_goes_first() {
    let bucket = Bucket::new(0.1, 1.0, 0, Says::Seconds);
    let model = Governed::new("p", Arc::new(bucket));
    let started = Instant::now();
    assert!(ask(&model, 0, 0).await.0.is_ok());
    let told = ask(&model, 0, 0).await.0.unwrap_err();
    assert_eq!(told.retry_after, Some(Duration::from_secs(10)));
    assert!(told.held_for >= told.retry_after);

    let order = Mutex::new(Vec::new());
    let asking = |name: &'static str, call| {
        let (model, order) = (&model, &order);
        async move {
            let (answer, holds) = ask(model, call, 0).await;
            order.lock().unwrap().push((name, answer.is_ok(), started.elapsed().as_secs()));
            holds
        }
    };
    let (first, _) = tokio::join!(asking("came first", 0), asking("failed before", 1));
    assert!(matches!(first[0], Hold::RateLimit(Some(at)) if at >= started + Duration::from_secs(10)), "{first:?}");
    let order = order.into_inner().unwrap();
    assert_eq!(order[0], ("failed before", true, 10), "{order:?}");
    assert_eq!(order[1].0, "came first");
}

#[tokio::test(start_paused = true)]
async fn whoever_leaves_the_queue_lets_the_next_one_through() {
    let silent = Arc::new(Silent::default());
    let model = Governed::new("p", Arc::clone(&silent) as Arc<dyn Model>);
    model.governor.locked().flow = Flow::with_window(1.0);
    // Whoever gives up drops its call at that moment.
    let asking = |seconds| {
        let model = &model;
        async move { tokio::time::timeout(Duration::from_secs(seconds), ask(model, 0, 0)).await.is_err() }
    };
    let asked = || silent.asked.load(Ordering::Relaxed);
    let looking = async {
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert_eq!(asked(), 1, "there is one place, and the second has left the queue");
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert_eq!(asked(), 2, "the third has the place of the first");
    };
    let gave_up = tokio::join!(asking(5), asking(1), asking(9), looking);
    assert_eq!(gave_up, (true, true, true, ()));
    let state = model.governor.locked();
    assert!(state.queue.is_empty() && state.flow.is_idle(), "nothing is left behind");
}

#[tokio::test(start_paused = true)]
async fn an_overload_halves_what_is_under_way_and_answers_raise_it_again() {
    let mut flow = Flow::with_window(100.0);
    let now = Instant::now();
    for _ in 0..10 {
        flow.enter(now);
    }
    let call = TurnedAway { entered: now, why: Throttle::Load, asked: None };
    let held = flow.turned_away(call, now, 1.0);
    assert_eq!(held, Duration::from_millis(500));
    // The others of the same crowd are news of the same overload.
    assert_eq!(flow.turned_away(call, now, 1.0), held);
    for _ in 0..10 {
        flow.leave();
    }
    assert_eq!(flow.way(now), Way::Closed { until: Some(now + held), hold: Hold::Overload(Some(now + held)) });
    let later = now + held;
    let places = |flow: &mut Flow| {
        let mut entered = 0;
        while flow.way(later) == Way::Free {
            flow.enter(later);
            entered += 1;
        }
        (0..entered).for_each(|_| flow.leave());
        entered
    };
    assert_eq!(places(&mut flow), 5);
    (0..6).for_each(|_| flow.answered(later));
    assert_eq!(places(&mut flow), 7, "one more place for every round of answers");
}
