//! The one HTTP client of all model APIs: pooled connections, HTTP/2 where it is offered, three time limits and typed
//! failures. It does not know what it carries, reads no environment, and nothing is loaded before it is needed.

mod exchange;
mod proxy;
mod retry_after;
mod segments;
mod tls;

use std::error::Error;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::{HeaderMap, Request, Response, StatusCode, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::{Builder, Client, ResponseFuture};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use locum_core::limits;
use locum_core::task::event::FailureKind;
use secrecy::SecretString;
use tokio::time::Instant;

pub use self::exchange::{Exchange, Outgoing};
pub use self::proxy::{Proxy, ProxyServer};
pub(crate) use self::retry_after::retry_after;
pub(crate) use self::segments::Segments;
pub use self::tls::Tls;
use crate::model::ModelError;

/// Bytes of one answer on the wire. An event stream wraps a few characters in some hundred bytes, so this is far more
/// than [`limits::REPLY_BYTES_MAX`]; it ends a stream that never says anything worth keeping.
const ANSWER_BYTES_MAX: u64 = 64 * limits::REPLY_BYTES_MAX as u64;

/// Bytes of a body that explains a failure; what comes after is not read.
const FAILURE_BYTES_MAX: usize = 64 * 1024;

/// How long an unused connection is kept: less than most servers keep it.
const POOL_IDLE: Duration = Duration::from_secs(50);

/// Unused connections to one host. A crowd that begins at once opens more than it goes on to use, and each of them holds
/// some 30 KiB.
const POOL_IDLE_CONNECTIONS_MAX: usize = 256;

/// How often an HTTP/2 connection with open requests is asked whether it still stands.
const PING_INTERVAL: Duration = Duration::from_secs(20);

/// How long a server may take from the end of a reply to what it says about it, which is the count of its tokens.
const AFTERMATH_WAIT: Duration = Duration::from_secs(5);

/// How long the end of an answer is waited for after its last event. A connection is only used again when its answer
/// was read to the end, which usually comes in the same packet; a server that leaves it open must not cost more.
const END_WAIT: Duration = Duration::from_millis(20);

/// Where an API is and who may use it.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// The address that every path is added to, such as `https://api.openai.com/v1`.
    pub base_url: String,
    /// The key, where the server wants one.
    pub key: Option<SecretString>,
    /// What a user sets to give the key, such as `OPENAI_API_KEY`: failures name it.
    pub key_name: String,
    /// Further headers of every request. Their values may be secrets.
    pub headers: Vec<(String, SecretString)>,
}

/// How long a request may take, by what it waits for. All of them end in [`FailureKind::Timeout`], which is tried
/// again; so the defaults are shorter than the silence after which a task counts as stalled (three minutes), except
/// for the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For one address to accept a connection: no server that lives takes longer.
    pub connect: Duration,
    /// From the start of the request to the first byte of the answer: a small machine may have to read a long
    /// conversation first.
    pub first_byte: Duration,
    /// Between two pieces of an answer: whoever has begun to speak goes on.
    pub idle: Duration,
    /// Between two events of an answer when there are signs of life, such as pings: a model may think for long, but
    /// not for ever.
    pub silence: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(170),
            idle: Duration::from_secs(120),
            silence: Duration::from_secs(900),
        }
    }
}

/// Sends requests. One for the whole process: its connections are shared.
pub struct HttpClient {
    timeouts: Timeouts,
    proxy: Matcher,
    plain: Client<HttpConnector, Segments>,
    tls: Tls,
    /// Made for the first https address.
    secure: OnceLock<Secure>,
}

/// What https needs.
struct Secure {
    direct: Client<HttpsConnector<HttpConnector>, Segments>,
    tunnelled: OnceLock<Client<HttpsConnector<Tunnel<HttpConnector>>, Segments>>,
}

impl std::fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpClient").field("timeouts", &self.timeouts).finish_non_exhaustive()
    }
}

impl HttpClient {
    /// A client without connections.
    pub fn new(timeouts: Timeouts, proxy: &Proxy) -> Self {
        let plain = pool().build(connector(&timeouts));
        Self { timeouts, proxy: proxy.matcher(), plain, tls: Tls::default(), secure: OnceLock::new() }
    }

