//! The shared context beyond its four actions: batches, history, snapshots, expiry, rights and namespaces.

use locum_core::ids::{Identity, TaskId, Timestamp};
use locum_core::limits::{CONTEXT_KEYS_MAX, CONTEXT_SNAPSHOTS_MAX};
use locum_core::protocol::Refusal;
use locum_core::protocol::response::{Entry, Response, SnapshotLine};
use locum_core::session::{SessionChange, SessionView, Slot};
use locum_core::shared_context::{EXPIRY, Terms, matches};
use proptest::prelude::{prop_assert_eq, proptest};
use serde_json::{Value, json};

use crate::admission::line;
use crate::shared_context::{act, act_as, act_under, entry, line_of, order, reader, view_of};
use crate::world::{NOW, agent_name};

type Decided = Result<(Response, Vec<SessionChange>), Refusal>;

fn json_of(decided: Decided) -> String {
    serde_json::to_string(&decided.unwrap().0).unwrap()
}

/// So many milliseconds from now.
fn in_ms(millis: i64) -> Timestamp {
    Timestamp::from_millis(NOW.millis() + millis)
}

fn subagent(name: &str) -> Identity {
    Identity::Subagent { agent: agent_name(name), task_id: TaskId::new(1) }
}

fn texts(list: &[&str]) -> Vec<String> {
    list.iter().map(|text| (*text).to_owned()).collect()
}

fn put_of(decided: Decided) -> Entry {
    let (_, changes) = decided.unwrap();
    match changes.as_slice() {
        [SessionChange::PutContext(entry)] => entry.clone(),
        other => panic!("{other:?}"),
    }
}

/// Changes as words: `put key version`, `remove key version by`.
fn words(changes: &[SessionChange]) -> Vec<String> {
    let word = |change: &SessionChange| match change {
        SessionChange::PutContext(entry) => format!("put {} {} {}", entry.key, entry.version, entry.written_by),
        SessionChange::RemoveContext { key, version, by } => format!("remove {key} {version} {by}"),
        other => format!("{other:?}"),
    };
    changes.iter().map(word).collect()
}

