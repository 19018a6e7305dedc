//! What only the SQLite store must do: outlive its process, share its file, and commit many writes at once.

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

#[tokio::test]
async fn a_refused_write_does_not_undo_its_neighbours() {
    let place = Place::new();
    let store = place.open();
    spawn(&store, "main", vec![order("a"), order("b")]).await;
    let standing = row(&store, "a").await.summary.standing;
    let write = |name: &str, seq| {
        store.append(&lease(name), [Record { seq, at: at(50), event: turn() }].into(), standing.clone())
    };
    let appends = join_all([write("a", 2), write("a", 9), write("unknown", 2), write("b", 2), write("a", 3)]);
    let answers = while_the_writer_is_busy(&store, appends).await;
    let said: Vec<String> =
        answers.iter().map(|answer| answer.as_ref().map_or_else(Error::to_string, |_| "kept".to_owned())).collect();
    let (conflict, unknown) = ("the task is held by another worker", "there is no such task");
    assert_eq!(said, ["kept", conflict, unknown, "kept", "kept"]);
    assert_eq!((log(&store, "a").await.len(), log(&store, "b").await.len()), (3, 2));
}

/// Writes a reply to a task that has none yet.
fn write_reply<'a>(
    store: &'a SqliteStore,
    name: &str,
    text: &str,
    standing: &Standing,
) -> BoxFuture<'a, Result<Appended, Error>> {
    let record = Record { seq: 2, at: at(50), event: reply(text.to_owned()) };
    store.append(&lease(name), [record].into(), standing.clone())
}

#[tokio::test]
async fn a_full_disk_is_told_and_passes() {
    let place = Place::new();
    let store = place.open();
    spawn(&store, "main", vec![order("a"), order("b")]).await;
    let standing = row(&store, "a").await.summary.standing;
    let limit_pages = |pages: i64| {
        store.writer.write(move |connection| {
            connection.pragma_update(None, "max_page_count", pages).map_err(Failure::new)?;
            Ok(((), Notice::None))
        })
    };
    limit_pages(1).await.unwrap();
    let large = "x".repeat(1_000_000);
    let appends = join(write_reply(&store, "b", &large, &standing), write_reply(&store, "a", "small", &standing));
    let (refused, neighbour) = while_the_writer_is_busy(&store, appends).await;
    assert!(refused.unwrap_err().to_string().starts_with("the store failed: the disk is full"));
    assert_eq!((log(&store, "b").await.len(), row(&store, "b").await.summary.seq), (1, 1));
    // Whether there is room for the small one is SQLite's to say; what it says must be true.
    assert_eq!(log(&store, "a").await.len(), if neighbour.is_ok() { 2 } else { 1 });
    limit_pages(1_000_000).await.unwrap();
    write_reply(&store, "b", &large, &standing).await.unwrap();
}

#[tokio::test]
async fn what_fails_of_itself_does_not_undo_its_neighbours() {
    // Each stands for something that is wrong with one task's rows alone: nobody else may hear of it.
    let faults = [
        "INSERT INTO events (task, seq, at, event) SELECT key, 2, 0, '{}' FROM tasks WHERE uid = 'b'",
        "CREATE TRIGGER fault BEFORE UPDATE OF seq ON tasks WHEN old.uid = 'b' BEGIN SELECT RAISE(ABORT, 'fault'); END",
        "CREATE TRIGGER fault BEFORE INSERT ON events WHEN new.event LIKE '%faulty%' BEGIN SELECT RAISE(ABORT, 'fault'); END",
    ];
    for fault in faults {
        let place = Place::new();
        let store = place.open();
        spawn(&store, "main", vec![order("a"), order("b"), order("c")]).await;
        let standing = row(&store, "a").await.summary.standing;
        let break_it = store.writer.write(move |connection| {
            connection.execute_batch(fault).map_err(Failure::new)?;
            Ok(((), Notice::None))
        });
        break_it.await.unwrap();
        let before = events_of(&place, "b");
        let neighbours = join(write_reply(&store, "a", "fine", &standing), write_reply(&store, "c", "fine", &standing));
        let all = join(write_reply(&store, "b", "faulty", &standing), neighbours);
        let (failed, neighbours) = while_the_writer_is_busy(&store, all).await;
        assert!(matches!(failed, Err(Error::Failed(_))), "{fault}: {failed:?}");
        neighbours.0.unwrap();
        neighbours.1.unwrap();
        assert_eq!((log(&store, "a").await.len(), log(&store, "c").await.len()), (2, 2), "{fault}");
        assert_eq!((events_of(&place, "b"), row(&store, "b").await.summary.seq), (before, 1), "{fault}");
    }
}

