//! Models that spend too much: what is set aside, told, declined and counted, in memory and on disk.

use std::sync::Arc;

use locum::models::scripted::{Say, Scripted};
use locum::store::Store;
use locum::store::memory::MemoryStore;
use locum::store::sqlite::SqliteStore;
use locum::transcript::Repeat;
use locum::usage::{Price, TokenCount};
use locum::{Desk, DeskBuilder, Limits};
use locum_core::task::event::FailureKind;
use serde_json::{Value, json};

use crate::cast::Witness;
use crate::stage::{Ledger, agent, ask, ask_as_person, builder, check, collect, noting_tool, run, spawn};

/// A cent for a thousand tokens that come out, and nothing for those that go in.
pub(crate) const PRICE: Price = Price { input: 0.0, output: 10.0, cache_read: 0.0, cache_write: 0.0 };

/// A reply that costs this many cents.
pub(crate) fn costing(say: Say, cents: u64) -> Say {
    say.using(TokenCount { input: 1, output: cents * 1000, ..TokenCount::default() })
}

pub(crate) fn look() -> Say {
    Say::calls([("look", json!({}))]).with_text("So far.")
}

fn limits(task: Option<f64>, session: Option<f64>) -> Limits {
    Limits { max_cost_usd: task, session_cost_usd: session, ..Limits::default() }
}

/// A desk with a price, whose agent `spender` has a tool.
fn priced(model: Witness) -> DeskBuilder {
    builder(model)
        .price("cast", PRICE)
        .tool(noting_tool("look", Repeat::Safe, &Ledger::default()))
        .agent(agent("spender", &["look"]))
}

fn spender(says: Vec<Say>) -> Witness {
    Witness::new(Scripted::new().agent("spender", says))
}

pub(crate) fn cents(answer: &Value) -> f64 {
    (answer["usage"]["cost_usd"].as_f64().unwrap_or_else(|| panic!("no cost in {answer}")) * 100.0).round()
}

#[tokio::test(start_paused = true)]
async fn what_a_task_costs_is_in_its_usage_where_prices_are_known() {
    let says = || vec![costing(look(), 3), costing(Say::text("Done."), 4)];
    let desk = priced(spender(says())).build().unwrap();
    assert_eq!(cents(&run(&desk, "spender", "Go.").await), 7.0);
    let unpriced = builder(spender(says()))
        .tool(noting_tool("look", Repeat::Safe, &Ledger::default()))
        .agent(agent("spender", &["look"]));
    let answer = run(&unpriced.build().unwrap(), "spender", "Go.").await;
    check(&answer, &json!({"status": "completed", "usage": {"cost_usd": null}}));
}

#[tokio::test(start_paused = true)]
async fn a_runaway_model_is_told_at_four_fifths_gets_one_more_answer_and_is_stopped() {
    let runaway: Vec<Say> = (0..20).map(|_| costing(look(), 17)).collect();
    let model = spender(runaway);
    let desk = priced(model.clone()).build().unwrap();
    let answer = run(&desk, "spender", "Go.").await;
    let error = "Budget exceeded: cost would pass US$1.00";
    check(&answer, &json!({"status": "failed", "reason": "budget", "error": error, "partial_result": "So far."}));
    // Five calls cost 85 cents: the sixth is the last, because it leaves no room for another.
    let notices: Vec<Option<String>> = model.asked().into_iter().map(|asked| asked.notice).collect();
    assert_eq!(notices.len(), 6, "{notices:?}");
    assert!(notices[..5].iter().all(Option::is_none), "{notices:?}");
    assert!(notices[5].as_ref().is_some_and(|notice| notice.contains("budget is used up")), "{notices:?}");
    assert_eq!(cents(&answer), 102.0, "no more than one request beyond the limit");
}

#[tokio::test(start_paused = true)]
async fn a_model_is_told_once_and_may_still_finish() {
    let looks = [30, 30, 10, 10, 1].map(|cents| costing(look(), cents));
    let model = spender(looks.into_iter().chain([costing(Say::text("Done."), 1)]).collect());
    let desk = priced(model.clone()).build().unwrap();
    let answer = run(&desk, "spender", "Go.").await;
    check(&answer, &json!({"status": "completed", "result": "Done."}));
    let told: Vec<bool> = model.asked().iter().map(|asked| asked.notice.is_some()).collect();
    assert_eq!(told, [false, false, false, false, true, false]);
}

