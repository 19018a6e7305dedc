//! Sessions: decisions, their views, and the lists of tasks.

use locum_core::admission::Caller;
use locum_core::agent::AgentSpec;
use locum_core::ids::{AgentName, SessionId, SessionKey};
use locum_core::protocol::{Code, Refusal};
use locum_core::session::{ContextLookup, Lookup, SessionChange, SessionView};
use locum_core::task::{Task, TaskEvent};

use super::fixture::*;
use crate::store::{DecideError, Error, Position, Store, TaskQuery};

fn agent(name: &str, prompt: &str, version: u32) -> SessionChange {
    let mut agent = AgentSpec::new(AgentName::parse(name).unwrap(), "Knows.", prompt);
    agent.version = version;
    SessionChange::Define(Box::new(agent))
}

async fn names(store: &dyn Store, query: TaskQuery) -> Vec<String> {
    store.tasks(query).await.unwrap().iter().map(|row| row.summary.uid.to_string()).collect()
}

pub(super) async fn ids_are_consecutive_and_not_consumed_by_refusals(store: &dyn Store) {
    let decided = spawn(store, "main", vec![order("a"), order("b")]).await;
    let ids: Vec<String> = decided.accepted.iter().map(|row| row.summary.task_id.to_string()).collect();
    assert_eq!(ids, ["t_01", "t_02"]);

    let mut unknown = order("c");
    unknown.entry.agent = "nobody".to_owned();
    let refused = try_spawn(store, "main", vec![unknown]).await;
    assert!(matches!(refused, Err(DecideError::Refused(Refusal { code: Code::AgentNotFound, .. }))), "{refused:?}");

    let decided = spawn(store, "main", vec![order("d")]).await;
    assert_eq!(decided.accepted[0].summary.task_id.to_string(), "t_03");
}

pub(super) async fn sessions_and_projects_are_apart(store: &dyn Store) {
    spawn(store, "one", vec![order("a")]).await;
    let decided = spawn(store, "two", vec![order("b")]).await;
    assert_eq!(decided.accepted[0].summary.task_id, id(1));
    assert_eq!(standings(store, "one").await, ["a running"]);
    let elsewhere = SessionKey { project: "/elsewhere".into(), id: SessionId::parse("one").unwrap() };
    assert_eq!(names(store, TaskQuery::Uncollected(elsewhere)).await, [""; 0]);
}

pub(super) async fn accepted_tasks_are_rows_with_a_log(store: &dyn Store) {
    let mut labelled = order("a");
    labelled.entry.label = Some("first".to_owned());
    let decided = spawn(store, "main", vec![labelled]).await;
    assert!(decided.moved.is_empty());

    let records = log(store, "a").await;
    assert_eq!((records.len(), records[0].seq, records[0].at), (1, 1, at(1)));
    assert!(matches!(records[0].event, TaskEvent::Accepted { .. }));
    let summary = Task::replay(records).unwrap().summary();
    assert_eq!(summary.label.as_deref(), Some("first"));
    let row = row(store, "a").await;
    assert_eq!((&row.summary, row.owner, row.collected), (&summary, Some(ME), false));
    assert_eq!(row.session, session("main"));
    assert_eq!(decided.accepted, [row]);
}

pub(super) async fn a_first_turn_is_kept_with_the_acceptance(store: &dyn Store) {
    let session = session("main");
    let admitting = admission(&session, vec![order("a"), queued("b", 1)], Caller::orchestrator());
    let announcing = Box::new(move |view: &SessionView| {
        let mut changes = admitting(view)?;
        for change in &mut changes {
            let SessionChange::Accept(acceptance) = change else { continue };
            acceptance.announce_first_turn();
        }
        Ok(changes)
    });
    let decided = store.decide(&session, Lookup::default(), Some(ME), announcing).await.unwrap();
    let asking = "turn 1: asking the model";
    let row = &decided.accepted[0];
    assert_eq!((row.summary.seq, row.summary.standing.activity.as_deref()), (2, Some(asking)));
    assert_eq!(decided.accepted[1].summary.seq, 1, "what is parked announces nothing");
    let log = log(store, "a").await;
    let events: Vec<(u64, bool)> =
        log.iter().map(|record| (record.seq, matches!(record.event, TaskEvent::TurnStarted { turn: 1, .. }))).collect();
    assert_eq!(events, [(1, false), (2, true)]);
    let told = store.tail(&session, Position::default(), 9).await.unwrap();
    let told: Vec<(&str, u64)> = told.records.iter().map(|placed| (placed.uid.as_str(), placed.record.seq)).collect();
    assert_eq!(told, [("a", 1), ("a", 2), ("b", 1)]);
    append(store, &lease("a"), reply("Done.".to_owned())).await.unwrap();
    assert_eq!(store.tasks(TaskQuery::Uids(vec![uid("a")])).await.unwrap()[0].summary.seq, 3);
}

