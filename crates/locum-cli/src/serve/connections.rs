//! The connections of the server: accepted, bounded, timed and ended here. A client that says half of something costs
//! one of many places for a while, and nobody else anything.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Connections at once: many readers of events, and fewer than the files that a process may have open.
const CONNECTIONS_MAX: usize = 512;

/// How long the head of a request may take.
const HEAD_WAIT: Duration = Duration::from_secs(10);

/// Bytes of a request's head.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// How long a connection may take to end when the server does: enough to write an answer.
const END_WAIT: Duration = Duration::from_secs(2);

/// How long to wait after a connection that could not be taken, as when no more files can be opened.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The listener and what came through it.
pub(super) struct Connections {
    listener: TcpListener,
    router: Router,
    places: Arc<Semaphore>,
    open: TaskTracker,
    graceful: GracefulShutdown,
    cut: CancellationToken,
}

impl Connections {
    pub(super) fn new(listener: TcpListener, router: Router) -> Self {
        Self {
            listener,
            router,
            places: Arc::new(Semaphore::new(CONNECTIONS_MAX)),
            open: TaskTracker::new(),
            graceful: GracefulShutdown::new(),
            cut: CancellationToken::new(),
        }
    }

    /// Takes connections until it is told to stop.
    pub(super) async fn accept(&self, stop: &CancellationToken) {
        while let Some(accepted) = stop.run_until_cancelled(self.next()).await {
            match accepted {
                Some((stream, place)) => self.open(stream, place),
                None => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        }
    }

    async fn next(&self) -> Option<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
        let place = Arc::clone(&self.places).acquire_owned().await.ok()?;
        let (stream, _) = self.listener.accept().await.ok()?;
        Some((stream, place))
    }

    fn open(&self, stream: TcpStream, place: tokio::sync::OwnedSemaphorePermit) {
        // Small answers are sent at once. A connection that refuses even this is about to fail anyway.
        stream.set_nodelay(true).ok();
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_WAIT)
            .max_buf_size(HEAD_BYTES_MAX)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(self.router.clone()));
        let served = self.graceful.watch(connection);
        let cut = self.cut.clone();
        self.open.spawn(async move {
            // A client that breaks its connection off has been told nothing, and that is its own choice.
            cut.run_until_cancelled_owned(served).await.map(Result::ok);
            drop(place);
        });
    }

    /// Ends every connection: those that are idle at once, those with an answer under way when it is written.
    pub(super) async fn end(self) {
        let Self { open, graceful, cut, listener, .. } = self;
        drop(listener);
        open.close();
        // Whoever does not read its answer is cut off.
        tokio::time::timeout(END_WAIT, graceful.shutdown()).await.ok();
        cut.cancel();
        open.wait().await;
    }
}
