//! A model's API that fails, seen from `locum run`: a failure is said, and never becomes a success.

use std::net::TcpListener;

use serde_json::{Value, json};

use crate::home::Home;
use crate::model_server::{Answer, ModelServer};

const KEY: &str = "sk-test-0123456789";

fn home_at(base_url: &str) -> Home {
    let mut home = Home::new();
    home.agent("plain", "tools: think", "You are plain.");
    home.set("OPENAI_API_KEY", KEY);
    home.set("OPENAI_BASE_URL", base_url);
    home
}

/// What `run` says when the API gives these answers, with its exit code and how often the API was asked.
fn run(answers: impl IntoIterator<Item = Answer>) -> (Value, i32, usize) {
    let server = ModelServer::start(answers);
    let home = home_at(&server.base_url());
    let (answer, code) = home.answer(&["run", "plain", "x"]);
    (answer, code, server.received().len())
}

#[test]
fn what_cannot_succeed_is_asked_once_and_fails() {
    let cases = [
        Answer::error(401, "invalid_api_key", "Incorrect API key provided"),
        Answer::error(403, "permission_denied", "not for you"),
        Answer::error(404, "model_not_found", "no such model"),
        Answer::error(400, "invalid_request_error", "a field is wrong"),
        Answer::error(400, "context_length_exceeded", "too long"),
        Answer::error(429, "insufficient_quota", "pay first"),
    ];
    for case in cases {
        let (answer, code, requests) = run([case.clone()]);
        assert_eq!((answer["status"].as_str(), code, requests), (Some("failed"), 1, 1), "{case:?}: {answer}");
        assert_eq!((&answer["reason"], &answer["result"]), (&json!("model"), &Value::Null), "{answer}");
        assert!(answer["error"].as_str().unwrap().starts_with("Model API error: "), "{answer}");
    }
}

#[test]
fn what_may_pass_is_asked_again() {
    let cases = [
        Answer::Status(429, "Retry-After: 0\r\n", "{}".to_owned()),
        Answer::error(429, "rate_limit_exceeded", "slower"),
        Answer::error(500, "server_error", "oops"),
        Answer::Status(502, "Content-Type: text/html\r\n", "<html>Bad gateway</html>".to_owned()),
        Answer::error(503, "overloaded", "later"),
        Answer::Cut("half an ans".to_owned()),
        Answer::Status(200, "Content-Type: text/event-stream\r\n", String::new()),
        Answer::Status(200, "Content-Type: text/html\r\n", "<html>Log in</html>".to_owned()),
    ];
    for case in cases {
        let (answer, code, requests) = run([case.clone(), Answer::text("whole")]);
        assert_eq!((answer["status"].as_str(), code), (Some("completed"), 0), "{case:?}: {answer}");
        assert_eq!((&answer["result"], requests), (&json!("whole"), 2), "{case:?}");
        assert_eq!(answer["turns_used"], 1, "a call that failed is no turn of its own");
    }
}

#[test]
fn an_answer_that_is_cut_every_time_is_no_answer() {
    let (answer, code, requests) = run((0..6).map(|_| Answer::Cut("half an ans".to_owned())));
    assert_eq!((answer["status"].as_str(), code, requests), (Some("failed"), 1, 6), "{answer}");
    assert_eq!((&answer["reason"], &answer["partial_result"]), (&json!("model"), &json!("half an ans")));
    assert!(answer["error"].as_str().unwrap().starts_with("Model API error: "), "{answer}");
}

#[test]
fn a_server_that_is_not_there_is_said_so() {
    // Whoever closes a port knows that nobody listens on it.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let home = home_at(&format!("http://{address}/v1"));
    let (answer, code) = home.answer(&["run", "plain", "x"]);
    assert_eq!((answer["status"].as_str(), code), (Some("failed"), 1), "{answer}");
    assert!(answer["error"].as_str().unwrap().starts_with("Model API error: "), "{answer}");
    let log = String::from_utf8(home.output(&["logs", "t_01"]).stdout).unwrap();
    assert_eq!(log.matches("the model failed").count(), 6, "{log}");
}
