//! Telling clients that something they watch has changed: in the older era for as long as a session lasts, in the newer
//! one for as long as a request listens. What changed is read from the log; nothing is kept for a slow client.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::{Either, select};
use locum::context_changes::{ContextChange, ContextChanges};
use locum::desk::SessionTail;
use locum::protocol::Refusal;
use locum::store::PlacedRecord;
use locum::task::TaskEvent;
use locum::{Desk, Uid};
use rmcp::model::{ResourceUpdatedNotificationParam, SubscriptionFilter};
use rmcp::service::SubscriptionContext;
use rmcp::{ErrorData, Peer, RoleServer};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::resources::{Address, Spot};

/// Addresses that one client watches: each is looked at with every change.
const WATCHED_MAX: usize = 256;

/// How often it is seen whether the client of a quiet session is still there.
const LOOK: Duration = Duration::from_secs(30);

/// What a client of the older era watches.
#[derive(Default)]
pub(super) struct Watch {
    kept: Mutex<Kept>,
    /// Rung when the first address is watched.
    begun: Notify,
}

#[derive(Default)]
struct Kept {
    addresses: BTreeSet<String>,
    /// Where to go on from, until somebody reads it.
    changes: Option<Changes>,
    has_begun: bool,
}

impl Watch {
    /// Begins to watch an address. A change after the answer is told.
    pub(super) async fn add(&self, desk: &Desk, uri: String) -> Result<(), ErrorData> {
        if !is_there(desk, &uri).await {
            return Err(ErrorData::resource_not_found("there is no such resource in this session", None));
        }
        let has_begun = self.kept.lock().unwrap_or_else(PoisonError::into_inner).has_begun;
        let changes = if has_begun { None } else { Some(Changes::begin(desk).await.map_err(failed)?) };
        // Nothing panics or awaits under this lock.
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.addresses.len() >= WATCHED_MAX {
            let message = format!("{WATCHED_MAX} resources are watched already");
            return Err(ErrorData::invalid_params(message, None));
        }
        kept.addresses.insert(uri);
        if !kept.has_begun {
            kept.has_begun = true;
            kept.changes = changes;
            self.begun.notify_one();
        }
        Ok(())
    }

    /// Watches the results of tasks that were just started, without being asked. Who has ended already is told at once.
    pub(super) async fn announce(&self, desk: &Desk, tasks: &[Uid], peer: &Peer<RoleServer>) {
        for uid in tasks {
            let uri = Address::Result(uid.to_string()).to_string();
            let is_watched = self.add(desk, uri.clone()).await.is_ok();
            if is_watched && desk.task(uid.as_str()).await.is_ok_and(|task| task.status.status.is_final()) {
                // A client that cannot be told has left.
                peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await.ok();
            }
        }
    }

    /// Watches an address no longer.
    pub(super) fn remove(&self, uri: &str) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).addresses.remove(uri);
    }

    /// Tells a client of what it watches, until it is gone.
    pub(super) async fn tell(&self, peer: &Peer<RoleServer>, left: &CancellationToken) {
        left.run_until_cancelled(async {
            while tokio::time::timeout(LOOK, self.begun.notified()).await.is_err() {
                if peer.is_transport_closed() {
                    return;
                }
            }
            let Some(mut changes) = self.kept.lock().unwrap_or_else(PoisonError::into_inner).changes.take() else {
                return;
            };
            while !peer.is_transport_closed() {
                let changed = match tokio::time::timeout(LOOK, changes.next()).await {
                    Ok(Ok(changed)) => changed,
                    Ok(Err(_)) => return,
                    Err(_) => continue,
                };
                let watched = self.kept.lock().unwrap_or_else(PoisonError::into_inner).addresses.clone();
                for uri in watched.into_iter().filter(|uri| changed.concerns(uri)) {
                    // A client that cannot be told any more is noticed above.
                    peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await.ok();
                }
            }
        })
        .await;
    }
}

/// The part of what a client of the newer era wants to listen to that there is.
pub(super) fn accepted(requested: &SubscriptionFilter) -> SubscriptionFilter {
    let wanted = requested.resource_subscriptions.iter().flatten();
    let addresses: Vec<String> = wanted.filter(|uri| uri.parse::<Spot>().is_ok()).take(WATCHED_MAX).cloned().collect();
    SubscriptionFilter::builder().resource_subscriptions(addresses).build()
}

