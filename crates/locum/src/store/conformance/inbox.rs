//! Commands to holders, and what watchers are told.

use locum_core::session::SessionChange;

use super::fixture::*;
use crate::store::{Command, Error, OwnerId, Store};

const OTHER: OwnerId = OwnerId(8);

pub(super) async fn commands_reach_the_holder_once(store: &dyn Store) {
    spawn(store, "main", vec![order("b"), order("a")]).await;
    store.send(&uid("a"), Command::Cancel).await.unwrap();
    store.send(&uid("b"), Command::Cancel).await.unwrap();
    assert_eq!(store.drain(OTHER).await.unwrap(), []);
    assert_eq!(store.drain(ME).await.unwrap(), [(uid("a"), Command::Cancel), (uid("b"), Command::Cancel)]);
    assert_eq!(store.drain(ME).await.unwrap(), []);
    assert!(matches!(store.send(&uid("unknown"), Command::Cancel).await, Err(Error::NotFound)));
}

pub(super) async fn commands_wait_for_a_holder(store: &dyn Store) {
    spawn_free(store, "main", vec![order("a")]).await;
    store.send(&uid("a"), Command::Cancel).await.unwrap();
    assert_eq!(store.drain(ME).await.unwrap(), []);
    store.claim(&uid("a"), ME, Vec::new()).await.unwrap();
    assert_eq!(store.drain(ME).await.unwrap(), [(uid("a"), Command::Cancel)]);
}

pub(super) async fn commands_to_ended_tasks_are_dropped(store: &dyn Store) {
    spawn(store, "main", vec![order("a")]).await;
    store.send(&uid("a"), Command::Cancel).await.unwrap();
    complete(store, "a", "done").await;
    store.send(&uid("a"), Command::Cancel).await.unwrap();
    assert_eq!(store.drain(ME).await.unwrap(), []);
}

pub(super) async fn changes_are_told_and_events_are_not(store: &dyn Store) {
    let mut changes = store.changes();
    let mut told = |what: &str, expected: bool| {
        assert_eq!(changes.has_changed().unwrap(), expected, "{what}");
        changes.mark_unchanged();
    };
    spawn(store, "main", vec![order("a"), order("b")]).await;
    told("accepted", true);
    append(store, &lease("a"), turn()).await.unwrap();
    told("an event", false);
    store.send(&uid("a"), Command::Cancel).await.unwrap();
    told("a command", true);
    store.drain(ME).await.unwrap();
    told("drained", false);
    store.release(&lease("a")).await.unwrap();
    told("given back", true);
    complete(store, "b", "done").await;
    told("ended", true);
    change(store, "main", vec![SessionChange::Collect { task_id: id(2), at: at(1) }]).await.unwrap();
    told("collected", false);
    store.send(&uid("b"), Command::Cancel).await.unwrap();
    told("a command to nobody", false);
}
