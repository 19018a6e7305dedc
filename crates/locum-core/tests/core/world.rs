//! A small project: a few agents, tools and models, and a session. Cases change the field that they are about.

use locum_core::admission::{self, Admitted, Caller, KnownServer, Order, ParentTask, Premises, Processes, Worktrees};
use locum_core::agent::{AgentSpec, Fallbacks, Roster, Source};
use locum_core::ids::{AgentName, Identity, SessionId, SessionKey, TaskId, Timestamp, Uid};
use locum_core::limits::Limits;
use locum_core::permission::Permissions;
use locum_core::protocol::parse::tool_request;
use locum_core::protocol::response::Defined;
use locum_core::protocol::{FaceDefaults, Refusal, SpawnEntry, SubagentAction, ToolRequest};
use locum_core::routing::{Catalogue, ModelEntry, RoutingRules, SessionModel};
use locum_core::session::{Acceptance, KnownTask, SessionChange, SessionView};
use locum_core::task::Status;
use locum_core::task::plan::{Among, GrantedTool, ModelName};
use locum_core::transcript::Repeat;
use serde_json::Value;

/// The moment at which everything is admitted.
pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// Every tool of the project; those that act on the world must not be repeated.
const TOOLS: [(&str, Repeat); 8] = [
    ("read", Repeat::Safe),
    ("grep", Repeat::Safe),
    ("find", Repeat::Safe),
    ("think", Repeat::Safe),
    ("shared_context", Repeat::Safe),
    ("write", Repeat::Unsafe),
    ("bash", Repeat::Unsafe),
    ("subagent", Repeat::Unsafe),
];

/// Everything that admission looks at.
#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) session: SessionKey,
    pub(crate) roster: Roster,
    pub(crate) fallbacks: Fallbacks,
    pub(crate) tools: Vec<GrantedTool>,
    pub(crate) catalogue: Catalogue,
    pub(crate) limits: Limits,
    pub(crate) permissions: Permissions,
    pub(crate) caller: Caller,
    pub(crate) face: FaceDefaults,
    pub(crate) view: SessionView,
    pub(crate) worktrees: Worktrees,
    pub(crate) processes: Processes,
    pub(crate) servers: Vec<KnownServer>,
}

impl World {
    /// An empty session, with the agents `reader` (reading tools by default) and `worker` (every tool, by name).
    pub(crate) fn new() -> Self {
        let tools = TOOLS.map(|(name, repeat)| GrantedTool { name: name.to_owned(), repeat, chars: 0 });
        let model = |provider: &str, id: &str| ModelName { provider: provider.to_owned(), id: id.to_owned() };
        let mut world = Self {
            session: SessionKey { project: "/project".into(), id: SessionId::parse("main").unwrap() },
            roster: Roster::default(),
            fallbacks: Fallbacks::default(),
            tools: tools.to_vec(),
            catalogue: Catalogue {
                session: SessionModel { name: model("scripted", "s"), why: "a test".to_owned() },
                stands_in: true,
                providers: vec!["acme".to_owned()],
                reachable: vec!["acme".to_owned()],
                fallback: Vec::new(),
                rules: RoutingRules::default(),
                models: vec![ModelEntry {
                    aliases: vec!["large".to_owned()],
                    ..ModelEntry::named(model("acme", "large-1"))
                }],
            },
            limits: Limits::default(),
            permissions: Permissions::default(),
            caller: Caller::orchestrator(),
            face: FaceDefaults::native(),
            view: SessionView { next_task: 1, ..SessionView::default() },
            worktrees: Worktrees::Possible,
            processes: Processes::Possible,
            servers: Vec::new(),
        };
        world.add("reader", |agent| agent.tools = None);
        world.add("worker", |agent| agent.tools = Some(TOOLS.map(|(name, _)| name.to_owned()).to_vec()));
        world
    }

    /// Adds an agent as a file would.
    pub(crate) fn add(&mut self, name: &str, change: impl FnOnce(&mut AgentSpec)) {
        let mut agent =
            AgentSpec::new(agent_name(name), format!("does what a {name} does"), format!("You are {name}."));
        agent.source = Source::Bundled;
        change(&mut agent);
        self.roster.insert(agent);
    }

