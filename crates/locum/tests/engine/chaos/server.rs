//! A model server that fails as it is told to. It lives in the test's own runtime, so that the paused clock is its
//! clock too: hours of silence take no time.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::shape::{Shape, TURNS};

/// What the server does with a request that it fails.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// Sends a head and a body with its length.
    Answer { status: u16, headers: &'static str, body: String },
    /// Sends the head of an event stream.
    Head,
    /// Sends a piece of a stream, cut wherever it is cut.
    Piece(Vec<u8>),
    /// Ends a stream as it should be ended.
    End,
    /// Says nothing more, and keeps the connection.
    Hang,
    /// Shows that it lives every few seconds, for ever.
    PingForEver,
    /// Closes the connection.
    Close,
}

/// When a turn fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// At the first attempt alone.
    Once,
    /// At every attempt.
    Always,
}

/// What fails, and when.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    pub(crate) turns: RangeInclusive<usize>,
    pub(crate) when: When,
    pub(crate) acts: Vec<Act>,
}

/// A server under way.
pub(crate) struct Server {
    address: SocketAddr,
    /// Attempts of each turn.
    attempts: Arc<Mutex<BTreeMap<usize, usize>>>,
}

impl Server {
    /// A server that answers a conversation of three turns in a shape, except for this.
    pub(crate) async fn start(shape: Shape, fault: Option<Fault>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let attempts = Arc::<Mutex<BTreeMap<usize, usize>>>::default();
        let noted = Arc::clone(&attempts);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, shape, fault.clone(), Arc::clone(&noted)));
            }
        });
        Self { address, attempts }
    }

    pub(crate) fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The same address, as if it spoke TLS.
    pub(crate) fn secure_url(&self) -> String {
        format!("https://{}/v1", self.address)
    }

    /// How often a turn was asked for.
    pub(crate) fn attempts(&self, turn: usize) -> usize {
        self.attempts.lock().unwrap().get(&turn).copied().unwrap_or_default()
    }
}

async fn serve(
    mut stream: TcpStream,
    shape: Shape,
    fault: Option<Fault>,
    attempts: Arc<Mutex<BTreeMap<usize, usize>>>,
) {
    // Whoever goes away in the middle is what some cases are about.
    let Some(body) = read_request(&mut stream, shape).await else { return };
    let turn = turn_of(&body);
    let attempt = {
        let mut attempts = attempts.lock().unwrap();
        let attempt = attempts.entry(turn).or_default();
        *attempt += 1;
        *attempt
    };
    let fails = |fault: &Fault| fault.turns.contains(&turn) && (fault.when == When::Always || attempt == 1);
    let acts = match fault.filter(fails) {
        Some(fault) => fault.acts,
        None => shape.whole(turn.min(TURNS)),
    };
    for act in acts {
        if perform(act, &mut stream, shape).await.is_none() {
            return;
        }
    }
}

/// Does one thing; none when nothing can follow it.
async fn perform(act: Act, stream: &mut TcpStream, shape: Shape) -> Option<()> {
    let bytes = match act {
        Act::Answer { status, headers, body } => {
            let head = format!("HTTP/1.1 {status} Status\r\nConnection: close\r\n{headers}");
            format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
        }
        Act::Head => b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\
                       Transfer-Encoding: chunked\r\n\r\n"
            .to_vec(),
        Act::Piece(bytes) => piece(&bytes),
        Act::End => b"0\r\n\r\n".to_vec(),
        Act::Hang => {
            while stream.read(&mut [0; 64]).await.is_ok_and(|bytes| bytes > 0) {}
            return None;
        }
        Act::PingForEver => {
            while stream.write_all(&piece(shape.ping().as_bytes())).await.is_ok() {
                tokio::time::sleep(Duration::from_secs(15)).await;
            }
            return None;
        }
        Act::Close => return None,
    };
    stream.write_all(&bytes).await.ok()
}

fn piece(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

/// The first byte of a connection that is to be secret.
const TLS_HANDSHAKE: u8 = 22;

async fn read_request(stream: &mut TcpStream, shape: Shape) -> Option<Value> {
    let mut head = vec![stream.read_u8().await.ok()?];
    if head == [TLS_HANDSHAKE] {
        // Whoever expects TLS here hears something else.
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.ok();
        return None;
    }
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    assert!(head.starts_with(&format!("post /v1{} http/1.1\r\n", shape.path())), "{head}");
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a request has a length");
    let mut body = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut body).await.ok()?;
    Some(serde_json::from_slice(&body).unwrap())
}

/// Which turn a request is for, from 1: one more than the model has answered.
fn turn_of(body: &Value) -> usize {
    let messages = body["messages"].as_array().unwrap();
    messages.iter().filter(|message| message["role"] == "assistant").count() + 1
}
