//! The desk of a server that runs elsewhere: what `--server` makes of the command line.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST};
use hyper::{Method, Uri};
use hyper_util::rt::TokioIo;
use locum::protocol::face::CallerKind;
use locum::protocol::{Code, FaceDefaults, Refusal, wire};
use locum::settings::environment::LOCUM_TOKEN;
use locum::setup::Setup;
use locum::task::Record;
use locum::{Request, Response};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::serve::{SESSION_HEADER, Token, read_token};

/// How long a server may take to be reached.
const CONNECT_WAIT: Duration = Duration::from_secs(10);

/// Entries of a log that are asked for at once.
const RECORDS_PAGE: usize = 200;

/// A server, and the session that is worked in there.
pub(crate) struct Remote {
    /// Name and port, as they stand in the address.
    authority: String,
    token: Token,
    session: String,
}

/// What becomes of a request that its client no longer waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Abandoned {
    /// What it started goes on.
    GoesOn,
    /// What it started is cancelled.
    IsCancelled,
}

/// One page of a log.
#[derive(Deserialize)]
struct LogPage {
    records: Vec<Record>,
    #[serde(default)]
    next: Option<u64>,
}

impl Remote {
    /// The server at an address, with the token that this user has for it.
    pub(crate) fn new(address: &str, session: String, setup: &Setup) -> anyhow::Result<Self> {
        let uri: Uri = address.parse().with_context(|| format!("`{address}` is no address of a server"))?;
        ensure!(
            uri.scheme_str() == Some("http") && uri.path().trim_end_matches('/').is_empty() && uri.query().is_none(),
            "write the server's address as http://HOST:PORT, not `{address}`"
        );
        let authority = uri.authority().context("the server's address names no host")?.to_string();
        ensure!(!authority.contains('@'), "a token does not belong into the server's address; set LOCUM_TOKEN");
        Ok(Self { authority, token: find_token(setup)?, session })
    }

    /// Asks the server what a desk here would be asked.
    pub(crate) async fn handle(&self, request: Request, abandoned: Abandoned) -> Result<Response, Refusal> {
        let Request { tool, face } = request;
        let (name, input) = wire::call_of(&tool).map_err(Refusal::internal)?;
        let body = json!({"tool": name, "input": input}).to_string();
        let path = format!("/v1/requests?{}", terms(&face, abandoned));
        let answer = self.send(Method::POST, &path, body.into_bytes()).await?;
        wire::answer_to(&tool, answer).map_err(|error| unreadable(&error))
    }

    /// The log of a task.
    pub(crate) async fn log_of(&self, task_id: &str) -> Result<Vec<Record>, Refusal> {
        let (mut records, mut after) = (Vec::new(), 0);
        let task = utf8_percent_encode(task_id, NON_ALPHANUMERIC);
        loop {
            let path = format!("/v1/tasks/{task}/log?after={after}&limit={RECORDS_PAGE}");
            let page: LogPage = self.get(&path).await?;
            records.extend(page.records);
            match page.next {
                Some(next) if next > after => after = next,
                _ => return Ok(records),
            }
        }
    }

    /// What is at an address of the server.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Refusal> {
        let answer = self.send(Method::GET, path, Vec::new()).await?;
        serde_json::from_value(answer).map_err(|error| unreadable(&error))
    }

    async fn send(&self, method: Method, path: &str, body: Vec<u8>) -> Result<Value, Refusal> {
        let (status, body) = self.exchange(method, path, body).await.map_err(|error| {
            let message = format!("the server at http://{} cannot be asked: {error:#}", self.authority);
            Refusal::new(Code::Internal, message).hint("`locum serve` starts one")
        })?;
        let answer: Value = serde_json::from_slice(&body).map_err(|error| unreadable(&error))?;
        if (200..300).contains(&status) {
            return Ok(answer);
        }
        Err(serde_json::from_value(answer).unwrap_or_else(|_| {
            Refusal::new(Code::Internal, format!("the server answered {status}, and not as locum does"))
        }))
    }

    /// One request on a connection of its own.
    async fn exchange(&self, method: Method, path: &str, body: Vec<u8>) -> anyhow::Result<(u16, Bytes)> {
        let address =
            if self.authority.contains(':') { self.authority.clone() } else { format!("{}:80", self.authority) };
        let stream = tokio::time::timeout(CONNECT_WAIT, TcpStream::connect(address)).await??;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        let request = hyper::Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, &self.authority)
            .header(AUTHORIZATION, self.token.as_bearer())
            .header(CONTENT_TYPE, "application/json")
            .header(CONNECTION, "close")
            .header(SESSION_HEADER, &self.session)
            .body(Full::new(Bytes::from(body)))?;
        let asked = async move {
            let response = sender.send_request(request).await?;
            let status = response.status().as_u16();
            Ok::<_, hyper::Error>((status, response.into_body().collect().await?.to_bytes()))
        };
        // The connection ends with its only request; what went wrong with it is told by that.
        let (answer, _) = tokio::join!(asked, connection);
        Ok(answer?)
    }
}

fn terms(face: &FaceDefaults, abandoned: Abandoned) -> String {
    let mut terms = match face.caller {
        CallerKind::Model => "face=native".to_owned(),
        CallerKind::Person => "face=person".to_owned(),
    };
    if let Some(concurrency) = face.concurrency {
        terms.push_str(&format!("&concurrency={concurrency}"));
    }
    if face.strict {
        terms.push_str("&strict=true");
    }
    if abandoned == Abandoned::IsCancelled {
        terms.push_str("&abandoned=cancel");
    }
    terms
}

fn find_token(setup: &Setup) -> anyhow::Result<Token> {
    if let Some(token) = setup.environment.get(LOCUM_TOKEN) {
        return Token::parse(token).context("LOCUM_TOKEN cannot be used");
    }
    let (_, places) = setup.settings()?;
    let path = places.server_token();
    match read_token(Path::new(&path))? {
        Some(token) => Ok(token),
        None => bail!(
            "there is no token for a server: set LOCUM_TOKEN, or start `locum serve`, which makes {}",
            path.display()
        ),
    }
}

fn unreadable(error: &serde_json::Error) -> Refusal {
    Refusal::new(Code::Internal, format!("the server's answer cannot be read: {error}"))
        .hint("it may be another version of locum")
}