pub(super) async fn a_view_counts_what_runs_and_what_was_ever_accepted(store: &dyn Store) {
    let empty = view(store, "main", Lookup::default()).await;
    assert_eq!((empty.next_task, empty.running, empty.spawned, empty.archived), (1, 0, 0, false));
    spawn(store, "main", vec![order("a"), order("b"), queued("c", 2), waiting("d", &[])]).await;
    complete(store, "a", "done").await;
    let lookup = Lookup { tasks: vec![id(1), id(3), id(9)], ..Lookup::default() };
    let seen = view(store, "main", lookup).await;
    assert_eq!((seen.next_task, seen.running, seen.unfinished), (5, 2, 3));
    assert_eq!(store.sessions("/project").await.unwrap()[0].tasks, 4);
    let known: Vec<String> =
        seen.tasks.iter().map(|(id, task)| format!("{id} {} {}", task.uid, task.status.as_str())).collect();
    assert_eq!(known, ["t_01 a completed", "t_03 c queued"]);
}

pub(super) async fn agents_are_defined_and_redefined(store: &dyn Store) {
    change(store, "main", vec![agent("zoe", "One.", 1), agent("adam", "One.", 1)]).await.unwrap();
    change(store, "main", vec![agent("zoe", "Two.", 2)]).await.unwrap();
    let seen = view(store, "main", Lookup { agents: true, ..Lookup::default() }).await;
    let defined: Vec<String> =
        seen.defined.iter().map(|agent| format!("{} {} {}", agent.name, agent.prompt, agent.version)).collect();
    assert_eq!(defined, ["adam One. 1", "zoe Two. 2"]);
    assert!(view(store, "main", Lookup::default()).await.defined.is_empty());
    assert!(view(store, "other", Lookup { agents: true, ..Lookup::default() }).await.defined.is_empty());
}

pub(super) async fn looking_changes_nothing(store: &dyn Store) {
    let changes = store.changes();
    view(store, "main", Lookup { agents: true, context: ContextLookup::Keys, ..Lookup::default() }).await;
    assert!(!changes.has_changed().unwrap());
    assert_eq!(view(store, "main", Lookup::default()).await.next_task, 1);
}

pub(super) async fn a_decision_takes_effect_whole_or_not_at_all(store: &dyn Store) {
    let collect = SessionChange::Collect { task_id: id(1), at: at(1) };
    let failed = change(store, "main", vec![agent("adam", "One.", 1), collect]).await;
    assert!(matches!(failed, Err(DecideError::Store(Error::NotFound))), "{failed:?}");
    assert!(view(store, "main", Lookup { agents: true, ..Lookup::default() }).await.defined.is_empty());

    spawn(store, "main", vec![order("a")]).await;
    let taken = try_spawn(store, "main", vec![order("b"), order("a")]).await;
    assert!(matches!(taken, Err(DecideError::Store(_))), "{taken:?}");
    assert_eq!(standings(store, "main").await, ["a running"]);
    assert_eq!(spawn(store, "main", vec![order("c")]).await.accepted[0].summary.task_id, id(2));
}

pub(super) async fn a_panicking_decision_leaves_the_store_usable(store: &dyn Store) {
    let panicking = std::panic::AssertUnwindSafe(async {
        store.decide(&session("main"), Lookup::default(), None, Box::new(|_| panic!("on purpose"))).await
    });
    // One store passes the panic on, the other one reports it.
    if let Ok(reported) = futures_util::FutureExt::catch_unwind(panicking).await {
        assert!(reported.is_err());
    }
    spawn(store, "main", vec![order("a")]).await;
    assert_eq!(standings(store, "main").await, ["a running"]);
}

pub(super) async fn idempotency_keys_find_their_task(store: &dyn Store) {
    let mut keyed = order("a");
    keyed.entry.idempotency_key = Some("k".to_owned());
    spawn(store, "main", vec![keyed.clone()]).await;
    keyed.uid = uid("b");
    assert!(spawn(store, "main", vec![keyed.clone()]).await.accepted.is_empty());

    complete(store, "a", "done").await;
    let lookup = Lookup { idempotency_keys: vec!["k".to_owned(), "unknown".to_owned()], ..Lookup::default() };
    let seen = view(store, "main", lookup).await;
    assert_eq!(seen.idempotent.len(), 1);
    assert_eq!((seen.idempotent["k"].task_id, seen.idempotent["k"].known.uid.as_str()), (id(1), "a"));
    assert!(seen.idempotent["k"].known.status.is_final());

    keyed.entry.task = "Something else.".to_owned();
    let refused = try_spawn(store, "main", vec![keyed.clone()]).await;
    assert!(matches!(refused, Err(DecideError::Refused(Refusal { code: Code::IdempotencyConflict, .. }))));
    assert_eq!(spawn(store, "other", vec![keyed]).await.accepted.len(), 1);
}

