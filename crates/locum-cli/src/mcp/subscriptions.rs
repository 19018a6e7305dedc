//! Telling clients that something they watch has changed: in the older era for as long as a session lasts, in the newer
//! one for as long as a request listens. What changed is read from the log; nothing is kept for a slow client.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::{Either, select};
use locum::context_changes::{ContextChange, ContextChanges};
use locum::desk::SessionTail;
use locum::protocol::Refusal;
use locum::store::PlacedRecord;
use locum::task::TaskEvent;
use locum::{Desk, Uid};
use rmcp::model::{CustomNotification, ResourceUpdatedNotificationParam, ServerNotification, SubscriptionFilter};
use rmcp::service::{SubscriptionContext, SubscriptionSendError};
use rmcp::{ErrorData, Peer, RoleServer};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::lists::{Lists, ListsChanged};
use super::resources::{Address, Spot};
use super::server::Place;
use super::tasks::handshake_era;

/// Addresses that one client watches: each is looked at with every change.
const WATCHED_MAX: usize = 256;

/// How often it is seen whether the client of a quiet session is still there, and whether agent files have changed. Lists
/// are told of no more often.
const LOOK: Duration = Duration::from_secs(2);

/// What a client of the older era watches.
#[derive(Default)]
pub(super) struct Watch {
    kept: Mutex<Kept>,
    /// Rung when there is more to tell.
    bell: Notify,
}

#[derive(Default)]
struct Kept {
    addresses: BTreeSet<String>,
    /// Tasks of the protocol whose ends are told, each with the tasks that it stands for.
    tasks: BTreeMap<Uid, Vec<Uid>>,
    /// Where to go on from, until somebody reads it.
    changes: Option<Changes>,
    has_begun: bool,
    /// Whether there are resources that there were not.
    has_new_resources: bool,
}

impl Watch {
    /// Begins to watch an address. A change after the answer is told.
    pub(super) async fn add(&self, desk: &Desk, uri: String) -> Result<(), ErrorData> {
        if !is_there(desk, &uri).await {
            return Err(ErrorData::resource_not_found("there is no such resource in this session", None));
        }
        self.begin(desk).await?;
        let mut kept = self.locked();
        if kept.addresses.len() >= WATCHED_MAX {
            let message = format!("{WATCHED_MAX} resources are watched already");
            return Err(ErrorData::invalid_params(message, None));
        }
        kept.addresses.insert(uri);
        Ok(())
    }

    /// From now on changes are read.
    async fn begin(&self, desk: &Desk) -> Result<(), ErrorData> {
        if self.locked().has_begun {
            return Ok(());
        }
        let changes = Changes::begin(desk).await.map_err(failed)?;
        let mut kept = self.locked();
        if !kept.has_begun {
            kept.has_begun = true;
            kept.changes = Some(changes);
            self.bell.notify_one();
        }
        Ok(())
    }

    fn locked(&self) -> MutexGuard<'_, Kept> {
        // Nothing panics or awaits under this lock.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Tells of the end of a task of the protocol, once.
    pub(super) async fn follow(&self, place: &Place, uid: &Uid, peer: &Peer<RoleServer>) {
        let Ok(errand) = place.desk.errand_of(uid.as_str()).await else { return };
        if self.begin(&place.desk).await.is_err() {
            return;
        }
        self.remember(uid, errand.tasks.into_iter().map(|task| task.uid).collect());
        self.tell_of_end(place, uid, peer).await;
    }

    fn remember(&self, uid: &Uid, tasks: Vec<Uid>) {
        let mut kept = self.locked();
        if kept.tasks.len() < WATCHED_MAX {
            kept.tasks.insert(uid.clone(), tasks);
        }
    }

    async fn tell_of_end(&self, place: &Place, uid: &Uid, peer: &Peer<RoleServer>) {
        let Ok(Some(ended)) = handshake_era::ended(place, uid).await else { return };
        // Whoever takes it out tells of it.
        if self.locked().tasks.remove(uid).is_none() {
            return;
        }
        let notice = CustomNotification::new(handshake_era::STATUS, Some(ended));
        peer.send_notification(ServerNotification::CustomNotification(notice)).await.ok();
    }

