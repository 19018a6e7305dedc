//! A model API as a model: sends a prompt, reads what is streamed back, and turns what goes wrong into typed
//! failures. What a protocol writes and reads is its own business; what all of them share is here.

mod address;
mod body;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::SystemTime;

use hyper::{HeaderMap, Method, Request};
use locum_core::transcript::{Prompt, Reply};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::OnceCell;

use self::address::Address;
use crate::failure::{self, Asked};
use crate::http::{Answer, Endpoint, HttpClient, Segments};
use crate::model::{BoxFuture, Deltas, Model, ModelError, Prefix};
use crate::providers::{Dialect, Protocol};
use crate::{anthropic_messages, google_gemini, openai_chat, openai_responses};

/// Secrets shorter than this are not searched for in messages: they are placeholders such as `-` or `none`.
const SECRET_CHARS_MIN: usize = 6;

/// A server that speaks one of the protocols.
pub struct Api {
    client: Arc<HttpClient>,
    address: Address,
    headers: HeaderMap,
    key_name: String,
    /// What must not appear in a message.
    secrets: Vec<SecretString>,
    has_key: bool,
    wire: Box<dyn Wire>,
    /// What answers where no model is named; asked for once.
    first_model: OnceCell<String>,
}

/// A protocol: what is written, and how what comes back is read.
pub(crate) trait Wire: Send + Sync {
    /// Where a prompt is sent, below the base address.
    fn path(&self, model: &str) -> Cow<'static, str>;

    /// Where the models are listed, below the base address.
    fn models_path(&self) -> &'static str {
        "/models"
    }

    /// The header that carries the key, and what stands before it.
    fn key_header(&self) -> (&'static str, &'static str);

    /// Further headers of every request.
    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// The body of a request. Only what `prefix` does not hold yet is encoded.
    fn body(&self, prompt: &Prompt<'_>, prefix: &mut Prefix) -> Segments;

    /// A reply of which nothing has come.
    fn reply(&self, prompt: &Prompt<'_>) -> Box<dyn Draft>;
}

/// A reply under way.
pub(crate) trait Draft: Send {
    /// Takes one event, or one whole answer.
    fn take(&mut self, data: &[u8], deltas: &mut Deltas<'_>) -> Result<(), ModelError>;

    /// Takes a whole answer, after which nothing comes.
    fn take_whole(&mut self, json: &[u8], deltas: &mut Deltas<'_>) -> Result<(), ModelError>;

    /// How far the server is.
    fn progress(&self) -> Progress;

    /// What the model has said so far.
    fn said(&mut self) -> String;

    /// The reply, at the end of what the server sent. `sent_bytes` is the size of the request, from which the tokens
    /// are estimated if the server does not count them.
    fn finish(self: Box<Self>, sent_bytes: u64, deltas: &mut Deltas<'_>) -> Result<Reply, ModelError>;
}

/// How far a server is with a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The model has not ended.
    Speaking,
    /// The model has said why it stopped: the reply is whole even if the stream breaks now.
    Whole,
    /// Nothing more is to come.
    Done,
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Api").field("host", &self.address.host()).finish_non_exhaustive()
    }
}

impl Api {
    /// A server at an endpoint; nothing is sent yet. Fails if the address or a header cannot be one.
    pub fn new(client: Arc<HttpClient>, endpoint: Endpoint, protocol: Protocol) -> Result<Self, ModelError> {
        Self::in_dialect(client, endpoint, protocol, Dialect::default())
    }

    /// The same, for a provider whose models differ from what the protocol says.
    pub fn in_dialect(
        client: Arc<HttpClient>,
        endpoint: Endpoint,
        protocol: Protocol,
        dialect: Dialect,
    ) -> Result<Self, ModelError> {
        let address = Address::parse(&endpoint.base_url)?;
        let wire: Box<dyn Wire> = match protocol {
            Protocol::OpenaiChat => Box::new(openai_chat::Chat::new(dialect)),
            Protocol::OpenaiResponses => Box::new(openai_responses::Responses::new(dialect)),
            Protocol::AnthropicMessages => Box::new(anthropic_messages::Messages::new(dialect)),
            Protocol::GoogleGemini => Box::new(google_gemini::Gemini::new(dialect)),
        };
        let key = endpoint.key.filter(|key| !key.expose_secret().trim().is_empty());
        let endpoint = Endpoint { key, ..endpoint };
        let headers = address::headers_of(&endpoint, wire.key_header(), wire.headers())?;
        let Endpoint { key, key_name, headers: further, .. } = endpoint;
        let has_key = key.is_some();
        let secrets = key.into_iter().chain(further.into_iter().map(|(_, value)| value)).collect();
        Ok(Self { client, address, headers, key_name, secrets, has_key, wire, first_model: OnceCell::new() })
    }

    async fn ask(
        &self,
        prompt: &Prompt<'_>,
        prefix: &mut Prefix,
        deltas: &mut Deltas<'_>,
    ) -> Result<Reply, ModelError> {
        if prompt.model.is_empty() {
            let model = self.first_model.get_or_try_init(|| self.find_model()).await?;
            let prompt = Prompt { model, ..prompt.clone() };
            return self.ask_model(&prompt, prefix, deltas).await;
        }
        self.ask_model(prompt, prefix, deltas).await
    }

    async fn ask_model(
        &self,
        prompt: &Prompt<'_>,
        prefix: &mut Prefix,
        deltas: &mut Deltas<'_>,
    ) -> Result<Reply, ModelError> {
        let body = self.wire.body(prompt, prefix);
        let sent_bytes = body.len();
        let answer = self.send(Method::POST, &self.wire.path(prompt.model), body, prompt.model).await?;
        body::read(answer, self.wire.reply(prompt), sent_bytes, deltas).await
    }

    /// The first model that the server lists, for servers that are named without one.
    async fn find_model(&self) -> Result<String, ModelError> {
        let mut answer = self.send(Method::GET, self.wire.models_path(), Segments::new(Vec::new()), "").await?;
        let list = answer.explanation().await;
        body::first_model(&list, self.address.host())
    }

    /// Sends a request. An answer that is not a success becomes a failure.
    async fn send(&self, method: Method, path: &str, body: Segments, model: &str) -> Result<Answer, ModelError> {
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = self.address.with_path(path)?;
        *request.headers_mut() = self.headers.clone();
        let mut answer = self.client.send(request).await?;
        if answer.status.is_success() {
            return Ok(answer);
        }
        let body = answer.explanation().await;
        let Self { key_name, has_key, .. } = self;
        let asked = Asked { host: self.address.host(), model, key_name, has_key: *has_key };
        Err(failure::from_status(answer.status, &answer.headers, &body, SystemTime::now(), &asked))
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

impl Model for Api {
    fn respond<'a>(
        &'a self,
        prompt: &'a Prompt<'a>,
        prefix: &'a mut Prefix,
        deltas: &'a mut Deltas<'a>,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move { self.ask(prompt, prefix, deltas).await.map_err(|error| self.redact(error)) })
    }
}