pub(super) async fn collected_tasks_leave_the_list(store: &dyn Store) {
    spawn(store, "main", vec![order("a"), order("b")]).await;
    complete(store, "a", "done").await;
    change(store, "main", vec![SessionChange::Collect { task_id: id(1), at: at(9) }]).await.unwrap();
    assert_eq!(standings(store, "main").await, ["b running"]);
    assert!(row(store, "a").await.collected);
    assert_eq!(names(store, TaskQuery::Ids(session("main"), vec![id(1)])).await, ["a"]);
    assert!(view(store, "main", Lookup { tasks: vec![id(1)], ..Lookup::default() }).await.tasks[&id(1)].collected);
    assert_eq!(log(store, "a").await.len(), 2);
}

pub(super) async fn queries_find_what_they_name_oldest_first(store: &dyn Store) {
    // The names are not in the order of admission.
    spawn(store, "main", vec![order("z"), order("y")]).await;
    spawn(store, "other", vec![order("x")]).await;
    spawn_below(store, "main", "z", vec![order("w"), order("b")]).await;
    complete(store, "y", "done").await;

    let main = || session("main");
    let found = async |query| names(store, query).await;
    assert_eq!(found(TaskQuery::Uncollected(main())).await, ["z", "y", "w", "b"]);
    assert_eq!(found(TaskQuery::Uncollected(session("unknown"))).await, [""; 0]);
    assert_eq!(found(TaskQuery::Ids(main(), vec![id(4), id(1), id(77)])).await, ["z", "b"]);
    assert_eq!(found(TaskQuery::Ids(main(), vec![])).await, [""; 0]);
    assert_eq!(found(TaskQuery::Uids(vec![uid("b"), uid("x"), uid("z"), uid("none")])).await, ["z", "x", "b"]);
    spawn(store, "parked", vec![queued("v", 1), queued("a", 1)]).await;
    spawn(store, "parked", vec![waiting("c", &[1])]).await;
    let some = ["c", "b", "a", "v", "y", "none"].map(uid);
    assert_eq!(found(TaskQuery::Unparked(some.to_vec())).await, ["y", "b", "v"]);
    assert_eq!(found(TaskQuery::Children(uid("z"))).await, ["w", "b"]);
    assert_eq!(found(TaskQuery::Children(uid("x"))).await, [""; 0]);
    assert_eq!(found(TaskQuery::Unfinished(None)).await, ["z", "x", "w", "b", "v", "a", "c"]);
    assert_eq!(found(TaskQuery::Unfinished(Some(main()))).await, ["z", "w", "b"]);
}

pub(super) async fn pages_go_from_the_newest_task_to_the_oldest(store: &dyn Store) {
    spawn(store, "main", vec![order("z"), order("y")]).await;
    spawn(store, "other", vec![order("x")]).await;
    spawn(store, "main", vec![order("b")]).await;
    let page = async |session: Option<&str>, before: Option<&str>, most| {
        let (project, session) =
            (super::fixture::session("main").project.to_string(), session.map(|name| super::fixture::session(name).id));
        names(store, TaskQuery::Page { project, session, before: before.map(uid), most }).await
    };
    assert_eq!(page(None, None, 9).await, ["b", "x", "y", "z"]);
    assert_eq!(page(None, None, 2).await, ["b", "x"]);
    assert_eq!(page(None, Some("x"), 2).await, ["y", "z"]);
    assert_eq!(page(None, Some("z"), 2).await, [""; 0]);
    assert_eq!(page(None, Some("none"), 2).await, [""; 0]);
    assert_eq!(page(Some("main"), None, 2).await, ["b", "y"]);
    assert_eq!(page(Some("main"), Some("y"), 2).await, ["z"]);
    assert_eq!(page(Some("other"), None, 2).await, ["x"]);
    assert_eq!(page(Some("unknown"), None, 2).await, [""; 0]);
    let project = "elsewhere".to_owned();
    assert_eq!(names(store, TaskQuery::Page { project, session: None, before: None, most: 9 }).await, [""; 0]);
}

pub(super) async fn every_character_survives(store: &dyn Store) {
    let text = "Grüße, 世界 🦀 \u{0}\u{1b}[0m \"quoted\" \\ \r\n\u{202e}\u{feff}e\u{301}";
    let mut strange = order("a");
    strange.entry.label = Some(text.to_owned());
    strange.entry.task = text.to_owned();
    spawn(store, "main", vec![strange]).await;
    change(store, "main", vec![SessionChange::PutContext(entry("key", text, 1))]).await.unwrap();
    complete(store, "a", text).await;

    assert_eq!(row(store, "a").await.summary.label.as_deref(), Some(text));
    assert_eq!(view(store, "main", look_at_key("key")).await.context.slots["key"].entry.as_ref().unwrap().value, text);
    let records = log(store, "a").await;
    let TaskEvent::Accepted { plan, .. } = &records[0].event else { panic!("{records:?}") };
    assert_eq!(plan.assignment.task, text);
    let TaskEvent::Ended { outcome } = &records[1].event else { panic!("{records:?}") };
    assert_eq!(outcome.text(), text);
}
