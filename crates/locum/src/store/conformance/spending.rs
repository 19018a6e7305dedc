//! Purses: a request is covered before its start is written, and nobody takes what another one has.

use std::sync::Arc;

use locum_core::budget::{Draw, Drawn, Purse, PurseKey, Resource, Scarce};
use locum_core::protocol::FaceDefaults;
use locum_core::session::{Lookup, SessionChange};
use locum_core::task::{Record, Task, TaskEvent};
use locum_core::usage::Budget;

use super::fixture::*;
use crate::store::{Appended, Error, Store};

/// A purse of the session with this much money in it.
fn purses(money: f64) -> Arc<[Purse]> {
    let limit = Budget { max_cost_usd: Some(money), ..Budget::default() };
    Arc::from([Purse { key: PurseKey::Session, limit }])
}

fn dollars(amount: u64) -> Drawn {
    Drawn { money: amount * 1_000_000_000, ..Drawn::default() }
}

fn draw(spent: u64, reserved: u64) -> Draw {
    Draw { purses: purses(5.0), spent: dollars(spent), reserved: dollars(reserved), keep: Drawn::default() }
}

/// Appends events with what the task holds after them.
async fn spend(store: &dyn Store, name: &str, events: Vec<TaskEvent>, draw: Draw) -> Result<Appended, Error> {
    let mut task = Task::replay(log(store, name).await).unwrap();
    let mut records = Vec::new();
    for event in events {
        let record = Record { seq: task.seq() + 1, at: at(100), event };
        task.apply(record.clone()).unwrap();
        records.push(record);
    }
    let mut standing = task.standing();
    standing.draw = Some(draw);
    store.append(&lease(name), records.into(), standing).await
}

async fn drawn(store: &dyn Store, key: PurseKey) -> u64 {
    let lookup = Lookup { purses: vec![key.clone()], ..Lookup::default() };
    let view = view(store, "main", lookup).await;
    view.purses.get(&key).map_or(0, |state| state.drawn.money / 1_000_000_000)
}

pub(super) async fn two_tasks_cannot_take_the_same_money(store: &dyn Store) {
    spawn(store, "main", vec![order("a"), order("b")]).await;
    assert_eq!(drawn(store, PurseKey::Session).await, 0);
    spend(store, "a", vec![turn()], draw(0, 3)).await.unwrap();
    assert_eq!(drawn(store, PurseKey::Session).await, 3);
    let refused = spend(store, "b", vec![turn()], draw(0, 3)).await;
    let Err(Error::Overdrawn(shortage)) = refused else { panic!("{refused:?}") };
    assert_eq!(shortage.scarce, Scarce { resource: Resource::Money, limit: 5_000_000_000 });
    assert_eq!((shortage.over, shortage.left.money), (1_000_000_000, Some(2_000_000_000)));
    assert_eq!(log(store, "b").await.len(), 1, "nothing was written");
    assert_eq!(drawn(store, PurseKey::Session).await, 3, "nothing was drawn");
    // What it was refused it may have in part, and what the other one gives back.
    spend(store, "b", vec![turn()], draw(0, 2)).await.unwrap();
    spend(store, "a", vec![reply("cheap".to_owned())], draw(1, 0)).await.unwrap();
    assert_eq!(drawn(store, PurseKey::Session).await, 3);
}

pub(super) async fn what_happened_is_taken_as_it_is(store: &dyn Store) {
    spawn(store, "main", vec![order("a"), order("b")]).await;
    spend(store, "a", vec![turn()], draw(0, 3)).await.unwrap();
    // The answer costs more than was set aside: that is a fact, and the next request meets it.
    let appended = spend(store, "a", vec![reply("dear".to_owned())], draw(6, 0)).await.unwrap();
    assert_eq!(appended.nearing, Some(Scarce { resource: Resource::Money, limit: 5_000_000_000 }));
    assert_eq!(drawn(store, PurseKey::Session).await, 6);
    assert!(matches!(spend(store, "b", vec![turn()], draw(0, 0)).await, Err(Error::Overdrawn(_))));
    let Err(Error::Overdrawn(shortage)) = spend(store, "b", vec![turn()], draw(0, 1)).await else { panic!() };
    assert_eq!((shortage.over, shortage.left.money), (2_000_000_000, Some(0)));
}

