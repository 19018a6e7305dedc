//! What fails in a transaction that many share.

use super::*;

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
