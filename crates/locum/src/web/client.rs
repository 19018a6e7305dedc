//! One request and its answer, with bounds on time and size.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{Either, select};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use locum_core::limits;
use secrecy::{ExposeSecret as _, SecretString};

use super::address::Address;
use super::dialer::{Dialer, Reach};

/// Bytes of the head of an answer.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Asks addresses.
#[derive(Debug, Default)]
pub(crate) struct Client {
    dialer: Arc<Dialer>,
}

/// What is asked.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) address: Address,
    pub(crate) reach: Reach,
    /// What kinds of answers are wanted.
    pub(crate) accept: &'static str,
    /// Headers that hold a secret.
    pub(crate) secrets: Vec<(&'static str, SecretString)>,
    /// JSON that is sent; without it, the address is only read.
    pub(crate) json: Option<String>,
}

/// What was answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    /// Whether the body goes on beyond what is kept of it.
    pub(crate) is_cut: bool,
}

impl Ask {
    /// Reads a public page.
    pub(crate) fn page(address: Address) -> Self {
        let accept = "text/html, text/markdown, text/plain, application/json, text/*;q=0.8, */*;q=0.1";
        Self { address, reach: Reach::Public, accept, secrets: Vec::new(), json: None }
    }
}

impl Client {
    /// A client whose connections this dialer opens.
    pub(crate) fn new(dialer: impl Into<Arc<Dialer>>) -> Self {
        Self { dialer: dialer.into() }
    }

    /// Asks, and reads the answer. What goes wrong is a sentence. Dropping the future closes the connection.
    pub(crate) async fn ask(&self, ask: &Ask) -> Result<Answer, String> {
        let seconds = limits::WEB_SECONDS_MAX;
        let asking = self.ask_for_as_long_as_it_takes(ask);
        let answer = tokio::time::timeout(Duration::from_secs(seconds), asking).await;
        answer.map_err(|_| format!("{} did not answer within {seconds} s", ask.address.host))?
    }

    async fn ask_for_as_long_as_it_takes(&self, ask: &Ask) -> Result<Answer, String> {
        let request = request_of(ask)?;
        let stream = self.dialer.dial(&ask.address, ask.reach).await?;
        let failed = |error: hyper::Error| format!("{} did not answer as it should: {error}", ask.address.host);
        let shake = http1::Builder::new().max_buf_size(HEAD_BYTES_MAX).handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = shake.map_err(failed)?;
        let exchange = pin!(async move { read(sender.send_request(request).await?).await });
        // The connection moves the bytes. Where it ends first, what it has brought is still to be read.
        match select(pin!(connection), exchange).await {
            Either::Left((_, exchange)) => exchange.await.map_err(failed),
            Either::Right((answer, _)) => answer.map_err(failed),
        }
    }
}

fn request_of(ask: &Ask) -> Result<Request<Full<Bytes>>, String> {
    let unsendable = |_| "it cannot be sent as an address".to_owned();
    let mut request = Request::new(Full::new(Bytes::from(ask.json.clone().unwrap_or_default())));
    *request.uri_mut() = ask.address.target.parse().map_err(|_| "its path cannot be sent".to_owned())?;
    let headers = request.headers_mut();
    headers.insert(header::HOST, HeaderValue::from_str(&ask.address.authority()).map_err(unsendable)?);
    headers.insert(header::USER_AGENT, HeaderValue::from_static(concat!("locum/", env!("CARGO_PKG_VERSION"))));
    headers.insert(header::ACCEPT, HeaderValue::from_static(ask.accept));
    headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    for (name, value) in &ask.secrets {
        let wrong = |_| format!("the key for {name} has characters that no header has");
        let mut value = HeaderValue::from_str(value.expose_secret().trim()).map_err(wrong)?;
        value.set_sensitive(true);
        headers.insert(HeaderName::from_static(name), value);
    }
    if ask.json.is_some() {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        *request.method_mut() = Method::POST;
    }
    Ok(request)
}

async fn read(response: Response<hyper::body::Incoming>) -> Result<Answer, hyper::Error> {
    let (head, mut incoming) = response.into_parts();
    let mut answer = Answer { status: head.status, headers: head.headers, body: Vec::new(), is_cut: false };
    while let Some(frame) = incoming.frame().await {
        // Trailers say nothing about the text.
        let Ok(data) = frame?.into_data() else { continue };
        let room = limits::WEB_BODY_BYTES_MAX - answer.body.len();
        answer.body.extend_from_slice(&data[..data.len().min(room)]);
        if data.len() > room {
            answer.is_cut = true;
            break;
        }
    }
    Ok(answer)
}

impl Answer {
    /// A header as text.
    pub(crate) fn header(&self, name: HeaderName) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// Where the answer leads to, if it only does that.
    pub(crate) fn location(&self) -> Option<&str> {
        let leads = matches!(self.status.as_u16(), 301 | 302 | 303 | 307 | 308);
        if leads { self.header(header::LOCATION) } else { None }
    }
}
