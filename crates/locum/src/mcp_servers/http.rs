//! Streamable HTTP, carried by locum's own client: the SDK knows what is said, this knows how it gets there. Every
//! message is bounded.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::{BoxStream, unfold};
use http::{HeaderName, HeaderValue};
use locum_core::limits;
use locum_models::http::{Exchange, HttpClient, Outgoing, Proxy, Timeouts};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError, StreamableHttpPostResponse,
};
use secrecy::ExposeSecret as _;
use sse_stream::{Sse, SseStream};

use super::conversation::Trouble;
use super::description::ServerUrl;

const SESSION_HEADER: &str = "mcp-session-id";
const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";

/// Bytes of an explanation that are read: it becomes part of a sentence.
const EXPLANATION_BYTES_MAX: usize = 2 * 1024;

/// How often a stream that was cut off is taken up again before it is given up.
const RESUMES_MAX: usize = 3;

type Failure = StreamableHttpError<io::Error>;

/// Carries the messages of one server.
#[derive(Clone)]
pub(super) struct Carrier {
    client: Arc<HttpClient>,
    trouble: Trouble,
}

/// A client for servers: a call has a limit of its own, so a stream may be silent for as long as it likes.
pub(super) fn client(proxy: &Proxy, ca_file: Option<&std::path::Path>) -> Result<HttpClient, String> {
    let longest = Duration::from_secs(limits::MCP_CALL_SECONDS_MAX);
    let timeouts = Timeouts { first_byte: longest, idle: longest, silence: longest, ..Timeouts::default() };
    let client = HttpClient::new(timeouts, proxy);
    match ca_file {
        Some(file) => client.trusting(file).map_err(|error| error.message),
        None => Ok(client),
    }
}

/// The way to a server.
pub(super) fn transport(
    server: &ServerUrl,
    client: Arc<HttpClient>,
    trouble: Trouble,
) -> Result<StreamableHttpClientTransport<Carrier>, String> {
    let mut headers = HashMap::new();
    for (name, value) in &server.headers {
        let header = HeaderName::try_from(name.as_str()).map_err(|_| format!("`{name}` is no header's name"))?;
        let value = HeaderValue::try_from(value.expose_secret());
        headers.insert(header, value.map_err(|_| format!("the value of the header `{name}` cannot be sent"))?);
    }
    let mut config = StreamableHttpClientTransportConfig::with_uri(server.url.as_str()).custom_headers(headers);
    let mut resuming = ExponentialBackoff::default();
    resuming.max_times = Some(RESUMES_MAX);
    config.retry_config = Arc::new(resuming);
    Ok(StreamableHttpClientTransport::with_client(Carrier { client, trouble }, config))
}

impl Carrier {
    async fn send(
        &self,
        method: &str,
        url: &str,
        headers: Vec<(String, String)>,
        body: Vec<u8>,
    ) -> Result<Exchange, Failure> {
        let outgoing = Outgoing { method, url, headers, body };
        self.client.exchange(outgoing).await.map_err(StreamableHttpError::Client)
    }

    /// A body of at most so many bytes.
    async fn whole(&self, answer: &mut Exchange, most: usize) -> Result<Vec<u8>, Failure> {
        let mut body = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(StreamableHttpError::Client)? {
            body.extend_from_slice(&piece);
            if body.len() > most {
                self.trouble.note_too_long();
                return Err(StreamableHttpError::Client(too_long()));
            }
        }
        Ok(body)
    }

    /// The events of an answer, each of them bounded.
    fn events(&self, answer: Exchange) -> BoxStream<'static, Result<Sse, sse_stream::Error>> {
        let pieces = unfold((answer, self.trouble.clone(), 0_usize), |(mut answer, trouble, bytes)| async move {
            let piece = answer.chunk().await.transpose()?;
            let bytes = piece.as_ref().map_or(0, |piece| event_bytes(bytes, piece));
            if bytes > limits::MCP_MESSAGE_BYTES_MAX {
                trouble.note_too_long();
                return Some((Err(too_long()), (answer, trouble, 0)));
            }
            Some((piece, (answer, trouble, bytes)))
        });
        SseStream::from_bytes_stream(pieces.boxed()).boxed()
    }
}

/// What stands in the head of a message: what the protocol says, what is accepted, and the session.
fn headers_of(
    said: HashMap<HeaderName, HeaderValue>,
    session: Option<&Arc<str>>,
    accepted: &str,
) -> Vec<(String, String)> {
    let text =
        |(name, value): (HeaderName, HeaderValue)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()));
    let accepted = ("accept".to_owned(), accepted.to_owned());
    let session = session.map(|session| (SESSION_HEADER.to_owned(), session.to_string()));
    said.into_iter().filter_map(text).chain([accepted]).chain(session).collect()
}

