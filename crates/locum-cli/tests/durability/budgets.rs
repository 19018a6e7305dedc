//! Money over processes: what one process has set aside or spent, the next one knows.

use std::process::Child;

use locum::task::outcome::{Reason, Status};
use locum::task::{Record, TaskEvent};
use locum::usage::TokenCount;
use serde_json::{Value, json};

use crate::home::{Home, kill_now, until};
use crate::model_server::{Answer, ModelServer, Received};

/// Costs US$0.75 for a million tokens that go in and US$4.50 for those that come out.
const MODEL: &str = "openai:gpt-5.4-mini";

fn home_at(server: &ModelServer) -> Home {
    let mut home = Home::new();
    home.agent("plain", "tools: think", "You are plain.");
    home.set("OPENAI_API_KEY", "sk-test-0123456789");
    home.set("OPENAI_BASE_URL", &server.base_url());
    home.set("LOCUM_MODEL", MODEL);
    home
}

/// The most tokens that a request may be answered with.
fn bound(received: &Received) -> Option<u64> {
    received.body["max_completion_tokens"].as_u64().or(received.body["max_tokens"].as_u64())
}

fn cost(answer: &Value) -> f64 {
    answer["usage"]["cost_usd"].as_f64().unwrap_or_else(|| panic!("no cost in {answer}"))
}

#[test]
fn a_session_is_spent_by_one_process_after_the_other() {
    let server = ModelServer::start((0..20).map(|_| Answer::text("done")));
    let mut home = home_at(&server);
    home.set("LOCUM_SESSION_COST_USD", "0.0003");
    let input = json!({"action": "run", "agent": "plain", "task": "Go."}).to_string();
    let call = |session: &str| home.answer(&["call", "--session", session, "subagent", &input]);
    let mut answers = 0;
    let refused = loop {
        let (answer, code) = call("s");
        if code == 1 {
            break answer;
        }
        assert_eq!((answer["status"].as_str(), code), (Some("completed"), 0), "{answer}");
        assert!((cost(&answer) - 0.00003).abs() < 1e-9, "ten tokens in and five out: {answer}");
        answers += 1;
        assert!(answers < 20, "nothing stops it");
    };
    assert_eq!(refused["error"], "BUDGET_EXCEEDED", "{refused}");
    assert!(refused["message"].as_str().unwrap().contains("of the budget of the session"), "{refused}");
    assert!(answers >= 5 && server.received().len() == answers, "{answers}");
    let (elsewhere, code) = call("other");
    assert_eq!((elsewhere["status"].as_str(), code), (Some("completed"), 0), "{elsewhere}");
    // What a person types is bounded by itself.
    let (typed, code) = home.answer(&["run", "--session", "s", "plain", "Go."]);
    assert_eq!((typed["status"].as_str(), code), (Some("completed"), 0), "{typed}");
}

#[test]
fn a_request_that_died_with_its_process_counts_as_spent() {
    let server = ModelServer::start([Answer::Hold, Answer::text("done")]);
    let home = home_at(&server);
    let spawned = home.json(&["spawn", "plain", "Go.", "--max-cost", "0.02"]);
    let id = spawned["task_id"].as_str().unwrap().to_owned();
    until("the model is asked", || (server.received().len() == 1).then_some(()));
    let worker = until("a worker", || home.workers().first().copied());
    kill_now(worker);
    until("the task ends", || {
        let (answer, code) = home.answer(&["wait", &id]);
        (code == 0 && answer["timed_out"] == false).then_some(())
    });
    let answer = home.json(&["collect", &id]);
    assert_eq!(answer["result"], "done", "{answer}");
    // What was set aside for the answer that never came is spent, and what was left is all that the second request could
    // ask for, to the last token.
    let observer = home.observer("main");
    let reserved = reserved(&observer.log(&observer.tasks()[0]));
    let [first, second] = reserved.as_slice() else { panic!("{reserved:?}") };
    let spent = price(first.input, first.output);
    assert!((cost(&answer) - spent - 0.00003).abs() < 1e-9, "{answer} {reserved:?}");
    assert!(spent + price(second.input, second.output) <= 0.02, "{reserved:?}");
    assert!(spent + price(second.input, second.output + 1) > 0.02, "{reserved:?}");
    let received = server.received();
    assert_eq!((received.len(), bound(&received[1])), (2, Some(second.output)), "{}", received[1].body);
}

