//! Traces for those who watch many programs: what tasks did, as OpenTelemetry spans, sent to the collector that the
//! standard variables name. Off unless they name one.
//!
//! A task is a log, so its spans are read from its log when it has ended: nothing is measured twice, a task that was
//! taken up by another process is told whole, and no task waits for a collector.

mod collector;
mod spans;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use locum_core::ids::{SessionKey, Timestamp, Uid};
use locum_core::task::Plan;
use locum_models::http::Proxy;
use opentelemetry::trace::{SpanId, TraceId};
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::trace::{SpanData, SpanExporter as _};
use tokio::sync::{mpsc, oneshot};

pub(crate) use self::collector::{Collector, VARIABLES};
use self::spans::Root;
use crate::clock::Clock;
use crate::store::Store;

/// Spans of one message to the collector.
const SPANS_AT_ONCE: usize = 512;

/// Ended tasks that wait to be told; those that end beyond it are not.
const TASKS_WAITING_MAX: usize = 16_384;

/// Records that are read at once.
const RECORDS_AT_ONCE: usize = 256;

/// Tells a collector what the tasks of this process did.
pub(crate) struct Traces {
    exporter: Arc<SpanExporter>,
    /// Where spans go, for those who are told that they did not arrive.
    endpoint: String,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    /// Where ended tasks are told; made by the first of them, inside a runtime.
    told: OnceLock<mpsc::Sender<Told>>,
}

enum Told {
    /// A task has ended.
    Ended(Ended),
    /// Everything told so far is to be sent, and the spans of sessions end.
    Finish(oneshot::Sender<Option<String>>),
}

struct Ended {
    uid: Uid,
    parent: Option<Uid>,
    session: SessionKey,
    began: Timestamp,
}

impl Traces {
    /// Traces to this collector.
    ///
    /// # Errors
    ///
    /// A sentence that says why nothing can be sent there.
    pub(crate) fn to(
        collector: &Collector,
        (proxy, ca_file): (&Proxy, Option<&Path>),
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, String> {
        let exporter = Arc::new(collector.exporter(proxy, ca_file)?);
        Ok(Self { exporter, endpoint: collector.endpoint().to_owned(), store, clock, told: OnceLock::new() })
    }

    /// Notes that a task has ended. It never waits.
    pub(crate) fn ended(&self, plan: &Plan) {
        let sender = self.told.get_or_init(|| {
            let (sender, told) = mpsc::channel(TASKS_WAITING_MAX);
            let teller = Teller {
                exporter: Arc::clone(&self.exporter),
                endpoint: self.endpoint.clone(),
                store: Arc::clone(&self.store),
                clock: Arc::clone(&self.clock),
                sessions: HashMap::new(),
                spans: Vec::new(),
                trouble: None,
            };
            tokio::spawn(teller.run(told));
            sender
        });
        let ended = Ended {
            uid: plan.uid.clone(),
            parent: plan.lineage.parent.clone(),
            session: plan.session.clone(),
            began: plan.created_at,
        };
        // A collector that is that far behind gets less; tasks are more important.
        sender.try_send(Told::Ended(ended)).ok();
    }

    /// Sends what is left; says what went wrong, if anything did.
    pub(crate) async fn finish(&self) -> Option<String> {
        let (done, answer) = oneshot::channel();
        self.told.get()?.send(Told::Finish(done)).await.ok()?;
        answer.await.ok().flatten()
    }
}

/// Reads the logs of ended tasks and sends their spans, one message after the other.
struct Teller {
    exporter: Arc<SpanExporter>,
    endpoint: String,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    /// Where the spans of each session hang, and when this process began to work in it.
    sessions: HashMap<SessionKey, (Root, Timestamp)>,
    spans: Vec<SpanData>,
    /// The last thing that went wrong.
    trouble: Option<String>,
}

impl Teller {
    async fn run(mut self, mut told: mpsc::Receiver<Told>) {
        while let Some(next) = told.recv().await {
            match next {
                Told::Ended(ended) => self.read(&ended).await,
                Told::Finish(done) => {
                    self.end_sessions();
                    self.send().await;
                    // Whoever asked may have left.
                    done.send(self.trouble.take()).ok();
                }
            }
            if told.is_empty() || self.spans.len() >= SPANS_AT_ONCE {
                self.send().await;
            }
        }
    }

    async fn read(&mut self, ended: &Ended) {
        let mut records = Vec::new();
        loop {
            let after = records.last().map_or(0, |record: &locum_core::task::Record| record.seq);
            match self.store.records(&ended.uid, after, RECORDS_AT_ONCE).await {
                Ok(more) if more.is_empty() => break,
                Ok(more) => records.extend(more),
                Err(error) => {
                    self.trouble = Some(error.to_string());
                    return;
                }
            }
        }
        let (root, _) = *self.sessions.entry(ended.session.clone()).or_insert_with(|| {
            let trace = TraceId::from(fastrand::u128(1..));
            (Root { trace, session: SpanId::from(fastrand::u64(1..)) }, ended.began)
        });
        let parent = ended.parent.as_ref().map_or(root.session, spans::id_of_task);
        self.spans.extend(spans::of_task(&records, root, parent));
    }

    fn end_sessions(&mut self) {
        let now = self.clock.now();
        for (session, (root, began)) in self.sessions.drain() {
            self.spans.push(spans::of_session(&session, root, began, now));
        }
    }

    async fn send(&mut self) {
        while !self.spans.is_empty() {
            let more = self.spans.split_off(self.spans.len().min(SPANS_AT_ONCE));
            let batch = std::mem::replace(&mut self.spans, more);
            if let Err(error) = self.exporter.export(batch).await {
                self.trouble = Some(format!("{}: {error}", self.endpoint));
            }
        }
    }
}
