//! The life of sessions.

use locum_core::ids::{SessionId, SessionKey};
use locum_core::session::{ContextLookup, Lookup, SessionChange};

use super::fixture::*;
use crate::store::{Store, TaskQuery};

async fn sessions(store: &dyn Store) -> Vec<String> {
    let rows = store.sessions("/project").await.unwrap();
    let line = |row: &crate::store::SessionRow| {
        format!("{} {} {}/{} {}", row.id, row.archived, row.unfinished, row.tasks, row.keys)
    };
    rows.iter().map(line).collect()
}

pub(super) async fn sessions_are_listed_by_project(store: &dyn Store) {
    assert!(!view(store, "zoe", Lookup::default()).await.exists);
    assert_eq!(sessions(store).await, [""; 0]);
    change(store, "zoe", vec![SessionChange::Create]).await.unwrap();
    assert!(view(store, "zoe", Lookup::default()).await.exists);
    spawn(store, "adam", vec![order("a"), order("b")]).await;
    complete(store, "a", "done").await;
    change(store, "adam", vec![put("k", "v", 1), put("l", "v", 1), remove("l")]).await.unwrap();
    let elsewhere = SessionKey { project: "/elsewhere".into(), id: SessionId::parse("zoe").unwrap() };
    store.decide(&elsewhere, Lookup::default(), None, Box::new(|_| Ok(vec![SessionChange::Create]))).await.unwrap();
    assert_eq!(sessions(store).await, ["adam false 1/2 1", "zoe false 0/0 0"]);
}

pub(super) async fn an_archived_session_says_so(store: &dyn Store) {
    change(store, "main", vec![put("k", "v", 1)]).await.unwrap();
    change(store, "main", vec![SessionChange::Archive]).await.unwrap();
    let seen = view(store, "main", look_at_key("k")).await;
    assert!(seen.archived && seen.exists && seen.context.slots["k"].entry.is_some());
    assert_eq!(sessions(store).await, ["main true 0/0 1"]);
    assert!(!view(store, "other", Lookup::default()).await.archived);
    assert!(try_spawn(store, "main", vec![order("a")]).await.is_err());
}

pub(super) async fn a_deleted_session_leaves_nothing(store: &dyn Store) {
    let mut keyed = order("a");
    keyed.entry.idempotency_key = Some("k".to_owned());
    spawn(store, "main", vec![keyed, order("b")]).await;
    spawn(store, "other", vec![order("c")]).await;
    complete(store, "a", "done").await;
    complete(store, "b", "done").await;
    change(store, "main", vec![put("k", "v", 1), remove("k"), put("l", "v", 1)]).await.unwrap();
    change(store, "other", vec![put("k", "v", 1)]).await.unwrap();
    change(store, "main", vec![SessionChange::Delete]).await.unwrap();

    assert_eq!(sessions(store).await, ["other false 1/1 1"]);
    assert!(store.tasks(TaskQuery::Uids(vec![uid("a"), uid("b")])).await.unwrap().is_empty());
    assert!(store.records(&uid("a"), 0, 9).await.map_or(true, |records| records.is_empty()));
    let lookup = Lookup {
        idempotency_keys: vec!["k".to_owned()],
        context: ContextLookup::History("k".to_owned()),
        ..Lookup::default()
    };
    let seen = view(store, "main", lookup).await;
    assert!(!seen.exists && seen.idempotent.is_empty() && seen.context.history.is_empty());
    // What is made under its name is new, and what was there before is in its order.
    assert_eq!(spawn(store, "main", vec![order("d")]).await.accepted[0].summary.task_id, id(1));
    spawn(store, "main", vec![order("e")]).await;
    let unfinished = store.tasks(TaskQuery::Unfinished(None)).await.unwrap();
    let names: Vec<&str> = unfinished.iter().map(|row| row.summary.uid.as_str()).collect();
    assert_eq!(names, ["c", "d", "e"]);
}

pub(super) async fn unfinished_tasks_are_counted(store: &dyn Store) {
    spawn(store, "main", vec![order("a"), queued("b", 1), waiting("c", &[])]).await;
    let counts = async || {
        let seen = view(store, "main", Lookup::default()).await;
        (seen.unfinished, seen.running)
    };
    let (unfinished, _) = counts().await;
    assert_eq!(unfinished, 3);
    complete(store, "a", "done").await;
    assert_eq!(counts().await.0, 2);
}
