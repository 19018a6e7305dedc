//! Locum, through its public library, doing the same conversations as the floor.

use std::sync::Arc;

use locum::models::providers::Protocol;
use locum::models::{Access, ProviderAccess};
use locum::protocol::request::Run;
use locum::protocol::{FaceDefaults, SpawnEntry, SubagentAction};
use locum::store::Store;
use locum::store::memory::MemoryStore;
use locum::store::sqlite::SqliteStore;
use locum::task::Status;
use locum::tools::{Tool, ToolFuture, ToolScope};
use locum::transcript::{Repeat, ToolOutput, ToolSpec};
use locum::{AgentName, AgentSpec, Desk, Limits, Request, Response, ToolRequest};
use serde_json::{Value, json};

use crate::shape::{Shape, TOOL};
use crate::wire;

/// Where tasks are kept.
pub(crate) enum Keeping {
    Memory,
    Sqlite(Arc<SqliteStore>),
}

struct Fetch {
    spec: ToolSpec,
    result: String,
}

impl Fetch {
    fn new(bytes: usize) -> Self {
        let input_schema = json!({"type": "object", "properties": {"page": {"type": "integer"}}});
        let spec = ToolSpec {
            name: TOOL.to_owned(),
            description: "Fetches a page.".to_owned(),
            input_schema,
            repeat: Repeat::Safe,
        };
        Self { spec, result: "x".repeat(bytes) }
    }
}

impl Tool for Fetch {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, _input: Value, _scope: &'a ToolScope) -> ToolFuture<'a> {
        Box::pin(async move { Ok(ToolOutput::ok(self.result.clone())) })
    }
}

/// Builds a desk whose model is the server at `address`.
pub(crate) fn desk(address: &str, protocol: Protocol, shape: Shape, keeping: &Keeping) -> anyhow::Result<Desk> {
    let mut agent = AgentSpec::new(AgentName::parse("fetcher")?, "Fetches pages", "You fetch.");
    agent.tools = Some(vec![TOOL.to_owned()]);
    agent.max_turns = Some(shape.turns + 1);
    let store: Arc<dyn Store> = match keeping {
        Keeping::Memory => Arc::new(MemoryStore::new()),
        Keeping::Sqlite(store) => Arc::clone(store) as Arc<dyn Store>,
    };
    let provider = wire::provider(protocol);
    let base_url = Some(format!("http://{address}{}", wire::base(protocol)));
    let said = ProviderAccess { base_url, protocol: Some(protocol), ..ProviderAccess::default() };
    let mut access = Access::default();
    access.providers.insert(provider.to_owned(), said);
    let limits = Limits { max_running: u32::MAX, max_spawns: u32::MAX, max_turns: 100_000, ..Limits::default() };
    Ok(Desk::builder()
        .store(store)
        .access(access)
        .session_model(&format!("{provider}:{shape}"), "the benchmark's server")
        .tool(Arc::new(Fetch::new(shape.tool_bytes)))
        .agent(agent)
        .limits(limits)
        .build()?)
}

/// Runs `tasks` tasks at once and waits for all of them.
pub(crate) async fn run(desk: &Desk, tasks: usize) -> anyhow::Result<()> {
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..tasks {
        let desk = desk.clone();
        running.spawn(async move { run_one(&desk).await });
    }
    while let Some(ended) = running.join_next().await {
        ended??;
    }
    Ok(())
}

async fn run_one(desk: &Desk) -> anyhow::Result<()> {
    let entry =
        SpawnEntry { agent: "fetcher".to_owned(), task: "Fetch everything.".to_owned(), ..SpawnEntry::default() };
    let tool = ToolRequest::Subagent(SubagentAction::Run(Run { entry, background: None }));
    let answer = desk.handle(Request { tool, face: FaceDefaults::native() }).await;
    match answer {
        Ok(Response::Collected(task)) if task.status == Status::Completed => Ok(()),
        other => anyhow::bail!("the task did not complete: {other:?}"),
    }
}
