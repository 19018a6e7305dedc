//! The foreground forms and dependencies: data for the same path as `spawn`.

use std::time::Duration;

use locum::Desk;
use locum::models::scripted::{Say, Scripted};
use locum_core::task::event::FailureKind;
use serde_json::{Value, json};

use crate::cast::Witness;
use crate::stage::{agent, ask, builder, check, collect, pass, spawn, status};

/// `ann` answers what she was asked, `bob` fails.
fn desk() -> (Desk, Witness) {
    let script = Scripted::new()
        .agent("ann", [Say::text("<{{task}}>").after(Duration::from_secs(1))])
        .agent("bob", [Say::error(FailureKind::Auth, "no key").after(Duration::from_secs(1))]);
    let model = Witness::new(script);
    (builder(model.clone()).build().unwrap(), model)
}

fn many(action: &str, tasks: &[(&str, &str)]) -> Value {
    let tasks: Vec<Value> = tasks.iter().map(|(agent, task)| json!({"agent": agent, "task": task})).collect();
    json!({"action": action, "tasks": tasks})
}

#[tokio::test(start_paused = true)]
async fn parallel_answers_in_order_and_a_refused_entry_refuses_only_itself() {
    let (desk, _) = desk();
    let large = "x".repeat(4001);
    let tasks = [("ann", "a"), ("nobody", "b"), ("bob", "c"), ("ann", large.as_str()), ("ann", "e")];
    let answer = ask(&desk, many("parallel", &tasks)).await;
    let expected = json!({
        "results": [
            {"task_id": "t_01", "status": "completed", "result": "<a>"},
            {"error": "AGENT_NOT_FOUND", "agent": "nobody", "task": "b"},
            {"task_id": "t_02", "status": "failed", "reason": "model", "error": "Model API error: no key"},
            {"error": "TASK_TOO_LARGE", "agent": "ann"},
            {"task_id": "t_03", "status": "completed", "result": "<e>"},
        ],
        "completed": 2, "failed": 3, "stalled": 0,
    });
    check(&answer, &expected);
    check(&ask(&desk, json!({"action": "status"})).await, &json!({"tasks": []}));
    check(&ask(&desk, many("parallel", &[])).await, &json!({"error": "INVALID_REQUEST"}));
}

fn map(agent: &str, task: &str, inputs: &[&str]) -> Value {
    json!({"action": "map", "agent": agent, "task": task, "inputs": inputs})
}

#[tokio::test(start_paused = true)]
async fn map_gives_one_agent_each_input_and_answers_like_parallel() {
    let (desk, model) = desk();
    let inputs = ["a", "b {input}", "c", "d", "e", "f", "g"];
    let answer = ask(&desk, map("ann", "Look at {input}, at {input}!", &inputs)).await;
    check(&answer, &json!({"completed": 7, "failed": 0, "stalled": 0}));
    check(&answer["results"][0], &json!({"task_id": "t_01", "result": "<Look at a, at a!>"}));
    check(&answer["results"][1], &json!({"result": "<Look at b {input}, at b {input}!>"}));
    assert_eq!((answer["results"].as_array().unwrap().len(), model.calls()), (7, 7));
    check(&ask(&desk, map("bob", "{input}", &["a"])).await, &json!({"completed": 0, "failed": 1}));
    for (refused, message) in [
        (map("ann", "no place", &["a"]), "map: `task` has no {input}"),
        (map("ann", "{input}", &[]), "`inputs` is empty"),
        (json!({"action": "map", "agent": "ann", "task": "{input}"}), "map: missing field `inputs`"),
        (json!({"action": "run", "agent": "ann", "task": "t", "inputs": ["a"]}), "run: unknown field `inputs`"),
    ] {
        let answer = ask(&desk, refused).await;
        assert!(answer["message"].as_str().unwrap().starts_with(message), "{answer}");
    }
    // One key stands for all of them.
    let mut keyed = map("ann", "{input}", &["a", "b"]);
    keyed["idempotency_key"] = json!("k");
    let first = ask(&desk, keyed.clone()).await;
    check(&first, &json!({"completed": 2, "results": [{"task_id": "t_09"}, {"task_id": "t_10"}]}));
    assert_eq!(ask(&desk, keyed).await, first);
}

