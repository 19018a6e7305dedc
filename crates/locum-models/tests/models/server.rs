//! A server that answers with scripted bytes: it drips, cuts and breaks answers exactly where a test says.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// What the server does after it has read a request.
#[derive(Clone)]
pub(crate) enum Act {
    /// Sends bytes.
    Send(Vec<u8>),
    /// Closes the connection.
    Close,
    /// Waits until the client closes the connection, then tells.
    AwaitClose,
}

/// A request as it arrived.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    /// Which connection brought it, from 0.
    pub(crate) connection: usize,
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) received: mpsc::UnboundedReceiver<Received>,
    /// One message for each connection that the client closed during [`Act::AwaitClose`].
    pub(crate) closed: mpsc::UnboundedReceiver<()>,
}

impl Server {
    /// A server that answers one request after the other with these scripts, on however many connections.
    pub(crate) async fn start(scripts: Vec<Vec<Act>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let scripts = Arc::new(Mutex::new(VecDeque::from(scripts)));
        let (tell_received, received) = mpsc::unbounded_channel();
        let (tell_closed, closed) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            for connection in 0.. {
                let (stream, _) = listener.accept().await.unwrap();
                let scripts = Arc::clone(&scripts);
                let (tell_received, tell_closed) = (tell_received.clone(), tell_closed.clone());
                tokio::spawn(serve(stream, connection, scripts, tell_received, tell_closed));
            }
        });
        Self { address, received, closed }
    }

    pub(crate) fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }
}

async fn serve(
    mut stream: TcpStream,
    connection: usize,
    scripts: Arc<Mutex<VecDeque<Vec<Act>>>>,
    received: mpsc::UnboundedSender<Received>,
    closed: mpsc::UnboundedSender<()>,
) {
    while let Some((head, body)) = read_request(&mut stream).await {
        // A test that does not look at its requests has dropped the receiver.
        drop(received.send(Received { head, body, connection }));
        let script = scripts.lock().unwrap().pop_front().expect("a request that no script answers");
        for act in script {
            match act {
                // A client that has gone away is what some tests are about.
                Act::Send(bytes) => drop(stream.write_all(&bytes).await),
                Act::Close => return,
                Act::AwaitClose => {
                    while stream.read(&mut [0; 64]).await.is_ok_and(|bytes| bytes > 0) {}
                    return closed.send(()).unwrap_or_default();
                }
            }
        }
    }
}

/// A request's head and body; none when the client has closed the connection.
async fn read_request(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap();
    let length = header(&head, "content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some((head, body))
}

/// A header of a request.
pub(crate) fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (field, value) = line.split_once(':')?;
        field.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// A whole answer.
pub(crate) fn answer(status: u16, headers: &str, body: &str) -> Vec<Act> {
    let head = format!("HTTP/1.1 {status} Status\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
    vec![Act::Send([head.as_bytes(), body.as_bytes()].concat())]
}

/// The head of an event stream.
pub(crate) fn stream_head() -> Vec<u8> {
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec()
}

/// One piece of a stream. The client receives pieces as they are cut here.
pub(crate) fn piece(bytes: &[u8]) -> Vec<u8> {
    if bytes.is_empty() {
        return Vec::new();
    }
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

/// The regular end of a stream.
pub(crate) const END: &[u8] = b"0\r\n\r\n";

/// A stream in these pieces, with its regular end.
pub(crate) fn stream(pieces: &[&[u8]]) -> Vec<Act> {
    let mut bytes = stream_head();
    bytes.extend(pieces.iter().flat_map(|bytes| piece(bytes)));
    bytes.extend_from_slice(END);
    vec![Act::Send(bytes)]
}

/// A stream in these pieces, after which the connection breaks.
pub(crate) fn broken_stream(pieces: &[&[u8]]) -> Vec<Act> {
    let mut bytes = stream_head();
    bytes.extend(pieces.iter().flat_map(|bytes| piece(bytes)));
    vec![Act::Send(bytes), Act::Close]
}
