//! Many tasks: what a crowd of them needs at once, and what is left of them when they have ended. It runs in a process
//! of its own, whose memory and descriptors are then those of locum.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use locum::models::model::Deltas;
use locum::models::providers::Protocol;
use locum::models::{BoxFuture, Model, ModelError, Prefix};
use locum::protocol::request::{Run, Status as StatusRequest};
use locum::protocol::{FaceDefaults, SpawnEntry, SubagentAction};
use locum::store::sqlite::SqliteStore;
use locum::task::Status;
use locum::task::event::FailureKind;
use locum::transcript::{Prompt, Reply, Stop};
use locum::{AgentName, AgentSpec, Desk, Limits, Request, Response, ToolRequest};
use serde::{Deserialize, Serialize};

use crate::measure::Meter;
use crate::shape::Shape;
use crate::subject::{self, Keeping};

/// Tasks of a soak at once.
const AT_ONCE: usize = 100;
/// One of so many model calls of a soak fails.
const FAULT_EVERY: u32 = 20;
/// How many tasks there are.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    /// Tasks of a soak that are not counted: they warm everything.
    warm: usize,
    /// Tasks of a soak that are counted.
    soaked: usize,
    /// Tasks of a crowd.
    crowd: usize,
}

/// What is promised.
const WHOLE: Sizes = Sizes { warm: 1_000, soaked: 10_000, crowd: 5_000 };
/// A tenth of it, for a first look.
const QUICK: Sizes = Sizes { warm: 300, soaked: 1_000, crowd: 500 };

/// Status calls while the crowd runs, one after the other.
const LOOK: Duration = Duration::from_millis(5);

/// What was measured.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Scale {
    /// Tasks of the soak.
    pub(crate) soaked: usize,
    /// Tasks of the crowd.
    pub(crate) crowd: usize,
    /// Bytes that a finished task left behind.
    pub(crate) bytes_per_task: f64,
    /// Descriptors more than before.
    pub(crate) descriptors_left: i64,
    /// Processes more than before.
    pub(crate) children_left: i64,
    /// Tasks of the soak that completed.
    pub(crate) soak_completed: usize,
    /// Peak memory of the crowd in MiB.
    pub(crate) crowd_mib: f64,
    /// Tasks of the crowd that completed.
    pub(crate) crowd_completed: usize,
    /// The median of `status` while the crowd ran, in ms.
    pub(crate) status_p50_ms: f64,
    /// The 99th percentile of it.
    pub(crate) status_p99_ms: f64,
    /// Seconds that the crowd took.
    pub(crate) crowd_s: f64,
}

/// Measures both and prints what was measured.
pub(crate) fn run(address: &str, quick: bool) -> anyhow::Result<()> {
    let sizes = if quick { QUICK } else { WHOLE };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (bytes_per_task, descriptors_left, children_left, soak_completed) = runtime.block_on(soak(sizes))?;
    let (crowd_mib, crowd_completed, [status_p50_ms, status_p99_ms], crowd_s) =
        runtime.block_on(crowd(address, sizes.crowd))?;
    let scale = Scale {
        soaked: sizes.soaked,
        crowd: sizes.crowd,
        bytes_per_task,
        descriptors_left,
        children_left,
        soak_completed,
        crowd_mib,
        crowd_completed,
        status_p50_ms,
        status_p99_ms,
        crowd_s,
    };
    writeln!(std::io::stdout(), "{}", serde_json::to_string(&scale)?)?;
    Ok(())
}

/// A model that fails now and then, in every way that is tried again, and otherwise answers.
#[derive(Default)]
struct Faulty {
    calls: AtomicU32,
}

impl Model for Faulty {
    fn respond<'a>(
        &'a self,
        _prompt: &'a Prompt<'a>,
        _prefix: &'a mut Prefix,
        _deltas: &'a mut Deltas<'a>,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            tokio::task::yield_now().await;
            let kinds = [FailureKind::Server, FailureKind::CutStream, FailureKind::Malformed, FailureKind::BadRequest];
            if call.is_multiple_of(FAULT_EVERY) {
                let kind = kinds[(call / FAULT_EVERY) as usize % kinds.len()];
                return Err(ModelError::new(kind, "a fault of the soak"));
            }
            let tokens = locum::usage::TokenCount::default();
            Ok(Reply { text: "x".repeat(2_000), tool_calls: Vec::new(), stop: Stop::End, tokens, opaque: None })
        })
    }
}