/// Agents that answer after so many seconds; who never does, hangs.
fn runners() -> (Desk, Witness) {
    let after = |text: &str, seconds| Say::text(text).after(Duration::from_secs(seconds));
    let script = Scripted::new()
        .agent("quick", [after("Quick.", 1)])
        .agent("slow", [after("Slow.", 20)])
        .agent("silent", [Say::hang()])
        .agent("broken", [Say::error(FailureKind::Auth, "no key")]);
    let model = Witness::new(script);
    let names = ["quick", "slow", "silent", "broken"];
    let desk = names.iter().fold(builder(model.clone()), |builder, name| builder.agent(agent(name, &[])));
    (desk.build().unwrap(), model)
}

#[tokio::test(start_paused = true)]
async fn the_first_valid_answer_wins_a_race_and_the_others_are_cancelled() {
    let (desk, model) = runners();
    let started = tokio::time::Instant::now();
    let tasks = [("slow", "a"), ("broken", "b"), ("quick", "c"), ("silent", "d")];
    let answer = ask(&desk, many("race", &tasks)).await;
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    check(
        &answer,
        &json!({"task_id": "t_03", "agent": "quick", "status": "completed", "result": "Quick.", "cancelled": ["t_01", "t_04"]}),
    );
    let ended = |id: &str| {
        let receipt = json!({"confirmed": true, "tasks": [{"task_id": id, "status": "cancelled"}], "processes": []});
        json!({"task_id": id, "status": "cancelled", "receipt": receipt})
    };
    check(&answer["receipts"], &json!([ended("t_01"), ended("t_04")]));
    assert_eq!(answer["receipts"].as_array().unwrap().len(), 2, "who failed before was not cancelled");
    // Everything was collected; what each came to can still be read.
    check(&ask(&desk, json!({"action": "status"})).await, &json!({"tasks": []}));
    check(&ask(&desk, json!({"action": "result", "task_id": "t_04"})).await, &json!({"status": "cancelled"}));
    let calls = model.calls();
    pass(60.0).await;
    assert_eq!(model.calls(), calls, "who lost asks nothing more");
}

#[tokio::test(start_paused = true)]
async fn a_race_without_a_valid_answer_tells_of_its_first_entry() {
    let (desk, _) = runners();
    let answer = ask(&desk, many("race", &[("broken", "a"), ("broken", "b")])).await;
    check(&answer, &json!({"task_id": "t_01", "status": "failed", "reason": "model", "cancelled": []}));
    check(&ask(&desk, many("race", &[])).await, &json!({"error": "INVALID_REQUEST"}));
    check(&ask(&desk, many("race", &[("quick", "a"), ("nobody", "b")])).await, &json!({"error": "AGENT_NOT_FOUND"}));
    assert_eq!(spawn(&desk, "quick", "The next id.").await, "t_03", "a refusal takes no id");
}

#[tokio::test(start_paused = true)]
async fn a_race_in_the_background_is_decided_without_anybody_waiting() {
    let (desk, _) = runners();
    let mut race = many("race", &[("slow", "a"), ("quick", "b"), ("silent", "c")]);
    race["background"] = json!(true);
    check(&ask(&desk, race).await, &json!({"task_ids": ["t_01", "t_02", "t_03"]}));
    check(&collect(&desk, "t_03").await, &json!({"status": "cancelled", "result": null}));
    check(&collect(&desk, "t_01").await, &json!({"status": "cancelled"}));
    check(&collect(&desk, "t_02").await, &json!({"status": "completed", "result": "Quick."}));
}

#[tokio::test(start_paused = true)]
async fn a_stalled_entry_is_counted_as_stalled() {
    let script = Scripted::new().agent("ann", [Say::text("Here.")]).agent("bob", [Say::hang()]);
    let desk = builder(script).build().unwrap();
    let answer = ask(&desk, many("parallel", &[("bob", "a"), ("ann", "b")])).await;
    check(&answer, &json!({"completed": 1, "failed": 0, "stalled": 1}));
}

