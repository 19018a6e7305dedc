//! A model's API on this machine: it speaks Chat Completions, streamed, says what a test tells it to, fails as it is
//! told, and keeps every request.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::home::until;

/// What the server does with one request.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// A final answer.
    Text(String),
    /// A call of one tool.
    Call(&'static str, Value),
    /// A status with further headers and a body.
    Status(u16, &'static str, String),
    /// The beginning of an answer, then the end of the connection.
    Cut(String),
    /// Nothing, as long as the client waits.
    Hold,
}

impl Answer {
    pub(crate) fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    /// A failure in the words of the API.
    pub(crate) fn error(status: u16, code: &str, message: &str) -> Self {
        let body = json!({"error": {"message": message, "type": code, "code": code}});
        Self::Status(status, "Content-Type: application/json\r\n", body.to_string())
    }
}

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) head: String,
    pub(crate) body: Value,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (field, value) = line.split_once(':')?;
            field.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

#[derive(Default)]
struct Shared {
    answers: VecDeque<Answer>,
    received: Vec<Received>,
}

pub(crate) struct ModelServer {
    address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
}

impl ModelServer {
    /// A server that gives these answers, one to each request.
    pub(crate) fn start(answers: impl IntoIterator<Item = Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Mutex::new(Shared { answers: answers.into_iter().collect(), received: Vec::new() }));
        let theirs = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&theirs);
                std::thread::spawn(move || serve(stream, &shared));
            }
        });
        Self { address, shared }
    }

    pub(crate) fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    pub(crate) fn answer_next(&self, answer: Answer) {
        self.shared.lock().unwrap().answers.push_back(answer);
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.shared.lock().unwrap().received.clone()
    }

    /// The requests so far, once there are so many.
    pub(crate) fn wait_for(&self, requests: usize) -> Vec<Received> {
        until("a request to the model", || Some(self.received()).filter(|received| received.len() >= requests))
    }
}

fn serve(mut stream: TcpStream, shared: &Mutex<Shared>) {
    while let Some(received) = read_request(&mut stream) {
        let answer = {
            let mut shared = shared.lock().unwrap();
            shared.received.push(received);
            shared.answers.pop_front()
        };
        let none = || Answer::error(400, "invalid_request_error", "the test expects no further request");
        let (bytes, last) = encode(answer.unwrap_or_else(none));
        // A client that has gone away is what some tests are about.
        let sent = stream.write_all(&bytes);
        match last {
            After::KeepOpen if sent.is_ok() => {}
            After::KeepOpen | After::Close => return,
            After::Hold => {
                while stream.read(&mut [0; 64]).is_ok_and(|bytes| bytes > 0) {}
                return;
            }
        }
    }
}

enum After {
    KeepOpen,
    Close,
    Hold,
}

fn read_request(stream: &mut TcpStream) -> Option<Received> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        head.extend(byte);
    }
    let head = String::from_utf8(head).unwrap();
    let mut received = Received { head, body: Value::Null };
    let mut body = vec![0; received.header("content-length").map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).ok()?;
    received.body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Some(received)
}

fn encode(answer: Answer) -> (Vec<u8>, After) {
    match answer {
        Answer::Hold => (Vec::new(), After::Hold),
        Answer::Status(status, headers, body) => {
            let length = body.len();
            let text = format!("HTTP/1.1 {status} Status\r\n{headers}Content-Length: {length}\r\n\r\n{body}");
            (text.into_bytes(), After::KeepOpen)
        }
        Answer::Text(text) => {
            (stream(&[delta(&json!({"content": text})), finish("stop")], "data: [DONE]\n\n"), After::KeepOpen)
        }
        Answer::Call(name, input) => {
            let function = json!({"name": name, "arguments": input.to_string()});
            let call = json!({"index": 0, "id": "call_1", "type": "function", "function": function});
            (
                stream(&[delta(&json!({"tool_calls": [call]})), finish("tool_calls")], "data: [DONE]\n\n"),
                After::KeepOpen,
            )
        }
        Answer::Cut(text) => {
            let whole = stream(&[delta(&json!({"content": text}))], "");
            let end = whole.len() - "0\r\n\r\n".len();
            (whole[..end].to_vec(), After::Close)
        }
    }
}

fn delta(delta: &Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn finish(reason: &str) -> Value {
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 5});
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": usage})
}

/// A stream of events in chunks, with its regular end.
fn stream(events: &[Value], last: &str) -> Vec<u8> {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut text = head.to_owned();
    for event in events.iter().map(|event| format!("data: {event}\n\n")).chain([last.to_owned()]) {
        if !event.is_empty() {
            text.push_str(&format!("{:x}\r\n{event}\r\n", event.len()));
        }
    }
    text.push_str("0\r\n\r\n");
    text.into_bytes()
}