#[test]
fn a_batch_names_what_is_missing() {
    let view = view_of(&[entry("a", "one", 1), entry("b", "two", 2)]);
    let read = |keys: Value| act(&view, json!({"action": "read_batch", "keys": keys}));
    insta::assert_snapshot!(json_of(read(json!(["b", "x", "a", "b", "x"]))), @r#"{"entries":[{"key":"b","value":"two","written_by":"orchestrator","written_at":"2023-11-14T22:13:20.000Z","version":2},{"key":"a","value":"one","written_by":"orchestrator","written_at":"2023-11-14T22:13:20.000Z","version":1}],"missing":["x"]}"#);
    assert_eq!(json_of(read(json!([]))), r#"{"entries":[],"missing":[]}"#);
    let many = |count: usize| json!((0..count).map(|number| format!("k{number}")).collect::<Vec<_>>());
    assert!(read(many(100)).is_ok());
    insta::assert_snapshot!(line(read(many(101))), @"INVALID_REQUEST: read_batch has 101 keys; at most 100 are allowed");
    insta::assert_snapshot!(line(read(json!(["a", "No"]))), @"INVALID_KEY: `No` is not a key ([a-z0-9_], 1 to 64 characters)");
    insta::assert_snapshot!(line(act(&view, json!({"action": "read_batch"}))), @"INVALID_REQUEST: read_batch: missing field `keys`");
}

#[test]
fn history_is_newest_first_and_shown_to_those_who_could_read_it() {
    let mut view = SessionView::default();
    let secret = Entry { readable_by: texts(&["orchestrator"]), ..entry("k", "secret", 2) };
    view.context.history = vec![entry("k", "three", 3), secret, entry("k", "one", 1)];
    let read = |input: Value| {
        let mut input = input;
        input["action"] = "read_history".into();
        input
    };
    let versions = |decided: Decided| match decided.unwrap().0 {
        Response::History(history) => history.versions.iter().map(|version| version.version).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    assert_eq!(versions(order(&view, read(json!({"key": "k"})))), [3, 2, 1]);
    assert_eq!(versions(order(&view, read(json!({"key": "k", "versions": 2})))), [3, 2]);
    assert_eq!(versions(order(&view, read(json!({"key": "k", "versions": 99})))), [3, 2, 1]);
    assert_eq!(versions(act(&view, read(json!({"key": "k"})))), [3, 1]);
    assert_eq!(versions(act(&SessionView { archived: true, ..view.clone() }, read(json!({"key": "k"})))), [3, 1]);
    insta::assert_snapshot!(json_of(act(&view, read(json!({"key": "k", "versions": 1})))), @r#"{"key":"k","versions":[{"version":3,"value":"three","written_by":"orchestrator","written_at":"2023-11-14T22:13:20.000Z"}]}"#);
    insta::assert_snapshot!(line(act(&view, read(json!({"key": "k", "versions": 0})))), @"INVALID_REQUEST: read_history: `versions` must be at least 1");
    insta::assert_snapshot!(line(act(&SessionView::default(), read(json!({"key": "k"})))), @"KEY_NOT_FOUND: the shared context has no key `k` (list_keys shows them)");
    insta::assert_snapshot!(line(act(&view, read(json!({"key": "K"})))), @"INVALID_KEY: `K` is not a key ([a-z0-9_], 1 to 64 characters)");
}

#[test]
fn a_value_lives_until_its_time_is_over_and_not_a_moment_longer() {
    let write = |ttl: Value| {
        act(&SessionView::default(), json!({"action": "write", "key": "k", "value": "v", "ttl_seconds": ttl}))
    };
    assert_eq!(put_of(write(json!(60))).expires_at, Some(in_ms(60_000)));
    assert_eq!(put_of(write(json!(31_536_000))).expires_at, Some(in_ms(31_536_000_000)));
    assert_eq!(put_of(write(Value::Null)).expires_at, None);
    for wrong in [json!(0), json!(31_536_001), json!(u64::MAX)] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(line(write(wrong)), @"INVALID_REQUEST: `ttl_seconds` must be from 1 to 31536000 (leave it out to keep the value, or delete the key)");
        }
    }
    insta::assert_snapshot!(json_of(write(json!(1))), @r#"{"key":"k","version":1,"written_by":"subagent:reader:t_07","written_at":"2023-11-14T22:13:20.000Z","expires_at":"2023-11-14T22:13:21.000Z"}"#);

    let view = view_of(&[Entry { expires_at: Some(in_ms(1000)), ..entry("k", &"v".repeat(4000), 4) }]);
    let at = |millis: i64, input: Value| act_as(&reader(), in_ms(millis), &view, input);
    let full = json!({"action": "list_keys"});
    for (millis, lives) in [(-5000, true), (0, true), (999, true), (1000, false), (1001, false)] {
        let read = at(millis, json!({"action": "read", "key": "k"}));
        assert_eq!(read.is_ok(), lives, "{millis}");
        if let Err(refusal) = read {
            assert_eq!(refusal.code.as_str(), "KEY_NOT_FOUND");
        }
        assert_eq!(at(millis, json!({"action": "delete", "key": "k"})).is_ok(), lives);
        let listed = json_of(at(millis, full.clone()));
        assert_eq!(listed.contains("\"total_size_tokens\":1000"), lives, "{listed}");
        assert_eq!(listed.contains("\"key\":\"k\""), lives, "{listed}");
        let new = json!({"action": "write", "key": "k", "value": "w", "expected_version": 0});
        assert_eq!(at(millis, new).is_err(), lives);
        let batch = json_of(at(millis, json!({"action": "read_batch", "keys": ["k"]})));
        assert_eq!(batch.contains("\"missing\":[]"), lives, "{batch}");
    }
    // The version goes on, and a write without a time keeps the value.
    let again = put_of(at(1000, json!({"action": "write", "key": "k", "value": "w"})));
    assert_eq!((again.version, again.expires_at), (5, None));
}

#[test]
fn whoever_changes_something_sweeps_what_has_expired() {
    let old = Entry { expires_at: Some(NOW), ..entry("old", "v", 3) };
    let view = view_of(&[old.clone(), entry("new", "v", 1)]);
    let (_, changes) = act(&view, json!({"action": "write", "key": "k", "value": "v"})).unwrap();
    assert_eq!(words(&changes), [format!("remove old 3 {EXPIRY}"), "put k 1 subagent:reader:t_07".to_owned()]);
    let (_, changes) = act(&view, json!({"action": "delete", "key": "new"})).unwrap();
    assert_eq!(words(&changes), ["remove old 3 expiry", "remove new 1 subagent:reader:t_07"]);
    let (_, changes) = act(&view, json!({"action": "write", "key": "old", "value": "v"})).unwrap();
    assert_eq!(words(&changes), ["put old 4 subagent:reader:t_07"]);
    // It does not count any more.
    let mut full = view_of(&[old]);
    full.context.keys[0].value_size_tokens = 10_000;
    assert!(act(&full, json!({"action": "write", "key": "k", "value": "v".repeat(4000)})).is_ok());
}

#[test]
fn keys_are_bounded_in_number() {
    let entries: Vec<Entry> = (0..CONTEXT_KEYS_MAX).map(|number| entry(&format!("k{number}"), "", 1)).collect();
    let view = view_of(&entries);
    let write = |key: &str| act(&view, json!({"action": "write", "key": key, "value": ""}));
    assert!(write("k1").is_ok());
    insta::assert_snapshot!(line(write("new")), @"STORE_FULL: the shared context would have 1001 keys; at most 1000 are allowed (delete or shorten keys that are no longer needed)");
}

#[test]
fn who_may_read_and_write() {
    let guarded = |readable: &[&str], writable: &[&str]| Entry {
        readable_by: texts(readable),
        writable_by: texts(writable),
        ..entry("k", "v", 2)
    };
    // Readers, writers, whether `ann` may read and write.
    let cases: [(&[&str], &[&str], bool, bool); 7] = [
        (&[], &[], true, true),
        (&["orchestrator"], &[], false, true),
        (&[], &["orchestrator"], true, false),
        (&["subagent:*"], &["subagent:ann:*"], true, true),
        (&["subagent:bob:*", "subagent:ann:t_01"], &["subagent:ann:t_02"], true, false),
        (&["*"], &["subagent:bob:*"], true, false),
        (&["subagent:an*"], &["*:t_01"], true, true),
    ];
    let ann = subagent("ann");
    for (readable, writable, may_read, may_write) in cases {
        let view = view_of(&[guarded(readable, writable)]);
        for (participant, may_read, may_write) in [(&ann, may_read, may_write), (&Identity::Orchestrator, true, true)] {
            let case = format!("{participant} {readable:?} {writable:?}");
            let go = |input: Value| act_as(participant, NOW, &view, input);
            assert_eq!(go(json!({"action": "read", "key": "k"})).is_ok(), may_read, "{case}");
            assert_eq!(json_of(go(json!({"action": "list_keys"}))).contains("\"key\":\"k\""), may_read, "{case}");
            assert_eq!(
                json_of(go(json!({"action": "read_batch", "keys": ["k"]}))).contains("\"missing\":[]"),
                may_read
            );
            assert_eq!(go(json!({"action": "write", "key": "k", "value": "w"})).is_ok(), may_write, "{case}");
            assert_eq!(go(json!({"action": "delete", "key": "k"})).is_ok(), may_write, "{case}");
        }
    }
    let view = view_of(&[guarded(&["orchestrator"], &["orchestrator", "subagent:bob:*"])]);
    let refused = |input: Value| line(act(&view, input));
    insta::assert_snapshot!(refused(json!({"action": "read", "key": "k"})), @"KEY_NOT_FOUND: the shared context has no key `k` (list_keys shows them)");
    insta::assert_snapshot!(refused(json!({"action": "write", "key": "k", "value": "v"})), @"INVALID_REQUEST: `k` is written by orchestrator, subagent:bob:* only (use another key, or leave it to them)");
    insta::assert_snapshot!(refused(json!({"action": "delete", "key": "k"})), @"INVALID_REQUEST: `k` is written by orchestrator, subagent:bob:* only (use another key, or leave it to them)");
}

#[test]
fn rights_are_set_by_the_orchestrator_and_stay() {
    let write = |more: Value| {
        let mut input = json!({"action": "write", "key": "k", "value": "v"});
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        input
    };
    let empty = SessionView::default();
    let set = put_of(order(&empty, write(json!({"readable_by": ["subagent:*"], "writable_by": ["orchestrator"]}))));
    assert_eq!((&set.readable_by, &set.writable_by), (&texts(&["subagent:*"]), &texts(&["orchestrator"])));
    // A write that says nothing about them keeps them, and one that names nobody gives them up.
    let open = Entry { writable_by: Vec::new(), ..set };
    let kept = put_of(act(&view_of(std::slice::from_ref(&open)), write(json!({}))));
    assert_eq!(kept.readable_by, texts(&["subagent:*"]));
    assert!(
        put_of(order(&view_of(std::slice::from_ref(&open)), write(json!({"readable_by": []})))).readable_by.is_empty()
    );
    // A value that is gone has no rights to keep.
    let gone = Entry { expires_at: Some(NOW), ..open };
    assert!(put_of(act(&view_of(&[gone]), write(json!({})))).readable_by.is_empty());

    for field in ["readable_by", "writable_by"] {
        let refusal = line(act(&empty, write(json!({field: []}))));
        assert_eq!(refusal, format!("INVALID_REQUEST: `{field}` is set by the orchestrator only (leave it out)"));
    }
    let long = "a".repeat(161);
    for wrong in ["", "Orchestrator", "subagent ann", "é", &long] {
        let refusal = line(order(&empty, write(json!({"readable_by": [wrong]}))));
        let shown: String = wrong.chars().take(80).collect();
        assert!(
            refusal.starts_with(&format!("INVALID_REQUEST: `{shown}` in `readable_by` is no pattern")),
            "{refusal}"
        );
    }
    assert!(order(&empty, write(json!({"readable_by": vec!["*"; 20]}))).is_ok());
    insta::assert_snapshot!(line(order(&empty, write(json!({"readable_by": vec!["*"; 21]})))), @"INVALID_REQUEST: `readable_by` has 21 patterns; at most 20");
}

#[test]
fn namespaces_are_for_those_who_switched_them_on() {
    let long = "n".repeat(64);
    let cases = [
        ("key", true, true),
        ("team:key", false, true),
        (&format!("{long}:{long}"), false, true),
        (&format!("{long}n:k"), false, false),
        (":key", false, false),
        ("team:", false, false),
        ("a:b:c", false, false),
        ("Team:key", false, false),
        (":", false, false),
    ];
    for (key, without, with) in cases {
        for (namespaces, fits) in [(false, without), (true, with)] {
            let terms = Terms { participant: &Identity::Orchestrator, now: NOW, namespaces };
            let written =
                act_under(&terms, &SessionView::default(), json!({"action": "write", "key": key, "value": "v"}));
            assert_eq!(written.is_ok(), fits, "{key} {namespaces}");
            if let Err(refusal) = written {
                assert_eq!(refusal.code.as_str(), "INVALID_KEY");
            }
        }
    }
}

/// A session with snapshots under these labels, taken by the orchestrator.
fn snapshots(mut view: SessionView, labels: impl IntoIterator<Item = String>) -> SessionView {
    let taken_by = || "orchestrator".to_owned();
    let line = |label| SnapshotLine { label, taken_by: taken_by(), taken_at: NOW, keys: 0, total_size_tokens: 0 };
    view.context.snapshots = labels.into_iter().map(line).collect();
    view
}

#[test]
fn a_snapshot_holds_what_lives() {
    let over = Entry { expires_at: Some(NOW), ..entry("over", "v", 1) };
    let hidden = Entry { readable_by: texts(&["orchestrator"]), ..entry("hidden", "12345", 2) };
    let mut view = view_of(&[entry("a", "v", 1), over, hidden.clone()]);
    view.context.slots.insert("gone".to_owned(), Slot { last_version: 7, entry: None });
    let take = |view: &SessionView, label: &str| act(view, json!({"action": "snapshot", "label": label}));
    let (_, changes) = take(&view, "before-fix_1").unwrap();
    let [SessionChange::PutSnapshot(snapshot)] = changes.as_slice() else { panic!("{changes:?}") };
    // What the taker may not read is kept too: it comes back with its rights, and is shown to nobody.
    assert_eq!(snapshot.entries, [entry("a", "v", 1), hidden]);
    insta::assert_snapshot!(json_of(take(&view, "s")), @r#"{"label":"s","taken_by":"subagent:reader:t_07","taken_at":"2023-11-14T22:13:20.000Z","keys":2,"total_size_tokens":3}"#);

    for wrong in ["", "A", "a b", "a:b", &"l".repeat(65)] {
        let refusal = line(take(&view, wrong));
        assert_eq!(refusal, format!("INVALID_KEY: `{wrong}` is not a label ([a-z0-9_-], 1 to 64 characters)"));
    }
    assert!(take(&view, &"l".repeat(64)).is_ok());
    let archived = SessionView { archived: true, ..view.clone() };
    insta::assert_snapshot!(line(take(&archived, "s")), @"SESSION_ARCHIVED: the session is archived: its shared context can only be read");

    let full = snapshots(view, (0..CONTEXT_SNAPSHOTS_MAX).map(|number| format!("s{number}")));
    insta::assert_snapshot!(line(take(&full, "new")), @"STORE_FULL: there are 20 snapshots, as many as are kept (use a label again; list_snapshots shows them)");
    assert!(order(&full, json!({"action": "snapshot", "label": "s3"})).is_ok());
    insta::assert_snapshot!(line(take(&full, "s3")), @"INVALID_REQUEST: the snapshot `s3` was taken by orchestrator (choose another label)");
    let one = snapshots(SessionView { archived: true, ..SessionView::default() }, ["s".to_owned()]);
    insta::assert_snapshot!(json_of(act(&one, json!({"action": "list_snapshots"}))), @r#"{"snapshots":[{"label":"s","taken_by":"orchestrator","taken_at":"2023-11-14T22:13:20.000Z","keys":0,"total_size_tokens":0}]}"#);
}

fn restore(participant: &Identity, view: &SessionView) -> Decided {
    act_as(participant, NOW, view, json!({"action": "restore", "label": "s"}))
}

#[test]
fn restoring_writes_new_versions_and_removes_the_rest() {
    let mut view = view_of(&[
        entry("changed", "new", 5),
        entry("extra", "v", 2),
        Entry { expires_at: Some(NOW), ..entry("over", "v", 3) },
    ]);
    view.context.slots.insert("gone".to_owned(), Slot { last_version: 7, entry: None });
    let later = Some(in_ms(1));
    view.context.snapshot = Some(vec![
        entry("changed", "old", 1),
        Entry { expires_at: later, ..entry("gone", "back", 6) },
        Entry { expires_at: Some(NOW), ..entry("past", "v", 1) },
    ]);
    let (response, changes) = restore(&reader(), &view).unwrap();
    let by = "subagent:reader:t_07";
    let expected = [
        format!("put changed 6 {by}"),
        format!("put gone 8 {by}"),
        format!("remove extra 2 {by}"),
        "remove over 3 expiry".to_owned(),
    ];
    assert_eq!(words(&changes), expected);
    insta::assert_snapshot!(serde_json::to_string(&response).unwrap(), @r#"{"restored":"s","written":[{"key":"changed","version":6},{"key":"gone","version":8}],"deleted":["extra"]}"#);
    let SessionChange::PutContext(gone) = &changes[1] else { panic!("{changes:?}") };
    assert_eq!((gone.value.as_str(), gone.expires_at, gone.written_at), ("back", later, NOW));
}

#[test]
fn a_restore_is_refused_whole() {
    let with = |live: Vec<Entry>, kept: Vec<Entry>| {
        let mut view = view_of(&live);
        view.context.snapshot = Some(kept);
        view
    };
    let none = SessionView::default();
    insta::assert_snapshot!(line(restore(&reader(), &none)), @"KEY_NOT_FOUND: there is no snapshot `s` (list_snapshots shows them)");
    let large: Vec<Entry> = (0..11).map(|number| entry(&format!("k{number}"), &"v".repeat(4000), 1)).collect();
    insta::assert_snapshot!(line(restore(&reader(), &with(Vec::new(), large))), @"STORE_FULL: the shared context would have 11000 tokens; at most 10000 are allowed (delete or shorten keys that are no longer needed)");
    let archived = SessionView { archived: true, ..with(Vec::new(), Vec::new()) };
    assert!(line(restore(&reader(), &archived)).starts_with("SESSION_ARCHIVED"));

    // Rights: what is there decides for a subagent, what was kept decides where nothing is there.
    let mine = |key: &str| Entry { writable_by: texts(&["orchestrator"]), ..entry(key, "v", 1) };
    let open = |key: &str| entry(key, "v", 1);
    for view in
        [with(vec![mine("k")], vec![open("k")]), with(vec![mine("k")], Vec::new()), with(Vec::new(), vec![mine("k")])]
    {
        let refusal = line(restore(&reader(), &view));
        assert!(refusal.starts_with("INVALID_REQUEST: `k` is written by orchestrator only"), "{refusal}");
        assert!(restore(&Identity::Orchestrator, &view).is_ok());
    }
    let secret = Entry { readable_by: texts(&["orchestrator"]), ..open("k") };
    let view = with(vec![secret.clone()], vec![open("k")]);
    assert_eq!(put_of(restore(&reader(), &view)).readable_by, secret.readable_by);
    assert!(put_of(restore(&Identity::Orchestrator, &view)).readable_by.is_empty());
}

#[test]
fn a_round_trip_through_a_snapshot_changes_no_value() {
    let before = [entry("a", "one", 1), Entry { readable_by: texts(&["subagent:*"]), ..entry("b", "two", 4) }];
    let (_, changes) = order(&view_of(&before), json!({"action": "snapshot", "label": "s"})).unwrap();
    let [SessionChange::PutSnapshot(snapshot)] = changes.as_slice() else { panic!("{changes:?}") };
    let mut after = view_of(&[entry("a", "other", 2), entry("c", "three", 1)]);
    after.context.snapshot = Some(snapshot.entries.clone());
    after.context.slots.insert("b".to_owned(), Slot { last_version: 4, entry: None });
    let (_, changes) = restore(&Identity::Orchestrator, &after).unwrap();
    let mut restored: Vec<Entry> = changes
        .iter()
        .filter_map(|change| match change {
            SessionChange::PutContext(entry) => Some(entry.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(restored.iter().map(|entry| entry.version).collect::<Vec<_>>(), [3, 5]);
    restored[0].version = 1;
    restored[1].version = 4;
    assert_eq!(restored, before);
    assert_eq!(restored.iter().map(line_of).collect::<Vec<_>>(), before.iter().map(line_of).collect::<Vec<_>>());
}

/// A pattern the slow and obvious way.
fn matches_slowly(pattern: &[char], text: &[char]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some(('*', rest)) => (0..=text.len()).any(|skipped| matches_slowly(rest, &text[skipped..])),
        Some((first, rest)) => text.first() == Some(first) && matches_slowly(rest, &text[1..]),
    }
}

proptest! {
    #[test]
    fn patterns_match_as_their_definition_says(pattern in "[ab*:]{0,8}", text in "[ab:]{0,10}") {
        let chars = |text: &str| text.chars().collect::<Vec<char>>();
        prop_assert_eq!(matches(&pattern, &text), matches_slowly(&chars(&pattern), &chars(&text)));
    }

    #[test]
    fn an_identity_matches_itself_and_everything_above_it(agent in "[a-z0-9_-]{1,64}", task in 1u32..500) {
        let identity = Identity::Subagent { agent: agent_name(&agent), task_id: TaskId::new(task) }.to_string();
        for pattern in [identity.clone(), format!("subagent:{agent}:*"), "subagent:*".to_owned(), "*".to_owned()] {
            prop_assert_eq!(matches(&pattern, &identity), true);
        }
        for pattern in ["orchestrator".to_owned(), format!("subagent:{agent}"), format!("subagent:{agent}x:*")] {
            prop_assert_eq!(matches(&pattern, &identity), false);
        }
    }
}
