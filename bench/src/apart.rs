//! What a worker process adds to a task: from its acceptance to its first model request, over the same in process.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use locum::models::model::Deltas;
use locum::models::{BoxFuture, Model, ModelError, Prefix};
use locum::store::sqlite::SqliteStore;
use locum::transcript::{Prompt, Reply, Stop};
use locum::{AgentName, AgentSpec, Desk, Limits};
use serde_json::json;

/// A model that notes when it was asked.
#[derive(Default)]
struct Noting {
    asked: Mutex<Option<Instant>>,
}

impl Model for Noting {
    fn respond<'a>(
        &'a self,
        _prompt: &'a Prompt<'a>,
        _prefix: &'a mut Prefix,
        _deltas: &'a mut Deltas<'a>,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        let tokens = locum::usage::TokenCount::default();
        let reply = Reply { text: "done".to_owned(), tool_calls: Vec::new(), stop: Stop::End, tokens, opaque: None };
        Box::pin(async move { Ok(reply) })
    }
}

/// Milliseconds to the first model request, in process and in a worker process, by turns.
pub(crate) fn measure(locum: &Path, rounds: usize) -> anyhow::Result<(Vec<f64>, Vec<f64>)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let directory = tempfile::tempdir()?;
        let model = Arc::new(Noting::default());
        let agent = AgentSpec::new(AgentName::parse("plain")?, "Answers", "You answer.");
        let limits = Limits { max_spawns: u32::MAX, ..Limits::default() };
        let desk = Desk::builder()
            .store(Arc::new(SqliteStore::open(&directory.path().join("apart.db"))?))
            .model("noting", Arc::clone(&model) as Arc<dyn Model>)
            .standard_tools()
            .agent(agent)
            .limits(limits)
            .worker_program(locum)
            .build()?;
        let (mut inside, mut apart) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            for (isolation, times) in [("none", &mut inside), ("process", &mut apart)] {
                let started = Instant::now();
                let run = json!({"action": "run", "agent": "plain", "task": "Go.", "isolation": isolation});
                let answer = desk.call("subagent", run).await;
                anyhow::ensure!(answer.is_ok(), "the task did not run: {answer:?}");
                let asked = model.asked.lock().unwrap_or_else(PoisonError::into_inner).take();
                let asked = asked.ok_or_else(|| anyhow::anyhow!("the model was not asked"))?;
                times.push((asked - started).as_secs_f64() * 1e3);
            }
        }
        Ok((inside, apart))
    })
}
