//! How requests travel: what is on the wire, which connections carry it, and what happens when nobody waits any more.

use std::sync::Arc;

use locum_core::task::event::FailureKind;
use locum_core::transcript::Message;
use locum_models::Prefix;
use locum_models::http::{Endpoint, HttpClient, Proxy, Timeouts};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::asking::{ask, client, endpoint};
use crate::openai_chat::{DONE, ask_model, ask_with, chat, finish, model, text, usage};
use crate::server::{Act, END, Server, answer, header, piece, stream, stream_head};

fn whole() -> Vec<Act> {
    stream(&[[text("Yes"), finish("stop"), usage(), DONE.to_owned()].concat().as_bytes()])
}

#[tokio::test]
async fn a_request_has_a_length_and_what_was_sent_before_is_its_beginning() {
    let mut server = Server::start(vec![whole(), whole(), whole()]).await;
    let model = model(server.base_url());
    let mut messages = vec![Message::User("Do it.".to_owned())];
    let mut prefix = Prefix::default();
    let mut previous: Vec<u8> = Vec::new();
    for turn in 0..3 {
        let reply = ask_with(&model, &messages, &mut prefix).await.0.unwrap();
        let received = server.received.recv().await.unwrap();
        assert!(received.head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{}", received.head);
        assert_eq!(header(&received.head, "content-length"), Some(received.body.len().to_string().as_str()));
        assert_eq!(header(&received.head, "transfer-encoding"), None);
        assert_eq!(header(&received.head, "authorization"), Some("Bearer sk-secret-key"));
        assert_eq!(header(&received.head, "content-type"), Some("application/json"));
        assert_eq!(received.connection, 0, "the connection is used again");
        let body: Value = serde_json::from_slice(&received.body).unwrap();
        assert_eq!(body["messages"].as_array().unwrap().len(), 2 + 2 * turn);
        assert_eq!((&body["stream"], &body["max_tokens"]), (&Value::Bool(true), &Value::from(100)));
        let constant = received.body.windows(2).rposition(|bytes| bytes == b"],").unwrap();
        assert!(received.body.starts_with(&previous));
        previous = received.body[..constant].to_vec();
        messages.extend([Message::Assistant(reply), Message::User("Go on.".to_owned())]);
    }
}

#[tokio::test]
async fn a_long_conversation_arrives_whole() {
    let mut server = Server::start(vec![whole()]).await;
    let model = model(server.base_url());
    let messages: Vec<Message> = (0..200).map(|number| Message::User(format!("{number} ä").repeat(5000))).collect();
    let mut prefix = Prefix::default();
    ask_with(&model, &messages, &mut prefix).await.0.unwrap();
    let received = server.received.recv().await.unwrap();
    let body: Value = serde_json::from_slice(&received.body).unwrap();
    let sent = body["messages"].as_array().unwrap();
    for (message, sent) in messages.iter().zip(&sent[1..]) {
        assert_eq!(*message, Message::User(sent["content"].as_str().unwrap().to_owned()));
    }
}

#[tokio::test]
async fn a_base_url_keeps_its_query_and_further_headers_are_sent() {
    let mut server = Server::start(vec![whole()]).await;
    let endpoint = Endpoint {
        key: None,
        headers: vec![("api-key".to_owned(), "abc".to_owned().into())],
        ..endpoint(format!("http://{}/openai/?version=1", server.address))
    };
    let model = chat(client(Timeouts::default()), endpoint).unwrap();
    ask(&model).await.0.unwrap();
    let head = server.received.recv().await.unwrap().head;
    assert!(head.starts_with("POST /openai/chat/completions?version=1 HTTP/1.1\r\n"), "{head}");
    assert_eq!(header(&head, "api-key"), Some("abc"));
    assert_eq!(header(&head, "authorization"), None);
}

#[tokio::test]
async fn a_server_that_is_named_without_a_model_is_asked_once_for_its_first() {
    let list = answer(200, "", r#"{"object":"list","data":[{"id":"tiny:1b"},{"id":"large:70b"}]}"#);
    let mut server = Server::start(vec![list, whole(), whole()]).await;
    let model = model(server.base_url());
    for _ in 0..2 {
        assert_eq!(ask_model(&model, "").await.unwrap().text, "Yes");
    }
    let head = server.received.recv().await.unwrap().head;
    assert!(head.starts_with("GET /v1/models HTTP/1.1\r\n"), "{head}");
    for _ in 0..2 {
        let body: Value = serde_json::from_slice(&server.received.recv().await.unwrap().body).unwrap();
        assert_eq!(body["model"], "tiny:1b");
    }
    let server = Server::start(vec![answer(200, "", r#"{"data":[]}"#)]).await;
    let error = ask_model(&self::model(server.base_url()), "").await.unwrap_err();
    assert_eq!(error.kind, FailureKind::NotFound);
    assert!(error.message.contains("lists no model"), "{}", error.message);
}

#[test]
fn certificates_are_read_at_once_or_refused_with_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ca.pem");
    let trust = |text: &str| {
        std::fs::write(&file, text).unwrap();
        HttpClient::new(Timeouts::default(), &Proxy::default()).trusting(&file).map(drop).map_err(|error| error.message)
    };
    let block = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
    assert_eq!(trust(block), Ok(()));
    for text in ["", "nothing", "-----BEGIN CERTIFICATE-----\nMAA=\n"] {
        let message = trust(text).unwrap_err();
        assert!(message.starts_with(&format!("the ca_file {}: ", file.display())), "{message}");
    }
    let missing = HttpClient::new(Timeouts::default(), &Proxy::default()).trusting(&directory.path().join("none"));
    assert_eq!(missing.unwrap_err().kind, FailureKind::BadRequest);
}

#[tokio::test]
async fn the_end_of_an_answer_is_not_waited_for_after_its_last_event() {
    let body = [stream_head(), piece([text("Yes"), finish("stop"), DONE.to_owned()].concat().as_bytes())].concat();
    let mut server = Server::start(vec![vec![Act::Send(body), Act::AwaitClose]]).await;
    assert_eq!(ask(&model(server.base_url())).await.0.unwrap().text, "Yes");
    server.closed.recv().await.expect("the connection is closed");
}

#[tokio::test]
async fn a_pooled_connection_that_the_server_has_closed_does_not_fail_a_request() {
    let last = [whole(), vec![Act::Close]].concat();
    let server = Server::start(vec![last.clone(), last.clone(), last]).await;
    let model = model(server.base_url());
    for _ in 0..3 {
        assert_eq!(ask(&model).await.0.unwrap().text, "Yes");
    }
}

#[tokio::test]
async fn requests_share_a_client_and_do_not_wait_for_each_other() {
    let server = Server::start(vec![whole(); 20]).await;
    let model = Arc::new(model(server.base_url()));
    let asking: Vec<_> = (0..20)
        .map(|_| {
            let model = Arc::clone(&model);
            tokio::spawn(async move { ask(&model).await.0.unwrap().text })
        })
        .collect();
    for asked in asking {
        assert_eq!(asked.await.unwrap(), "Yes");
    }
}

#[tokio::test]
async fn https_goes_through_the_proxy_unless_the_host_is_excepted() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let proxy = Proxy {
        https_proxy: Some(format!("http://name:pass@{address}")),
        no_proxy: Some("excepted.invalid".to_owned()),
    };
    let client = Arc::new(HttpClient::new(Timeouts::default(), &proxy));
    let refusing = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        stream.write_all(b"HTTP/1.1 403 Forbidden\r\n\r\n").await.unwrap();
        String::from_utf8(head).unwrap()
    };
    let model = chat(Arc::clone(&client), endpoint("https://api.invalid/v1".to_owned())).unwrap();
    let ((actual, _), head) = tokio::join!(ask(&model), refusing);
    assert!(head.starts_with("CONNECT api.invalid:443 HTTP/1.1\r\n"), "{head}");
    assert_eq!(header(&head, "proxy-authorization"), Some("Basic bmFtZTpwYXNz"));
    assert!(!head.contains("sk-secret-key"), "the key is for the API alone");
    let error = actual.unwrap_err();
    assert_eq!(error.kind, FailureKind::Network);
    assert!(error.message.contains("tunnel"), "{}", error.message);

    let model = chat(client, endpoint("https://excepted.invalid/v1".to_owned())).unwrap();
    let error = ask(&model).await.0.unwrap_err();
    assert!(!error.message.contains("tunnel"), "{}", error.message);
}

#[tokio::test]
async fn an_answer_may_come_byte_by_byte() {
    let body = [text("Yes, ä🦀"), finish("stop"), usage(), DONE.to_owned()].concat();
    let mut acts = vec![Act::Send(stream_head())];
    acts.extend(body.as_bytes().iter().map(|byte| Act::Send(piece(&[*byte]))));
    acts.push(Act::Send(END.to_vec()));
    let server = Server::start(vec![acts]).await;
    assert_eq!(ask(&model(server.base_url())).await.0.unwrap().text, "Yes, ä🦀");
}
