//! The shared context: versions, rights, history and snapshots.

use locum_core::limits::CONTEXT_HISTORY_MAX;
use locum_core::protocol::response::{Entry, SnapshotLine};
use locum_core::session::{ContextLookup, ContextView, Lookup, SessionChange, Snapshot};

use super::fixture::*;
use crate::store::Store;

async fn look(store: &dyn Store, name: &str, context: ContextLookup) -> ContextView {
    view(store, name, Lookup { context, ..Lookup::default() }).await.context
}

fn snapshot(label: &str, entries: Vec<Entry>) -> SessionChange {
    let (label, taken_by) = (label.to_owned(), "orchestrator".to_owned());
    let line = SnapshotLine { label, taken_by, taken_at: at(6), keys: entries.len(), total_size_tokens: 9 };
    SessionChange::PutSnapshot(Box::new(Snapshot { line, entries }))
}

pub(super) async fn versions_count_over_removals(store: &dyn Store) {
    let slot = async |key: &str| {
        let seen = view(store, "main", look_at_key(key)).await.context;
        let sizes: usize = seen.keys.iter().map(|line| line.value_size_tokens).sum();
        (seen.slots.get(key).map(|slot| (slot.last_version, slot.entry.clone())), sizes)
    };
    change(store, "main", vec![put("plan", "one", 1)]).await.unwrap();
    assert_eq!(slot("plan").await, (Some((1, Some(entry("plan", "one", 1)))), 1));
    change(store, "main", vec![remove("plan")]).await.unwrap();
    assert_eq!(slot("plan").await, (Some((1, None)), 0));
    change(store, "main", vec![put("plan", "two", 2)]).await.unwrap();
    assert_eq!(slot("plan").await, (Some((2, Some(entry("plan", "two", 2)))), 1));
    assert_eq!(slot("unknown").await, (None, 1));
    // Only what was asked for is loaded.
    let seen = look(store, "main", ContextLookup::Values(vec!["plan".to_owned(), "unknown".to_owned()])).await;
    assert_eq!((seen.slots.len(), seen.keys.len()), (1, 0));
}

pub(super) async fn keys_are_listed_with_sizes_and_rights(store: &dyn Store) {
    let mut guarded = entry("a", &"é".repeat(4), 1);
    guarded.readable_by = vec!["subagent:*".to_owned()];
    let changes =
        vec![put("z", "12345", 1), put("gone", "1234", 1), SessionChange::PutContext(guarded), remove("gone")];
    change(store, "main", changes).await.unwrap();
    let seen = look(store, "main", ContextLookup::Keys).await;
    let keys: Vec<(&str, usize, usize)> =
        seen.keys.iter().map(|line| (line.key.as_str(), line.value_size_tokens, line.readable_by.len())).collect();
    assert_eq!(keys, [("a", 1, 1), ("z", 2, 0)]);
    assert_eq!((seen.keys[0].written_by.as_str(), seen.keys[0].written_at), ("orchestrator", at(5)));
}

pub(super) async fn rights_and_expiry_survive(store: &dyn Store) {
    let mut full = entry("k", "v", 1);
    full.expires_at = Some(at(60));
    full.readable_by = vec!["orchestrator".to_owned(), "subagent:*".to_owned()];
    full.writable_by = vec!["subagent:writer:*".to_owned()];
    change(store, "main", vec![SessionChange::PutContext(full.clone())]).await.unwrap();
    let seen = view(store, "main", look_at_key("k")).await.context;
    assert_eq!(seen.slots["k"].entry.as_ref(), Some(&full));
    assert_eq!((seen.keys[0].expires_at, &seen.keys[0].writable_by), (Some(at(60)), &full.writable_by));
    // A plain value takes its place without anything of it.
    change(store, "main", vec![put("k", "w", 2)]).await.unwrap();
    assert_eq!(view(store, "main", look_at_key("k")).await.context.slots["k"].entry, Some(entry("k", "w", 2)));
    let history = look(store, "main", ContextLookup::History("k".to_owned())).await.history;
    assert_eq!(history, [entry("k", "w", 2), full]);
}

pub(super) async fn the_last_twenty_versions_are_kept_newest_first(store: &dyn Store) {
    let versions = async |key: &str| {
        let history = look(store, "main", ContextLookup::History(key.to_owned())).await.history;
        history.iter().map(|entry| entry.version).collect::<Vec<u64>>()
    };
    assert_eq!(versions("k").await, [0; 0]);
    let last = CONTEXT_HISTORY_MAX as u64;
    change(store, "main", (1..=last).map(|version| put("k", "v", version)).collect()).await.unwrap();
    assert_eq!(versions("k").await, (1..=last).rev().collect::<Vec<_>>());
    change(store, "main", vec![put("k", "v", last + 1), put("other", "v", 1)]).await.unwrap();
    assert_eq!(versions("k").await, (2..=last + 1).rev().collect::<Vec<_>>());
    // A removed key keeps its history, and no removal is a version.
    change(store, "main", vec![remove("k")]).await.unwrap();
    assert_eq!(versions("k").await.len(), CONTEXT_HISTORY_MAX);
    change(store, "main", vec![put("k", "v", last + 2)]).await.unwrap();
    assert_eq!(versions("k").await, (3..=last + 2).rev().collect::<Vec<_>>());
    assert_eq!(versions("other").await, [1]);
}

pub(super) async fn snapshots_are_kept_and_replaced(store: &dyn Store) {
    change(store, "main", vec![snapshot("b", vec![entry("k", "v", 1)]), snapshot("a", Vec::new())]).await.unwrap();
    let lines = look(store, "main", ContextLookup::Snapshots).await.snapshots;
    let shown: Vec<(&str, usize)> = lines.iter().map(|line| (line.label.as_str(), line.keys)).collect();
    assert_eq!(shown, [("a", 0), ("b", 1)]);
    assert_eq!((lines[0].taken_at, lines[0].total_size_tokens), (at(6), 9));

    let two = vec![entry("k", "Grüße \u{0} 🦀", 1), entry("l", "v", 3)];
    change(store, "main", vec![snapshot("b", two.clone())]).await.unwrap();
    let seen = look(store, "main", ContextLookup::Snapshot("b".to_owned())).await;
    assert_eq!((seen.snapshot, seen.snapshots.len()), (Some(two), 2));
    assert_eq!(look(store, "main", ContextLookup::Snapshot("c".to_owned())).await.snapshot, None);
    assert!(look(store, "main", ContextLookup::Keys).await.snapshots.is_empty());
}

pub(super) async fn a_snapshot_survives_every_change_and_other_sessions(store: &dyn Store) {
    change(store, "main", vec![put("k", "v", 1), snapshot("s", vec![entry("k", "v", 1)]), remove("k")]).await.unwrap();
    change(store, "other", vec![snapshot("s", Vec::new())]).await.unwrap();
    let seen = look(store, "main", ContextLookup::Snapshot("s".to_owned())).await;
    assert_eq!(seen.snapshot, Some(vec![entry("k", "v", 1)]));
    // Keys that were removed are seen too: their versions go on.
    assert_eq!((seen.slots["k"].last_version, &seen.slots["k"].entry), (1, &None));
}