    /// Watches an address no longer.
    pub(super) fn remove(&self, uri: &str) {
        self.locked().addresses.remove(uri);
    }

    /// A call has made resources that there were not.
    pub(super) fn note_new_resources(&self) {
        self.locked().has_new_resources = true;
        self.bell.notify_one();
    }

    /// Tells a client of what it watches, until it is gone.
    pub(super) async fn tell(&self, place: &Place, peer: &Peer<RoleServer>, left: &CancellationToken) {
        left.run_until_cancelled(self.tell_all(place, peer)).await;
    }

    async fn tell_all(&self, place: &Place, peer: &Peer<RoleServer>) {
        let (mut lists, mut changes, mut told) = (Lists::now(place), None::<Changes>, Instant::now() - LOOK);
        while !peer.is_transport_closed() {
            match tokio::time::timeout(LOOK, self.next(&mut changes)).await {
                Ok(Some(Ok(changed))) => self.tell_of(&changed, place, peer).await,
                Ok(Some(Err(_))) => return,
                Ok(None) | Err(_) => {}
            }
            if changes.is_none() {
                changes = self.locked().changes.take();
            }
            let mut changed = lists.look(place);
            if told.elapsed() >= LOOK {
                changed.resources |= std::mem::take(&mut self.locked().has_new_resources);
            } else if changed.resources {
                (self.locked().has_new_resources, changed.resources) = (true, false);
            }
            if changed.resources {
                told = Instant::now();
                peer.notify_resource_list_changed().await.ok();
            }
            if changed.tools {
                peer.notify_tool_list_changed().await.ok();
            }
        }
    }

    /// The next change, or nothing where something else is to be told. Dropping the future loses nothing.
    async fn next(&self, changes: &mut Option<Changes>) -> Option<Result<Changed, Refusal>> {
        let bell = pin!(self.bell.notified());
        match changes {
            None => {
                bell.await;
                None
            }
            Some(changes) => match select(pin!(changes.next()), bell).await {
                Either::Left((changed, _)) => Some(changed),
                Either::Right(_) => None,
            },
        }
    }

    async fn tell_of(&self, changed: &Changed, place: &Place, peer: &Peer<RoleServer>) {
        let (watched, tasks) = {
            let mut kept = self.locked();
            kept.has_new_resources |= changed.is_new();
            let ended = kept.tasks.iter().filter(|(_, tasks)| tasks.iter().any(|uid| changed.has_ended(uid)));
            let ended: Vec<Uid> = ended.map(|(uid, _)| uid.clone()).collect();
            (kept.addresses.clone(), ended)
        };
        for uri in watched.into_iter().filter(|uri| changed.concerns(uri)) {
            // A client that cannot be told any more is noticed by whoever waits for the next change.
            peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await.ok();
        }
        for uid in tasks {
            self.tell_of_end(place, &uid, peer).await;
        }
    }
}

/// The part of what a client of the newer era wants to listen to that there is.
pub(super) fn accepted(requested: &SubscriptionFilter) -> SubscriptionFilter {
    let wanted = requested.resource_subscriptions.iter().flatten();
    let addresses: Vec<String> = wanted.filter(|uri| uri.parse::<Spot>().is_ok()).take(WATCHED_MAX).cloned().collect();
    let mut accepted = SubscriptionFilter::builder().resource_subscriptions(addresses).build();
    // The SDK leaves out what was not announced.
    accepted.resources_list_changed = requested.resources_list_changed;
    accepted.tools_list_changed = requested.tools_list_changed;
    accepted
}