    /// Trusts the certificates of a PEM file beside the machine's own.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or holds no certificate.
    pub fn trusting(mut self, ca_file: &Path) -> Result<Self, ModelError> {
        self.tls = self.tls.trusting(ca_file)?;
        Ok(self)
    }

    /// Sends a request and waits for the head of its answer. Dropping the future ends the request.
    pub(crate) async fn send(&self, request: Request<Segments>) -> Result<Answer, ModelError> {
        let url = request.uri().clone();
        let started = Instant::now();
        let response = self.dial(request)?;
        match tokio::time::timeout_at(started + self.timeouts.first_byte, response).await {
            Ok(Ok(response)) => Ok(Answer::new(response, started, self.timeouts)),
            Ok(Err(error)) => Err(self.unreachable(&host_of(&url), &error)),
            Err(_) => Err(no_first_byte(&host_of(&url), self.timeouts.first_byte)),
        }
    }

    fn dial(&self, request: Request<Segments>) -> Result<ResponseFuture, ModelError> {
        if request.uri().scheme_str() != Some("https") {
            return Ok(self.plain.request(request));
        }
        let secure = self.secure.get_or_init(|| Secure::new(&self.timeouts, &self.tls));
        let proxy = proxy::usable(&self.proxy, request.uri());
        let proxy = proxy.map_err(|message| ModelError::new(FailureKind::BadRequest, message))?;
        let Some(proxy) = proxy else { return Ok(secure.direct.request(request)) };
        let tunnelled = secure.tunnelled.get_or_init(|| tunnel(&self.tls, &proxy, &self.timeouts));
        Ok(tunnelled.request(request))
    }

    fn unreachable(&self, host: &str, error: &hyper_util::client::legacy::Error) -> ModelError {
        let kind = if has_kind(error, ErrorKind::TimedOut) { FailureKind::Timeout } else { FailureKind::Network };
        let mut message = format!("could not reach {host}: {}", causes(error));
        if has_kind(error, ErrorKind::ConnectionRefused) {
            message.push_str("; is the server running, and is the base URL right?");
        }
        if self.tls.is_known_to_trust_nobody() {
            message.push_str("; this machine has no root certificates: install ca-certificates");
        }
        ModelError::new(kind, message)
    }
}

impl Secure {
    fn new(timeouts: &Timeouts, tls: &Tls) -> Self {
        Self { direct: pool().build(over_tls(tls, connector(timeouts))), tunnelled: OnceLock::new() }
    }
}

fn tunnel(
    tls: &Tls,
    proxy: &Intercept,
    timeouts: &Timeouts,
) -> Client<HttpsConnector<Tunnel<HttpConnector>>, Segments> {
    let mut tunnel = Tunnel::new(proxy.uri().clone(), connector(timeouts));
    if let Some(credentials) = proxy.basic_auth() {
        tunnel = tunnel.with_auth(credentials.clone());
    }
    pool().build(over_tls(tls, tunnel))
}

fn over_tls<C>(tls: &Tls, connector: C) -> HttpsConnector<C> {
    HttpsConnectorBuilder::new()
        .with_tls_config(tls.config().as_ref().clone())
        .https_only()
        .enable_http1()
        .enable_http2()
        .wrap_connector(connector)
}

fn connector(timeouts: &Timeouts) -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(timeouts.connect));
    connector
}

fn pool() -> Builder {
    let mut builder = Client::builder(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(POOL_IDLE)
        .pool_max_idle_per_host(POOL_IDLE_CONNECTIONS_MAX)
        .http2_keep_alive_interval(PING_INTERVAL)
        .http2_keep_alive_timeout(PING_INTERVAL);
    builder
}

/// An answer whose body is under way.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    body: Incoming,
    timeouts: Timeouts,
    bytes: u64,
    started: Instant,
    last_event: Instant,
}

impl Answer {
    fn new(response: Response<Incoming>, started: Instant, timeouts: Timeouts) -> Self {
        let (head, body) = response.into_parts();
        let last_event = Instant::now();
        Self { status: head.status, headers: head.headers, body, timeouts, bytes: 0, started, last_event }
    }

