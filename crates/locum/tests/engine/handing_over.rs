//! A process that ends with unfinished tasks, and the next one that goes on with them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use locum::models::ModelError;
use locum::models::scripted::{Say, Scripted};
use locum::store::Store;
use locum::store::memory::MemoryStore;
use locum::store::sqlite::SqliteStore;
use locum::transcript::{Repeat, ToolOutput};
use locum::{Desk, Limits, Stay};
use locum_core::task::event::FailureKind;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::cast::{Beat, Speaker, Witness};
use crate::stage::{Ledger, agent, ask, builder, check, collect, context, noting_tool, pass, run, spawn, status, tool};

/// What an outcome is, without when it was and what it cost.
fn essence(collected: &Value) -> Value {
    json!([
        collected["task_id"],
        collected["status"],
        collected["result"],
        collected["turns_used"],
        collected["receipt"]
    ])
}

/// A desk on this store, whose tool `act` notes what it does and, in a process that is to end, never answers.
fn desk(store: &Arc<dyn Store>, model: &Witness, repeat: Repeat, ledger: &Ledger, hangs: bool) -> Desk {
    let noted = ledger.clone();
    let act = tool("act", repeat, move |_, _| {
        noted.note("acted");
        async move {
            if hangs {
                std::future::pending::<()>().await;
            }
            Ok(ToolOutput::ok("acted"))
        }
    });
    builder(model.clone()).store(Arc::clone(store)).tool(act).agent(agent("eve", &["act"])).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_handed_over_at_any_moment_ends_as_if_it_had_not_been() {
    let script = || {
        let replies = [
            Say::calls([("act", json!({}))]).after(Duration::from_secs(10)),
            Say::error(FailureKind::Server, "not now").retry_after(Duration::from_secs(10)),
            Say::text("Done.").after(Duration::from_secs(10)),
        ];
        Witness::new(Scripted::new().agent("eve", replies))
    };
    let alone: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let undisturbed = run(&desk(&alone, &script(), Repeat::Safe, &Ledger::default(), false), "eve", "Act.").await;
    check(&undisturbed, &json!({"status": "completed", "result": "Done.", "turns_used": 2}));
    // In the first call, in the wait for the provider, in the last call.
    for moment in [0.0, 5.0, 15.0, 25.0] {
        let (store, model): (Arc<dyn Store>, _) = (Arc::new(MemoryStore::new()), script());
        let first = desk(&store, &model, Repeat::Safe, &Ledger::default(), false);
        let id = spawn(&first, "eve", "Act.").await;
        pass(moment).await;
        assert_eq!(first.close().await.unwrap(), 1);
        pass(3600.0).await;
        let second = desk(&store, &model, Repeat::Safe, &Ledger::default(), false);
        check(&status(&second, &id).await, &json!({"status": "running"}));
        assert_eq!(second.adopt_orphans(Stay::Long).await.unwrap(), 1);
        assert_eq!(second.adopt_orphans(Stay::Long).await.unwrap(), 0, "it has a worker again");
        assert_eq!(essence(&collect(&second, &id).await), essence(&undisturbed), "{moment}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_call_in_doubt_is_repeated_only_if_it_may_be() {
    for (repeat, acted, told) in [
        (Repeat::Safe, 2, "acted".to_owned()),
        (
            Repeat::Unsafe,
            1,
            "Interrupted: the process ended during this call. Whether it had an effect is unknown. Check before you \
             repeat it."
                .to_owned(),
        ),
    ] {
        let (store, ledger): (Arc<dyn Store>, _) = (Arc::new(MemoryStore::new()), Ledger::default());
        let model = Witness::new(Scripted::new().agent("eve", [Say::calls([("act", json!({}))]), Say::text("Done.")]));
        let first = desk(&store, &model, repeat, &ledger, true);
        let id = spawn(&first, "eve", "Act.").await;
        pass(5.0).await;
        first.close().await.unwrap();
        let second = desk(&store, &model, repeat, &ledger, false);
        second.adopt_orphans(Stay::Long).await.unwrap();
        check(&collect(&second, &id).await, &json!({"status": "completed", "turns_used": 2}));
        assert_eq!(ledger.lines().len(), acted, "{repeat:?}");
        assert_eq!(model.asked()[1].tool_answers(), [told]);
    }
}

#[tokio::test(start_paused = true)]
async fn parked_tasks_are_handed_over_and_start_in_their_turn() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let script = Scripted::new().agent("*", [Say::text("<{{task}}>").after(Duration::from_secs(10))]);
    let office = || {
        let limits = Limits { max_running: 1, ..Limits::default() };
        builder(script.clone()).store(Arc::clone(&store)).limits(limits).build().unwrap()
    };
    let first = office();
    spawn(&first, "ann", "one").await;
    ask(&first, json!({"action": "spawn", "agent": "ann", "task": "two", "queue": true})).await;
    ask(&first, json!({"action": "spawn", "agent": "bob", "task": "three", "depends_on": ["t_01"]})).await;
    let waiting = tokio::spawn({
        let first = first.clone();
        async move { ask(&first, json!({"action": "wait", "timeout_ms": 45_000})).await }
    });
    pass(5.0).await;
    assert_eq!(first.close().await.unwrap(), 3);
    let second = office();
    check(&status(&second, "t_02").await, &json!({"status": "queued", "position": 1}));
    assert_eq!(second.adopt_orphans(Stay::Long).await.unwrap(), 3);
    for (id, result) in [("t_01", "<one>"), ("t_02", "<two>"), ("t_03", "<three>")] {
        check(&collect(&second, id).await, &json!({"status": "completed", "result": result}));
    }
    check(&waiting.await.unwrap(), &json!({"timed_out": false}));
}

#[tokio::test(start_paused = true)]
async fn a_task_without_a_worker_can_be_cancelled_by_whoever_comes() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let model = Speaker::once([Beat::Says("So far."), Beat::Hangs]);
    let first = builder(model.clone()).store(Arc::clone(&store)).build().unwrap();
    let id = spawn(&first, "ann", "Go.").await;
    pass(1.0).await;
    first.close().await.unwrap();
    let second = builder(model).store(store).build().unwrap();
    let cancelled = ask(&second, json!({"action": "cancel", "task_id": id})).await;
    check(&cancelled, &json!({"status": "cancelled", "receipt": {"confirmed": true}}));
}

#[tokio::test(start_paused = true)]
async fn a_task_of_another_desk_is_cancelled_and_waited_for_through_the_store() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let office = |model: Speaker| builder(model).store(Arc::clone(&store)).build().unwrap();
    let first = office(Speaker::once([Beat::Says("So far."), Beat::Hangs]));
    let second = office(Speaker::once([Beat::Fails(ModelError::new(FailureKind::Auth, "never asked"))]));
    let id = spawn(&first, "ann", "Go.").await;
    pass(1.0).await;
    assert_eq!(second.adopt_orphans(Stay::Long).await.unwrap(), 0, "it has a worker");
    let cancelled = ask(&second, json!({"action": "cancel", "task_id": id})).await;
    check(&cancelled, &json!({"status": "cancelled", "partial_result": "So far.", "receipt": {"confirmed": true}}));
}

