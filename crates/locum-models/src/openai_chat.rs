//! OpenAI's Chat Completions, streamed: the protocol that every local server speaks as well. What such a server says
//! is read with tolerance, what it is told is what all of them understand.

mod calls;
mod chunk;
mod failure;
mod reply;
mod request;

use std::sync::Arc;
use std::time::SystemTime;

use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use hyper::{HeaderMap, Request, Uri};
use locum_core::task::event::FailureKind;
use locum_core::transcript::{Prompt, Reply};
use secrecy::{ExposeSecret as _, SecretString};

use self::failure::Asked;
use self::reply::Partial;
use crate::http::{Answer, Endpoint, HttpClient, Segments, host_of};
use crate::model::{BoxFuture, Delta, Deltas, Model, ModelError, Prefix};
use crate::sse::{EVENT_BYTES_MAX, Event, Parser};

const PATH: &str = "/chat/completions";

/// Secrets shorter than this are not searched for in messages: they are placeholders such as `-` or `none`.
const SECRET_CHARS_MIN: usize = 6;

/// A server that speaks Chat Completions.
pub struct OpenAiChat {
    client: Arc<HttpClient>,
    url: Uri,
    host: String,
    headers: HeaderMap,
    key_name: String,
    /// What must not appear in a message.
    secrets: Vec<SecretString>,
    has_key: bool,
    output_limit_field: &'static str,
}

impl std::fmt::Debug for OpenAiChat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenAiChat").field("host", &self.host).finish_non_exhaustive()
    }
}

impl OpenAiChat {
    /// A server at an endpoint; nothing is sent yet. Fails if the address or a header cannot be one.
    pub fn new(client: Arc<HttpClient>, endpoint: Endpoint) -> Result<Self, ModelError> {
        let url = url_of(&endpoint.base_url)?;
        let key = endpoint.key.filter(|key| !key.expose_secret().trim().is_empty());
        let endpoint = Endpoint { key, ..endpoint };
        let headers = headers_of(&endpoint)?;
        let Endpoint { key, key_name, headers: further, .. } = endpoint;
        let has_key = key.is_some();
        let secrets = key.into_iter().chain(further.into_iter().map(|(_, value)| value)).collect();
        let output_limit_field = request::output_limit_field(url.host().unwrap_or_default());
        let host = host_of(&url);
        Ok(Self { client, url, host, headers, key_name, secrets, has_key, output_limit_field })
    }

    async fn ask(
        &self,
        prompt: &Prompt<'_>,
        prefix: &mut Prefix,
        deltas: &mut Deltas<'_>,
    ) -> Result<Reply, ModelError> {
        let body = request::body(prompt, prefix, self.output_limit_field);
        let sent_bytes = body.len();
        let mut answer = self.client.send(self.request(body)).await?;
        if !answer.status.is_success() {
            let body = answer.explanation().await;
            let Self { host, key_name, has_key, .. } = self;
            let asked = Asked { host, model: prompt.model, key_name, has_key: *has_key };
            return Err(failure::from_status(answer.status, &answer.headers, &body, SystemTime::now(), &asked));
        }
        read(answer, sent_bytes, deltas).await
    }

    fn request(&self, body: Segments) -> Request<Segments> {
        let mut request = Request::new(body);
        *request.method_mut() = hyper::Method::POST;
        *request.uri_mut() = self.url.clone();
        *request.headers_mut() = self.headers.clone();
        request
    }

    /// Takes secrets out of a failure: a server may repeat what it was sent.
    fn redact(&self, mut error: ModelError) -> ModelError {
        for secret in &self.secrets {
            let secret = secret.expose_secret().trim();
            if secret.len() >= SECRET_CHARS_MIN && error.message.contains(secret) {
                error.message = error.message.replace(secret, "[secret]");
            }
        }
        error
    }
}

impl Model for OpenAiChat {
    fn respond<'a>(
        &'a self,
        prompt: &'a Prompt<'a>,
        prefix: &'a mut Prefix,
        deltas: &'a mut Deltas<'a>,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move { self.ask(prompt, prefix, deltas).await.map_err(|error| self.redact(error)) })
    }
}

fn url_of(base_url: &str) -> Result<Uri, ModelError> {
    let base_url = base_url.trim();
    // A gateway may want a query, which comes after the path.
    let (base, query) = match base_url.split_once('?') {
        Some((base, query)) => (base, format!("?{query}")),
        None => (base_url, String::new()),
    };
    let url = format!("{}{PATH}{query}", base.trim_end_matches('/'));
    match url.parse::<Uri>() {
        Ok(url) if matches!(url.scheme_str(), Some("http" | "https")) && url.host().is_some() => Ok(url),
        _ => {
            let message = "the base URL is not an address such as https://api.openai.com/v1";
            Err(ModelError::new(FailureKind::BadRequest, message))
        }
    }
}

