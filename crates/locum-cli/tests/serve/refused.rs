//! Whom the server refuses, and that it does so before it has read what they send.

use std::io::Write as _;

use crate::home::Home;
use crate::served::{Served, answered};

/// A client that would send a megabyte, and waits for the answer to its head first.
fn refused(server: &Served, lines: &[&str]) -> u16 {
    let mut stream = server.connect();
    let head = format!("POST /v1/requests HTTP/1.1\r\n{}\r\n", lines.join("\r\n"));
    let rest = "Content-Type: application/json\r\nContent-Length: 1000000\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(rest.as_bytes()).unwrap();
    answered(stream).status
}

#[test]
fn strangers_are_refused_before_their_body_is_read() {
    let home = Home::new();
    let server = Served::start(&home, "offline");
    let other_home = Home::new();
    let other = Served::start(&other_home, "offline");
    let host = format!("Host: {}", server.address);
    let bearer = format!("Authorization: Bearer {}", server.token);
    let foreign = format!("Authorization: Bearer {}", other.token);
    let wrong = format!("Authorization: Bearer {}", "0".repeat(64));
    for (status, lines) in [
        (401, vec![host.as_str()]),
        (401, vec![&host, &wrong]),
        (401, vec![&host, &foreign]),
        (403, vec!["Host: evil.example", &bearer]),
        (403, vec![&host, "Origin: http://evil.example", &bearer]),
        (403, vec![&host, "Origin: null", &bearer]),
        (400, vec![&bearer]),
    ] {
        assert_eq!(refused(&server, &lines), status, "{lines:?}");
    }
    assert_eq!(server.get("/healthz").body, "ok\n");
    let stranger = format!("GET /healthz HTTP/1.1\r\n{host}\r\nConnection: close\r\n\r\n");
    assert_eq!(server.send(stranger.as_bytes()).status, 200);
    let stranger = format!("GET /v1/nothing HTTP/1.1\r\n{host}\r\nConnection: close\r\n\r\n");
    let answer = server.send(stranger.as_bytes());
    assert_eq!((answer.status, answer.header("www-authenticate")), (401, Some("Bearer")));
}

#[test]
fn what_is_not_there_is_said_in_json() {
    let home = Home::new();
    let server = Served::start(&home, "offline");
    for (status, method, path) in [
        (404, "GET", "/dashboard"),
        (404, "GET", "/v2/requests"),
        (405, "GET", "/v1/requests"),
        (405, "POST", "/healthz"),
    ] {
        let answer = server.send(format!("{}\r\n", server.head(method, path)).as_bytes());
        assert_eq!((answer.status, answer.json()["error"].as_str()), (status, Some("INVALID_REQUEST")), "{path}");
    }
}

#[test]
fn the_page_needs_no_token_and_says_what_it_may_load() {
    let home = Home::new();
    let server = Served::start(&home, "offline");
    let host = server.head("GET", "/").lines().find(|line| line.starts_with("Host")).unwrap().to_owned();
    for (path, kind) in
        [("/", "text/html"), ("/dashboard/app.js", "text/javascript"), ("/dashboard/style.css", "text/css")]
    {
        let answer = server.send(format!("GET {path} HTTP/1.1\r\n{host}\r\nConnection: close\r\n\r\n").as_bytes());
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        let head = answer.head.to_ascii_lowercase();
        assert!(head.contains(&format!("content-type: {kind}")), "{head}");
        assert!(head.contains("content-security-policy: default-src 'none'; script-src 'self'"), "{head}");
    }
}