#[tokio::test(start_paused = true)]
async fn siblings_share_what_their_session_may_spend() {
    for store in stores() {
        let says = vec![costing(look(), 40), costing(Say::text("Done."), 20)];
        let builder = priced(spender(says)).store(store).limits(limits(Some(1.0), Some(1.5)));
        let desk = builder.build().unwrap();
        let entry = json!({"agent": "spender", "task": "Go."});
        let answer = ask(&desk, json!({"action": "parallel", "tasks": [entry, entry, entry, entry, entry]})).await;
        let results = answer["results"].as_array().unwrap();
        let spent: f64 = results.iter().filter(|result| result["usage"].is_object()).map(cents).sum();
        let failed = results.iter().filter(|result| result["reason"] == "budget").count();
        assert!(failed > 0, "{answer}");
        assert!(spent <= 150.0 + 5.0 * 40.0, "at most one request of each beyond the limit: {spent}");
        for result in results.iter().filter(|result| result["reason"] == "budget") {
            check(result, &json!({"error": "Budget exceeded: cost would pass US$1.50"}));
        }
        // Afterwards nothing more is started, and the refusal says by how much.
        let refused = ask(&desk, json!({"action": "run", "agent": "spender", "task": "Go."})).await;
        check(&refused, &json!({"error": "BUDGET_EXCEEDED"}));
        assert!(refused["message"].as_str().unwrap().contains("more than is left of the budget of the session"));
        let elsewhere = desk.in_session(locum::SessionId::parse("elsewhere").unwrap());
        check(&run(&elsewhere, "spender", "Go.").await, &json!({"status": "completed"}));
    }
}

