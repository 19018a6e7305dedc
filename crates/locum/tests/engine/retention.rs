//! What is forgotten after thirty days, and what is not.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use locum::clock::Clock;
use locum::desk::Forgotten;
use locum::models::scripted::{Say, Scripted};
use locum::store::{Store, Sweeping};
use locum::{Desk, Timestamp};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::budgets::stores;
use crate::stage::{ask, builder, check, spawn};

/// A clock that is moved by hand: nobody waits for a month.
#[derive(Clone)]
struct Calendar(Arc<AtomicI64>);

impl Calendar {
    /// The eighteenth of February.
    fn new() -> Self {
        Self(Arc::new(AtomicI64::new(1_771_372_800_000)))
    }

    fn pass(&self, days: f64) {
        self.0.fetch_add((days * 86_400_000.0) as i64, Ordering::Relaxed);
    }
}

impl Clock for Calendar {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::Relaxed))
    }
}

fn cast() -> Scripted {
    let never = Say::text("Late.").after(Duration::from_secs(1_000 * 24 * 60 * 60));
    Scripted::new().agent("ann", [Say::text("Done.")]).agent("bob", [never])
}

fn desk(store: Arc<dyn Store>) -> (Desk, Calendar) {
    let calendar = Calendar::new();
    let patience = locum::Patience { inactivity_ms: u64::MAX, ..locum::Patience::default() };
    let builder = builder(cast()).store(store).clock(Arc::new(calendar.clone())).patience(patience);
    (builder.build().unwrap(), calendar)
}

async fn old(desk: &Desk, sweeping: Sweeping) -> Forgotten {
    desk.forget_old(&[], sweeping).await.unwrap()
}

async fn run(desk: &Desk) -> Value {
    ask(desk, json!({"action": "run", "agent": "ann", "task": "Go."})).await
}

/// A task that has ended and was not collected.
async fn ended(desk: &Desk) -> String {
    let id = spawn(desk, "ann", "Go.").await;
    check(&ask(desk, json!({"action": "wait", "task_ids": [id]})).await, &json!({"timed_out": false}));
    id
}

#[tokio::test]
async fn results_and_logs_are_kept_for_thirty_days() {
    for store in stores() {
        let (desk, calendar) = desk(store);
        let ids = [run(&desk).await["task_id"].clone(), json!(ended(&desk).await)];
        calendar.pass(29.9);
        run(&desk).await;
        assert_eq!(old(&desk, Sweeping::Remove).await, Forgotten::default());
        let result = async |id: &Value| ask(&desk, json!({"action": "result", "task_id": id})).await;
        for id in &ids {
            check(&result(id).await, &json!({"text": "Done."}));
        }
        calendar.pass(0.2);
        let found = old(&desk, Sweeping::Look).await;
        assert_eq!(found.swept.tasks, 2, "collected or not: {found:?}");
        check(&result(&ids[0]).await, &json!({"text": "Done."}));
        assert_eq!(old(&desk, Sweeping::Remove).await, found);
        for id in &ids {
            check(&result(id).await, &json!({"error": "TASK_NOT_FOUND"}));
        }
        assert_eq!(run(&desk).await["task_id"], "t_04", "ids go on");
    }
}

#[tokio::test]
async fn nothing_that_is_unfinished_or_waited_for_goes() {
    for store in stores() {
        let (desk, calendar) = desk(store);
        let first = ended(&desk).await;
        let slow = spawn(&desk, "bob", "Go.").await;
        let waits = json!({"action": "spawn", "agent": "ann", "task": "Go on.", "depends_on": [first, slow]});
        check(&ask(&desk, waits).await, &json!({"status": "waiting"}));
        run(&desk).await;
        run(&desk).await;
        calendar.pass(40.0);
        assert_eq!(old(&desk, Sweeping::Remove).await.swept.tasks, 1, "neither what is waited for nor the newest");
        check(&ask(&desk, json!({"action": "result", "task_id": first})).await, &json!({"text": "Done."}));
        check(&ask(&desk, json!({"action": "cancel", "task_id": slow})).await, &json!({"status": "cancelled"}));
        assert_eq!(old(&desk, Sweeping::Remove).await.swept.tasks, 2, "nobody waits for it any more");
        calendar.pass(31.0);
        run(&desk).await;
        assert_eq!(old(&desk, Sweeping::Remove).await.swept.tasks, 2);
    }
}

/// Files with these names, each of ten bytes.
fn files(names: &[&str]) -> (TempDir, Vec<PathBuf>) {
    let directory = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> = names.iter().map(|name| directory.path().join(name)).collect();
    paths.iter().for_each(|path| fs::write(path, "0123456789").unwrap());
    (directory, paths)
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn files_go_by_their_day_and_what_is_not_ours_stays() {
    let (desk, _) = desk(stores().remove(0));
    let named = ["2026-01-18.log", "2026-01-19.log", "2026-02-18.log", "2025-13-01.log", "notes.txt", "old.jsonl"];
    let (directory, paths) = files(&named);
    let long_ago = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_600_000_000);
    fs::File::open(&paths[5]).unwrap().set_modified(long_ago).unwrap();
    let directories = [directory.path().to_owned(), directory.path().join("none")];
    let look = desk.forget_old(&directories, Sweeping::Look).await.unwrap();
    assert_eq!((look.files.as_slice(), look.bytes), ([paths[0].clone(), paths[5].clone()].as_slice(), 20));
    assert_eq!(names(directory.path()).len(), 6);
    assert_eq!(desk.forget_old(&directories, Sweeping::Remove).await.unwrap(), look);
    assert_eq!(names(directory.path()), ["2025-13-01.log", "2026-01-19.log", "2026-02-18.log", "notes.txt"]);
}

#[tokio::test]
async fn a_task_that_left_a_worktree_is_remembered() {
    let worktrees = tempfile::tempdir().unwrap();
    let calendar = Calendar::new();
    let desk = builder(cast()).worktrees(worktrees.path()).clock(Arc::new(calendar.clone())).build().unwrap();
    let [kept, gone] = [run(&desk).await, run(&desk).await];
    let uid = async |answer: &Value| desk.log_of(answer["task_id"].as_str().unwrap()).await.unwrap()[0].clone();
    let locum::task::TaskEvent::Accepted { plan, .. } = uid(&kept).await.event else { panic!("{kept}") };
    fs::create_dir(worktrees.path().join(format!("{}-2", plan.uid))).unwrap();
    calendar.pass(31.0);
    run(&desk).await;
    assert_eq!(old(&desk, Sweeping::Remove).await.swept.tasks, 1);
    let result = async |answer: &Value| ask(&desk, json!({"action": "result", "task_id": answer["task_id"]})).await;
    check(&result(&kept).await, &json!({"text": "Done."}));
    check(&result(&gone).await, &json!({"error": "TASK_NOT_FOUND"}));
}
