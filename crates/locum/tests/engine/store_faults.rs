//! A store that fails for a moment, or a lease that is lost: no task is, and nothing is done twice.

use std::sync::Arc;
use std::time::Duration;

use locum::models::scripted::{Say, Scripted};
use locum::store::{Leases, OwnerId, Sessions, TaskQuery, TaskRow};
use locum::task::{Record, Task, TaskEvent};
use locum::transcript::Repeat;
use locum::{Desk, Stay, Uid};
use serde_json::json;

use crate::cast::Witness;
use crate::faulty::{FailingAppends, Faults, FaultyStore};
use crate::stage::{Ledger, agent, ask, builder, check, collect, noting_tool, pass, spawn, status};

/// Somebody else who works on tasks.
const THIEF: OwnerId = OwnerId(77);

struct Scene {
    store: FaultyStore,
    model: Witness,
    ledger: Ledger,
}

impl Scene {
    /// `eve` acts, looks and answers, a second each.
    fn new() -> Self {
        let second = Duration::from_secs(1);
        let script = [
            Say::calls([("act", json!({}))]).after(second),
            Say::calls([("look", json!({}))]).after(second),
            Say::text("All done.").after(second),
        ];
        let model = Witness::new(Scripted::new().agent("eve", script));
        Self { store: FaultyStore::default(), model, ledger: Ledger::default() }
    }

    fn desk(&self) -> Desk {
        builder(self.model.clone())
            .store(Arc::new(self.store.clone()))
            .tool(noting_tool("act", Repeat::Unsafe, &self.ledger))
            .tool(noting_tool("look", Repeat::Safe, &self.ledger))
            .agent(agent("eve", &["act", "look"]))
            .build()
            .unwrap()
    }

    fn acts(&self) -> usize {
        self.ledger.lines().iter().filter(|line| line.starts_with("act")).count()
    }

    async fn row(&self, desk: &Desk) -> TaskRow {
        self.store.tasks(TaskQuery::Uncollected(desk.session().clone())).await.unwrap().remove(0)
    }

    /// Takes the lease of a task away from whoever holds it.
    async fn steal(&self, desk: &Desk) -> locum::store::Lease {
        let row = self.row(desk).await;
        let lease = self.store.claim(&row.summary.uid, THIEF, row.owner.into_iter().collect()).await;
        lease.unwrap().unwrap()
    }
}

fn count(log: &[Record], wanted: fn(&TaskEvent) -> bool) -> usize {
    log.iter().filter(|record| wanted(&record.event)).count()
}

