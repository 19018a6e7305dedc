//! The rules of the shared context, one by one.

use locum_core::ids::{Identity, TaskId, Timestamp};
use locum_core::limits::NAME_CHARS_MAX;
use locum_core::protocol::parse::tool_request;
use locum_core::protocol::response::{Entry, KeyLine, Response};
use locum_core::protocol::{Refusal, ToolRequest};
use locum_core::session::{ContextLookup, SessionChange, SessionView, Slot};
use locum_core::shared_context::{Terms, decide, lookup};
use locum_core::usage::estimate_tokens;
use serde_json::{Value, json};

use crate::admission::line;
use crate::world::{NOW, agent_name};

/// One action of a subagent on a session, from its JSON.
pub(crate) fn act(view: &SessionView, input: Value) -> Result<(Response, Vec<SessionChange>), Refusal> {
    act_as(&reader(), NOW, view, input)
}

/// One action of the orchestrator.
pub(crate) fn order(view: &SessionView, input: Value) -> Result<(Response, Vec<SessionChange>), Refusal> {
    act_as(&Identity::Orchestrator, NOW, view, input)
}

pub(crate) fn act_as(
    participant: &Identity,
    now: Timestamp,
    view: &SessionView,
    input: Value,
) -> Result<(Response, Vec<SessionChange>), Refusal> {
    act_under(&Terms { participant, now, namespaces: false }, view, input)
}

pub(crate) fn act_under(
    terms: &Terms<'_>,
    view: &SessionView,
    input: Value,
) -> Result<(Response, Vec<SessionChange>), Refusal> {
    let request = tool_request("shared_context", input)?;
    let ToolRequest::SharedContext(action) = request else { panic!("{request:?}") };
    decide(&action, terms, view)
}

pub(crate) fn reader() -> Identity {
    Identity::Subagent { agent: agent_name("reader"), task_id: TaskId::new(7) }
}

pub(crate) fn entry(key: &str, value: &str, version: u64) -> Entry {
    Entry {
        key: key.to_owned(),
        value: value.to_owned(),
        written_by: "orchestrator".to_owned(),
        written_at: NOW,
        version,
        expires_at: None,
        readable_by: Vec::new(),
        writable_by: Vec::new(),
    }
}

pub(crate) fn line_of(entry: &Entry) -> KeyLine {
    KeyLine {
        key: entry.key.clone(),
        written_by: entry.written_by.clone(),
        written_at: entry.written_at,
        version: entry.version,
        value_size_tokens: estimate_tokens(&entry.value),
        expires_at: entry.expires_at,
        readable_by: entry.readable_by.clone(),
        writable_by: entry.writable_by.clone(),
    }
}

/// A session with these entries, as any lookup would show them.
pub(crate) fn view_of(entries: &[Entry]) -> SessionView {
    let mut view = SessionView { exists: true, ..SessionView::default() };
    for entry in entries {
        let slot = Slot { last_version: entry.version, entry: Some(entry.clone()) };
        view.context.slots.insert(entry.key.clone(), slot);
        view.context.keys.push(line_of(entry));
    }
    view
}

/// A session in which `key` has a value of so many tokens, among so many in all.
fn holding(tokens: usize, total: usize, version: u64) -> SessionView {
    let mut view = view_of(&[entry("key", &"v".repeat(tokens * 4), version)]);
    let rest = KeyLine { value_size_tokens: total - tokens, ..line_of(&entry("rest", "", 1)) };
    view.context.keys.push(rest);
    view
}

/// The same without the value.
fn removed(mut view: SessionView) -> SessionView {
    view.context.slots.values_mut().for_each(|slot| slot.entry = None);
    view.context.keys.retain(|line| line.key == "rest");
    view
}

fn write(chars: usize) -> Value {
    json!({"action": "write", "key": "key", "value": "é".repeat(chars)})
}

fn expecting(version: u64) -> Value {
    json!({"action": "write", "key": "key", "value": "v", "expected_version": version})
}

fn json_of(view: &SessionView, input: Value) -> String {
    serde_json::to_string(&act(view, input).unwrap().0).unwrap()
}