/// Tells a request that listens, until nobody listens any more.
pub(super) async fn listen(
    place: &Place,
    subscription: &SubscriptionContext,
    left: &CancellationToken,
) -> Result<(), ErrorData> {
    let mut changes = Changes::begin(&place.desk).await.map_err(failed)?;
    let mut lists = Lists::now(place);
    let told = async {
        loop {
            let changed = match tokio::time::timeout(LOOK, changes.next()).await {
                Ok(changed) => Some(changed.map_err(failed)?),
                Err(_) => None,
            };
            let mut other = lists.look(place);
            other.resources |= changed.as_ref().is_some_and(Changed::is_new);
            if tell_listener(subscription, changed.as_ref(), other).await.is_err() {
                return Ok(());
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

/// Tells a request that listens of what it wants to know.
async fn tell_listener(
    subscription: &SubscriptionContext,
    changed: Option<&Changed>,
    lists: ListsChanged,
) -> Result<(), SubscriptionSendError> {
    let (sink, accepted) = (subscription.sink(), subscription.accepted());
    if lists.tools && accepted.tools_list_changed == Some(true) {
        sink.notify_tool_list_changed().await?;
    }
    if lists.resources && accepted.resources_list_changed == Some(true) {
        sink.notify_resource_list_changed().await?;
    }
    let watched = accepted.resource_subscriptions.iter().flatten();
    for uri in watched.filter(|uri| changed.is_some_and(|changed| changed.concerns(uri))) {
        sink.notify_resource_updated(uri).await?;
    }
    Ok(())
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
    Value { key: String, is_new: bool },
}

/// A task to whose log something was written.
#[derive(Debug, PartialEq)]
struct TouchedTask {
    uid: Uid,
    id: String,
    is_new: bool,
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
            Either::Left((records, _)) => {
                Ok(Changed::Tasks(records?.iter().map(|record| TouchedTask::of(record)).collect()))
            }
            Either::Right((Some(ContextChange { key, version, deleted, .. }), _)) => {
                Ok(Changed::Value { key, is_new: version == 1 || deleted })
            }
            Either::Right((None, _)) => Err(Refusal::internal("the engine is gone")),
        }
    }
}

impl TouchedTask {
    fn of(placed: &PlacedRecord) -> Self {
        let has_ended = matches!(placed.record.event, TaskEvent::Ended { .. });
        let is_new = matches!(placed.record.event, TaskEvent::Accepted { .. });
        Self { uid: placed.uid.clone(), id: placed.task_id.to_string(), is_new, has_ended }
    }

    fn is_called(&self, name: &str) -> bool {
        self.id == name || self.uid.as_str() == name
    }
}

impl Changed {
    /// Whether there are other resources than before.
    fn is_new(&self) -> bool {
        match self {
            Self::Tasks(tasks) => tasks.iter().any(|task| task.is_new),
            Self::Value { is_new, .. } => *is_new,
        }
    }

    fn has_ended(&self, uid: &Uid) -> bool {
        matches!(self, Self::Tasks(tasks) if tasks.iter().any(|task| task.has_ended && task.uid == *uid))
    }

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
            (Self::Value { key, .. }, Address::Value(name)) => *key == name,
            (Self::Tasks(_), Address::Agent(_) | Address::Value(_)) => false,
            (Self::Value { .. }, Address::Agent(_) | Address::Task(_)) => false,
            (Self::Value { .. }, Address::Transcript(_) | Address::Result(_)) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_concerns_the_addresses_of_what_changed() {
        let uid = Uid::parse("01j00000000000000000000000").unwrap();
        let task = |has_ended| {
            Changed::Tasks(vec![TouchedTask { uid: uid.clone(), id: "t_01".to_owned(), is_new: false, has_ended }])
        };
        let goal = || Changed::Value { key: "goal".to_owned(), is_new: false };
        for (changed, uri, expected) in [
            (task(false), "locum://tasks/t_01", true),
            (task(false), "locum://tasks/01j00000000000000000000000", true),
            (task(false), "locum://tasks/t_01/transcript?after=3", true),
            (task(false), "locum://tasks/t_01/result", false),
            (task(true), "locum://tasks/t_01/result", true),
            (task(true), "locum://tasks/t_02", false),
            (task(true), "locum://context/t_01", false),
            (goal(), "locum://context/goal", true),
            (goal(), "locum://context/goals", false),
            (goal(), "nonsense", false),
        ] {
            assert_eq!(changed.concerns(uri), expected, "{changed:?} {uri}");
        }
    }
}