#[tokio::test(start_paused = true)]
async fn appends_that_fail_for_a_moment_cost_nothing_wherever_they_fail() {
    for (after, times) in (0..8).flat_map(|after| (1..=3).map(move |times| (after, times))) {
        let scene = Scene::new();
        let desk = scene.desk();
        scene.store.set(Faults { appends: Some(FailingAppends { after, times, written: false }), ..Faults::default() });
        let id = spawn(&desk, "eve", "Act.").await;
        check(&collect(&desk, &id).await, &json!({"status": "completed", "result": "All done.", "turns_used": 3}));
        let log = desk.log_of(&id).await.unwrap();
        assert_eq!(count(&log, |event| matches!(event, TaskEvent::Replied { .. })), 3, "{after} {times}");
        assert_eq!(count(&log, |event| matches!(event, TaskEvent::ToolEnded { .. })), 2, "{after} {times}");
        assert_eq!((scene.model.calls(), scene.ledger.lines().len()), (3, 2), "{after} {times}");
        assert!(Task::replay(log).is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn appends_that_fail_longer_or_were_written_all_the_same_double_no_effect() {
    let longer = (0..8).flat_map(|after| [4, 9].map(|times| FailingAppends { after, times, written: false }));
    let written = (0..8).map(|after| FailingAppends { after, times: 1, written: true });
    for appends in longer.chain(written) {
        let scene = Scene::new();
        let desk = scene.desk();
        scene.store.set(Faults { appends: Some(appends.clone()), ..Faults::default() });
        let id = spawn(&desk, "eve", "Act.").await;
        check(&collect(&desk, &id).await, &json!({"status": "completed", "result": "All done.", "turns_used": 3}));
        let told_unknown = scene.model.asked().iter().any(|asked| asked.tool_answers().join("").contains("is unknown"));
        // Done once and told so; or in doubt, and told so.
        assert!(scene.acts() == 1 || (scene.acts() == 0 && told_unknown), "{appends:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_whose_store_stays_broken_is_given_back_and_goes_on_when_it_is_repaired() {
    let scene = Scene::new();
    let desk = scene.desk();
    let id = spawn(&desk, "eve", "Act.").await;
    pass(0.5).await;
    scene.store.set(Faults {
        appends: Some(FailingAppends { after: 0, times: usize::MAX, written: false }),
        ..Faults::default()
    });
    pass(120.0).await;
    check(&status(&desk, &id).await, &json!({"status": "running"}));
    assert_eq!(scene.row(&desk).await.owner, None);
    scene.store.set(Faults::default());
    assert_eq!(desk.adopt_orphans(Stay::Long).await.unwrap(), 1);
    check(&collect(&desk, &id).await, &json!({"status": "completed", "turns_used": 3}));
    assert_eq!(scene.acts(), 1);
}

#[tokio::test(start_paused = true)]
async fn who_lost_its_lease_writes_nothing_more_and_acts_no_more() {
    let scene = Scene::new();
    let desk = scene.desk();
    let id = spawn(&desk, "eve", "Act.").await;
    pass(0.5).await;
    let lease = scene.steal(&desk).await;
    let before = desk.log_of(&id).await.unwrap();
    pass(60.0).await;
    assert_eq!(desk.log_of(&id).await.unwrap(), before);
    assert_eq!((scene.model.calls(), scene.acts()), (1, 0), "the answer came, and nothing followed from it");
    check(&status(&desk, &id).await, &json!({"status": "running"}));
    let waited = ask(&desk, json!({"action": "wait", "timeout_ms": 1000})).await;
    check(&waited, &json!({"timed_out": true}));
    scene.store.release(&lease).await.unwrap();
    assert_eq!(scene.desk().adopt_orphans(Stay::Long).await.unwrap(), 1);
    check(&collect(&desk, &id).await, &json!({"status": "completed", "turns_used": 3}));
    assert_eq!(scene.acts(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_was_stolen_and_given_back_is_not_left_without_a_driver() {
    let scene = Scene::new();
    let desk = scene.desk();
    let id = spawn(&desk, "eve", "Act.").await;
    pass(0.5).await;
    let lease = scene.steal(&desk).await;
    scene.store.release(&lease).await.unwrap();
    check(&collect(&desk, &id).await, &json!({"status": "completed", "turns_used": 3}));
    assert_eq!(scene.acts(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_spawn_whose_caller_left_is_worked_on_all_the_same() {
    let scene = Scene::new();
    let desk = scene.desk();
    scene.store.set(Faults { delay: Duration::from_millis(50), ..Faults::default() });
    let spawn = json!({"action": "spawn", "agent": "eve", "task": "Act."});
    let left = tokio::time::timeout(Duration::from_millis(10), ask(&desk, spawn)).await;
    assert!(left.is_err(), "the answer comes later");
    pass(1.0).await;
    check(&collect(&desk, "t_01").await, &json!({"status": "completed"}));
}

#[tokio::test(start_paused = true)]
async fn two_who_adopt_a_task_at_once_drive_it_once() {
    let scene = Scene::new();
    let desk = scene.desk();
    spawn(&desk, "eve", "Act.").await;
    assert_eq!(desk.close().await.unwrap(), 1);
    let (desk, before) = (scene.desk(), scene.model.calls());
    scene.store.set(Faults { delay: Duration::from_millis(50), ..Faults::default() });
    let (first, second) = tokio::join!(desk.adopt_orphans(Stay::Long), desk.adopt_orphans(Stay::Long));
    assert_eq!((first.unwrap(), second.unwrap()), (1, 1));
    check(&collect(&desk, "t_01").await, &json!({"status": "completed", "turns_used": 3}));
    assert_eq!((scene.model.calls() - before, scene.acts()), (3, 1));
}

#[tokio::test(start_paused = true)]
async fn what_is_accepted_while_the_desk_closes_is_handed_over_too() {
    let scene = Scene::new();
    let desk = scene.desk();
    scene.store.set(Faults { delay: Duration::from_millis(50), ..Faults::default() });
    let late = desk.clone();
    let spawned = tokio::spawn(async move { spawn(&late, "eve", "Act.").await });
    pass(0.01).await;
    assert_eq!(desk.close().await.unwrap(), 1);
    assert_eq!(spawned.await.unwrap(), "t_01");
    let desk = scene.desk();
    assert_eq!(scene.row(&desk).await.owner, None);
    assert_eq!(desk.adopt_orphans(Stay::Long).await.unwrap(), 1);
    check(&collect(&desk, "t_01").await, &json!({"status": "completed"}));
}

#[tokio::test(start_paused = true)]
async fn a_log_that_makes_no_sense_keeps_nobody_from_the_other_tasks() {
    let scene = Scene::new();
    let desk = scene.desk();
    for task in ["one", "two"] {
        spawn(&desk, "eve", task).await;
    }
    let nonsense: Uid = scene.row(&desk).await.summary.uid;
    desk.close().await.unwrap();
    let desk = scene.desk();
    scene.store.set(Faults { nonsense: Some(nonsense), ..Faults::default() });
    assert_eq!(desk.adopt_orphans(Stay::Long).await.unwrap(), 2);
    check(&collect(&desk, "t_02").await, &json!({"status": "completed"}));
    check(&status(&desk, "t_01").await, &json!({"status": "running"}));
    scene.store.set(Faults::default());
    assert_eq!(desk.adopt_orphans(Stay::Long).await.unwrap(), 1, "it was given back");
    check(&collect(&desk, "t_01").await, &json!({"status": "completed"}));
}
