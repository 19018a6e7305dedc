//! MCP over streamable HTTP, in both of its eras: with sessions that a client opens by `initialize`, and with requests
//! that stand alone. Who may speak, and how much, was decided before a request comes here.

mod visits;

use std::convert::Infallible;
use std::sync::Arc;

use ::http::{Method, Request, Response, StatusCode};
use bytes::Bytes;
use http_body_util::Full;
use http_body_util::combinators::BoxBody;
use locum::Desk;
use locum::faces::Face;
use locum::limits;
use rmcp::RoleServer;
use rmcp::service::RequestContext;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};

use tokio_util::sync::CancellationToken;

use self::visits::Visits;
use super::asking::Clients;
use super::server::{House, Server};
use super::tasks::handshake_era;

/// The desks that a request may be meant for.
#[derive(Clone)]
pub(crate) struct Seat {
    /// The shape in which the tools are shown.
    pub(crate) face: Face,
    /// The desk of a client that opens a session.
    pub(crate) own: Desk,
    /// The desk of requests that stand alone.
    pub(crate) standing: Desk,
}

impl Seat {
    /// The desks that came with a request.
    pub(super) fn of(context: &RequestContext<RoleServer>) -> Option<Self> {
        context.extensions.get::<::http::request::Parts>()?.extensions.get::<Self>().cloned()
    }
}

/// Where the messages of all clients arrive.
pub(crate) struct Endpoint {
    service: StreamableHttpService<Server, Visits>,
}

impl Endpoint {
    /// An endpoint whose calls are no longer waited for once `leaving` is cancelled, and whose streams end with `ended`.
    pub(crate) fn new(leaving: CancellationToken, ended: CancellationToken, clients: Arc<Clients>) -> Self {
        let config = StreamableHttpServerConfig::default()
            // Names and origins are the guard's.
            .disable_allowed_hosts()
            .with_cancellation_token(ended)
            .with_max_request_body_bytes(limits::REQUEST_BYTES_MAX);
        let house = Arc::new(House::new(leaving, clients));
        let server = move || Ok(Server::seated(Arc::clone(&house)));
        Self { service: StreamableHttpService::new(server, Arc::new(Visits::default()), config) }
    }

    /// Answers one request.
    pub(crate) async fn answer(&self, request: Request<Bytes>, seat: Seat) -> Response<BoxBody<Bytes, Infallible>> {
        let (mut parts, mut body) = request.into_parts();
        parts.extensions.insert(seat);
        // What is no JSON is answered by the SDK.
        if let Ok(message) = serde_json::from_slice(&body) {
            body = handshake_era::renamed(message).to_string().into();
        }
        let is_leaving = parts.method == Method::DELETE;
        let mut response = self.service.handle(Request::from_parts(parts, Full::new(body))).await;
        // The session has ended when this is answered; some clients take "accepted" for a failure.
        if is_leaving && response.status() == StatusCode::ACCEPTED {
            *response.status_mut() = StatusCode::NO_CONTENT;
        }
        response
    }
}
