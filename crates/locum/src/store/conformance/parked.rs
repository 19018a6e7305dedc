//! Parked tasks: who starts or ends when another task is accepted or ends.

use locum_core::admission::Order;
use locum_core::task::event::HandedOn;
use locum_core::task::outcome::Outcome;
use locum_core::task::plan::Among;
use locum_core::task::{Task, TaskEvent};

use super::fixture::*;
use crate::store::{Command, OwnerId, Store};

fn uids(names: &[&str]) -> Vec<locum_core::ids::Uid> {
    names.iter().map(|name| uid(name)).collect()
}

/// What was handed on to a task when it was released.
async fn inputs(store: &dyn Store, name: &str) -> Vec<HandedOn> {
    match log(store, name).await.remove(1).event {
        TaskEvent::Released { inputs } => inputs,
        other => panic!("{name} was not released: {other:?}"),
    }
}

/// A row must say what its log says, also where the store has written both.
async fn rows_agree_with_logs(store: &dyn Store, names: &[&str]) {
    for name in names {
        let mut folded = Task::replay(log(store, name).await).unwrap().summary();
        // What is for the append alone is not kept.
        folded.standing.won = None;
        assert_eq!(row(store, name).await.summary, folded);
    }
}

pub(super) async fn a_queued_task_starts_at_once_where_there_is_room(store: &dyn Store) {
    let decided = spawn(store, "main", vec![queued("a", 1), queued("b", 1)]).await;
    assert_eq!(decided.moved, uids(&["a"]));
    let stand: Vec<&str> = decided.accepted.iter().map(|row| row.summary.standing.status.as_str()).collect();
    assert_eq!(stand, ["running", "queued"]);
    assert_eq!(decided.accepted[0], row(store, "a").await);
    assert_eq!(decided.accepted[0].owner, Some(ME));
    assert_eq!(log(store, "a").await.len(), 2);
    rows_agree_with_logs(store, &["a", "b"]).await;
}

pub(super) async fn queued_tasks_start_in_order_as_places_free_up(store: &dyn Store) {
    let orders = ["a", "b", "c", "d", "e"].map(|name| queued(name, 2));
    spawn(store, "main", orders.into()).await;
    assert_eq!(standings(store, "main").await, ["a running", "b running", "c queued", "d queued", "e queued"]);
    assert_eq!(complete(store, "b", "done").await, uids(&["c"]));
    assert_eq!(end(store, "a", failed()).await, uids(&["d"]));
    assert_eq!(standings(store, "main").await, ["a failed", "b completed", "c running", "d running", "e queued"]);

    // A queued task that is cancelled frees no place.
    let cancelled = Outcome::Cancelled { partial: None };
    assert_eq!(end(store, "e", cancelled).await, uids(&[]));
    // Another session has its own places.
    assert_eq!(spawn(store, "other", vec![queued("x", 2)]).await.moved, uids(&["x"]));
    // A released task goes on as any other.
    append(store, &lease("c"), turn()).await.unwrap();
    rows_agree_with_logs(store, &["a", "b", "c", "d", "e"]).await;
}

pub(super) async fn places_of_a_group_are_counted_within_it(store: &dyn Store) {
    spawn(store, "main", vec![order("a"), order("b")]).await;
    let among = Among::Group(uid("c"));
    let grouped = |name| Order { among: among.clone(), ..queued(name, 1) };
    assert_eq!(spawn(store, "main", vec![grouped("c"), grouped("d")]).await.moved, uids(&["c"]));
    assert_eq!(complete(store, "a", "done").await, uids(&[]));
    assert_eq!(complete(store, "c", "done").await, uids(&["d"]));
}

