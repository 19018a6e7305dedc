//! Leases: who may append.

use super::fixture::*;
use crate::store::{Error, Lease, Owner, OwnerId, OwnerRow, Store};

const OTHER: OwnerId = OwnerId(8);

fn owner(id: OwnerId) -> Owner {
    Owner { id, pid: 4711, started: "12345".to_owned(), boot: "b00t".to_owned(), detached: false }
}

pub(super) async fn a_free_task_is_claimed_once(store: &dyn Store) {
    let decided = spawn_free(store, "main", vec![order("a")]).await;
    assert_eq!(decided.accepted[0].owner, None);
    let claimed = store.claim(&uid("a"), ME, Vec::new()).await.unwrap();
    assert_eq!(claimed, Some(Lease { uid: uid("a"), owner: ME, epoch: 1 }));
    assert_eq!(store.claim(&uid("a"), OTHER, vec![OwnerId(99)]).await.unwrap(), None);
    assert_eq!(store.claim(&uid("a"), ME, Vec::new()).await.unwrap(), claimed);
    append(store, &claimed.unwrap(), turn()).await.unwrap();
    assert!(matches!(store.claim(&uid("unknown"), ME, Vec::new()).await, Err(Error::NotFound)));
}

pub(super) async fn a_dead_owners_task_is_taken_over(store: &dyn Store) {
    spawn(store, "main", vec![order("a")]).await;
    let taken = store.claim(&uid("a"), OTHER, vec![ME]).await.unwrap().unwrap();
    assert_eq!((taken.epoch, row(store, "a").await.owner), (2, Some(OTHER)));
    assert!(matches!(append(store, &lease("a"), turn()).await, Err(Error::Conflict)));
    append(store, &taken, turn()).await.unwrap();
}

pub(super) async fn a_holder_from_admission_has_the_first_epoch(store: &dyn Store) {
    spawn(store, "main", vec![order("a"), queued("b", 1)]).await;
    assert_eq!(store.claim(&uid("a"), ME, Vec::new()).await.unwrap(), Some(lease("a")));
    assert_eq!(store.claim(&uid("b"), ME, Vec::new()).await.unwrap(), Some(lease("b")));
    assert_eq!(store.claim(&uid("b"), OTHER, Vec::new()).await.unwrap(), None);
}

pub(super) async fn a_released_task_is_free(store: &dyn Store) {
    spawn(store, "main", vec![order("a")]).await;
    store.release(&Lease { epoch: 5, ..lease("a") }).await.unwrap();
    store.release(&lease("unknown")).await.unwrap();
    assert_eq!(row(store, "a").await.owner, Some(ME));
    store.release(&lease("a")).await.unwrap();
    assert_eq!(row(store, "a").await.owner, None);
    assert!(matches!(append(store, &lease("a"), turn()).await, Err(Error::Conflict)));
    assert_eq!(store.claim(&uid("a"), ME, Vec::new()).await.unwrap().unwrap().epoch, 2);
}

pub(super) async fn a_task_that_ended_cannot_be_claimed(store: &dyn Store) {
    spawn(store, "main", vec![order("a")]).await;
    complete(store, "a", "done").await;
    assert_eq!(store.claim(&uid("a"), ME, Vec::new()).await.unwrap(), None);
    assert_eq!(store.claim(&uid("a"), OTHER, vec![ME]).await.unwrap(), None);
    store.release(&lease("a")).await.unwrap();
}

pub(super) async fn owners_are_those_that_hold_something(store: &dyn Store) {
    store.beat(&owner(ME), at(1)).await.unwrap();
    store.beat(&owner(OTHER), at(1)).await.unwrap();
    assert_eq!(store.owners().await.unwrap(), []);
    spawn(store, "main", vec![order("a"), order("b")]).await;
    let renewed = Owner { detached: true, ..owner(ME) };
    store.beat(&renewed, at(2)).await.unwrap();
    assert_eq!(store.owners().await.unwrap(), [OwnerRow { owner: renewed, beat_at: at(2) }]);
    complete(store, "a", "done").await;
    complete(store, "b", "done").await;
    assert_eq!(store.owners().await.unwrap(), []);
}

pub(super) async fn ids_of_owners_use_all_bits(store: &dyn Store) {
    let large = OwnerId(u64::MAX - 1);
    store.beat(&owner(large), at(1)).await.unwrap();
    store.beat(&owner(ME), at(1)).await.unwrap();
    spawn_free(store, "main", vec![order("a")]).await;
    spawn(store, "main", vec![order("b")]).await;
    let lease = store.claim(&uid("a"), large, Vec::new()).await.unwrap().unwrap();
    append(store, &lease, turn()).await.unwrap();
    let ids: Vec<OwnerId> = store.owners().await.unwrap().iter().map(|row| row.owner.id).collect();
    assert_eq!(ids, [ME, large]);
    assert_eq!(row(store, "a").await.owner, Some(large));
}
