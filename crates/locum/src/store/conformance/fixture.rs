//! Small tasks for the tests of stores: admitted by the real admission, driven by hand.

use std::collections::BTreeMap;

use locum_core::admission::{self, Admitted, Caller, Order, ParentTask, Premises};
use locum_core::agent::{AgentSpec, Fallbacks, Roster};
use locum_core::ids::{AgentName, Identity, SessionId, SessionKey, TaskId, Timestamp, Uid};
use locum_core::limits::Limits;
use locum_core::protocol::response::Entry;
use locum_core::protocol::{FaceDefaults, SpawnEntry};
use locum_core::routing::{Catalogue, RoutingRules, SessionModel};
use locum_core::session::{ContextLookup, Lookup, SessionChange, SessionView};
use locum_core::task::outcome::{Failure, Outcome, Status};
use locum_core::task::plan::{Among, ModelName};
use locum_core::task::{Record, Task, TaskEvent};
use locum_core::transcript::{Reply, Stop};
use locum_core::usage::TokenCount;

use crate::store::{Appended, DecideError, Decided, Decision, Error, Lease, OwnerId, Store, TaskQuery, TaskRow};

/// The owner that admits tasks here.
pub(crate) const ME: OwnerId = OwnerId(7);

pub(crate) fn session(name: &str) -> SessionKey {
    SessionKey { project: "/project".into(), id: SessionId::parse(name).unwrap() }
}

pub(crate) fn uid(text: &str) -> Uid {
    Uid::parse(text).unwrap()
}

pub(crate) fn id(number: u32) -> TaskId {
    TaskId::new(number)
}

pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + seconds * 1000)
}

/// A task that starts at once, one of five.
pub(crate) fn order(name: &str) -> Order {
    Order {
        entry: SpawnEntry { agent: "worker".to_owned(), task: "Work.".to_owned(), ..SpawnEntry::default() },
        uid: uid(name),
        after: None,
        queue: false,
        among: Among::Session,
        running_max: 5,
        race: None,
        lacks_directory: false,
    }
}

/// A task that queues, one of so many.
pub(crate) fn queued(name: &str, running_max: u32) -> Order {
    Order { queue: true, running_max, ..order(name) }
}

/// A task that waits for others.
pub(crate) fn waiting(name: &str, depends_on: &[u32]) -> Order {
    let mut order = order(name);
    order.entry.depends_on = Some(depends_on.iter().map(|number| id(*number).to_string()).collect());
    order
}

/// A decision that admits all orders, or refuses with the first refusal.
pub(crate) fn admission(session: &SessionKey, orders: Vec<Order>, caller: Caller) -> Decision {
    let session = session.clone();
    Box::new(move |view: &SessionView| {
        let mut roster = Roster::default();
        roster.insert(AgentSpec::new(AgentName::parse("worker").unwrap(), "Works.", "You work."));
        let name = ModelName { provider: "offline".to_owned(), id: "demo".to_owned() };
        let catalogue = Catalogue {
            session: SessionModel { name, why: "test".to_owned() },
            stands_in: true,
            providers: vec!["offline".to_owned()],
            reachable: Vec::new(),
            models: Vec::new(),
            fallback: Vec::new(),
            rules: RoutingRules::default(),
        };
        let premises = Premises {
            servers: &[],
            commands: locum_core::admission::Commands::default(),
            permissions: &locum_core::permission::Permissions::default(),
            session: &session,
            roster: &roster,
            fallbacks: &Fallbacks::default(),
            tools: &[],
            catalogue: &catalogue,
            limits: &Limits::default(),
            root: "/project",
            worktrees: locum_core::admission::Worktrees::NoPlace,
            processes: locum_core::admission::Processes::NoProgram,
            caller: &caller,
            now: at(i64::from(view.next_task)),
        };
        let mut changes = Vec::new();
        for admitted in admission::admit(&orders, &FaceDefaults::person(), &premises, view) {
            match admitted? {
                Admitted::New(acceptance) => changes.push(SessionChange::Accept(acceptance)),
                Admitted::Same(_) => {}
            }
        }
        Ok(changes)
    })
}

pub(crate) fn lookup(orders: &[Order]) -> Lookup {
    let depends_on = orders.iter().filter_map(|order| order.entry.depends_on.as_ref()).flatten();
    Lookup {
        tasks: depends_on.map(|text| TaskId::parse(text).unwrap()).collect(),
        idempotency_keys: orders.iter().filter_map(|order| order.entry.idempotency_key.clone()).collect(),
        ..Lookup::default()
    }
}

/// Admits tasks, held by [`ME`].
pub(crate) async fn try_spawn(store: &dyn Store, name: &str, orders: Vec<Order>) -> Result<Decided, DecideError> {
    let session = session(name);
    let lookup = lookup(&orders);
    store.decide(&session, lookup, Some(ME), admission(&session, orders, Caller::orchestrator())).await
}

pub(crate) async fn spawn(store: &dyn Store, name: &str, orders: Vec<Order>) -> Decided {
    try_spawn(store, name, orders).await.unwrap()
}