    /// Adds a task of `reader` to what the session knows.
    pub(crate) fn know(&mut self, number: u32, status: Status) {
        let known = KnownTask { uid: uid(number), agent: agent_name("reader"), status, collected: false };
        self.view.tasks.insert(TaskId::new(number), known);
        self.view.next_task = self.view.next_task.max(number + 1);
    }

    /// Makes the caller a task with these tools that may delegate this many levels below itself.
    pub(crate) fn called_by_task(&mut self, tools: &[&str], depth_left: u32) {
        let tools = tools.iter().map(|tool| (*tool).to_owned()).collect();
        let identity = Identity::Subagent { agent: agent_name("worker"), task_id: TaskId::new(900) };
        self.caller = Caller {
            identity,
            parent: Some(ParentTask {
                uid: uid(900),
                depth: 1,
                depth_left,
                tools,
                purses: Vec::new(),
                root: None,
                permissions: Permissions::default(),
            }),
        };
    }

    pub(crate) fn premises(&self) -> Premises<'_> {
        Premises {
            servers: &self.servers,
            commands: locum_core::admission::Commands::default(),
            permissions: &self.permissions,
            session: &self.session,
            roster: &self.roster,
            fallbacks: &self.fallbacks,
            tools: &self.tools,
            catalogue: &self.catalogue,
            limits: &self.limits,
            root: "/project",
            worktrees: self.worktrees,
            processes: self.processes,
            caller: &self.caller,
            now: NOW,
        }
    }

    /// An order as a door makes it of a `spawn`.
    pub(crate) fn order(&self, entry: SpawnEntry) -> Order {
        Order {
            queue: entry.queue == Some(true),
            entry,
            uid: uid(500),
            after: None,
            among: Among::Session,
            running_max: self.limits.max_running,
            race: None,
            lacks_directory: false,
        }
    }

    pub(crate) fn admit(&self, orders: &[Order]) -> Vec<Result<Admitted, Refusal>> {
        admission::admit(orders, &self.face, &self.premises(), &self.view)
    }

    /// One `spawn`, from its JSON.
    pub(crate) fn spawn(&self, input: Value) -> Result<Admitted, Refusal> {
        let order = self.order(spawn_entry(input)?);
        self.admit(&[order]).remove(0)
    }

    /// One `spawn` that must start a new task.
    pub(crate) fn accept(&self, input: Value) -> Acceptance {
        match self.spawn(input).unwrap() {
            Admitted::New(acceptance) => *acceptance,
            Admitted::Same(same) => panic!("an old task was found: {same:?}"),
        }
    }

    /// One `define`, from its JSON; what it changes is written to the session.
    pub(crate) fn define(&mut self, input: Value) -> Result<Defined, Refusal> {
        let ToolRequest::Subagent(SubagentAction::Define(request)) = subagent("define", input)? else {
            panic!("not a define")
        };
        let (answer, change) = admission::define(&request, &self.premises(), &self.view)?;
        let SessionChange::Define(agent) = change else { panic!("{change:?}") };
        self.view.defined.retain(|defined| defined.name != agent.name);
        self.view.defined.push(*agent);
        Ok(answer)
    }
}

pub(crate) fn agent_name(name: &str) -> AgentName {
    AgentName::parse(name).unwrap()
}

pub(crate) fn uid(number: u32) -> Uid {
    Uid::parse(&format!("uid-{number}")).unwrap()
}

/// The fields of a `spawn`, read as a door reads them.
pub(crate) fn spawn_entry(input: Value) -> Result<SpawnEntry, Refusal> {
    match subagent("spawn", input)? {
        ToolRequest::Subagent(SubagentAction::Spawn(entry)) => Ok(entry),
        other => panic!("not a spawn: {other:?}"),
    }
}

fn subagent(action: &str, mut input: Value) -> Result<ToolRequest, Refusal> {
    input["action"] = action.into();
    tool_request("subagent", input)
}
