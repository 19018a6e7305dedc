//! MCP servers: programs and addresses of the user that agents borrow tools from.
//!
//! A server is started when a tool of it is first needed, is shared by all tasks of this process, and is ended when
//! nobody calls it for a while, or with the process. Its program runs in the [`sandbox`](crate::sandbox), below the
//! project or the worktree of the task that calls it. What a server offers is pinned when it is first seen: a tool that
//! has changed since is suspended until the user accepts it.
//!
//! A server that fails never fails a task: its tools are left out of the plan, or a call of one is answered with why.

mod answer;
mod connection;
mod conversation;
mod description;
mod ending;
mod http;
mod pins;
mod program;
mod standing;
mod tool;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use locum_core::admission::KnownServer;
use locum_core::limits;
use locum_core::task::plan::GrantedTool;
use locum_core::transcript::{Repeat, ToolOutput, ToolSpec};
use locum_models::access::Access;
use locum_models::http::{HttpClient, Proxy};
use serde_json::Value;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use self::connection::{CallFailure, Connection, Era, OpenFailure};
use self::conversation::{Hearing, Trouble};
use self::pins::{Manifest, PinBoard, PinnedTool, Stamp};
use crate::hands::granted;
use crate::sandbox::{Level, Sandbox};
use crate::tools::ToolScope;
use crate::web::Dialer;

pub(crate) use self::description::check_name;
pub use self::description::{McpServer, ServerCommand, ServerUrl, Way};
pub use self::standing::{ChangedTool, ServerStanding, ToolStanding};
pub(crate) use self::tool::BorrowedTool;

/// The servers of one engine.
#[derive(Default)]
pub(crate) struct McpServers {
    servers: Vec<McpServer>,
    /// Servers that the user has and that cannot be used here, with why.
    left_out: Vec<(String, String)>,
    board: PinBoard,
    sandbox: Option<Sandbox>,
    network: Network,
    http: OnceLock<Arc<HttpClient>>,
    state: Mutex<State>,
}

/// How addresses are reached, by locum and by the programs of servers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Network {
    pub(crate) dialer: Arc<Dialer>,
    pub(crate) proxy: Proxy,
    pub(crate) ca_file: Option<PathBuf>,
}

impl Network {
    pub(crate) fn of(access: &Access, dialer: &Arc<Dialer>) -> Self {
        let (proxy, ca_file) = (access.proxy.clone(), access.ca_file.clone());
        Self { dialer: Arc::clone(dialer), proxy, ca_file }
    }
}

#[derive(Default)]
struct State {
    /// What was kept of servers when it was last looked at.
    manifests: HashMap<String, (Stamp, Manifest)>,
    failures: HashMap<String, (Instant, String)>,
    open: HashMap<Key, Slot>,
    /// Connections that nobody is given any more; somebody may still wait for an answer there.
    retired: Vec<Arc<Connection>>,
}

/// A server serves one project or worktree.
type Key = (String, PathBuf);

/// A place for a connection: whoever comes first opens it, and the others wait.
type Slot = Arc<OnceCell<Arc<Connection>>>;