#[test]
fn answers_have_their_shapes() {
    let view = holding(1, 1, 3);
    insta::assert_snapshot!(json_of(&view, json!({"action": "read", "key": "key"})), @r#"{"key":"key","value":"vvvv","written_by":"orchestrator","written_at":"2023-11-14T22:13:20.000Z","version":3}"#);
    insta::assert_snapshot!(json_of(&view, write(1)), @r#"{"key":"key","version":4,"written_by":"subagent:reader:t_07","written_at":"2023-11-14T22:13:20.000Z"}"#);
    insta::assert_snapshot!(json_of(&view, json!({"action": "delete", "key": "key"})), @r#"{"deleted":"key","previous_version":3}"#);
    insta::assert_snapshot!(json_of(&view, json!({"action": "list_keys"})), @r#"{"keys":[{"key":"key","written_by":"orchestrator","written_at":"2023-11-14T22:13:20.000Z","version":3,"value_size_tokens":1},{"key":"rest","written_by":"orchestrator","written_at":"2023-11-14T22:13:20.000Z","version":1,"value_size_tokens":0}],"total_size_tokens":1}"#);
}

#[test]
fn each_refusal_names_its_thing() {
    let empty = SessionView::default();
    let archived = SessionView { archived: true, ..holding(1, 1, 3) };
    let refused = |view: &SessionView, input: Value| line(act(view, input));
    insta::assert_snapshot!(refused(&empty, json!({"action": "read", "key": "key"})), @"KEY_NOT_FOUND: the shared context has no key `key` (list_keys shows them)");
    insta::assert_snapshot!(refused(&empty, json!({"action": "delete", "key": "key"})), @"KEY_NOT_FOUND: the shared context has no key `key` (list_keys shows them)");
    insta::assert_snapshot!(refused(&empty, write(4001)), @"VALUE_TOO_LARGE: the value has 1001 tokens; at most 1000 are allowed (distil it, or split it over several keys)");
    insta::assert_snapshot!(refused(&holding(0, 9_999, 1), write(5)), @"STORE_FULL: the shared context would have 10001 tokens; at most 10000 are allowed (delete or shorten keys that are no longer needed)");
    insta::assert_snapshot!(refused(&archived, write(1)), @"SESSION_ARCHIVED: the session is archived: its shared context can only be read");
    insta::assert_snapshot!(refused(&archived, json!({"action": "delete", "key": "key"})), @"SESSION_ARCHIVED: the session is archived: its shared context can only be read");
    insta::assert_snapshot!(refused(&empty, json!({"action": "raed", "key": "key"})), @"INVALID_ACTION: unknown action `raed` (did you mean `read`? The actions are list_keys, read, write, delete, read_batch, read_history, snapshot, list_snapshots, restore)");
    insta::assert_snapshot!(refused(&holding(1, 1, 3), expecting(2)), @"VERSION_CONFLICT: version 2 was expected; version 3 by orchestrator is there (read it again, then write)");
    insta::assert_snapshot!(refused(&holding(1, 1, 3), expecting(0)), @"VERSION_CONFLICT: no such key was expected; version 3 by orchestrator is there (read it again, then write)");
    insta::assert_snapshot!(refused(&empty, expecting(2)), @"VERSION_CONFLICT: version 2 was expected; the key does not exist");
    insta::assert_snapshot!(refused(&holding(1, 1, 3), json!({"action": "delete", "key": "key", "expected_version": 1})), @"VERSION_CONFLICT: version 1 was expected; version 3 by orchestrator is there (read it again, then write)");
    insta::assert_snapshot!(refused(&empty, json!({"action": "write", "key": "key", "value": "v", "written_by": "me"})), @"INVALID_REQUEST: write: unknown field `written_by`, expected one of `key`, `value`, `expected_version`, `ttl_seconds`, `readable_by`, `writable_by` at `written_by`");
}

#[test]
fn an_archived_session_can_still_be_read() {
    let archived = SessionView { archived: true, ..holding(1, 1, 3) };
    for input in [json!({"action": "read", "key": "key"}), json!({"action": "list_keys"})] {
        assert!(act(&archived, input).is_ok());
    }
}

#[test]
fn keys_are_lower_case_words_of_at_most_64_characters() {
    let long = "k".repeat(NAME_CHARS_MAX);
    for key in ["a", "0", "_", "a_0", &long] {
        assert!(act(&SessionView::default(), json!({"action": "write", "key": key, "value": ""})).is_ok(), "{key}");
    }
    for key in ["", "A", "a-b", "a b", "ä", "name:key", &format!("{long}k")] {
        for action in ["read", "delete", "write"] {
            let mut input = json!({"action": action, "key": key});
            if action == "write" {
                input["value"] = "v".into();
            }
            let refusal = line(act(&SessionView::default(), input));
            assert_eq!(refusal, format!("INVALID_KEY: `{key}` is not a key ([a-z0-9_], 1 to 64 characters)"));
        }
    }
}

#[test]
fn a_value_near_its_limit_is_warned_about() {
    let warning = |chars: usize| match act(&SessionView::default(), write(chars)).unwrap().0 {
        Response::Written(written) => written.warning,
        other => panic!("{other:?}"),
    };
    assert_eq!(warning(799 * 4), None);
    assert_eq!(warning(799 * 4 + 1).unwrap(), "the value has 800 of at most 1000 tokens; distil it");
    assert_eq!(warning(4000).unwrap(), "the value has 1000 of at most 1000 tokens; distil it");
    assert!(line(act(&SessionView::default(), write(4001))).starts_with("VALUE_TOO_LARGE"));
}

#[test]
fn a_full_store_takes_what_replaces_as_much() {
    let cases =
        [(1000, 10_000, 4000, true), (999, 10_000, 4000, false), (0, 9_000, 4000, true), (0, 9_001, 4000, false)];
    for (old, total, chars, fits) in cases {
        let view = if old == 0 { removed(holding(0, total, 1)) } else { holding(old, total, 1) };
        assert_eq!(act(&view, write(chars)).is_ok(), fits, "{old} of {total} tokens replaced by {chars} characters");
    }
}

#[test]
fn versions_go_on_after_a_delete() {
    let view = removed(holding(1, 1, 3));
    let (_, changes) = act(&view, expecting(0)).unwrap();
    let [SessionChange::PutContext(entry)] = changes.as_slice() else { panic!("{changes:?}") };
    assert_eq!((entry.version, entry.written_by.as_str()), (4, "subagent:reader:t_07"));
    assert!(line(act(&view, expecting(3))).starts_with("VERSION_CONFLICT"), "a version that is gone is not there");
    assert!(act(&holding(1, 1, 3), expecting(3)).is_ok());
}

#[test]
fn each_action_looks_at_no_more_than_it_needs() {
    let looked = |input: Value| match tool_request("shared_context", input).unwrap() {
        ToolRequest::SharedContext(action) => lookup(&action),
        other => panic!("{other:?}"),
    };
    assert_eq!(looked(json!({"action": "list_keys"})), ContextLookup::Keys);
    let key = |key: &str| ContextLookup::Key(key.to_owned());
    assert_eq!(looked(json!({"action": "read", "key": "k"})), ContextLookup::Values(vec!["k".to_owned()]));
    assert_eq!(looked(json!({"action": "delete", "key": "k"})), key("k"));
    assert_eq!(looked(write(1)), key("key"));
    let many: Vec<String> = (0..101).map(|number| format!("k{number}")).collect();
    let batch = looked(json!({"action": "read_batch", "keys": many}));
    assert_eq!(batch, ContextLookup::Values(many[..100].to_vec()));
    assert_eq!(looked(json!({"action": "read_history", "key": "k"})), ContextLookup::History("k".to_owned()));
    assert_eq!(looked(json!({"action": "list_snapshots"})), ContextLookup::Snapshots);
    for action in ["snapshot", "restore"] {
        assert_eq!(looked(json!({"action": action, "label": "l"})), ContextLookup::Snapshot("l".to_owned()));
    }
}