/// Tells a request that listens, until nobody listens any more.
pub(super) async fn listen(
    desk: &Desk,
    subscription: &SubscriptionContext,
    left: &CancellationToken,
) -> Result<(), ErrorData> {
    let mut changes = Changes::begin(desk).await.map_err(failed)?;
    let told = async {
        loop {
            let changed = changes.next().await.map_err(failed)?;
            let accepted = subscription.accepted().resource_subscriptions.iter().flatten();
            for uri in accepted.filter(|uri| changed.concerns(uri)) {
                if subscription.sink().notify_resource_updated(uri).await.is_err() {
                    return Ok(());
                }
            }
        }
    };
    let over = async {
        select(pin!(subscription.cancelled()), pin!(left.cancelled())).await;
    };
    match select(pin!(told), pin!(over)).await {
        Either::Left((ended, _)) => ended,
        Either::Right(_) => Ok(()),
    }
}

fn failed(refusal: Refusal) -> ErrorData {
    ErrorData::internal_error(refusal.message, None)
}

/// Whether something of the desk's own session is at an address.
async fn is_there(desk: &Desk, uri: &str) -> bool {
    match uri.parse::<Spot>().map(|spot| spot.address) {
        Ok(Address::Task(name) | Address::Transcript(name) | Address::Result(name)) => {
            desk.task(&name).await.is_ok_and(|task| task.session == desk.session().id)
        }
        // A key may be written later, an agent defined.
        Ok(Address::Agent(_) | Address::Value(_)) => true,
        Err(_) => false,
    }
}

/// What happens in a session, from when it was begun.
struct Changes {
    tail: SessionTail,
    context: ContextChanges,
}

/// What has changed at once.
#[derive(Debug, PartialEq)]
enum Changed {
    Tasks(Vec<TouchedTask>),
    Value(String),
}

/// A task to whose log something was written.
#[derive(Debug, PartialEq)]
struct TouchedTask {
    uid: Uid,
    id: String,
    has_ended: bool,
}

impl Changes {
    async fn begin(desk: &Desk) -> Result<Self, Refusal> {
        let context = desk.context_changes();
        Ok(Self { tail: desk.tail(desk.last_position().await?), context })
    }

    /// Waits for a change. Dropping the future loses nothing.
    async fn next(&mut self) -> Result<Changed, Refusal> {
        match select(pin!(self.tail.next()), pin!(self.context.next())).await {
            Either::Left((records, _)) => Ok(Changed::Tasks(records?.iter().map(TouchedTask::of).collect())),
            Either::Right((Some(ContextChange { key, .. }), _)) => Ok(Changed::Value(key)),
            Either::Right((None, _)) => Err(Refusal::internal("the engine is gone")),
        }
    }
}

impl TouchedTask {
    fn of(placed: &PlacedRecord) -> Self {
        let has_ended = matches!(placed.record.event, TaskEvent::Ended { .. });
        Self { uid: placed.uid.clone(), id: placed.task_id.to_string(), has_ended }
    }

    fn is_called(&self, name: &str) -> bool {
        self.id == name || self.uid.as_str() == name
    }
}

impl Changed {
    /// Whether what is at an address may be another one now.
    fn concerns(&self, uri: &str) -> bool {
        let Ok(Spot { address, .. }) = uri.parse() else { return false };
        match (self, address) {
            (Self::Tasks(tasks), Address::Task(name) | Address::Transcript(name)) => {
                tasks.iter().any(|task| task.is_called(&name))
            }
            (Self::Tasks(tasks), Address::Result(name)) => {
                tasks.iter().any(|task| task.has_ended && task.is_called(&name))
            }
            (Self::Value(key), Address::Value(name)) => *key == name,
            (Self::Tasks(_), Address::Agent(_) | Address::Value(_)) => false,
            (Self::Value(_), Address::Agent(_) | Address::Task(_)) => false,
            (Self::Value(_), Address::Transcript(_) | Address::Result(_)) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_concerns_the_addresses_of_what_changed() {
        let uid = Uid::parse("01j00000000000000000000000").unwrap();
        let task = |has_ended| Changed::Tasks(vec![TouchedTask { uid: uid.clone(), id: "t_01".to_owned(), has_ended }]);
        for (changed, uri, expected) in [
            (task(false), "locum://tasks/t_01", true),
            (task(false), "locum://tasks/01j00000000000000000000000", true),
            (task(false), "locum://tasks/t_01/transcript?after=3", true),
            (task(false), "locum://tasks/t_01/result", false),
            (task(true), "locum://tasks/t_01/result", true),
            (task(true), "locum://tasks/t_02", false),
            (task(true), "locum://context/t_01", false),
            (Changed::Value("goal".to_owned()), "locum://context/goal", true),
            (Changed::Value("goal".to_owned()), "locum://context/goals", false),
            (Changed::Value("goal".to_owned()), "nonsense", false),
        ] {
            assert_eq!(changed.concerns(uri), expected, "{changed:?} {uri}");
        }
    }
}