/// Two desks on one database are two processes in one session.
#[tokio::test(start_paused = true)]
async fn two_processes_cannot_both_take_the_last_dollar() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tasks.db");
    let open = || {
        let store = Arc::new(SqliteStore::open(&path).unwrap());
        // The first answer takes a while: both are set aside before one is paid for.
        let slow = costing(Say::text("Done."), 4).after(std::time::Duration::from_secs(5));
        let model = Witness::new(Scripted::new().agent("ann", [slow]));
        (priced(model.clone()).store(store).limits(limits(Some(1.0), Some(0.06))).build().unwrap(), model)
    };
    let ((one, first), (other, second)) = (open(), open());
    let (id_one, id_other) = (spawn(&one, "ann", "Go.").await, spawn(&other, "ann", "Go.").await);
    let answers = [collect(&one, &id_one).await, collect(&other, &id_other).await];
    let spent: f64 = answers.iter().map(cents).sum();
    // Each sets aside 4.096 cents, or what is left: the second one gets an answer of at most two cents.
    assert_eq!(first.calls() + second.calls(), 2);
    let bounds: Vec<Option<u64>> = first.asked().into_iter().chain(second.asked()).map(|asked| asked.most).collect();
    assert!(bounds.iter().flatten().any(|most| *most <= 2000), "{bounds:?}");
    assert!(spent <= 8.0, "{answers:?}");
    one.close().await.unwrap();
    other.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_child_spends_from_its_parent() {
    for store in stores() {
        let delegate = || Say::calls([("subagent", json!({"action": "run", "agent": "spender", "task": "Help."}))]);
        let lead = vec![costing(delegate(), 10), costing(delegate(), 10), costing(Say::text("Done."), 1)];
        let helper = vec![costing(look(), 30), costing(look(), 30), costing(Say::text("Helped."), 1)];
        let model = Witness::new(Scripted::new().agent("lead", lead).agent("spender", helper));
        let desk = priced(model.clone())
            .store(store)
            .agent(agent("lead", &["subagent"]))
            .limits(Limits { max_depth: Some(2), ..limits(Some(0.8), Some(5.0)) })
            .build()
            .unwrap();
        let answer = run(&desk, "lead", "Lead.").await;
        let helped = model.asked().iter().filter(|asked| asked.agent == "spender").count();
        assert!(helped <= 4, "the second helper is stopped early or not started: {helped}");
        // What the lead itself spent, and what its helpers did, is no more than one request beyond its own limit.
        let tasks = ask(&desk, json!({"action": "status"})).await;
        let children: f64 = tasks["tasks"].as_array().unwrap().iter().map(cents).sum();
        assert!(cents(&answer) + children <= 80.0 + 30.0, "{answer} {tasks}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_person_is_bounded_by_the_command_and_not_by_the_session() {
    let says = vec![costing(Say::text("Done."), 60)];
    let desk = priced(spender(says)).limits(limits(Some(1.0), Some(1.0))).build().unwrap();
    let one = json!({"action": "run", "agent": "spender", "task": "Go."});
    for _ in 0..4 {
        check(&ask_as_person(&desk, None, one.clone()).await, &json!({"status": "completed"}));
    }
    let entry = json!({"agent": "spender", "task": "Go."});
    let four = json!({"action": "parallel", "tasks": [entry, entry, entry, entry]});
    let answer = ask_as_person(&desk, Some(1), four).await;
    check(&answer, &json!({"completed": 2, "failed": 2}));
    check(&answer["results"][3], &json!({"reason": "budget", "error": "Budget exceeded: cost would pass US$1.00"}));
    // The model's own session is untouched by all that.
    check(&ask(&desk, one).await, &json!({"status": "completed"}));
}

#[tokio::test(start_paused = true)]
async fn an_amount_that_is_asked_for_is_kept_or_refused() {
    let cases = [
        (json!(0.0), json!({"error": "BUDGET_EXCEEDED", "message": "max_cost_usd leaves nothing for an answer"})),
        (json!(-1.0), json!({"error": "INVALID_REQUEST"})),
        (json!("1"), json!({"error": "INVALID_REQUEST"})),
        (
            json!(1.5),
            json!({"error": "BUDGET_EXCEEDED", "message": "max_cost_usd is US$0.50 more than a task may cost (US$1.00)"}),
        ),
        (json!(1), json!({"status": "completed"})),
    ];
    let desk = priced(spender(vec![Say::text("Done.")])).build().unwrap();
    for (amount, expected) in cases {
        let request = json!({"action": "run", "agent": "spender", "task": "Go.", "max_cost_usd": amount});
        check(&ask(&desk, request).await, &expected);
    }
    // A person may say more than the default.
    let request = json!({"action": "run", "agent": "spender", "task": "Go.", "max_cost_usd": 1.5});
    check(&ask_as_person(&desk, None, request.clone()).await, &json!({"status": "completed"}));
    let unpriced = builder(spender(vec![Say::text("Done.")])).agent(agent("spender", &[])).build().unwrap();
    let message = "the price of cast is not known, so that max_cost_usd cannot be kept";
    check(&ask(&unpriced, request).await, &json!({"error": "INVALID_REQUEST", "message": message}));
}

/// A process that is lost between the reservation and the answer: what was set aside counts as spent.
#[tokio::test(start_paused = true)]
async fn a_request_that_was_lost_counts_as_spent_at_its_estimate() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tasks.db");
    let open = |says: Vec<Say>| -> Desk {
        let store = Arc::new(SqliteStore::open(&path).unwrap());
        priced(spender(says)).store(store).limits(limits(Some(1.0), Some(0.11))).build().unwrap()
    };
    let lost = open(vec![Say::hang()]);
    let id = spawn(&lost, "spender", "Go.").await;
    crate::stage::pass(1.0).await;
    lost.close().await.unwrap();
    let next = open(vec![costing(Say::text("Done."), 1)]);
    next.adopt_orphans(locum::Stay::Long).await.unwrap();
    let answer = collect(&next, &id).await;
    check(&answer, &json!({"status": "completed", "usage": {"output_tokens": 4096 + 1000}}));
    assert_eq!(cents(&answer), 5.0);
    next.close().await.unwrap();
}

/// What was said before the line broke was written by the provider, and is paid for; a call that nobody answered is not.
#[tokio::test(start_paused = true)]
async fn a_cut_answer_is_charged_at_its_estimate_and_its_repetition_is_covered_first() {
    // Half of it is told: a thousand tokens, for a cent.
    let cut = || Say::error(FailureKind::CutStream, "the line broke").with_text("word".repeat(2000));
    let failed = || Say::error(FailureKind::Network, "no route");
    let done = || costing(Say::text("Done."), 1);
    let desk = |says: Vec<Say>| {
        let model = Witness::new(Scripted::new().agent("ann", says));
        (priced(model.clone()).build().unwrap(), model)
    };
    for (says, cost) in [
        (vec![cut(), done()], 2.0),
        (vec![cut(), failed(), cut(), done()], 3.0),
        (vec![failed(), failed(), done()], 1.0),
    ] {
        let answer = run(&desk(says.clone()).0, "ann", "Go.").await;
        check(&answer, &json!({"status": "completed", "result": "Done.", "turns_used": 1}));
        assert_eq!(cents(&answer), cost, "{says:?}");
    }
    // Every attempt is bounded by what the ones before have left: a model that is cut for ever cannot spend for ever.
    let (desk, model) = desk((0..6).map(|_| cut()).collect());
    let request = json!({"action": "run", "agent": "ann", "task": "Go.", "max_cost_usd": 0.03});
    let answer = ask(&desk, request).await;
    let error = "Budget exceeded: cost would pass US$0.03";
    check(&answer, &json!({"status": "failed", "reason": "budget", "error": error}));
    let bounds: Vec<Option<u64>> = model.asked().into_iter().map(|asked| asked.most).collect();
    assert_eq!((bounds, cents(&answer)), (vec![Some(3000), Some(2000), Some(1000)], 3.0));
}

/// Schemas and descriptions of tools are sent with every request, and are most of a short one.
#[tokio::test(start_paused = true)]
async fn what_is_said_about_tools_counts_before_the_first_request() {
    let desk = builder(spender(vec![Say::text("Done.")]))
        .agent(agent("reader", &["read", "grep", "find"]))
        .agent(agent("spender", &[]))
        .build()
        .unwrap();
    let asking = |agent: &str| json!({"action": "run", "agent": agent, "task": "Go.", "max_input_tokens": 200});
    check(&ask(&desk, asking("spender")).await, &json!({"status": "completed"}));
    check(&ask(&desk, asking("reader")).await, &json!({"error": "BUDGET_EXCEEDED", "hint": "raise max_input_tokens"}));
}

pub(crate) fn stores() -> Vec<Arc<dyn Store>> {
    let directory = tempfile::tempdir().unwrap().keep();
    let sqlite = SqliteStore::open(&directory.join("tasks.db")).unwrap();
    vec![Arc::new(MemoryStore::new()), Arc::new(sqlite)]
}