    /// The next piece of the body; none at its end. Nothing is lost when the future is dropped.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, ModelError> {
        let (until, overdue) = self.deadline();
        loop {
            let frame = tokio::time::timeout_at(until, self.body.frame()).await.map_err(|_| overdue())?;
            let data = match frame.transpose().map_err(|error| cut(&error))? {
                None => return Ok(None),
                Some(frame) => frame.into_data(),
            };
            // Trailers say nothing that a model API means, and an empty piece must not look like an end.
            let Ok(data) = data else { continue };
            if data.is_empty() {
                continue;
            }
            self.bytes += data.len() as u64;
            if self.bytes > ANSWER_BYTES_MAX {
                let message = format!("the answer is longer than {ANSWER_BYTES_MAX} bytes");
                return Err(ModelError::new(FailureKind::TooLarge, message));
            }
            return Ok(Some(data));
        }
    }

    /// Until when the next piece must come, and the failure if it does not.
    fn deadline(&self) -> (Instant, impl Fn() -> ModelError + use<>) {
        let Timeouts { first_byte, idle, silence, .. } = self.timeouts;
        let (until, what, limit) = if self.bytes == 0 {
            (self.started + first_byte, "no part of an answer", first_byte)
        } else {
            let idle = (Instant::now() + idle, "the answer stopped, nothing came", idle);
            let silence = (self.last_event + silence, "only signs of life, no words,", silence);
            if idle.0 <= silence.0 { idle } else { silence }
        };
        let overdue = move || ModelError::new(FailureKind::Timeout, format!("{what} for {}", show(limit)));
        (until, overdue)
    }

    /// Notes that the piece which came last said something.
    pub(crate) fn note_event(&mut self) {
        self.last_event = Instant::now();
    }

    /// Notes that all that matters has come: what may follow is not waited for long.
    pub(crate) fn note_last_event(&mut self) {
        self.timeouts.idle = self.timeouts.idle.min(AFTERMATH_WAIT);
    }

    /// Whether the body has begun.
    pub(crate) fn has_begun(&self) -> bool {
        self.bytes > 0
    }

    /// The beginning of a body that explains a failure; as much of it as arrives.
    pub(crate) async fn explanation(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        while body.len() < FAILURE_BYTES_MAX {
            let Ok(Some(chunk)) = self.chunk().await else { break };
            body.extend_from_slice(&chunk);
        }
        body.truncate(FAILURE_BYTES_MAX);
        body
    }

    /// Reads what follows the last event, which is nothing, so that the connection can be used again.
    pub(crate) async fn end(&mut self) {
        let rest = async { while let Some(Ok(_)) = self.body.frame().await {} };
        // Too late only means that the connection is closed instead.
        drop(tokio::time::timeout(END_WAIT, rest).await);
    }

    /// Lets the connection go back to where the next request looks for one. It is taken back by a task of its own, and
    /// whoever asks before that opens another connection that nobody needs.
    pub(crate) async fn give_back(self) {
        drop(self);
        tokio::task::yield_now().await;
    }
}

/// The host and, where it is written, the port: enough to recognise an address, without a password in it.
pub(crate) fn host_of(uri: &Uri) -> String {
    let host = uri.host().unwrap_or_default();
    uri.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

fn no_first_byte(host: &str, limit: Duration) -> ModelError {
    ModelError::new(FailureKind::Timeout, format!("{host} did not begin to answer within {}", show(limit)))
}

fn show(limit: Duration) -> String {
    if limit.subsec_millis() == 0 { format!("{} s", limit.as_secs()) } else { format!("{} ms", limit.as_millis()) }
}

fn cut(error: &hyper::Error) -> ModelError {
    let message = format!("the answer ended before it was complete: {}", causes(error));
    ModelError::new(FailureKind::CutStream, message)
}

/// What is underneath an error, from the outside in. The outermost layer only says that something failed.
fn causes(error: &(dyn Error + 'static)) -> String {
    let mut layers: Vec<String> = chain(error).skip(1).map(ToString::to_string).collect();
    layers.dedup_by(|inner, outer| outer.contains(inner.as_str()));
    if layers.is_empty() { error.to_string() } else { layers.join(": ") }
}

fn has_kind(error: &(dyn Error + 'static), kind: ErrorKind) -> bool {
    chain(error).filter_map(|layer| layer.downcast_ref::<std::io::Error>()).any(|error| error.kind() == kind)
}

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error: &&'a (dyn Error + 'static)| (*error).source())
}
