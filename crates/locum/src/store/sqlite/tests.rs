//! What only the SQLite store must do: outlive its process, share its file, and commit many writes at once.

mod faults;
mod opening;

use std::future::poll_fn;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::task::Poll;
use std::time::Duration;

use futures_util::future::{join, join_all};
use locum_core::admission::Order;
use locum_core::budget::PurseKey;
use locum_core::session::{BoardLookup, ContextLookup, Lookup, SessionChange};
use locum_core::task::outcome::Status;
use tempfile::TempDir;

use super::failure::Failure;
use super::*;
use crate::store::conformance::fixture::*;

/// The number that a query always finds.
fn number(connection: &rusqlite::Connection, query: &str) -> Result<i64, Error> {
    Ok(connection.query_row(query, [], |row| row.get(0)).map_err(Failure::new)?)
}

/// Long enough for the slowest machine; nothing waits for it to pass.
const PATIENCE: Duration = Duration::from_secs(60);

struct Place {
    _directory: TempDir,
    path: PathBuf,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state").join("locum").join("store.db");
        Self { _directory: directory, path }
    }

    fn open(&self) -> SqliteStore {
        SqliteStore::open(&self.path).unwrap()
    }
}

/// Keeps the writer busy until everything that is queued was handed over to it.
async fn while_the_writer_is_busy<T>(store: &SqliteStore, queued: impl Future<Output = T>) -> T {
    let (release, released) = mpsc::channel::<()>();
    let (begin, begun) = tokio::sync::oneshot::channel();
    let block = store.decide(
        &session("busy"),
        Lookup::default(),
        None,
        Box::new(move |_| {
            begin.send(()).unwrap();
            released.recv().unwrap_err();
            Ok(Vec::new())
        }),
    );
    let rest = async {
        begun.await.unwrap();
        // The first poll hands over everything; then the writer may go on.
        let mut queued = Box::pin(queued);
        assert!(poll_fn(|context| Poll::Ready(queued.as_mut().poll(context))).await.is_pending());
        drop(release);
        queued.await
    };
    let (blocked, rest) = join(block, rest).await;
    blocked.unwrap();
    rest
}

#[tokio::test]
async fn everything_survives_reopening() {
    let place = Place::new();
    let store = place.open();
    let mut keyed = order("a");
    keyed.entry.idempotency_key = Some("key".to_owned());
    spawn(&store, "main", vec![keyed, queued("b", 1), order("c")]).await;
    append(&store, &lease("c"), turn()).await.unwrap();
    complete(&store, "a", "done").await;
    let owner = Owner { id: ME, pid: 1, started: "s".to_owned(), boot: "b".to_owned(), detached: true };
    store.beat(&owner, at(3)).await.unwrap();
    store.send(&uid("c"), Command::Cancel).await.unwrap();
    let entry = entry("k", "v", 4);
    let collect = SessionChange::Collect { task_id: id(1), at: at(2) };
    change(&store, "main", vec![SessionChange::PutContext(entry), collect]).await.unwrap();

    let lookup = || Lookup {
        agents: true,
        tasks: vec![id(1), id(2)],
        idempotency_keys: vec!["key".to_owned()],
        purses: vec![PurseKey::Session],
        context: ContextLookup::Key("k".to_owned()),
        board: BoardLookup::Everything,
    };
    let all = TaskQuery::Uids(vec![uid("a"), uid("b"), uid("c")]);
    let before = (store.tasks(all.clone()).await.unwrap(), store.owners().await.unwrap(), log(&store, "c").await);
    let seen = view(&store, "main", lookup()).await;
    drop(store);

    let store = place.open();
    let after = (store.tasks(all).await.unwrap(), store.owners().await.unwrap(), log(&store, "c").await);
    assert_eq!(after, before);
    assert_eq!(format!("{:?}", view(&store, "main", lookup()).await), format!("{seen:?}"));
    assert_eq!(store.drain(ME).await.unwrap(), [(uid("c"), Command::Cancel)]);
    append(&store, &lease("c"), reply("Done.".to_owned())).await.unwrap();
    assert_eq!(spawn(&store, "main", vec![order("d")]).await.accepted[0].summary.task_id, id(4));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_processes_never_share_an_id_nor_a_place() {
    let place = Place::new();
    let stores = [place.open(), place.open()];
    let race = |index: usize| {
        let store = &stores[index];
        async move {
            let spawns = (0..50).map(|number| async move {
                // Half of them would rather be refused than wait.
                let name = format!("s{index}-{number}");
                let wanted = if number % 2 == 0 { queued(&name, 5) } else { order(&name) };
                try_spawn(store, "main", vec![wanted]).await
            });
            join_all(spawns).await
        }
    };
    let (left, right) = join(race(0), race(1)).await;

    let mut numbers = Vec::new();
    for outcome in left.into_iter().chain(right) {
        match outcome {
            Ok(decided) => numbers.extend(decided.accepted.iter().map(|row| row.summary.task_id.number())),
            Err(DecideError::Refused(_)) => {}
            Err(DecideError::Store(error)) => panic!("{error}"),
        }
    }
    numbers.sort_unstable();
    let expected: Vec<u32> = (1..).take(numbers.len()).collect();
    assert_eq!(numbers, expected);
    assert!(numbers.len() >= 50);
    assert_eq!(census(&stores[0], "main").await["running"], 5);

    // As they end, through either process, the others follow one by one.
    for turn in 0.. {
        let store = &stores[turn % 2];
        let unfinished = store.tasks(TaskQuery::Unfinished(None)).await.unwrap();
        let running: Vec<&TaskRow> =
            unfinished.iter().filter(|row| row.summary.standing.status == Status::Running).collect();
        assert_eq!(running.len(), unfinished.len().min(5));
        let Some(first) = running.first() else { break };
        complete(store, first.summary.uid.as_str(), "done").await;
    }
}

#[tokio::test]
async fn another_process_is_noticed() {
    let place = Place::new();
    let (here, there) = (place.open(), place.open());
    let mut changes = here.changes();
    spawn(&there, "main", vec![order("a")]).await;
    tokio::time::timeout(PATIENCE, changes.changed()).await.unwrap().unwrap();
    // Watching that begins later works as well, also when nobody had watched in between.
    drop(changes);
    view(&here, "main", Lookup::default()).await;
    let mut changes = here.changes();
    append(&there, &lease("a"), turn()).await.unwrap();
    tokio::time::timeout(PATIENCE, changes.changed()).await.unwrap().unwrap();
}

#[tokio::test]
async fn many_appends_share_a_commit() {
    let place = Place::new();
    let store = place.open();
    let names: Vec<String> = (0..200).map(|number| format!("task-{number}")).collect();
    spawn(&store, "main", names.iter().map(|name| Order { running_max: 1000, ..order(name) }).collect()).await;
    let task = locum_core::task::Task::replay(log(&store, "task-0").await).unwrap();
    let record = Record { seq: 2, at: at(50), event: turn() };
    let appends = names.iter().map(|name| store.append(&lease(name), [record.clone()].into(), task.standing()));
    let before = store.commits();
    let appended = while_the_writer_is_busy(&store, join_all(appends)).await;
    assert!(appended.iter().all(Result::is_ok));
    // One for the decision that kept it busy, and tokio lets no more than 128 futures through at once.
    assert!(store.commits() - before <= 4, "{} commits", store.commits() - before);
    assert_eq!(log(&store, "task-199").await.len(), 2);
}

#[test]
fn a_runtime_that_stands_still_keeps_nobody_of_another_waiting() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (still, going) = (runtime(), runtime());
    let place = Place::new();
    let store = Arc::new(place.open());
    going.block_on(spawn(&*store, "main", vec![order("a"), order("b")]));
    let standing = going.block_on(row(&*store, "a")).summary.standing;
    let record = Record { seq: 2, at: at(50), event: turn() };
    let append = |name: &'static str| {
        let (store, record, standing) = (Arc::clone(&store), record.clone(), standing.clone());
        async move { store.append(&lease(name), [record].into(), standing).await }
    };
    let both = async {
        // It is handed over, and then nobody drives the runtime in which it is waited for.
        let left = append("a");
        let leave = || {
            still.block_on(async move {
                tokio::spawn(left);
                tokio::task::yield_now().await;
            });
        };
        std::thread::scope(|scope| scope.spawn(leave).join().unwrap());
        append("b").await
    };
    let answer = going.block_on(async { tokio::time::timeout(PATIENCE, while_the_writer_is_busy(&store, both)).await });
    answer.unwrap().unwrap();
    assert_eq!(going.block_on(log(&*store, "a")).len(), 2);
}