pub(super) async fn a_long_queue_hides_no_other(store: &dyn Store) {
    let grouped = |name: &str, first: &str| Order { among: Among::Group(uid(first)), ..queued(name, 2) };
    let long: Vec<String> = (0..40).map(|number| format!("long{number:02}")).collect();
    spawn(store, "main", long.iter().map(|name| grouped(name, "long00")).collect()).await;
    // Each is behind the long queue, and of none of them more may start than it has places.
    let others = ["x", "y", "z"].map(|name| grouped(name, "x"));
    let of_session = [queued("p", 1), queued("q", 1), queued("r", 45)];
    let moved = spawn(store, "main", others.into_iter().chain(of_session).collect()).await.moved;
    assert_eq!(moved, uids(&["x", "y", "r"]), "four of the session run: there is no place for one of one");
    assert_eq!(complete(store, "x", "done").await, uids(&["z"]));
    assert_eq!(complete(store, "long01", "done").await, uids(&["long02"]));
    assert_eq!(complete(store, "r", "done").await, uids(&[]));
    rows_agree_with_logs(store, &["long00", "long02", "long03", "x", "z", "p", "r"]).await;
}

pub(super) async fn who_delegates_holds_no_place_whatever_is_queued(store: &dyn Store) {
    spawn(store, "main", vec![queued("a", 1), queued("b", 1), queued("c", 1)]).await;
    assert_eq!(spawn_below(store, "main", "a", vec![queued("d", 1)]).await.moved, uids(&["b"]));
    // It has its place again when what it delegated has ended.
    store.claim(&uid("d"), ME, Vec::new()).await.unwrap();
    assert_eq!(end(store, "d", Outcome::Cancelled { partial: None }).await, uids(&[]));
    assert_eq!(complete(store, "b", "done").await, uids(&[]));
    assert_eq!(complete(store, "a", "done").await, uids(&["c"]));
}

pub(super) async fn the_queue_before_a_task_is_counted(store: &dyn Store) {
    let grouped = |name: &str| Order { among: Among::Group(uid("c")), ..queued(name, 1) };
    spawn(store, "main", vec![queued("a", 1), queued("b", 1), grouped("c"), grouped("d")]).await;
    spawn(store, "main", vec![waiting("e", &[1]), queued("f", 1)]).await;
    let before = async |number: u32| store.queued_before(&session("main"), id(number)).await.unwrap();
    assert_eq!([before(1).await, before(3).await, before(6).await, before(99).await], [0, 1, 2, 3]);
    assert_eq!(store.queued_before(&session("other"), id(9)).await.unwrap(), 0);
}

pub(super) async fn a_chain_hands_on_each_result(store: &dyn Store) {
    let step = |name, after| {
        let mut order = Order { after, ..order(name) };
        order.entry.task = "Improve: {previous}".to_owned();
        order
    };
    spawn(store, "main", vec![order("a"), step("b", Some(0)), step("c", Some(1))]).await;
    assert_eq!(standings(store, "main").await, ["a running", "b waiting", "c waiting"]);
    assert_eq!(complete(store, "a", "draft").await, uids(&["b"]));
    assert_eq!(inputs(store, "b").await[0].text, "draft");
    let replayed = Task::replay(log(store, "b").await).unwrap();
    assert!(format!("{:?}", replayed.messages()).contains("Improve: draft"));
    assert_eq!(complete(store, "b", "better").await, uids(&["c"]));
    assert_eq!(inputs(store, "c").await[0].text, "better");
    rows_agree_with_logs(store, &["a", "b", "c"]).await;
}

pub(super) async fn results_of_dependencies_become_blocks(store: &dyn Store) {
    spawn(store, "main", vec![order("a"), order("b")]).await;
    spawn(store, "main", vec![waiting("c", &[1, 2])]).await;
    assert_eq!(complete(store, "b", "two").await, uids(&[]));
    assert_eq!(complete(store, "a", "one").await, uids(&["c"]));
    let handed: Vec<String> = inputs(store, "c")
        .await
        .iter()
        .map(|input| format!("{} {} {}", input.task_id, input.agent, input.text))
        .collect();
    assert_eq!(handed, ["t_01 worker one", "t_02 worker two"]);
    assert_eq!(row(store, "c").await.summary.seq, 2);
}

