//! Asking servers which models they have. Nothing is asked unless a user says so, and nobody waits long for a server
//! that is not there.

use std::time::Duration;

use futures_util::future::join_all;
use hyper::header::{AUTHORIZATION, HeaderValue};
use hyper::{Request, Uri};
use locum_core::task::event::FailureKind;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

use crate::http::{Answer, HttpClient, Proxy, Segments, Timeouts};
use crate::model::ModelError;

/// A server that runs answers such a question at once; one that is not there must not hold up the others.
const PATIENCE: Timeouts = Timeouts {
    connect: Duration::from_millis(800),
    first_byte: Duration::from_secs(2),
    idle: Duration::from_secs(2),
    silence: Duration::from_secs(2),
};

/// Bytes of a list of models: the longest of a public service has some hundred kilobytes.
const LIST_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A server to ask.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    /// The provider's name.
    pub(crate) provider: String,
    /// Its address, with the version of its API.
    pub(crate) url: String,
    /// Its key, if it has one.
    pub(crate) key: Option<SecretString>,
}

/// What a server said.
#[derive(Debug, Clone)]
pub struct Probed {
    /// The provider's name.
    pub provider: String,
    /// Its address.
    pub url: String,
    /// Its models, by id, or why they are not known.
    pub models: Result<Vec<String>, ModelError>,
}

#[derive(Deserialize)]
struct List {
    data: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    id: String,
}

/// Asks all servers at once.
pub(crate) async fn probe(servers: Vec<Server>, proxy: &Proxy) -> Vec<Probed> {
    let client = HttpClient::new(PATIENCE, proxy);
    let client = &client;
    let asked = servers.into_iter().map(|server| async move {
        let models = ask(client, &server).await;
        Probed { provider: server.provider, url: server.url, models }
    });
    join_all(asked).await
}

async fn ask(client: &HttpClient, server: &Server) -> Result<Vec<String>, ModelError> {
    let told = |why: String| ModelError::new(FailureKind::BadRequest, why);
    let address = format!("{}/models", server.url.trim_end_matches('/'));
    let uri: Uri = address.parse().map_err(|_| told(format!("`{}` is not an address", server.url)))?;
    if uri.host().is_none() {
        return Err(told(format!("`{}` is not an address", server.url)));
    }
    let mut request = Request::new(Segments::new(Vec::new()));
    *request.uri_mut() = uri;
    if let Some(key) = &server.key {
        let value = format!("Bearer {}", key.expose_secret().trim());
        let mut value = HeaderValue::from_str(&value).map_err(|_| told("its key cannot be sent".to_owned()))?;
        value.set_sensitive(true);
        request.headers_mut().insert(AUTHORIZATION, value);
    }
    let mut answer = client.send(request).await?;
    if !answer.status.is_success() {
        return Err(ModelError::new(FailureKind::Server, format!("it answered {}", answer.status)));
    }
    let body = read(&mut answer).await?;
    let list: List = serde_json::from_slice(&body)
        .map_err(|_| ModelError::new(FailureKind::Malformed, "its answer is not a list of models"))?;
    Ok(list.data.into_iter().map(|item| item.id).collect())
}

async fn read(answer: &mut Answer) -> Result<Vec<u8>, ModelError> {
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await? {
        body.extend_from_slice(&chunk);
        if body.len() > LIST_BYTES_MAX {
            let message = format!("its list of models is longer than {LIST_BYTES_MAX} bytes");
            return Err(ModelError::new(FailureKind::TooLarge, message));
        }
    }
    Ok(body)
}