impl McpServers {
    pub(crate) fn new(
        servers: Vec<McpServer>,
        left_out: Vec<(String, String)>,
        pins: Option<PathBuf>,
        sandbox: Option<Sandbox>,
        network: Network,
    ) -> Self {
        let (http, state) = (OnceLock::new(), Mutex::default());
        Self { servers, left_out, board: PinBoard::at(pins), sandbox, network, http, state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics or awaits under this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn server(&self, name: &str) -> Option<&McpServer> {
        self.servers.iter().find(|server| server.name == name)
    }

    /// What a server's program is shut into; none for one that is elsewhere.
    fn level_of(&self, server: &McpServer) -> Option<Level> {
        match &server.way {
            Way::Command(command) => command.level.or(self.sandbox.as_ref().map(Sandbox::level)),
            Way::Url(_) => None,
        }
    }

    /// Whether there is nothing to reach.
    pub(crate) fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    /// What admission may know of the servers. Nothing is started for it.
    pub(crate) fn known(&self) -> Vec<KnownServer> {
        let here = self.servers.iter().map(|server| {
            let manifest = self.manifest(server);
            let problem = match &manifest {
                Ok(Some(_)) => None,
                Ok(None) => Some(self.failure(&server.name).unwrap_or_else(|| "it was never reached".to_owned())),
                Err(why) => Some(why.clone()),
            };
            let manifest = manifest.ok().flatten();
            let (suspended, good): (Vec<_>, Vec<_>) =
                manifest.into_iter().flat_map(|manifest| manifest.tools).partition(|tool| tool.changed.is_some());
            KnownServer {
                name: server.name.clone(),
                tools: good.iter().map(|tool| grant(&server.name, tool)).collect(),
                suspended: suspended.iter().map(|tool| tool.pinned.shown_name(&server.name)).collect(),
                problem,
                sandbox: self.level_of(server).map(|level| level.to_string()),
            }
        });
        let elsewhere = self.left_out.iter().map(|(name, why)| KnownServer {
            name: name.clone(),
            tools: Vec::new(),
            suspended: Vec::new(),
            problem: Some(why.clone()),
            sandbox: None,
        });
        here.chain(elsewhere).collect()
    }

    /// Why a server could not be reached a moment ago.
    fn failure(&self, server: &str) -> Option<String> {
        let state = self.state();
        let (at, why) = state.failures.get(server)?;
        (at.elapsed() < Duration::from_millis(limits::MCP_RETRY_MS)).then(|| why.clone())
    }

    /// What is kept of a server, read again where its file has changed.
    fn manifest(&self, server: &McpServer) -> Result<Option<Manifest>, String> {
        let stamp = self.board.stamp(&server.name);
        if let Some((known, manifest)) = self.state().manifests.get(&server.name)
            && *known == stamp
        {
            return Ok(Some(manifest.clone()));
        }
        let manifest = self.board.read(&server.name, &server.fingerprint())?;
        if let Some(manifest) = &manifest {
            self.state().manifests.insert(server.name.clone(), (stamp, manifest.clone()));
        }
        Ok(manifest)
    }

    fn keep(&self, server: &McpServer, manifest: Manifest) -> Result<(), String> {
        self.board.write(&server.name, &manifest)?;
        let stamp = self.board.stamp(&server.name);
        self.state().manifests.insert(server.name.clone(), (stamp, manifest));
        Ok(())
    }

    /// Reaches those of the named servers of which nothing is known yet. What fails is remembered for a while.
    pub(crate) async fn meet<'a>(&self, names: impl IntoIterator<Item = &'a str>, root: &Path) {
        let unknown = names
            .into_iter()
            .filter_map(|name| self.server(name))
            .filter(|server| matches!(self.manifest(server), Ok(None)) && self.failure(&server.name).is_none());
        join_all(unknown.map(|server| self.connection(server, root))).await;
    }

    /// The tool that models call by this name, as it was pinned.
    pub(crate) fn tool(self: &Arc<Self>, name: &str) -> Option<BorrowedTool> {
        let server = self.server(locum_core::admission::servers::server_of(name)?)?;
        let manifest = self.manifest(server).ok()??;
        let tool = manifest.tools.into_iter().find(|tool| tool.pinned.shown_name(&server.name) == name)?;
        let spec = spec(&server.name, &tool);
        Some(BorrowedTool::new(spec, server.name.clone(), tool.pinned.name, Arc::clone(self)))
    }

    /// Calls a tool of a server for a task. Whatever goes wrong is an output that the model reads.
    pub(crate) async fn call(&self, server: &str, tool: &str, input: Value, scope: &ToolScope) -> ToolOutput {
        let (root, seals) = (scope.root.as_path(), &*scope.seals);
        let refused = |why: String| ToolOutput::failed(format!("the MCP server `{server}` cannot be used: {why}"));
        let Value::Object(input) = input else { return ToolOutput::failed("the input must be a JSON object") };
        let Some(described) = self.server(server) else { return refused("it is not there any more".to_owned()) };
        let connection = match self.connection(described, root).await {
            Ok(connection) => connection,
            Err(why) => return refused(why),
        };
        if let Some(why) = self.objection(described, tool) {
            return refused(why);
        }
        let patience = Duration::from_secs(described.call_seconds);
        match tokio::time::timeout(patience, connection.call(tool, input)).await {
            Ok(Ok(result)) => answer::output(server, &result, seals),
            Ok(Err(CallFailure::Refused(why))) => {
                ToolOutput::failed(seals.marked(&format!("the MCP server `{server}`"), &why, ""))
            }
            Ok(Err(CallFailure::Lost(why))) => {
                self.retire(&(server.to_owned(), root.to_owned()), &connection);
                ToolOutput::unknown(format!(
                    "the MCP server `{server}` was lost during the call: {why}; whether the call had an effect is not \
                     known"
                ))
            }
            Err(_) => {
                self.retire(&(server.to_owned(), root.to_owned()), &connection);
                ToolOutput::unknown(format!(
                    "the MCP server `{server}` did not answer within {} s; whether the call had an effect is not known",
                    described.call_seconds
                ))
            }
        }
    }

    /// Why a tool that was granted must not be called now.
    fn objection(&self, server: &McpServer, tool: &str) -> Option<String> {
        let manifest = self.manifest(server).ok()??;
        let pinned = manifest.tools.iter().find(|pinned| pinned.pinned.name == tool)?;
        pinned.changed.as_ref()?;
        Some(format!(
            "the tool `{tool}` has changed since it was first seen, and is suspended until the user accepts it with \
             `locum mcp accept {}`",
            server.name
        ))
    }

    /// A connection to a server, opened if there is none.
    async fn connection(&self, server: &McpServer, root: &Path) -> Result<Arc<Connection>, String> {
        let key = (server.name.clone(), root.to_owned());
        let patience = Duration::from_millis(limits::MCP_START_MS).min(Duration::from_secs(server.call_seconds));
        // The second time is for a connection that has ended since it was last used.
        for _ in 0..2 {
            let slot = Arc::clone(self.state().open.entry(key.clone()).or_default());
            let opening = slot.get_or_try_init(|| async {
                let opened = tokio::time::timeout(patience, self.open(server, root)).await;
                opened.unwrap_or_else(|_| Err(format!("it took longer than {} s to start", patience.as_secs())))
            });
            let connection = match opening.await {
                Ok(connection) => Arc::clone(connection),
                Err(why) => {
                    let mut state = self.state();
                    // Another one may have been tried meanwhile.
                    if state.open.get(&key).is_some_and(|known| Arc::ptr_eq(known, &slot)) {
                        state.open.remove(&key);
                    }
                    state.failures.insert(server.name.clone(), (Instant::now(), why.clone()));
                    return Err(why);
                }
            };
            if connection.is_closed() {
                self.retire(&key, &connection);
                continue;
            }
            connection.note_use();
            if connection.has_changed() {
                let offers = tokio::time::timeout(patience, connection.offers()).await;
                let offers = offers.unwrap_or_else(|_| Err("it does not list its tools".to_owned()))?;
                self.judge(server, offers)?;
            }
            return Ok(connection);
        }
        Err("it ends as soon as it was started".to_owned())
    }

    async fn open(&self, server: &McpServer, root: &Path) -> Result<Arc<Connection>, String> {
        let mut opened = Err("it knows no greeting that is known here".to_owned());
        for era in Era::ALL {
            match self.greet(server, root, era).await {
                Ok(connection) => {
                    opened = Ok(connection);
                    break;
                }
                Err(OpenFailure::OtherEra) => {}
                Err(OpenFailure::Failed(why)) => return Err(why),
            }
        }
        let connection = Arc::new(opened?);
        let judged = match connection.offers().await {
            Ok(offers) => self.judge(server, offers),
            Err(why) => Err(why),
        };
        match judged {
            Ok(()) => Ok(connection),
            Err(why) => {
                // What it did wrong says more than how it ended.
                connection.close().await.ok();
                Err(why)
            }
        }
    }

    async fn greet(&self, server: &McpServer, root: &Path, era: Era) -> Result<Connection, OpenFailure> {
        let trouble = Trouble::default();
        match &server.way {
            Way::Command(command) => {
                let started =
                    program::start(&server.name, command, self.sandbox.as_ref(), root, &self.network.dialer).await;
                let program::Started { program, stream, complaints } = started.map_err(OpenFailure::Failed)?;
                let (reader, writer) = stream.into_split();
                let hearing = Hearing::new(reader, Some(complaints), trouble.clone());
                Connection::open((hearing, writer), era, trouble, Some(program)).await
            }
            Way::Url(url) => {
                let transport = self.client().and_then(|client| http::transport(url, client, trouble.clone()));
                Connection::open(transport.map_err(OpenFailure::Failed)?, era, trouble, None).await
            }
        }
    }

    /// The one client for all servers behind an address, made for the first of them.
    fn client(&self) -> Result<Arc<HttpClient>, String> {
        if let Some(client) = self.http.get() {
            return Ok(Arc::clone(client));
        }
        let client = Arc::new(http::client(&self.network.proxy, self.network.ca_file.as_deref())?);
        Ok(Arc::clone(self.http.get_or_init(|| client)))
    }

    /// Compares what a server offers with what was pinned, and keeps what is new.
    fn judge(&self, server: &McpServer, offers: Vec<pins::Offer>) -> Result<(), String> {
        let kept = self.manifest(server)?;
        let judged = pins::judge(kept.as_ref(), &server.fingerprint(), offers);
        if kept.as_ref() == Some(&judged) {
            return Ok(());
        }
        self.keep(server, judged)
    }
}

/// A tool of a server as admission grants it.
fn grant(server: &str, tool: &PinnedTool) -> GrantedTool {
    granted(&spec(server, tool))
}

/// What a model is told about a tool of a server.
fn spec(server: &str, tool: &PinnedTool) -> ToolSpec {
    ToolSpec {
        name: tool.pinned.shown_name(server),
        description: locum_core::neutral::neutralise(&tool.pinned.description).into_owned(),
        input_schema: tool.pinned.input_schema.clone(),
        // A server may say that a tool only reads; nobody vouches for it.
        repeat: Repeat::Unsafe,
    }
}
