//! Which files are opened, and databases of older versions.

use super::*;

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

/// A database as the first release made it, with one session.
fn first_release(place: &Place) {
    std::fs::create_dir_all(place.path.parent().unwrap()).unwrap();
    let connection = rusqlite::Connection::open(&place.path).unwrap();
    connection.execute_batch(include_str!("../schema.sql")).unwrap();
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