#[tokio::test(start_paused = true)]
async fn a_chain_hands_each_result_on_and_answers_its_last_step() {
    let (desk, model) = desk();
    let steps = [("ann", "one"), ("ann", "two {previous} and {previous}"), ("ann", "three")];
    let answer = ask(&desk, many("chain", &steps)).await;
    check(&answer, &json!({"task_id": "t_03", "status": "completed", "result": "<three>", "step": 3, "steps": 3}));
    let asked: Vec<String> = model.asked().iter().map(|asked| asked.task().to_owned()).collect();
    assert_eq!(asked, ["one", "two <one> and <one>", "three"]);
    let page = ask(&desk, json!({"action": "result", "task_id": "t_02"})).await;
    check(&page, &json!({"text": "<two <one> and <one>>"}));
}

#[tokio::test(start_paused = true)]
async fn a_chain_ends_with_the_step_that_failed_and_is_refused_as_a_whole() {
    let (desk, model) = desk();
    let answer = ask(&desk, many("chain", &[("ann", "one"), ("bob", "two"), ("ann", "three {previous}")])).await;
    check(&answer, &json!({"task_id": "t_02", "status": "failed", "reason": "model", "step": 2, "steps": 3}));
    assert_eq!(model.calls(), 2);
    let refused = ask(&desk, many("chain", &[("ann", "one"), ("nobody", "two")])).await;
    check(&refused, &json!({"error": "AGENT_NOT_FOUND"}));
    assert_eq!(spawn(&desk, "ann", "The next id.").await, "t_04", "a refusal takes no id");
}

#[tokio::test(start_paused = true)]
async fn the_size_of_a_task_is_judged_before_previous_is_replaced() {
    let long = "y".repeat(9_000);
    let script = Scripted::new().agent("ann", [Say::text(long.clone())]).agent("bob", [Say::text("Read.")]);
    let model = Witness::new(script);
    let desk = builder(model.clone()).build().unwrap();
    let answer = ask(&desk, many("chain", &[("ann", "Write."), ("bob", "Read {previous}")])).await;
    check(&answer, &json!({"status": "completed", "result": "Read."}));
    assert_eq!(model.asked()[1].task(), format!("Read {long}"));
}

#[tokio::test(start_paused = true)]
async fn a_task_starts_when_those_it_depends_on_have_completed_and_gets_their_results() {
    let (desk, model) = desk();
    let depends = |on: Value| json!({"action": "spawn", "agent": "ann", "task": "Sum up.", "depends_on": on});
    spawn(&desk, "ann", "one").await;
    collect(&desk, "t_01").await;
    spawn(&desk, "ann", "two").await;
    let waiting = ask(&desk, depends(json!(["t_02", "t_01", "t_02"]))).await;
    check(&waiting, &json!({"task_id": "t_03", "status": "waiting", "waiting_for": ["t_02"]}));
    check(&status(&desk, "t_03").await, &json!({"status": "waiting", "turns_used": 0}));
    check(&ask(&desk, json!({"action": "collect", "task_id": "t_03"})).await, &json!({"error": "TASK_NOT_READY"}));
    check(&collect(&desk, "t_03").await, &json!({"status": "completed"}));
    assert_eq!(model.asked()[2].task(), "Sum up.\n\n[t_02 ann]\n<two>\n\n[t_01 ann]\n<one>");
    check(&ask(&desk, depends(json!(["t_99"]))).await, &json!({"error": "TASK_NOT_FOUND"}));
}

#[tokio::test(start_paused = true)]
async fn what_depends_on_a_failed_or_cancelled_task_fails_with_its_name_down_the_cascade() {
    let (desk, model) = desk();
    let after = |id: &str| json!({"action": "spawn", "agent": "ann", "task": "Go on.", "depends_on": [id]});
    spawn(&desk, "bob", "fail").await;
    ask(&desk, after("t_01")).await;
    ask(&desk, after("t_02")).await;
    let error = "Dependency t_01 failed: Model API error: no key";
    check(&collect(&desk, "t_02").await, &json!({"status": "failed", "reason": "dependency", "error": error}));
    let error = "Dependency t_02 failed: Dependency t_01 failed: Model API error: no key";
    check(&collect(&desk, "t_03").await, &json!({"status": "failed", "reason": "dependency", "error": error}));
    assert_eq!(model.calls(), 1);
    spawn(&desk, "ann", "cancel me").await;
    ask(&desk, after("t_04")).await;
    ask(&desk, json!({"action": "cancel", "task_id": "t_04"})).await;
    check(
        &collect(&desk, "t_05").await,
        &json!({"reason": "dependency", "error": "Dependency t_04 failed: it was cancelled"}),
    );
    // One that has failed long ago ends its dependent at once.
    check(&ask(&desk, after("t_01")).await, &json!({"task_id": "t_06", "status": "failed"}));
    check(&collect(&desk, "t_06").await, &json!({"reason": "dependency"}));
}