async fn soak(sizes: Sizes) -> anyhow::Result<(f64, i64, i64, usize)> {
    let directory = tempfile::tempdir()?;
    let agent = AgentSpec::new(AgentName::parse("fetcher")?, "Fetches pages", "You fetch.");
    let limits = Limits { max_running: u32::MAX, max_spawns: u32::MAX, ..Limits::default() };
    let desk = Desk::builder()
        .store(Arc::new(SqliteStore::open(&directory.path().join("soak.db"))?))
        .model("soak", Arc::new(Faulty::default()))
        .agent(agent)
        .limits(limits)
        .build()?;
    many(&desk, sizes.warm).await?;
    let (memory, descriptors, children) = (resident()?, descriptors()?, children()?);
    let completed = many(&desk, sizes.soaked).await?;
    let left = (resident()? - memory) / sizes.soaked as f64;
    Ok((left, self::descriptors()? - descriptors, self::children()? - children, completed))
}

/// Runs so many tasks, a bounded number at once, and counts those that completed. The others must have failed.
async fn many(desk: &Desk, tasks: usize) -> anyhow::Result<usize> {
    let (mut running, mut completed, mut begun) = (tokio::task::JoinSet::new(), 0, 0);
    while begun < tasks || !running.is_empty() {
        while begun < tasks && running.len() < AT_ONCE {
            let desk = desk.clone();
            running.spawn(async move { ended(&desk).await });
            begun += 1;
        }
        if let Some(status) = running.join_next().await {
            match status?? {
                Status::Completed => completed += 1,
                Status::Failed => {}
                other => anyhow::bail!("a task ended {other:?}"),
            }
        }
    }
    Ok(completed)
}

async fn ended(desk: &Desk) -> anyhow::Result<Status> {
    let entry = SpawnEntry { agent: "fetcher".to_owned(), task: "Fetch.".to_owned(), ..SpawnEntry::default() };
    let tool = ToolRequest::Subagent(SubagentAction::Run(Run { entry, background: Some(false) }));
    match desk.handle(Request { tool, face: FaceDefaults::native() }).await {
        Ok(Response::Collected(task)) => Ok(task.status),
        other => anyhow::bail!("no task: {other:?}"),
    }
}

async fn crowd(address: &str, tasks: usize) -> anyhow::Result<(f64, usize, [f64; 2], f64)> {
    let directory = tempfile::tempdir()?;
    let store = Arc::new(SqliteStore::open(&directory.path().join("crowd.db"))?);
    let shape = Shape { turns: 3, latency_ms: 200, chunks: 1, tool_bytes: 100 };
    let desk = subject::desk(address, Protocol::OpenaiChat, shape, &Keeping::Sqlite(store))?;
    let meter = Meter::start();
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..tasks {
        let desk = desk.clone();
        running.spawn(async move { ended(&desk).await });
    }
    let mut looks = Vec::new();
    let (mut completed, mut first) = (0, 1);
    while !running.is_empty() {
        let started = Instant::now();
        let task_id = format!("t_{first:02}");
        let status = SubagentAction::Status(StatusRequest { task_id: Some(task_id) });
        let asked = desk.handle(Request { tool: ToolRequest::Subagent(status), face: FaceDefaults::native() }).await;
        // One that was collected meanwhile is answered too, as quickly.
        drop(asked);
        looks.push(started.elapsed().as_secs_f64() * 1e3);
        first = first % tasks + 37;
        tokio::time::sleep(LOOK).await;
        while let Some(status) = running.try_join_next() {
            anyhow::ensure!(status?? == Status::Completed, "a task of the crowd did not complete");
            completed += 1;
        }
    }
    looks.sort_by(f64::total_cmp);
    let at = |percent: usize| looks.get(looks.len() * percent / 100).copied().context("nobody looked");
    let cost = meter.stop();
    Ok((cost.peak_kib as f64 / 1024.0, completed, [at(50)?, at(99)?], cost.wall_us / 1e6))
}

/// Bytes of memory that this process has.
fn resident() -> anyhow::Result<f64> {
    let text = std::fs::read_to_string("/proc/self/statm")?;
    let pages: f64 = text.split(' ').nth(1).context("no resident pages")?.parse()?;
    Ok(pages * 4096.0)
}

fn descriptors() -> anyhow::Result<i64> {
    Ok(i64::try_from(std::fs::read_dir("/proc/self/fd")?.count())?)
}

fn children() -> anyhow::Result<i64> {
    let own = std::process::id();
    let text = std::fs::read_to_string(format!("/proc/self/task/{own}/children"))?;
    Ok(i64::try_from(text.split_whitespace().count())?)
}