pub(super) async fn what_must_be_left_is_kept(store: &dyn Store) {
    spawn(store, "main", vec![order("a")]).await;
    let keep = |money| Draw { keep: dollars(money), ..draw(0, 3) };
    assert!(matches!(spend(store, "a", vec![turn()], keep(3)).await, Err(Error::Overdrawn(_))));
    spend(store, "a", vec![turn()], keep(2)).await.unwrap();
    assert_eq!(drawn(store, PurseKey::Session).await, 3, "what is kept is not drawn");
}

pub(super) async fn a_declined_turn_holds_nothing(store: &dyn Store) {
    spawn(store, "main", vec![order("a")]).await;
    let Err(Error::Overdrawn(shortage)) = spend(store, "a", vec![turn()], draw(0, 6)).await else { panic!() };
    let declined = TaskEvent::TurnDeclined { turn: 1, shortage };
    spend(store, "a", vec![turn(), declined], draw(0, 0)).await.unwrap();
    assert_eq!(log(store, "a").await.len(), 3);
    assert_eq!(drawn(store, PurseKey::Session).await, 0);
}

pub(super) async fn what_ended_tasks_spent_stays_spent(store: &dyn Store) {
    spawn(store, "main", vec![order("a")]).await;
    spend(store, "a", vec![turn()], draw(0, 3)).await.unwrap();
    let ended = TaskEvent::Ended { outcome: failed() };
    spend(store, "a", vec![reply("done".to_owned()), ended], draw(2, 0)).await.unwrap();
    assert_eq!(drawn(store, PurseKey::Session).await, 2);
    assert_eq!(row(store, "a").await.summary.standing.draw, None, "a row does not show it");
    change(store, "main", vec![SessionChange::Delete]).await.unwrap();
    assert_eq!(drawn(store, PurseKey::Session).await, 0, "it goes with its session");
}

pub(super) async fn purses_of_sessions_are_apart(store: &dyn Store) {
    spawn(store, "main", vec![order("a")]).await;
    spawn(store, "other", vec![order("b")]).await;
    spend(store, "a", vec![turn()], draw(0, 5)).await.unwrap();
    spend(store, "b", vec![turn()], draw(0, 5)).await.unwrap();
    assert_eq!(drawn(store, PurseKey::Session).await, 5);
    assert_eq!(drawn(store, PurseKey::Task(uid("a"))).await, 0);
}

pub(super) async fn tasks_of_models_are_counted_where_they_belong(store: &dyn Store) {
    let session = session("main");
    let accept = |name: &str, face: FaceDefaults, purses: Vec<Purse>| {
        let (name, key) = (name.to_owned(), session.clone());
        async move {
            let decision = admission(&key, vec![order(&name)], locum_core::admission::Caller::orchestrator());
            let change: crate::store::Decision = Box::new(move |view| {
                let mut changes = decision(view)?;
                for change in &mut changes {
                    let SessionChange::Accept(acceptance) = change else { continue };
                    let plan = Arc::make_mut(&mut acceptance.plan);
                    plan.face = face.clone();
                    plan.bounds.purses = purses.clone();
                }
                Ok(changes)
            });
            store.decide(&key, Lookup::default(), Some(ME), change).await.unwrap();
        }
    };
    let command = PurseKey::Command(uid("first"));
    let of_command = vec![Purse { key: command.clone(), limit: Budget::default() }];
    accept("a", FaceDefaults::person(), Vec::new()).await;
    accept("b", FaceDefaults::native(), Vec::new()).await;
    accept("c", FaceDefaults::native(), of_command.clone()).await;
    accept("d", FaceDefaults::native(), of_command).await;
    let lookup = Lookup { purses: vec![command.clone(), PurseKey::Session], ..Lookup::default() };
    let view = view(store, "main", lookup).await;
    assert_eq!(view.spawned, 1, "a person's task is not counted, nor what a command's task started");
    assert_eq!(view.purses[&command].spawned, 2);
    assert_eq!(store.sessions("/project").await.unwrap()[0].tasks, 4);
}