/// Of each session, how many tasks are said to be unfinished and to run, and how many are and do.
async fn counted(store: &SqliteStore) -> Vec<(i64, i64, i64, i64)> {
    let query = "SELECT unfinished, running, \
        (SELECT count(*) FROM tasks WHERE session = sessions.id AND completed_at IS NULL), \
        (SELECT count(*) FROM tasks WHERE session = sessions.id AND status = 'running') FROM sessions ORDER BY id";
    let counted = store.reader.read(move |connection| {
        let mut statement = connection.prepare(query).map_err(Failure::new)?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)));
        let rows: Result<Vec<_>, _> = rows.map_err(Failure::new)?.collect();
        Ok(rows.map_err(Failure::new)?)
    });
    counted.await.unwrap()
}

#[tokio::test]
async fn a_session_counts_what_its_tasks_do() {
    let place = Place::new();
    let store = place.open();
    let check = async || {
        for (unfinished, running, are_unfinished, do_run) in counted(&store).await {
            assert_eq!((unfinished, running), (are_unfinished, do_run));
        }
    };
    spawn(&store, "main", vec![order("a")]).await;
    check().await;
    spawn(&store, "main", vec![queued("b", 1), queued("c", 1)]).await;
    spawn(&store, "main", vec![waiting("d", &[1]), waiting("e", &[2])]).await;
    check().await;
    append(&store, &lease("a"), turn()).await.unwrap();
    check().await;
    assert_eq!(complete(&store, "a", "done").await, [uid("b"), uid("d")]);
    check().await;
    assert_eq!(end(&store, "b", failed()).await, [uid("e")], "what waited for it fails with it");
    check().await;
    complete(&store, "d", "done").await;
    check().await;
    complete(&store, "c", "done").await;
    assert_eq!(counted(&store).await, [(0, 0, 0, 0)]);
}

#[tokio::test]
async fn reading_makes_no_session() {
    let place = Place::new();
    let store = place.open();
    view(&store, "main", Lookup::default()).await;
    let count = |connection: &rusqlite::Connection| number(connection, "SELECT count(*) FROM sessions");
    assert_eq!(store.reader.read(count).await.unwrap(), 0);
}