/// What tokens cost.
fn price(input: u64, output: u64) -> f64 {
    (input as f64 * 0.75 + output as f64 * 4.5) / 1e6
}

/// What was set aside for each request of a task.
fn reserved(log: &[Record]) -> Vec<TokenCount> {
    let reserved = log.iter().filter_map(|record| match &record.event {
        TaskEvent::TurnStarted { reserved, .. } => Some(*reserved),
        _ => None,
    });
    reserved.collect()
}

/// Two cents are one request of 4096 tokens and a little: of four processes that ask at once, one gets that, one what is
/// left, and two nothing. When all of them are dead, the next process still knows.
#[test]
fn processes_that_race_for_the_last_cents_cannot_both_have_them() {
    let server = ModelServer::start((0..20).map(|_| Answer::Hold));
    let mut home = home_at(&server);
    home.agent("plain", "tools: []", "You are plain.");
    home.set("LOCUM_SESSION_COST_USD", "0.02");
    let input = json!({"action": "run", "agent": "plain", "task": "Go."}).to_string();
    let call = ["call", "--session", "s", "subagent", &input];
    let mut racing: Vec<Child> = (0..4).map(|_| home.start(&call)).collect();
    let mut ended = Vec::new();
    until("two have nothing to ask with", || {
        ended.extend(racing.extract_if(.., |child| child.try_wait().unwrap().is_some()));
        (ended.len() >= 2).then_some(())
    });
    for child in ended.drain(..) {
        let output = child.wait_with_output().unwrap();
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        let told = (answer["reason"].as_str(), answer["error"].as_str());
        assert!(told.0 == Some("budget") || told.1 == Some("BUDGET_EXCEEDED"), "{answer}");
    }
    let mut bounds: Vec<Option<u64>> = server.wait_for(2).iter().map(bound).collect();
    bounds.sort_unstable();
    assert!(matches!(bounds[..], [None, Some(..350)]), "{bounds:?}");
    for mut child in racing {
        kill_now(child.id());
        child.wait().unwrap();
    }
    // Whoever starts anew finds nothing left.
    let (refused, code) = home.answer(&call);
    assert_eq!((refused["error"].as_str(), code), (Some("BUDGET_EXCEEDED"), 1), "{refused}");
    // Whoever goes on with what they left asks nobody: what they had set aside is spent.
    let observer = home.observer("s");
    until("the end of what they left", || {
        home.answer(&["wait", "--session", "s", "--timeout", "2"]);
        observer.unfinished().is_empty().then_some(())
    });
    for row in observer.tasks() {
        let standing = &row.summary.standing;
        assert_eq!((standing.status, standing.reason), (Status::Failed, Some(Reason::Budget)), "{row:?}");
    }
    assert_eq!(server.received().len(), 2);
}

#[test]
fn a_file_bounds_what_its_agent_may_cost() {
    let server = ModelServer::start([Answer::text("done"), Answer::text("done")]);
    let home = home_at(&server);
    home.agent("thrifty", "tools: []\nlocum:\n  budget: {max_cost_usd: 0.002}", "You are thrifty.");
    home.agent("broke", "tools: []\nlocum: {budget: {max_cost_usd: 0.000001}}", "You are broke.");
    let ran = home.json(&["run", "thrifty", "Go."]);
    assert_eq!(ran["result"], "done", "{ran}");
    // A tenth of a cent more than 400 tokens that come out.
    let most = bound(&server.received()[0]);
    assert!(most.is_some_and(|most| (350..444).contains(&most)), "{most:?}");
    let (refused, code) = home.answer(&["run", "broke", "Go."]);
    assert_eq!((refused["error"].as_str(), code), (Some("BUDGET_EXCEEDED"), 1), "{refused}");
    // The call says otherwise, and a file's note says nothing of a budget without effect.
    home.json(&["run", "broke", "Go.", "--max-cost", "0.5"]);
    let linted = String::from_utf8(home.output(&["agents", "lint"]).stdout).unwrap();
    assert!(!linted.contains("budget"), "{linted}");
}
