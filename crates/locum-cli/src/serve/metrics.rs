//! Figures for those who watch servers, as Prometheus reads them: counts, and never what tasks are about.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use super::answer::Refused;
use super::hall::Hall;
use super::parameters::Parameters;

/// What is counted while the server runs.
pub(super) struct Figures {
    started: Instant,
    answers: Mutex<BTreeMap<u16, u64>>,
    readers: Arc<AtomicU64>,
}

impl Figures {
    pub(super) fn new() -> Self {
        Self { started: Instant::now(), answers: Mutex::default(), readers: Arc::default() }
    }

    fn count(&self, status: u16) {
        // Nothing panics or awaits under this lock.
        *self.answers.lock().unwrap_or_else(PoisonError::into_inner).entry(status).or_default() += 1;
    }

    /// Counts a reader of events until it is dropped.
    pub(super) fn reader(&self) -> Reader {
        self.readers.fetch_add(1, Ordering::Relaxed);
        Reader(Arc::clone(&self.readers))
    }
}

/// A reader of events, while there is one.
pub(super) struct Reader(Arc<AtomicU64>);

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Counts every answer by its status.
pub(super) async fn count(State(hall): State<Arc<Hall>>, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    hall.figures.count(response.status().as_u16());
    response
}

/// `GET /metrics`
pub(super) async fn show(State(hall): State<Arc<Hall>>, parameters: Parameters) -> Result<Response, Refused> {
    parameters.finish()?;
    let sessions = hall.any().sessions().await?;
    let sum = |of: fn(&locum::store::SessionRow) -> u32| sessions.iter().map(|row| u64::from(of(row))).sum::<u64>();
    let figures = &hall.figures;
    let mut text = String::new();
    let readers = figures.readers.load(Ordering::Relaxed);
    for (name, kind, what, value) in [
        ("locum_uptime_seconds", "gauge", "Since the server began.", figures.started.elapsed().as_secs()),
        ("locum_sessions", "gauge", "Sessions of the project.", sessions.len() as u64),
        ("locum_tasks", "gauge", "Tasks that were accepted in them.", sum(|row| row.tasks)),
        ("locum_tasks_unfinished", "gauge", "Tasks that have not ended.", sum(|row| row.unfinished)),
        ("locum_context_keys", "gauge", "Keys of shared contexts that have a value.", sum(|row| row.keys)),
        ("locum_event_readers", "gauge", "Clients that read events.", readers),
    ] {
        // Writing to a string does not fail.
        writeln!(text, "# HELP {name} {what}\n# TYPE {name} {kind}\n{name} {value}").ok();
    }
    let name = "locum_http_answers_total";
    writeln!(text, "# HELP {name} Answers by their status.\n# TYPE {name} counter").ok();
    for (status, count) in figures.answers.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        writeln!(text, "{name}{{status=\"{status}\"}} {count}").ok();
    }
    writeln!(text, "# HELP locum_info The version.\n# TYPE locum_info gauge").ok();
    writeln!(text, "locum_info{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION")).ok();
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response())
}