/// Admits tasks that another task delegates.
pub(crate) async fn spawn_below(store: &dyn Store, name: &str, parent: &str, orders: Vec<Order>) -> Decided {
    let session = session(name);
    let permissions = locum_core::permission::Permissions::default();
    let parent = ParentTask {
        uid: uid(parent),
        depth: 1,
        depth_left: 2,
        tools: Vec::new(),
        purses: Vec::new(),
        root: None,
        permissions,
    };
    let caller = Caller { identity: Identity::Orchestrator, parent: Some(parent) };
    store.decide(&session, Lookup::default(), None, admission(&session, orders, caller)).await.unwrap()
}

/// Admits tasks that nobody holds.
pub(crate) async fn spawn_free(store: &dyn Store, name: &str, orders: Vec<Order>) -> Decided {
    let session = session(name);
    store.decide(&session, Lookup::default(), None, admission(&session, orders, Caller::orchestrator())).await.unwrap()
}

/// Makes changes without looking.
pub(crate) async fn change(store: &dyn Store, name: &str, changes: Vec<SessionChange>) -> Result<Decided, DecideError> {
    store.decide(&session(name), Lookup::default(), None, Box::new(|_| Ok(changes))).await
}

/// What a decision sees.
pub(crate) async fn view(store: &dyn Store, name: &str, lookup: Lookup) -> SessionView {
    let (sender, receiver) = std::sync::mpsc::channel();
    let look: Decision = Box::new(move |view| {
        sender.send(view.clone()).unwrap();
        Ok(Vec::new())
    });
    store.decide(&session(name), lookup, None, look).await.unwrap();
    receiver.recv().unwrap()
}

/// The lease of the owner that admitted a task.
pub(crate) fn lease(name: &str) -> Lease {
    Lease { uid: uid(name), owner: ME, epoch: 1 }
}

pub(crate) async fn log(store: &dyn Store, name: &str) -> Vec<Record> {
    store.records(&uid(name), 0, usize::MAX).await.unwrap()
}

/// Appends one event, as a driver does.
pub(crate) async fn append(store: &dyn Store, lease: &Lease, event: TaskEvent) -> Result<Appended, Error> {
    let mut task = Task::replay(log(store, lease.uid.as_str()).await).unwrap();
    let record = Record { seq: task.seq() + 1, at: at(100), event };
    task.apply(record.clone()).unwrap();
    store.append(lease, [record].into(), task.standing()).await
}

pub(crate) async fn complete(store: &dyn Store, name: &str, text: &str) -> Vec<Uid> {
    end(store, name, Outcome::Completed { text: text.to_owned() }).await
}

pub(crate) async fn end(store: &dyn Store, name: &str, outcome: Outcome) -> Vec<Uid> {
    append(store, &lease(name), TaskEvent::Ended { outcome }).await.unwrap().moved
}

pub(crate) fn turn() -> TaskEvent {
    TaskEvent::TurnStarted { turn: 1, reserved: TokenCount { input: 10, ..TokenCount::default() }, closing: None }
}

pub(crate) fn reply(text: String) -> TaskEvent {
    let tokens = TokenCount { input: 3, output: 5, ..TokenCount::default() };
    TaskEvent::Replied { turn: 1, reply: Reply { text, tool_calls: Vec::new(), stop: Stop::End, tokens, opaque: None } }
}

pub(crate) fn failed() -> Outcome {
    Outcome::failed(&Failure::MaxTurns, Some("partial".to_owned()))
}

pub(crate) async fn row(store: &dyn Store, name: &str) -> TaskRow {
    store.tasks(TaskQuery::Uids(vec![uid(name)])).await.unwrap().remove(0)
}

/// How each task of a session stands, as `name status`.
pub(crate) async fn standings(store: &dyn Store, name: &str) -> Vec<String> {
    let rows = store.tasks(TaskQuery::Uncollected(session(name))).await.unwrap();
    rows.iter().map(|row| format!("{} {}", row.summary.uid, row.summary.standing.status.as_str())).collect()
}

/// How many tasks of a session are in each state.
pub(crate) async fn census(store: &dyn Store, name: &str) -> BTreeMap<&'static str, usize> {
    let mut census = BTreeMap::new();
    for row in store.tasks(TaskQuery::Uncollected(session(name))).await.unwrap() {
        *census.entry(Status::as_str(row.summary.standing.status)).or_default() += 1;
    }
    census
}

/// A value of the shared context.
pub(crate) fn entry(key: &str, value: &str, version: u64) -> Entry {
    Entry {
        key: key.to_owned(),
        value: value.to_owned(),
        written_by: "orchestrator".to_owned(),
        written_at: at(5),
        version,
        expires_at: None,
        readable_by: Vec::new(),
        writable_by: Vec::new(),
    }
}

pub(crate) fn put(key: &str, value: &str, version: u64) -> SessionChange {
    SessionChange::PutContext(entry(key, value, version))
}

pub(crate) fn remove(key: &str) -> SessionChange {
    SessionChange::RemoveContext { key: key.to_owned(), version: 1, by: "orchestrator".to_owned() }
}

pub(crate) fn look_at_key(key: &str) -> Lookup {
    Lookup { context: ContextLookup::Key(key.to_owned()), ..Lookup::default() }
}
