//! What every kind of failure becomes.

use std::time::Duration;

use locum_core::task::event::FailureKind;
use locum_models::http::{Endpoint, HttpClient, Proxy, Timeouts};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::asking::{ask, client, endpoint};
use crate::openai_chat::{DONE, ask_server, chat, event, finish, model, text, usage};
use crate::server::{Act, END, Server, answer, piece, stream, stream_head};

#[tokio::test]
async fn every_status_has_its_kind() {
    let overflow = r#"{"error": {"message": "too long", "code": "context_length_exceeded"}}"#;
    let overflow_in_words = r#"{"error": {"message": "This model's maximum context length is 10 tokens."}}"#;
    let local_overflow = r#"{"error": {"code": 400, "message": "x", "type": "exceed_context_size_error"}}"#;
    let quota = r#"{"error": {"message": "You exceeded your quota.", "code": "insufficient_quota"}}"#;
    let rate = r#"{"error": {"message": "Slow down.", "type": "requests", "code": "rate_limit_exceeded"}}"#;
    let model = r#"{"error": {"message": "no such model", "code": "model_not_found"}}"#;
    let cases = [
        (301, "", FailureKind::BadRequest),
        (400, "", FailureKind::BadRequest),
        (400, r#"{"error": "wrong"}"#, FailureKind::BadRequest),
        (400, overflow, FailureKind::ContextOverflow),
        (400, overflow_in_words, FailureKind::ContextOverflow),
        (400, local_overflow, FailureKind::ContextOverflow),
        (400, model, FailureKind::NotFound),
        (401, "", FailureKind::Auth),
        (402, "", FailureKind::Auth),
        (403, "", FailureKind::Auth),
        (404, model, FailureKind::NotFound),
        (404, "404 page not found", FailureKind::NotFound),
        (408, "", FailureKind::Timeout),
        (413, "", FailureKind::ContextOverflow),
        (418, "", FailureKind::BadRequest),
        (422, r#"{"detail": [{"msg": "field required"}]}"#, FailureKind::BadRequest),
        (429, rate, FailureKind::RateLimit),
        (429, "", FailureKind::RateLimit),
        (429, quota, FailureKind::Auth),
        (500, "", FailureKind::Server),
        (500, r#"{"error": {"message": "context size exceeded"}}"#, FailureKind::ContextOverflow),
        (502, "<html>Bad gateway</html>", FailureKind::Server),
        (503, r#"{"error": {"message": "Loading model", "code": 503}}"#, FailureKind::Overloaded),
        (504, "", FailureKind::Server),
        (520, "", FailureKind::Server),
        (529, "", FailureKind::Overloaded),
    ];
    for (status, body, kind) in cases {
        let (actual, _) = ask_server(answer(status, "", body)).await;
        let error = actual.unwrap_err();
        assert_eq!(error.kind, kind, "{status} {body}");
        assert!(error.message.starts_with(&format!("HTTP {status} from 127.0.0.1:")), "{}", error.message);
        assert_eq!(error.retry_after, None, "{status} {body}");
    }
}

/// The message of a failure, without the server's port.
async fn message(status: u16, headers: &str, body: &str, change: impl FnOnce(&mut Endpoint)) -> String {
    let server = Server::start(vec![answer(status, headers, body)]).await;
    let mut endpoint = endpoint(server.base_url());
    change(&mut endpoint);
    let model = chat(client(Timeouts::default()), endpoint).unwrap();
    let error = ask(&model).await.0.unwrap_err();
    error.message.replace(&server.address.to_string(), "HOST")
}

#[tokio::test]
async fn messages_say_what_to_do() {
    let keep = |_: &mut Endpoint| ();
    let body = |message: &str| json!({"error": {"message": message}}).to_string();
    let cases = [
        (
            message(401, "", &body("Wrong key."), keep).await,
            "HTTP 401 from HOST: Wrong key.; check the key in SOME_API_KEY",
        ),
        (
            message(401, "", &body("Who?"), |endpoint| endpoint.key = None).await,
            "HTTP 401 from HOST: Who?; no key is set: set SOME_API_KEY",
        ),
        (
            message(403, "", "", |endpoint| endpoint.key = Some(String::new().into())).await,
            "HTTP 403 from HOST; no key is set: set SOME_API_KEY",
        ),
        (
            message(404, "", "", keep).await,
            "HTTP 404 from HOST; check the model's name, `some-model`, and the base URL",
        ),
        (
            message(307, "Location: https://elsewhere.example/\r\n", "", keep).await,
            "HTTP 307 from HOST; it points to https://elsewhere.example/: set the base URL to where the API is",
        ),
        (message(502, "", " <!doctype html>…", keep).await, "HTTP 502 from HOST: an HTML page instead of an answer"),
        (message(400, "", r#"[{"error": {"message": "in a list"}}]"#, keep).await, "HTTP 400 from HOST: in a list"),
        (
            message(400, "", "{\"detail\":\"two\\n\\u001b[31m lines\"}", keep).await,
            "HTTP 400 from HOST: two [31m lines",
        ),
    ];
    for (actual, expected) in cases {
        assert_eq!(actual, expected);
    }
    let long = message(400, "", &body(&"ä".repeat(5000)), keep).await;
    assert_eq!(long, format!("HTTP 400 from HOST: {}…", "ä".repeat(300)));
}

#[tokio::test]
async fn a_secret_is_never_repeated() {
    let body = json!({"error": {"message": "Wrong: sk-secret-key, gateway-secret"}}).to_string();
    let message = message(401, "", &body, |endpoint| {
        endpoint.headers.push(("X-Gateway-Key".to_owned(), "gateway-secret".to_owned().into()));
        assert!(!format!("{endpoint:?}").contains("secret-key"));
    })
    .await;
    assert_eq!(message, "HTTP 401 from HOST: Wrong: [secret], [secret]; check the key in SOME_API_KEY");
}

#[tokio::test]
async fn an_asked_wait_is_kept_where_another_attempt_makes_sense() {
    let cases = [
        (429, "Retry-After: 7\r\n", Some(Duration::from_secs(7))),
        (503, "Retry-After: 1.5\r\n", Some(Duration::from_millis(1500))),
        (429, "retry-after-ms: 20\r\n", Some(Duration::from_millis(20))),
        (429, "Retry-After: Fri, 15 May 2015 15:34:21 GMT\r\n", Some(Duration::ZERO)),
        (429, "Retry-After: soon\r\n", None),
        (400, "Retry-After: 7\r\n", None),
    ];
    for (status, headers, wait) in cases {
        let (actual, _) = ask_server(answer(status, headers, "")).await;
        assert_eq!(actual.unwrap_err().retry_after, wait, "{status} {headers}");
    }
}

#[tokio::test]
async fn an_error_inside_a_stream_has_its_kind() {
    let error = |error: Value| json!({ "error": error });
    let cases = [
        (error(json!({"message": "Slow.", "type": "requests", "code": "rate_limit_exceeded"})), FailureKind::RateLimit),
        (error(json!({"message": "Down.", "code": 502})), FailureKind::Server),
        (error(json!({"message": "Busy.", "type": "overloaded_error"})), FailureKind::Overloaded),
        (error(json!({"message": "Bad.", "type": "invalid_request_error"})), FailureKind::BadRequest),
        (error(json!({"message": "Context size exceeded."})), FailureKind::ContextOverflow),
        (error(json!({"message": "You exceeded.", "code": "insufficient_quota"})), FailureKind::Auth),
        (error(json!("Something.")), FailureKind::Server),
    ];
    for (error, kind) in cases {
        let body = [text("Half"), format!("event: error\n{}", event(&error))].concat();
        let (actual, _) = ask_server(stream(&[body.as_bytes()])).await;
        let actual = actual.unwrap_err();
        assert_eq!((actual.kind, actual.partial.as_deref()), (kind, Some("Half")), "{error}");
        assert!(actual.message.starts_with("the API reports an error: "), "{}", actual.message);
    }
    let null = event(&json!({"error": null, "choices": [{"delta": {"content": "Fine"}, "finish_reason": "stop"}]}));
    let (actual, _) = ask_server(stream(&[null.as_bytes()])).await;
    assert_eq!(actual.unwrap().text, "Fine");
}

#[tokio::test]
async fn answers_that_make_no_sense() {
    let cases: [(&str, FailureKind); 7] = [
        ("", FailureKind::Malformed),
        (" \r\n", FailureKind::Malformed),
        ("<!DOCTYPE html><html></html>", FailureKind::Malformed),
        ("data: {\"choices\": 7}\n\n", FailureKind::Malformed),
        ("data: hello\n\n", FailureKind::Malformed),
        ("data: [DONE", FailureKind::CutStream),
        (": ping\n\n: ping\n\n", FailureKind::CutStream),
    ];
    for (body, kind) in cases {
        for script in [stream(&[body.as_bytes()]), answer(200, "Content-Type: text/html\r\n", body)] {
            let (actual, _) = ask_server(script).await;
            assert_eq!(actual.unwrap_err().kind, kind, "{body:?}");
        }
    }
}

#[tokio::test]
async fn a_stream_that_is_done_before_the_model_stopped_is_no_reply() {
    for begun in [text("Half"), String::new()] {
        let body = [begun.clone(), usage(), DONE.to_owned()].concat();
        let actual = ask_server(stream(&[body.as_bytes()])).await.0.unwrap_err();
        assert_eq!(actual.kind, FailureKind::CutStream);
        assert_eq!(actual.partial.is_some(), !begun.is_empty());
    }
}

#[tokio::test]
async fn a_server_that_cannot_be_reached() {
    // Bound and dropped: nobody listens there.
    let address = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let error = ask(&model(format!("http://{address}/v1"))).await.0.unwrap_err();
    assert_eq!(error.kind, FailureKind::Network);
    assert!(error.message.contains("refused") && error.message.contains("is the server running"), "{}", error.message);

    let error = ask(&model("http://no-such-host.invalid/v1".to_owned())).await.0.unwrap_err();
    assert_eq!(error.kind, FailureKind::Network);
    assert!(error.message.starts_with("could not reach no-such-host.invalid: "), "{}", error.message);

    let (actual, _) = ask_server(vec![Act::Close]).await;
    assert_eq!(actual.unwrap_err().kind, FailureKind::Network, "closed before the head of an answer");
}

#[tokio::test]
async fn a_server_that_does_not_speak_tls() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let garbage = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        stream
    };
    let model = model(format!("https://{address}/v1"));
    let ((actual, _), _stream) = tokio::join!(ask(&model), garbage);
    let error = actual.unwrap_err();
    assert_eq!(error.kind, FailureKind::Network);
    assert!(error.message.contains("InvalidContentType") || error.message.contains("corrupt"), "{}", error.message);
}

#[tokio::test]
async fn each_wait_has_an_end() {
    let short = Duration::from_millis(50);
    let long = Timeouts::default();
    let begun = [stream_head(), piece(text("Half").as_bytes())].concat();
    let cases = [
        ("no head", Timeouts { first_byte: short, ..long }, vec![Act::AwaitClose], None),
        ("no body", Timeouts { first_byte: short, ..long }, vec![Act::Send(stream_head()), Act::AwaitClose], None),
        ("a pause", Timeouts { idle: short, ..long }, vec![Act::Send(begun.clone()), Act::AwaitClose], Some("Half")),
        ("no words", Timeouts { silence: short, ..long }, vec![Act::Send(begun), Act::AwaitClose], Some("Half")),
    ];
    for (name, timeouts, script, partial) in cases {
        let mut server = Server::start(vec![script]).await;
        let model = chat(client(timeouts), endpoint(server.base_url())).unwrap();
        let error = ask(&model).await.0.unwrap_err();
        assert_eq!(
            (error.kind, error.partial.as_deref()),
            (FailureKind::Timeout, partial),
            "{name}: {}",
            error.message
        );
        assert!(error.message.contains("50 ms"), "{name}: {}", error.message);
        server.closed.recv().await.expect("the connection is closed");
    }
}

#[tokio::test]
async fn what_breaks_after_the_reply_does_not_matter() {
    let begun = [stream_head(), piece([text("Whole"), finish("stop")].concat().as_bytes())].concat();
    let timeouts = Timeouts { idle: Duration::from_millis(50), ..Timeouts::default() };
    for act in [Act::Close, Act::AwaitClose, Act::Send(b"not a length\r\n".to_vec()), Act::Send(END.to_vec())] {
        let server = Server::start(vec![vec![Act::Send(begun.clone()), act]]).await;
        let model = chat(client(timeouts), endpoint(server.base_url())).unwrap();
        assert_eq!(ask(&model).await.0.unwrap().text, "Whole");
    }
}

#[test]
fn addresses_and_headers_that_cannot_be_are_refused_at_once() {
    let client = client(Timeouts::default());
    for base_url in ["", "localhost:8080", "api.openai.com/v1", "ftp://host/v1", "http://", "https://ho st/v1"] {
        let outcome = chat(client.clone(), endpoint(base_url.to_owned()));
        assert_eq!(outcome.unwrap_err().kind, FailureKind::BadRequest, "{base_url}");
    }
    for (name, value) in [("a b", "x"), ("a", "x\ny")] {
        let headers = vec![(name.to_owned(), value.to_owned().into())];
        let endpoint = Endpoint { headers, ..endpoint("http://localhost/v1".to_owned()) };
        assert_eq!(chat(client.clone(), endpoint).unwrap_err().kind, FailureKind::BadRequest, "{name}");
    }
}

#[tokio::test]
async fn a_proxy_of_another_kind_is_refused_rather_than_ignored() {
    let proxy = Proxy { https_proxy: Some("socks5://localhost:1080".to_owned()), no_proxy: None };
    let client = std::sync::Arc::new(HttpClient::new(Timeouts::default(), &proxy));
    let model = chat(client, endpoint("https://api.example/v1".to_owned())).unwrap();
    let error = ask(&model).await.0.unwrap_err();
    assert_eq!(error.kind, FailureKind::BadRequest);
    assert!(error.message.contains("localhost:1080"), "{}", error.message);
}