#[tokio::test(start_paused = true)]
async fn in_the_background_every_form_answers_at_once_with_ids() {
    for (request, ids) in [
        (json!({"action": "run", "agent": "ann", "task": "a", "background": true}), json!(["t_01"])),
        (many("parallel", &[("ann", "a"), ("nobody", "b"), ("ann", "c")]), json!(["t_01", "t_02"])),
        (many("chain", &[("ann", "a"), ("ann", "{previous}")]), json!(["t_01", "t_02"])),
        (many("race", &[("ann", "a")]), json!(["t_01"])),
        (map("ann", "About {input}", &["x", "y"]), json!(["t_01", "t_02"])),
    ] {
        let (desk, _) = desk();
        let mut request = request;
        request["background"] = json!(true);
        let started = tokio::time::Instant::now();
        let answer = ask(&desk, request.clone()).await;
        assert_eq!(started.elapsed(), Duration::ZERO, "{request}");
        check(&answer, &json!({"task_ids": ids}));
        if request["action"] == "parallel" {
            check(&answer, &json!({"refused": [{"error": "AGENT_NOT_FOUND", "agent": "nobody", "task": "b"}]}));
        }
        for id in ids.as_array().unwrap() {
            check(&collect(&desk, id.as_str().unwrap()).await, &json!({"status": "completed"}));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_with_the_same_key_is_answered_with_the_same_task() {
    let (desk, model) = desk();
    let keyed = |task: &str| json!({"action": "spawn", "agent": "ann", "task": task, "idempotency_key": "k"});
    check(&ask(&desk, keyed("a")).await, &json!({"task_id": "t_01", "status": "running"}));
    check(&ask(&desk, keyed("a")).await, &json!({"task_id": "t_01", "status": "running"}));
    check(&ask(&desk, keyed("b")).await, &json!({"error": "IDEMPOTENCY_CONFLICT"}));
    pass(5.0).await;
    check(&ask(&desk, keyed("a")).await, &json!({"task_id": "t_01", "status": "completed"}));
    collect(&desk, "t_01").await;
    check(&ask(&desk, keyed("a")).await, &json!({"task_id": "t_01", "status": "completed"}));
    assert_eq!((model.calls(), spawn(&desk, "ann", "c").await), (1, "t_02".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn entries_of_one_parallel_with_the_same_key_are_one_task_answered_twice() {
    let (desk, model) = desk();
    let entry = json!({"agent": "ann", "task": "a", "idempotency_key": "k"});
    let both = ask(&desk, json!({"action": "parallel", "tasks": [entry, {"agent": "ann", "task": "b"}, entry]})).await;
    let same = json!({"task_id": "t_01", "status": "completed", "result": "<a>"});
    check(&both, &json!({"results": [same, {"task_id": "t_02", "result": "<b>"}, same], "completed": 3, "failed": 0}));
    assert_eq!(model.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_repeated_with_its_key_is_answered_again() {
    let (desk, model) = desk();
    let run = json!({"action": "run", "agent": "ann", "task": "a", "idempotency_key": "k"});
    let (first, second) = tokio::join!(ask(&desk, run.clone()), ask(&desk, run.clone()));
    check(&first, &json!({"task_id": "t_01", "status": "completed", "result": "<a>"}));
    assert_eq!(first, second);
    assert_eq!(ask(&desk, run).await, first, "also after it was collected: the only answer may have been lost");
    assert_eq!(model.calls(), 1);
}
