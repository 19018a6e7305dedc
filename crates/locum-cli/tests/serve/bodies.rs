//! Bodies: their size, their form and their pace. Whoever sends half of one holds nobody else up.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use locum::limits::REQUEST_BYTES_MAX;
use serde_json::json;

use crate::home::Home;
use crate::served::{Served, answered};

/// Far above what an answer takes, far below every time limit of the server.
const PROMPTLY: Duration = Duration::from_secs(5);

/// A request that is refused for its content only, in so many bytes.
fn body_of(length: usize) -> Vec<u8> {
    let mut body = json!({"tool": "subagent", "input": {"action": "nothing"}}).to_string().into_bytes();
    body.resize(length, b' ');
    body
}

#[test]
fn a_body_at_the_limit_is_read_and_one_beyond_it_is_not() {
    let home = Home::new();
    let server = Served::start(&home, "offline");
    let answer = server.post("/v1/requests", "", &body_of(REQUEST_BYTES_MAX));
    assert_eq!(answer.json()["error"], "INVALID_ACTION", "{answer:?}");
    // Only the head is sent: what says that it is too long is not waited for.
    let length = REQUEST_BYTES_MAX + 1;
    let head = server.head("POST", "/v1/requests");
    let head = format!("{head}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n");
    assert_eq!(server.send(head.as_bytes()).status, 413);
    // One that does not say how long it is, is read up to the limit.
    let head = server.head("POST", "/v1/requests");
    let mut bytes = format!("{head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n{length:x}\r\n")
        .into_bytes();
    bytes.extend(body_of(length));
    let mut stream = server.connect();
    // The server may answer and close before everything is written.
    stream.write_all(&bytes).ok();
    assert_eq!(answered(stream).status, 413);
}

#[test]
fn a_body_that_makes_no_sense_is_refused_with_the_reason() {
    let home = Home::new();
    let server = Served::start(&home, "offline");
    for (body, reason) in [
        ("", "JSON object"),
        ("[\"subagent\", {}]", "JSON object"),
        ("{\"tool\": \"subagent\"", "EOF"),
        ("{\"tool\": \"subagent\"}", "missing field `input`"),
        ("{\"tool\": \"subagent\", \"input\": {}, \"more\": 1}", "unknown field `more`"),
        ("{\"tool\": 1, \"input\": {}}", "expected a string"),
    ] {
        let answer = server.post("/v1/requests", "", body.as_bytes());
        let said = answer.json();
        assert_eq!((answer.status, said["error"].as_str()), (400, Some("INVALID_REQUEST")), "{body}");
        assert!(said["message"].as_str().unwrap().contains(reason), "{body}: {said}");
    }
    assert_eq!(server.post("/v1/requests", "", b"{\"tool\": \"\xff\"}").status, 400);
    let head = server.head("POST", "/v1/requests");
    let plain = format!("{head}Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{{}}");
    assert_eq!(server.send(plain.as_bytes()).status, 415);
}

#[test]
fn half_requests_hold_nobody_up() {
    let home = Home::new();
    let server = Served::start(&home, "offline");
    let head = server.head("POST", "/v1/requests");
    let halves = [
        String::new(),
        "POST /v1/req".to_owned(),
        head.clone(),
        format!("{head}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{\"tool\""),
    ];
    let open: Vec<TcpStream> = (0..100)
        .map(|place| {
            let mut stream = server.connect();
            stream.write_all(halves[place % halves.len()].as_bytes()).unwrap();
            stream
        })
        .collect();
    let started = Instant::now();
    for _ in 0..10 {
        assert_eq!(server.subagent(&json!({"action": "status"})), json!({"tasks": []}));
    }
    assert!(started.elapsed() < PROMPTLY, "{:?}", started.elapsed());
    drop(open);
}
