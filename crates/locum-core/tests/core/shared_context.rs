//! The rules of the shared context, one by one.

use locum_core::ids::{Identity, TaskId};
use locum_core::limits::NAME_CHARS_MAX;
use locum_core::protocol::parse::tool_request;
use locum_core::protocol::response::{Entry, Response};
use locum_core::protocol::{Refusal, ToolRequest};
use locum_core::session::{ContextLookup, SessionChange, SessionView};
use locum_core::shared_context::{decide, lookup};
use serde_json::{Value, json};

use crate::admission::line;
use crate::world::{NOW, agent_name};

/// One action of a subagent on a session, from its JSON.
pub(crate) fn act(view: &SessionView, input: Value) -> Result<(Response, Option<SessionChange>), Refusal> {
    let request = tool_request("shared_context", input)?;
    let ToolRequest::SharedContext(action) = request else { panic!("{request:?}") };
    let writer = Identity::Subagent { agent: agent_name("reader"), task_id: TaskId::new(7) };
    decide(&action, &writer, NOW, view)
}

/// A session in which `key` has a value of so many tokens, among so many in all.
fn holding(tokens: usize, total: usize, version: u64) -> SessionView {
    let mut view = SessionView::default();
    view.context.entry = Some(Entry {
        key: "key".to_owned(),
        value: "v".repeat(tokens * 4),
        written_by: "orchestrator".to_owned(),
        written_at: NOW,
        version,
    });
    view.context.last_version = version;
    view.context.total_tokens = total;
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
    insta::assert_snapshot!(json_of(&view, json!({"action": "list_keys"})), @r#"{"keys":[],"total_size_tokens":1}"#);
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
    insta::assert_snapshot!(refused(&empty, json!({"action": "raed", "key": "key"})), @"INVALID_ACTION: unknown action `raed` (did you mean `read`? The actions are list_keys, read, write, delete)");
    insta::assert_snapshot!(refused(&holding(1, 1, 3), expecting(2)), @"VERSION_CONFLICT: version 2 was expected; version 3 by orchestrator is there (read it again, then write)");
    insta::assert_snapshot!(refused(&holding(1, 1, 3), expecting(0)), @"VERSION_CONFLICT: no such key was expected; version 3 by orchestrator is there (read it again, then write)");
    insta::assert_snapshot!(refused(&empty, expecting(2)), @"VERSION_CONFLICT: version 2 was expected; the key does not exist");
    insta::assert_snapshot!(refused(&holding(1, 1, 3), json!({"action": "delete", "key": "key", "expected_version": 1})), @"VERSION_CONFLICT: version 1 was expected; version 3 by orchestrator is there (read it again, then write)");
    insta::assert_snapshot!(refused(&empty, json!({"action": "write", "key": "key", "value": "v", "written_by": "me"})), @"INVALID_REQUEST: write: unknown field `written_by`, expected one of `key`, `value`, `expected_version` at `written_by`");
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
        let mut view = holding(old, total, 1);
        if old == 0 {
            view.context.entry = None;
        }
        assert_eq!(act(&view, write(chars)).is_ok(), fits, "{old} of {total} tokens replaced by {chars} characters");
    }
}

#[test]
fn versions_go_on_after_a_delete() {
    let mut view = holding(1, 0, 3);
    view.context.entry = None;
    let (_, change) = act(&view, expecting(0)).unwrap();
    let Some(SessionChange::PutContext(entry)) = change else { panic!("{change:?}") };
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
    for input in [json!({"action": "read", "key": "k"}), json!({"action": "delete", "key": "k"})] {
        assert_eq!(looked(input), ContextLookup::Key("k".to_owned()));
    }
    assert_eq!(looked(write(1)), ContextLookup::Key("key".to_owned()));
}