pub(super) async fn a_failed_dependency_fails_a_whole_chain(store: &dyn Store) {
    let after = |name, after| Order { after: Some(after), ..order(name) };
    spawn(store, "main", vec![order("a"), after("b", 0), after("c", 1), queued("d", 1)]).await;
    assert_eq!(end(store, "a", failed()).await, uids(&["b", "c", "d"]));
    assert_eq!(standings(store, "main").await, ["a failed", "b failed", "c failed", "d running"]);
    let standing = row(store, "c").await.summary.standing;
    assert_eq!(
        standing.error.as_deref(),
        Some("Dependency t_02 failed: Dependency t_01 failed: Max turns exceeded without producing a final response")
    );
    assert_eq!((standing.completed_at, row(store, "c").await.owner), (Some(at(100)), None));
    rows_agree_with_logs(store, &["a", "b", "c", "d"]).await;
}

pub(super) async fn a_cancelled_dependency_fails_what_waits_for_it(store: &dyn Store) {
    spawn(store, "main", vec![order("a")]).await;
    spawn(store, "main", vec![waiting("b", &[1])]).await;
    assert_eq!(end(store, "a", Outcome::Cancelled { partial: None }).await, uids(&["b"]));
    let error = row(store, "b").await.summary.standing.error;
    assert_eq!(error.as_deref(), Some("Dependency t_01 failed: it was cancelled"));
}

pub(super) async fn a_dependency_that_ended_before_counts(store: &dyn Store) {
    spawn(store, "main", vec![order("a"), order("b")]).await;
    complete(store, "a", "one").await;
    end(store, "b", failed()).await;
    let decided = spawn(store, "main", vec![waiting("c", &[1]), waiting("d", &[2])]).await;
    assert_eq!(decided.moved, uids(&["c", "d"]));
    let stand: Vec<&str> = decided.accepted.iter().map(|row| row.summary.standing.status.as_str()).collect();
    assert_eq!(stand, ["running", "failed"]);
    assert_eq!(inputs(store, "c").await[0].text, "one");
}

pub(super) async fn who_wins_a_race_ends_it_for_the_others(store: &dyn Store) {
    let runner = |order: Order| Order { race: Some(uid("a")), ..order };
    spawn(store, "main", vec![runner(order("a")), runner(order("b")), runner(queued("c", 3)), order("d")]).await;
    // Who fails has won nothing; its place is free.
    assert_eq!(end(store, "a", failed()).await, uids(&["c"]));
    assert_eq!(store.drain(ME).await.unwrap(), []);
    spawn_below(store, "main", "b", vec![order("e")]).await;
    let mut changes = store.changes();
    changes.borrow_and_update();
    assert_eq!(complete(store, "d", "done").await, uids(&[]));
    assert_eq!(store.drain(ME).await.unwrap(), [], "it runs in no race");
    assert_eq!(complete(store, "c", "won").await, uids(&[]));
    assert_eq!(store.drain(ME).await.unwrap(), [(uid("b"), Command::Cancel)]);
    assert!(changes.has_changed().unwrap());
    // What nobody holds is told as soon as somebody does.
    store.claim(&uid("e"), OwnerId(8), Vec::new()).await.unwrap().unwrap();
    assert_eq!(store.drain(OwnerId(8)).await.unwrap(), [(uid("e"), Command::Cancel)]);
    rows_agree_with_logs(store, &["a", "b", "c", "d", "e"]).await;
}

pub(super) async fn a_race_is_over_for_those_who_never_started(store: &dyn Store) {
    let runner = |name| Order { race: Some(uid("a")), ..queued(name, 1) };
    spawn(store, "main", vec![runner("a"), runner("b"), runner("c")]).await;
    assert_eq!(complete(store, "a", "won").await, uids(&["b", "c"]));
    assert_eq!(standings(store, "main").await, ["a completed", "b cancelled", "c cancelled"]);
    rows_agree_with_logs(store, &["a", "b", "c"]).await;
}
