//! The shared context of a session in memory.

use std::collections::{BTreeMap, VecDeque};

use locum_core::limits;
use locum_core::protocol::response::{Entry, KeyLine};
use locum_core::session::{ContextLookup, ContextView, Slot};
use locum_core::usage::estimate_tokens;

use super::tables::{ContextSlot, SessionTable};

impl ContextSlot {
    fn entry(&self) -> Option<&Entry> {
        self.history.back().filter(|_| self.live)
    }

    fn slot(&self) -> Slot {
        let last_version = self.history.back().map_or(0, |entry| entry.version);
        Slot { last_version, entry: self.entry().cloned() }
    }
}

impl SessionTable {
    /// What a decision asked to see.
    pub(super) fn context_view(&self, lookup: &ContextLookup) -> ContextView {
        let mut view = ContextView::default();
        match lookup {
            ContextLookup::None => {}
            ContextLookup::Keys => view.keys = self.key_lines(),
            ContextLookup::Key(key) => {
                view.slots = self.slots(std::slice::from_ref(key));
                view.keys = self.key_lines();
            }
            ContextLookup::Values(keys) => view.slots = self.slots(keys),
            ContextLookup::History(key) => {
                let history = self.context.get(key).map(|slot| slot.history.iter().rev().cloned().collect());
                view.history = history.unwrap_or_default();
            }
            ContextLookup::Snapshots => view.snapshots = self.snapshot_lines(),
            ContextLookup::Snapshot(label) => {
                view.slots = self.context.iter().map(|(key, slot)| (key.clone(), slot.slot())).collect();
                view.snapshots = self.snapshot_lines();
                view.snapshot = self.snapshots.get(label).map(|snapshot| snapshot.entries.clone());
            }
        }
        view
    }

    pub(super) fn put_context(&mut self, entry: Entry) {
        let new = || ContextSlot { live: true, history: VecDeque::new() };
        let slot = self.context.entry(entry.key.clone()).or_insert_with(new);
        slot.live = true;
        slot.history.push_back(entry);
        while slot.history.len() > limits::CONTEXT_HISTORY_MAX {
            slot.history.pop_front();
        }
    }

    pub(super) fn remove_context(&mut self, key: &str) {
        if let Some(slot) = self.context.get_mut(key) {
            slot.live = false;
        }
    }

    /// How many keys have a value.
    pub(super) fn keys_count(&self) -> usize {
        self.context.values().filter(|slot| slot.live).count()
    }

    fn slots(&self, keys: &[String]) -> BTreeMap<String, Slot> {
        keys.iter().filter_map(|key| Some((key.clone(), self.context.get(key)?.slot()))).collect()
    }

    fn key_lines(&self) -> Vec<KeyLine> {
        let line = |entry: &Entry| KeyLine {
            key: entry.key.clone(),
            written_by: entry.written_by.clone(),
            written_at: entry.written_at,
            version: entry.version,
            value_size_tokens: estimate_tokens(&entry.value),
            expires_at: entry.expires_at,
            readable_by: entry.readable_by.clone(),
            writable_by: entry.writable_by.clone(),
        };
        self.context.values().filter_map(ContextSlot::entry).map(line).collect()
    }

    fn snapshot_lines(&self) -> Vec<locum_core::protocol::response::SnapshotLine> {
        self.snapshots.values().map(|snapshot| snapshot.line.clone()).collect()
    }
}
