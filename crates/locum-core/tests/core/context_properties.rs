//! The shared context against a simple store: whatever is done to it, versions grow and limits hold.

use std::collections::HashMap;

use locum_core::limits::{CONTEXT_TOKENS_MAX, CONTEXT_VALUE_TOKENS_MAX};
use locum_core::protocol::Code;
use locum_core::protocol::response::Entry;
use locum_core::session::{ContextView, SessionChange, SessionView, Slot};
use locum_core::usage::{estimate_tokens, fits_tokens, tokens_of_chars};
use proptest::prelude::{Strategy, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};
use serde_json::{Value, json};

use crate::shared_context::{act, line_of};

/// What a store keeps of a session's shared context.
#[derive(Default)]
struct Shelf {
    entries: HashMap<String, Entry>,
    versions: HashMap<String, u64>,
}

impl Shelf {
    fn total_tokens(&self) -> usize {
        self.entries.values().map(|entry| estimate_tokens(&entry.value)).sum()
    }

    fn view(&self, key: &str) -> SessionView {
        let slot = |version: &u64| Slot { last_version: *version, entry: self.entries.get(key).cloned() };
        let slots = self.versions.get(key).map(|version| (key.to_owned(), slot(version))).into_iter().collect();
        let keys = self.entries.values().map(line_of).collect();
        SessionView { context: ContextView { slots, keys, ..ContextView::default() }, ..SessionView::default() }
    }

    fn change(&mut self, change: SessionChange) {
        match change {
            SessionChange::PutContext(entry) => {
                self.versions.insert(entry.key.clone(), entry.version);
                self.entries.insert(entry.key.clone(), entry);
            }
            SessionChange::RemoveContext { key, .. } => {
                self.entries.remove(&key).unwrap();
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Random actions on twelve keys: enough that twelve large values do not fit.
fn actions() -> impl Strategy<Value = Vec<(usize, Value)>> {
    let key = 0usize..12;
    let expected = prop_oneof![3 => proptest::strategy::Just(None), 1 => (0u64..6).prop_map(Some)];
    let chars = prop_oneof![0usize..40, 3000usize..4010];
    let write = (chars, expected.clone(), any::<bool>()).prop_map(|(chars, version, wide)| {
        let value = if wide { "é" } else { "v" }.repeat(chars);
        json!({"action": "write", "value": value, "expected_version": version})
    });
    let delete = expected.prop_map(|version| json!({"action": "delete", "expected_version": version}));
    let read = proptest::strategy::Just(json!({"action": "read"}));
    prop::collection::vec((key, prop_oneof![6 => write, 2 => delete, 1 => read]), 1..40)
}

proptest! {
    #[test]
    fn versions_grow_and_limits_hold(actions in actions()) {
        let mut shelf = Shelf::default();
        for (key, mut input) in actions {
            let key = format!("key_{key}");
            input["key"] = key.as_str().into();
            let view = shelf.view(&key);
            let before = view.context.slots.get(&key).map_or(0, |slot| slot.last_version);
            match act(&view, input.clone()) {
                Ok((_, changes)) if changes.is_empty() => prop_assert!(shelf.entries.contains_key(&key)),
                Ok((_, changes)) => {
                    let writes = matches!(changes.as_slice(), [SessionChange::PutContext(_)]);
                    changes.into_iter().for_each(|change| shelf.change(change));
                    prop_assert_eq!(shelf.versions[&key], before + u64::from(writes));
                }
                Err(refusal) => check_refusal(&refusal.code, &shelf, &input)?,
            }
            prop_assert!(shelf.total_tokens() <= CONTEXT_TOKENS_MAX);
            prop_assert!(shelf.entries.values().all(|entry| fits_tokens(&entry.value, CONTEXT_VALUE_TOKENS_MAX)));
        }
    }

    #[test]
    fn tokens_are_characters_over_four(text in "\\PC{0,50}", repeat in 1usize..20, most in 0usize..300) {
        let text = text.repeat(repeat);
        let chars = text.chars().count();
        let tokens = estimate_tokens(&text);
        prop_assert!(tokens * 4 >= chars && (tokens == 0 || (tokens - 1) * 4 < chars));
        prop_assert_eq!(fits_tokens(&text, most), tokens <= most);
    }
}

/// A refusal has its reason in the state.
fn check_refusal(code: &Code, shelf: &Shelf, input: &Value) -> Result<(), proptest::test_runner::TestCaseError> {
    let entry = shelf.entries.get(input["key"].as_str().unwrap_or_default());
    let version = entry.map_or(0, |entry| entry.version);
    let value = input["value"].as_str().unwrap_or_default();
    match code {
        Code::KeyNotFound => prop_assert!(entry.is_none()),
        Code::ValueTooLarge => prop_assert!(value.chars().count() > 4000),
        Code::VersionConflict => prop_assert!(input["expected_version"].as_u64().unwrap() != version),
        Code::StoreFull => prop_assert!(shelf.total_tokens() + estimate_tokens(value) > CONTEXT_TOKENS_MAX),
        other => prop_assert!(false, "{other}"),
    }
    Ok(())
}

#[test]
fn the_largest_count_does_not_overflow() {
    assert_eq!(tokens_of_chars(0), 0);
    assert_eq!(tokens_of_chars(usize::MAX), usize::MAX / 4 + 1);
}
