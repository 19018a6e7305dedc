//! What is forgotten when it is old, and what is not.

use super::fixture::*;
use crate::store::{Error, Owner, OwnerId, Position, Store, Sweep, Sweeping, Swept, TaskQuery};

/// Everything ends at this second here.
const ENDED: i64 = 100;

fn sweep(before: i64, sweeping: Sweeping) -> Sweep {
    Sweep { before: at(before), kept: Vec::new(), most: 100, sweeping }
}

async fn left(store: &dyn Store) -> Vec<String> {
    let project = session("main").project.to_string();
    let page = TaskQuery::Page { project, session: None, before: None, most: 100 };
    let mut names: Vec<String> =
        store.tasks(page).await.unwrap().iter().map(|row| row.summary.uid.to_string()).collect();
    names.sort();
    names
}

pub(super) async fn what_ended_before_is_removed_with_its_log(store: &dyn Store) {
    spawn(store, "main", vec![order("a"), order("b"), order("c")]).await;
    spawn(store, "other", vec![order("d")]).await;
    append(store, &lease("a"), turn()).await.unwrap();
    for name in ["a", "d", "b"] {
        complete(store, name, "done").await;
    }
    append(store, &lease("c"), turn()).await.unwrap();
    assert_eq!(store.sweep(sweep(ENDED, Sweeping::Remove)).await.unwrap(), Swept::default(), "not before that");
    let found = Swept { tasks: 3, entries: 7, owners: 0 };
    assert_eq!(store.sweep(sweep(ENDED + 1, Sweeping::Look)).await.unwrap(), found);
    assert_eq!(left(store).await, ["a", "b", "c", "d"], "looking removes nothing");
    assert_eq!(store.sweep(sweep(ENDED + 1, Sweeping::Remove)).await.unwrap(), found);
    assert_eq!(left(store).await, ["c"]);
    assert!(matches!(store.records(&uid("a"), 0, 9).await, Err(Error::NotFound)));
    // Ids go on from where they were, and so do readers of the session.
    let tail = store.tail(&session("main"), Position::default(), 100).await.unwrap();
    assert!(tail.records.iter().all(|record| record.uid == uid("c")));
    let next = spawn(store, "main", vec![order("e")]).await.accepted.remove(0);
    assert_eq!(next.summary.task_id, id(4));
    let later = store.tail(&session("main"), tail.until, 100).await.unwrap();
    assert_eq!(later.records.len(), 1, "what is new comes after what was read");
}

pub(super) async fn what_something_unfinished_needs_stays(store: &dyn Store) {
    spawn(store, "main", vec![order("lead"), order("first"), order("kept"), order("free")]).await;
    complete(store, "free", "done").await;
    spawn_below(store, "main", "lead", vec![order("middle")]).await;
    spawn_below(store, "main", "middle", vec![order("below")]).await;
    spawn(store, "main", vec![queued("block", 1)]).await;
    spawn(store, "main", vec![waiting("waits", &[2, 7])]).await;
    let held = store.claim(&uid("middle"), ME, Vec::new()).await.unwrap().unwrap();
    for name in ["lead", "first", "kept"] {
        complete(store, name, "done").await;
    }
    append(store, &held, turn()).await.unwrap();
    let ended = locum_core::task::TaskEvent::Ended { outcome: failed() };
    append(store, &held, ended).await.unwrap();
    let everything = Sweep { kept: vec![uid("kept")], ..sweep(ENDED + 1, Sweeping::Remove) };
    assert_eq!(store.sweep(everything).await.unwrap().tasks, 1);
    assert_eq!(left(store).await, ["below", "block", "first", "kept", "lead", "middle", "waits"]);
}

pub(super) async fn the_last_to_write_stays_so_that_numbers_go_on(store: &dyn Store) {
    spawn(store, "main", vec![order("a"), order("b")]).await;
    complete(store, "a", "done").await;
    complete(store, "b", "done").await;
    let seen = store.tail(&session("main"), Position::default(), 100).await.unwrap().until;
    assert_eq!(store.sweep(sweep(ENDED + 1, Sweeping::Remove)).await.unwrap().tasks, 1);
    assert_eq!(left(store).await, ["b"]);
    spawn(store, "main", vec![order("c")]).await;
    assert_eq!(store.tail(&session("main"), seen, 100).await.unwrap().records.len(), 1);
}

pub(super) async fn no_more_is_removed_at_once_than_was_said(store: &dyn Store) {
    let names = ["a", "b", "c", "d"];
    spawn(store, "main", names.map(order).into()).await;
    for name in names {
        complete(store, name, "done").await;
    }
    let some = || Sweep { most: 2, ..sweep(ENDED + 1, Sweeping::Remove) };
    assert_eq!(store.sweep(some()).await.unwrap().tasks, 2);
    assert_eq!(left(store).await, ["c", "d"]);
    assert_eq!(store.sweep(some()).await.unwrap().tasks, 1);
    assert_eq!(store.sweep(some()).await.unwrap().tasks, 0);
}

pub(super) async fn silent_owners_that_hold_nothing_are_forgotten(store: &dyn Store) {
    let owner = |id| Owner { id, pid: 1, started: "then".to_owned(), boot: "boot".to_owned(), detached: false };
    for (id, beat) in [(ME, 1), (OwnerId(8), 1), (OwnerId(9), 50)] {
        store.beat(&owner(id), at(beat)).await.unwrap();
    }
    spawn(store, "main", vec![order("a")]).await;
    let swept = store.sweep(sweep(50, Sweeping::Remove)).await.unwrap();
    assert_eq!(swept, Swept { tasks: 0, entries: 0, owners: 1 });
    assert_eq!(store.owners().await.unwrap().len(), 1, "who holds something stays");
    assert_eq!(store.sweep(sweep(51, Sweeping::Look)).await.unwrap().owners, 1);
}
