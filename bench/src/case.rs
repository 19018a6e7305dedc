//! One measurement, in a process of its own.

use std::io::Write as _;
use std::sync::Arc;

use anyhow::Context as _;
use locum::models::providers::Protocol;
use locum::store::sqlite::SqliteStore;
use serde::{Deserialize, Serialize};

use crate::measure::{Cost, Meter};
use crate::shape::Shape;
use crate::subject::Keeping;
use crate::{floor, subject};

/// Who is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Who {
    /// The least that a client can do.
    Floor,
    /// Locum with everything in memory.
    Memory,
    /// Locum with its journal on disk.
    Sqlite,
}

impl Who {
    /// Everybody.
    pub(crate) const ALL: [Self; 3] = [Self::Floor, Self::Memory, Self::Sqlite];

    /// The word for it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Floor => "floor",
            Self::Memory => "memory",
            Self::Sqlite => "sqlite",
        }
    }
}

/// What is measured.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Case {
    /// Who.
    pub(crate) who: Who,
    /// Conversations at once.
    pub(crate) tasks: usize,
    /// What is spoken.
    pub(crate) protocol: String,
    /// Their shape, as the model's name.
    pub(crate) shape: String,
}

impl Case {
    /// A case in Chat Completions.
    pub(crate) fn new(who: Who, tasks: usize, shape: Shape) -> Self {
        Self::speaking(Protocol::OpenaiChat, who, tasks, shape)
    }

    /// A case in any protocol.
    pub(crate) fn speaking(protocol: Protocol, who: Who, tasks: usize, shape: Shape) -> Self {
        Self { who, tasks, protocol: protocol.to_string(), shape: shape.to_string() }
    }
}

/// Measures one case and prints what it cost. A first, small round warms connections and code and is not counted.
pub(crate) fn run(case: &str, address: &str) -> anyhow::Result<()> {
    let case: Case = serde_json::from_str(case).context("the case cannot be read")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let cost = runtime.block_on(measure(&case, address))?;
    let mut out = std::io::stdout();
    writeln!(out, "{}", serde_json::to_string(&cost)?)?;
    Ok(())
}

async fn measure(case: &Case, address: &str) -> anyhow::Result<Cost> {
    let shape: Shape = case.shape.parse()?;
    let protocol: Protocol = case.protocol.parse()?;
    if case.who == Who::Floor {
        floor::run(address, protocol, Shape { turns: 1, ..shape }, 1).await?;
        let meter = Meter::start();
        floor::run(address, protocol, shape, case.tasks).await?;
        return Ok(meter.stop());
    }
    let directory = tempfile::tempdir()?;
    let sqlite = match case.who {
        Who::Sqlite => Some(Arc::new(SqliteStore::open(&directory.path().join("bench.db"))?)),
        Who::Floor | Who::Memory => None,
    };
    let keeping = sqlite.clone().map_or(Keeping::Memory, Keeping::Sqlite);
    let desk = subject::desk(address, protocol, shape, &keeping)?;
    subject::run(&desk, 1).await?;
    let before = sqlite.as_ref().map_or(0, |store| store.commits());
    let meter = Meter::start();
    subject::run(&desk, case.tasks).await?;
    let mut cost = meter.stop();
    cost.commits = sqlite.as_ref().map_or(0, |store| store.commits()) - before;
    Ok(cost)
}