fn headers_of(endpoint: &Endpoint) -> Result<HeaderMap, ModelError> {
    let wrong = |name: &str| {
        ModelError::new(FailureKind::BadRequest, format!("the header {name} has characters that no header has"))
    };
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, hyper::header::HeaderValue::from_static("text/event-stream, application/json"));
    headers.insert(USER_AGENT, hyper::header::HeaderValue::from_static(concat!("locum/", env!("CARGO_PKG_VERSION"))));
    let secret = |name: &str, text: &str| {
        let mut value = hyper::header::HeaderValue::from_str(text.trim()).map_err(|_| wrong(name))?;
        value.set_sensitive(true);
        Ok(value)
    };
    if let Some(key) = &endpoint.key {
        let value = secret("Authorization", &format!("Bearer {}", key.expose_secret().trim()))?;
        headers.insert(AUTHORIZATION, value);
    }
    for (name, text) in &endpoint.headers {
        let value = secret(name, text.expose_secret())?;
        let name: hyper::header::HeaderName = name.parse().map_err(|_| wrong(name))?;
        headers.insert(name, value);
    }
    Ok(headers)
}

/// Reads a reply: an event stream, or one whole completion from a server that does not stream. The first character
/// tells which; headers are often wrong.
async fn read(mut answer: Answer, sent_bytes: u64, deltas: &mut Deltas<'_>) -> Result<Reply, ModelError> {
    let mut partial = Partial::default();
    let mut body = Body::Unknown;
    let mut failure = None;
    while !partial.is_done() && failure.is_none() {
        match answer.chunk().await {
            Ok(None) => break,
            Ok(Some(chunk)) => {
                if let Err(error) = body.take(&chunk, &mut partial, &mut answer, deltas) {
                    return Err(partial.attach_to(error));
                }
                if partial.is_whole() {
                    answer.note_last_event();
                }
            }
            Err(error) => failure = Some(error),
        }
    }
    let rest = body.finish(&mut partial, &answer, deltas);
    // What breaks after the model has ended its reply does not matter; before, it is the failure that counts.
    if let Some(error) = failure.or(rest.err()).filter(|_| !partial.is_whole()) {
        return Err(partial.attach_to(error));
    }
    if partial.is_done() {
        answer.end().await;
    }
    partial.finish(sent_bytes)
}

/// What an answer's body turns out to be.
enum Body {
    /// Nothing but white space has come.
    Unknown,
    Events(Parser),
    Whole(Vec<u8>),
}

impl Body {
    fn take(
        &mut self,
        chunk: &[u8],
        partial: &mut Partial,
        answer: &mut Answer,
        deltas: &mut Deltas<'_>,
    ) -> Result<(), ModelError> {
        if matches!(self, Self::Unknown) {
            *self = match chunk.trim_ascii_start().first() {
                None => return Ok(()),
                Some(b'{') => Self::Whole(Vec::new()),
                Some(b'<') => return Err(html()),
                Some(_) => Self::Events(Parser::new()),
            };
        }
        match self {
            Self::Unknown => Ok(()),
            Self::Whole(json) => {
                json.extend_from_slice(chunk);
                answer.note_event();
                if json.len() <= EVENT_BYTES_MAX {
                    return Ok(());
                }
                let message = format!("the answer is longer than {EVENT_BYTES_MAX} bytes");
                Err(ModelError::new(FailureKind::TooLarge, message))
            }
            Self::Events(parser) => parser.feed(chunk, &mut |event| match event {
                Event::Data(data) => {
                    answer.note_event();
                    partial.take(data, deltas)
                }
                Event::Comment => {
                    deltas(Delta::Alive);
                    Ok(())
                }
            }),
        }
    }

    /// Takes what is left at the end of the body.
    fn finish(self, partial: &mut Partial, answer: &Answer, deltas: &mut Deltas<'_>) -> Result<(), ModelError> {
        match self {
            Self::Unknown => {
                let what = if answer.has_begun() { "blank" } else { "empty" };
                Err(ModelError::new(FailureKind::Malformed, format!("the answer is {what}")))
            }
            Self::Whole(json) => partial.take_whole(&json, deltas),
            Self::Events(parser) => {
                let mut take_last = |event: Event<'_>| {
                    let Event::Data(data) = event else { return Ok(()) };
                    match partial.take(data, deltas) {
                        // Half an event: the stream was cut, which is found out next.
                        Err(error) if error.kind == FailureKind::Malformed => Ok(()),
                        taken => taken,
                    }
                };
                parser.finish(&mut take_last)
            }
        }
    }
}

fn html() -> ModelError {
    let message = "the answer is an HTML page: the base URL is probably not that of an API";
    ModelError::new(FailureKind::Malformed, message)
}