/// Bytes of the event that has not ended when this piece has come after so many.
fn event_bytes(before: usize, piece: &Bytes) -> usize {
    let ends = |end: &[u8]| piece.windows(end.len()).rposition(|window| window == end).map(|at| at + end.len());
    let last = ends(b"\n\n").max(ends(b"\r\n\r\n"));
    match last {
        Some(end) => piece.len() - end,
        // The empty line may have been cut in two.
        None if piece.starts_with(b"\n") || piece.starts_with(b"\r\n") => piece.len(),
        None => before + piece.len(),
    }
}

fn too_long() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a message is too long")
}

impl StreamableHttpClient for Carrier {
    type Error = io::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let body = serde_json::to_vec(&message)?;
        let mut headers = headers_of(custom_headers, session_id.as_ref(), &format!("{JSON}, {EVENTS}"));
        headers.push(("content-type".to_owned(), JSON.to_owned()));
        let mut answer = self.send("POST", &uri, headers, body).await?;
        let session = answer.header(SESSION_HEADER).map(str::to_owned);
        let kind = answer.header("content-type").unwrap_or_default().to_owned();
        let status = answer.status();
        let is_request = matches!(message, ClientJsonRpcMessage::Request(_));
        match status {
            202 | 204 => return Ok(StreamableHttpPostResponse::Accepted),
            404 if session_id.is_some() => return Err(StreamableHttpError::SessionExpired),
            200..=299 => {}
            _ => {
                let body = self.whole(&mut answer, limits::MCP_MESSAGE_BYTES_MAX).await?;
                return match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
                    Ok(error @ ServerJsonRpcMessage::Error(_)) => Ok(StreamableHttpPostResponse::Json(error, session)),
                    _ => Err(unexpected(status, &body)),
                };
            }
        }
        if kind.starts_with(EVENTS) {
            return Ok(StreamableHttpPostResponse::Sse(self.events(answer), session));
        }
        let body = self.whole(&mut answer, limits::MCP_MESSAGE_BYTES_MAX).await?;
        match serde_json::from_slice(&body) {
            Ok(answer) => Ok(StreamableHttpPostResponse::Json(answer, session)),
            // Nothing is answered to what asks nothing.
            Err(_) if !is_request => Ok(StreamableHttpPostResponse::Accepted),
            Err(_) => Err(unexpected(status, &body)),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failure> {
        // A server that does not want to know forgets it by itself.
        let headers = headers_of(custom_headers, Some(&session_id), &format!("{JSON}, {EVENTS}"));
        self.send("DELETE", &uri, headers, Vec::new()).await.map(drop)
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        mut custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, sse_stream::Error>>, Failure> {
        if let Some(value) = last_event_id.and_then(|id| HeaderValue::try_from(id).ok()) {
            custom_headers.insert(HeaderName::from_static("last-event-id"), value);
        }
        let headers = headers_of(custom_headers, session_id.as_ref(), EVENTS);
        let answer = self.send("GET", &uri, headers, Vec::new()).await?;
        match answer.status() {
            200 if answer.header("content-type").is_some_and(|kind| kind.starts_with(EVENTS)) => {
                Ok(self.events(answer))
            }
            404 if session_id.is_some() => Err(StreamableHttpError::SessionExpired),
            // It has nothing to say unasked.
            _ => Err(StreamableHttpError::ServerDoesNotSupportSse),
        }
    }
}

fn unexpected(status: u16, body: &[u8]) -> Failure {
    let body = String::from_utf8_lossy(&body[..body.len().min(EXPLANATION_BYTES_MAX)]);
    let hint = if matches!(status, 401 | 403) { ", it wants a key: see key_variable and headers" } else { "" };
    StreamableHttpError::UnexpectedServerResponse(Cow::Owned(format!("HTTP status {status}{hint}: {body}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_counted_from_the_empty_line_before_it() {
        for (before, piece, expected) in [
            (0, "data: a", 7),
            (7, "bc", 9),
            (9, "d\n\ndata: e", 7),
            (9, "\r\n\r\n", 0),
            (9, "\ndata: f", 8),
            (9, "a\n\nb\n\n", 0),
        ] {
            assert_eq!(event_bytes(before, &Bytes::from_static(piece.as_bytes())), expected, "{piece:?}");
        }
    }
}