#[tokio::test]
async fn a_task_that_cannot_be_accepted_leaves_nothing_and_undoes_no_neighbour() {
    for fault in [
        "CREATE TRIGGER fault BEFORE INSERT ON tasks WHEN new.uid = 'b' BEGIN SELECT RAISE(ABORT, 'fault'); END",
        "CREATE TRIGGER fault BEFORE INSERT ON events WHEN new.event LIKE '%\"uid\":\"b\"%' \
         BEGIN SELECT RAISE(ABORT, 'fault'); END",
    ] {
        let place = Place::new();
        let store = place.open();
        spawn(&store, "main", vec![order("a")]).await;
        let standing = row(&store, "a").await.summary.standing;
        let break_it = store.writer.write(move |connection| {
            connection.execute_batch(fault).map_err(Failure::new)?;
            Ok(((), Notice::None))
        });
        break_it.await.unwrap();
        let refused = try_spawn(&store, "main", vec![order("b")]);
        let both = join(write_reply(&store, "a", "fine", &standing), refused);
        let (neighbour, refused) = while_the_writer_is_busy(&store, both).await;
        neighbour.unwrap();
        assert!(refused.unwrap_err().to_string().contains("fault"), "{fault}");
        assert_eq!((log(&store, "a").await.len(), events_of(&place, "b")), (2, 0), "{fault}");
        assert_eq!(spawn(&store, "main", vec![order("c")]).await.accepted[0].summary.task_id, id(2), "{fault}");
        assert_eq!(counted(&store).await, [(2, 2, 2, 2)], "{fault}");
    }
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

/// How many rows of events a task has.
fn events_of(place: &Place, uid: &str) -> i64 {
    let connection = rusqlite::Connection::open(&place.path).unwrap();
    let query = "SELECT count(*) FROM events JOIN tasks ON tasks.key = events.task WHERE tasks.uid = ?1";
    connection.query_row(query, [uid], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn a_lost_transaction_is_told_to_everybody_in_it() {
    let place = Place::new();
    let store = place.open();
    spawn(&store, "main", vec![order("a"), order("b")]).await;
    let standing = row(&store, "a").await.summary.standing;
    // SQLite ends a transaction by itself when the disk fails; this failure is made by hand.
    let fail = store.writer.write(|connection| -> Result<((), Notice), Error> {
        connection.execute_batch("ROLLBACK; SELECT made_up").map_err(Failure::new)?;
        Ok(((), Notice::None))
    });
    let neighbours = join(write_reply(&store, "a", "before", &standing), fail);
    let all = join(neighbours, write_reply(&store, "b", "after", &standing));
    let ((before, failed), after) = while_the_writer_is_busy(&store, all).await;
    for told in [before.unwrap_err(), failed.unwrap_err(), after.unwrap_err()] {
        assert!(told.to_string().contains("no such column: made_up"), "{told}");
    }
    assert_eq!((log(&store, "a").await.len(), log(&store, "b").await.len()), (1, 1));
    write_reply(&store, "a", "again", &standing).await.unwrap();
}

#[test]
fn a_newer_database_is_refused() {
    let place = Place::new();
    drop(place.open());
    let connection = rusqlite::Connection::open(&place.path).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    let error = SqliteStore::open(&place.path).unwrap_err().to_string();
    assert!(error.contains("was written by a newer version of locum"), "{error}");
}

#[test]
fn a_file_that_is_no_database_is_refused() {
    let place = Place::new();
    std::fs::create_dir_all(place.path.parent().unwrap()).unwrap();
    std::fs::write(&place.path, "this is not a database, ".repeat(100)).unwrap();
    let error = SqliteStore::open(&place.path).unwrap_err().to_string();
    assert!(error.contains("store.db cannot be opened: the file is not a database"), "{error}");
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("file"), "").unwrap();
    let error = SqliteStore::open(&directory.path().join("file/store.db")).unwrap_err().to_string();
    assert!(error.contains("file/store.db cannot be opened"), "{error}");
}

#[cfg(unix)]
#[tokio::test]
async fn files_are_for_their_user_alone() {
    use std::os::unix::fs::PermissionsExt as _;

    let place = Place::new();
    let store = place.open();
    spawn(&store, "main", vec![order("a")]).await;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let directory = place.path.parent().unwrap();
    assert_eq!((mode(directory), mode(directory.parent().unwrap())), (0o700, 0o700));
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(mode(&entry.path()), 0o600, "{entry:?}");
        names.push(entry.file_name().into_string().unwrap());
    }
    names.sort_unstable();
    assert_eq!(names, ["store.db", "store.db-lock", "store.db-shm", "store.db-wal"]);
}

#[test]
fn many_can_open_a_new_database_at_once() {
    let place = Place::new();
    std::thread::scope(|scope| {
        let openers: Vec<_> = (0..16).map(|_| scope.spawn(|| place.open())).collect();
        let stores: Vec<SqliteStore> = openers.into_iter().map(|opener| opener.join().unwrap()).collect();
        assert_eq!(stores.len(), 16);
    });
}

#[tokio::test]
async fn reading_makes_no_session() {
    let place = Place::new();
    let store = place.open();
    view(&store, "main", Lookup::default()).await;
    let count = |connection: &rusqlite::Connection| number(connection, "SELECT count(*) FROM sessions");
    assert_eq!(store.reader.read(count).await.unwrap(), 0);
}

/// A database as the first release made it, with one session.
fn first_release(place: &Place) {
    std::fs::create_dir_all(place.path.parent().unwrap()).unwrap();
    let connection = rusqlite::Connection::open(&place.path).unwrap();
    connection.execute_batch(include_str!("schema.sql")).unwrap();
    connection.pragma_update(None, "user_version", 1).unwrap();
    let rows = "INSERT INTO sessions (id, project, name, next_task) VALUES (1, '/project', 'main', 4);
        INSERT INTO context VALUES (1, 'goal', 'Ship it.', 2, 'orchestrator', 1700000005000, 3);
        INSERT INTO context VALUES (1, 'gone', NULL, 0, 'orchestrator', 1700000005000, 7);";
    connection.execute_batch(rows).unwrap();
}

#[tokio::test]
async fn a_database_of_the_first_release_goes_on() {
    let place = Place::new();
    first_release(&place);
    let store = place.open();
    let goal = || entry("goal", "Ship it.", 3);
    let seen = view(&store, "main", look_at_key("goal")).await;
    assert_eq!((seen.next_task, seen.context.slots["goal"].entry.clone()), (4, Some(goal())));
    let history = |key: &str| Lookup { context: ContextLookup::History(key.to_owned()), ..Lookup::default() };
    assert_eq!(view(&store, "main", history("goal")).await.context.history, [goal()]);
    assert!(view(&store, "main", history("gone")).await.context.history.is_empty());
    assert_eq!(view(&store, "main", look_at_key("gone")).await.context.slots["gone"].last_version, 7);

    change(&store, "main", vec![put("goal", "Ship more.", 4), put("gone", "back", 8)]).await.unwrap();
    assert_eq!(view(&store, "main", history("goal")).await.context.history, [entry("goal", "Ship more.", 4), goal()]);
    spawn(&store, "main", vec![order("a")]).await;
    complete(&store, "a", "done").await;
    drop(store);
    let store = place.open();
    change(&store, "main", vec![SessionChange::Delete]).await.unwrap();
    let left = |connection: &rusqlite::Connection| {
        let mut left = Vec::new();
        for table in ["sessions", "agents", "tasks", "events", "context", "context_history", "snapshots"] {
            let count = format!("SELECT count(*) FROM {table}");
            left.push(connection.query_row(&count, [], |row| row.get::<_, i64>(0)).map_err(Failure::new)?);
        }
        Ok(left)
    };
    assert_eq!(store.reader.read(left).await.unwrap(), [0; 7]);
}

#[tokio::test]
async fn tasks_of_an_older_database_are_counted() {
    let place = Place::new();
    let store = place.open();
    spawn(&store, "main", vec![order("a"), order("b"), queued("c", 2)]).await;
    complete(&store, "b", "done").await;
    spawn(&store, "main", vec![queued("d", 2)]).await;
    drop(store);
    let connection = rusqlite::Connection::open(&place.path).unwrap();
    let older = "PRAGMA user_version = 2;
        ALTER TABLE sessions DROP COLUMN unfinished; ALTER TABLE sessions DROP COLUMN running;
        ALTER TABLE sessions DROP COLUMN delegated; DROP TABLE purses; DROP TABLE drawn;
        DROP TABLE board; DROP INDEX tasks_queued; DROP INDEX tasks_below;
        ALTER TABLE tasks DROP COLUMN place; ALTER TABLE tasks DROP COLUMN places;";
    connection.execute_batch(older).unwrap();
    drop(connection);

    let store = place.open();
    let counts = async || {
        let seen = view(&store, "main", Lookup::default()).await;
        (seen.running, seen.unfinished)
    };
    assert_eq!(counts().await, (2, 3));
    complete(&store, "a", "done").await;
    assert_eq!(counts().await, (2, 2), "one has ended, one was released");
    complete(&store, "c", "done").await;
    complete(&store, "d", "done").await;
    assert_eq!(counts().await, (0, 0));
}