/// A process on a database: it holds nothing that is not in it.
fn process(database: &Path, script: &Scripted, ledger: &Ledger, acting: Option<Arc<Notify>>) -> Desk {
    let noted = ledger.clone();
    let act = tool("act", Repeat::Unsafe, move |_, _| {
        noted.note("acted");
        let acting = acting.clone();
        async move {
            if let Some(acting) = acting {
                acting.notify_one();
                std::future::pending::<()>().await;
            }
            Ok(ToolOutput::ok("acted"))
        }
    });
    Desk::builder()
        .store(Arc::new(SqliteStore::open(database).unwrap()))
        .standard_tools()
        .tool(act)
        .tool(noting_tool("look", Repeat::Safe, ledger))
        .model("cast", Arc::new(script.clone()))
        .agent(agent("eve", &["look", "act"]))
        .agent(agent("ann", &[]))
        .build()
        .unwrap()
}

#[tokio::test]
async fn on_disk_a_task_its_session_and_its_answers_outlive_the_process() {
    let directory = tempfile::tempdir().unwrap();
    let database = directory.path().join("locum.db");
    let replies = [Say::calls([("look", json!({})), ("act", json!({}))]), Say::text("Done.")];
    let script =
        Scripted::new().agent("eve", replies).agent("ann", [Say::text("Said.")]).agent("dora", [Say::text("Hm.")]);
    let (ledger, acting) = (Ledger::default(), Arc::new(Notify::new()));
    let first = process(&database, &script, &ledger, Some(Arc::clone(&acting)));
    let keyed = json!({"action": "spawn", "agent": "ann", "task": "Say.", "idempotency_key": "k"});
    let said = ask(&first, keyed.clone()).await;
    check(&collect(&first, "t_01").await, &json!({"result": "Said."}));
    context(&first, json!({"action": "write", "key": "goal", "value": "Ship it."})).await;
    let define = json!({"action": "define", "name": "dora", "description": "d", "system_prompt": "p"});
    check(&ask(&first, define).await, &json!({"defined": "dora"}));
    let id = spawn(&first, "eve", "Act.").await;
    acting.notified().await;
    assert_eq!(first.close().await.unwrap(), 1);

    let second = process(&database, &script, &ledger, None);
    assert_eq!(second.adopt_orphans(Stay::Long).await.unwrap(), 1);
    check(&collect(&second, &id).await, &json!({"task_id": "t_02", "status": "completed", "result": "Done."}));
    assert_eq!(ledger.lines(), ["look {}", "acted"]);
    assert_eq!(ask(&second, keyed).await["uid"], said["uid"]);
    check(&ask(&second, json!({"action": "result", "task_id": "t_01"})).await, &json!({"text": "Said."}));
    check(&context(&second, json!({"action": "read", "key": "goal"})).await, &json!({"value": "Ship it."}));
    check(&run(&second, "dora", "Think.").await, &json!({"task_id": "t_03", "result": "Hm."}));
}

#[tokio::test]
async fn on_disk_many_tasks_in_parallel_and_a_chain_end_as_they_do_in_memory() {
    let directory = tempfile::tempdir().unwrap();
    let script = Scripted::new().agent("*", [Say::text("<{{task}}>")]);
    let desk = process(&directory.path().join("locum.db"), &script, &Ledger::default(), None);
    let tasks: Vec<Value> = (0..40).map(|n| json!({"agent": "ann", "task": format!("{n}")})).collect();
    let answer = ask(&desk, json!({"action": "parallel", "tasks": tasks})).await;
    check(&answer, &json!({"completed": 40, "failed": 0}));
    let results: Vec<&str> =
        answer["results"].as_array().unwrap().iter().filter_map(|result| result["result"].as_str()).collect();
    let expected: Vec<String> = (0..40).map(|n| format!("<{n}>")).collect();
    assert_eq!(results, expected);
    let steps = json!([{"agent": "ann", "task": "a"}, {"agent": "ann", "task": "{previous}"}]);
    check(&ask(&desk, json!({"action": "chain", "tasks": steps})).await, &json!({"result": "<<a>>", "step": 2}));
}
