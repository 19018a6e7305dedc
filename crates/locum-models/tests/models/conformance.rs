//! One suite for every protocol: what a server says means the same, whatever words it uses.

mod damaged;
mod requests;
pub(crate) mod speaker;

use std::sync::Arc;

use locum_core::limits::REPLY_BYTES_MAX;
use locum_core::task::event::FailureKind;
use locum_core::transcript::{Reply, Stop, ToolCall};
use locum_core::usage::TokenCount;
use locum_models::ModelError;
use locum_models::api::Api;
use locum_models::http::Timeouts;
use serde_json::{Value, json};

use self::speaker::{ALL, Ending, Say, Speaker, event};
use crate::asking::{ask, client, endpoint};
use crate::server::{Act, Server, answer, broken_stream, header, piece, stream, stream_head};

async fn ask_server(speaker: &Speaker, script: Vec<Act>) -> (Result<Reply, ModelError>, String) {
    let server = Server::start(vec![script]).await;
    ask(&speaker.model(&server)).await
}

/// A call: its id, name and input.
type Call = (&'static str, &'static str, Value);

fn reply(speaker: &Speaker, text: &str, calls: &[Call], stop: Stop) -> Reply {
    let call =
        |(id, name, input): &Call| ToolCall { id: (*id).to_owned(), name: (*name).to_owned(), input: input.clone() };
    let tool_calls = calls.iter().map(call).collect();
    Reply { text: text.to_owned(), tool_calls, stop, tokens: speaker.tokens, opaque: None }
}

const READ: Say = Say::Call("x", "read", &["{\"path\"", ":\"ä🦀\"}"]);
const LOOK: Say = Say::Call("y", "look", &["{}"]);

type Case = (&'static str, Vec<Say>, Ending, &'static str, Vec<Call>, Stop);

/// What a reply means, whatever the protocol: what is said, how it ends, and the text, calls and stop that it becomes.
fn cases() -> Vec<Case> {
    let read: Call = ("x", "read", json!({"path": "ä🦀"}));
    let look: Call = ("y", "look", json!({}));
    let (text, more) = (Say::Text("Grüß 🦀 "), Say::Text("\"dich\"\n"));
    vec![
        ("text", vec![text, more], Ending::Stop, "Grüß 🦀 \"dich\"\n", vec![], Stop::End),
        ("nothing", vec![], Ending::Stop, "", vec![], Stop::End),
        ("empty text", vec![Say::Text("")], Ending::Stop, "", vec![], Stop::End),
        ("a call", vec![READ], Ending::Stop, "", vec![read.clone()], Stop::ToolUse),
        ("text and calls", vec![text, READ, LOOK], Ending::Stop, "Grüß 🦀 ", vec![read.clone(), look], Stop::ToolUse),
        ("the limit", vec![text], Ending::Length, "Grüß 🦀 ", vec![], Stop::Length),
        ("the limit after a call", vec![READ], Ending::Length, "", vec![read], Stop::Length),
        ("noise", vec![Say::Noise, text, Say::Noise], Ending::Stop, "Grüß 🦀 ", vec![], Stop::End),
    ]
}

#[tokio::test]
async fn what_is_said_means_the_same_in_every_protocol() {
    for speaker in &ALL {
        for (name, says, ending, text, calls, stop) in cases() {
            let body = speaker.reply(&says, ending);
            let (actual, shown) = ask_server(speaker, stream(&[body.as_bytes()])).await;
            assert_eq!(actual, Ok(reply(speaker, text, &calls, stop)), "{} {name}", speaker.protocol);
            let names: String = calls.iter().map(|(_, name, _)| format!("[{name}]")).collect();
            assert_eq!(shown.replace('.', ""), format!("{text}{names}"), "{} {name}", speaker.protocol);
            assert!(shown.contains('.'), "{} {name}: signs of life", speaker.protocol);
        }
    }
}

#[tokio::test]
async fn a_filter_is_a_refusal_and_its_calls_are_not_made() {
    for speaker in &ALL {
        for says in [vec![Say::Text("Hm")], vec![Say::Text("Hm"), READ]] {
            let body = speaker.reply(&says, Ending::Filter);
            let actual = ask_server(speaker, stream(&[body.as_bytes()])).await.0.unwrap();
            assert!(matches!(&actual.stop, Stop::Refused(why) if !why.is_empty()), "{}: {actual:?}", speaker.protocol);
            assert_eq!((actual.text.as_str(), actual.tool_calls.len()), ("Hm", 0), "{}", speaker.protocol);
        }
    }
}

#[tokio::test]
async fn a_call_that_the_output_limit_cut_is_never_returned() {
    for speaker in ALL.iter().filter(|speaker| !speaker.has_whole_calls) {
        for cut in [&["{"] as &[&str], &["{\"path\":\"/etc"], &["{\"a\":{}"], &["1"], &[]] {
            let says = [READ, Say::Call("y", "look", cut)];
            let body = speaker.reply(&says, Ending::Length);
            let actual = ask_server(speaker, stream(&[body.as_bytes()])).await.0;
            let expected = reply(speaker, "", &[("x", "read", json!({"path": "ä🦀"}))], Stop::Length);
            assert_eq!(actual, Ok(expected), "{} {cut:?}", speaker.protocol);
        }
    }
}

#[tokio::test]
async fn arguments_that_are_not_json_are_handed_on_for_the_model_to_read() {
    for speaker in ALL.iter().filter(|speaker| !speaker.has_whole_calls) {
        let body = speaker.reply(&[Say::Call("x", "read", &["{oops"])], Ending::Stop);
        let actual = ask_server(speaker, stream(&[body.as_bytes()])).await.0;
        assert_eq!(actual, Ok(reply(speaker, "", &[("x", "read", json!("{oops"))], Stop::ToolUse)));
    }
}

#[tokio::test]
async fn tokens_are_estimated_where_a_server_does_not_count() {
    for speaker in &ALL {
        let body = speaker.events(&[Say::Text("abcdefgh")], Ending::Stop, false).concat();
        let body = body.replace("\"input_tokens\":6", "\"input_tokens\":0");
        let body =
            body.replace("_input_tokens\":4", "_input_tokens\":0").replace("_input_tokens\":2", "_input_tokens\":0");
        let mut server = Server::start(vec![stream(&[body.as_bytes()])]).await;
        let actual = ask(&speaker.model(&server)).await.0.unwrap();
        let sent = server.received.recv().await.unwrap().body.len() as u64;
        assert_eq!(actual.tokens.input, sent.div_ceil(4), "{}", speaker.protocol);
        assert!(actual.tokens.output >= 2 && actual.tokens.output < 200, "{}", speaker.protocol);
        let cached = TokenCount { input: 0, output: 0, ..actual.tokens };
        assert_eq!(cached, TokenCount::default(), "{}", speaker.protocol);
    }
}

/// Where a stream is cut: in and around every letter of several bytes and every end of an event, and here and there.
fn places(stream: &str) -> Vec<usize> {
    let bytes = stream.as_bytes();
    let is_delicate = |at: usize| {
        let near = &bytes[at.saturating_sub(3)..(at + 3).min(bytes.len())];
        !near.is_ascii() || near.windows(2).any(|pair| pair == b"\n\n")
    };
    (1..bytes.len()).filter(|at| at % 11 == 0 || is_delicate(*at)).collect()
}

/// A reply with everything that can be split: letters of several bytes, escapes, two tool calls.
const RICH: [Say; 5] = [Say::Text("ä→🦀"), Say::Noise, Say::Text("\n\"b\""), READ, LOOK];

#[tokio::test]
async fn a_stream_may_be_split_at_every_byte() {
    for speaker in &ALL {
        let body = speaker.reply(&RICH, Ending::Stop);
        let bytes = body.as_bytes();
        let mut scripts: Vec<Vec<Act>> =
            places(&body).into_iter().map(|at| stream(&[&bytes[..at], &bytes[at..]])).collect();
        scripts.push(stream(&bytes.chunks(1).collect::<Vec<_>>()));
        let count = scripts.len();
        let server = Server::start(scripts).await;
        let model = speaker.model(&server);
        let calls = [("x", "read", json!({"path": "ä🦀"})), ("y", "look", json!({}))];
        let expected = reply(speaker, "ä→🦀\n\"b\"", &calls, Stop::ToolUse);
        for at in 0..count {
            assert_eq!(ask(&model).await.0.as_ref(), Ok(&expected), "{} split {at}", speaker.protocol);
        }
    }
}

#[tokio::test]
async fn a_stream_that_is_cut_anywhere_gives_all_of_the_reply_or_none() {
    for speaker in &ALL {
        let body = speaker.reply(&RICH, Ending::Stop);
        let bytes = body.as_bytes();
        let whole_from = speaker.whole_from(&body);
        let scripts =
            places(&body).into_iter().flat_map(|at| [broken_stream(&[&bytes[..at]]), stream(&[&bytes[..at]])]);
        let server = Server::start(scripts.collect()).await;
        let model = speaker.model(&server);
        for at in places(&body) {
            for how in ["broken", "ended"] {
                let (actual, shown) = ask(&model).await;
                let place = format!("{} {how} at {at}", speaker.protocol);
                match actual {
                    Ok(actual) => {
                        assert!(at >= whole_from, "{place}: the model had not ended its reply");
                        assert_eq!((actual.text.as_str(), actual.tool_calls.len()), ("ä→🦀\n\"b\"", 2), "{place}");
                    }
                    Err(error) => {
                        assert!(at < whole_from, "{place}: the reply was whole");
                        assert_eq!(error.kind, FailureKind::CutStream, "{place}");
                        let said = error.partial.unwrap_or_default();
                        assert!("ä→🦀\n\"b\"".starts_with(&said), "{place}");
                        assert!(shown.replace('.', "").starts_with(&said), "{place}");
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn an_error_inside_a_stream_is_a_failure_with_its_kind() {
    for speaker in &ALL {
        let events = speaker.events(&[Say::Text("Half")], Ending::Stop, true);
        let begun = events[..2].concat();
        let body = [begun, event(&(speaker.overloaded)())].concat();
        let error = ask_server(speaker, stream(&[body.as_bytes()])).await.0.unwrap_err();
        assert_eq!(error.kind, FailureKind::Overloaded, "{}: {}", speaker.protocol, error.message);
        assert!(error.message.starts_with("the API reports an error: "), "{}", error.message);
    }
}

/// A status and a body, as each of the vendors writes it, and what that means.
#[tokio::test]
async fn every_status_has_its_kind() {
    let error =
        |kind: &str, message: &str| json!({"error": {"type": kind, "status": kind, "message": message}}).to_string();
    let cases = [
        (400, error("invalid_request_error", "bad"), FailureKind::BadRequest),
        (400, error("invalid_request_error", "prompt is too long: 3 tokens > 2 maximum"), FailureKind::ContextOverflow),
        (
            400,
            error("INVALID_ARGUMENT", "The input token count (3) exceeds the maximum number of tokens allowed (2)."),
            FailureKind::ContextOverflow,
        ),
        (400, error("INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."), FailureKind::Auth),
        (400, error("invalid_request_error", "Your credit balance is too low to access the API."), FailureKind::Auth),
        (401, error("authentication_error", "no"), FailureKind::Auth),
        (403, error("permission_error", "no"), FailureKind::Auth),
        (404, error("not_found_error", "no such model"), FailureKind::NotFound),
        (408, String::new(), FailureKind::Timeout),
        (413, error("request_too_large", "too large"), FailureKind::ContextOverflow),
        (429, error("rate_limit_error", "slow down"), FailureKind::RateLimit),
        (429, error("RESOURCE_EXHAUSTED", "quota"), FailureKind::RateLimit),
        (500, error("api_error", "oops"), FailureKind::Server),
        (502, "<html>".to_owned(), FailureKind::Server),
        (503, error("UNAVAILABLE", "busy"), FailureKind::Overloaded),
        (504, String::new(), FailureKind::Server),
        (529, error("overloaded_error", "busy"), FailureKind::Overloaded),
    ];
    for speaker in &ALL {
        for (status, body, kind) in &cases {
            let error = ask_server(speaker, answer(*status, "", body)).await.0.unwrap_err();
            assert_eq!(error.kind, *kind, "{} {status} {body}", speaker.protocol);
        }
    }
}

#[tokio::test]
async fn a_wait_in_the_body_of_an_error_is_kept() {
    let details = json!([{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}]);
    let body = json!({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "details": details}}).to_string();
    for speaker in &ALL {
        let error = ask_server(speaker, answer(429, "", &body)).await.0.unwrap_err();
        assert_eq!(error.retry_after, Some(std::time::Duration::from_millis(34_500)), "{}", speaker.protocol);
        let error = ask_server(speaker, answer(429, "Retry-After: 7\r\n", &body)).await.0.unwrap_err();
        assert_eq!(error.retry_after, Some(std::time::Duration::from_secs(7)), "{}", speaker.protocol);
    }
}

#[tokio::test]
async fn answers_that_make_no_sense_are_failures() {
    let cases: [(&str, FailureKind); 7] = [
        ("", FailureKind::Malformed),
        (" \r\n", FailureKind::Malformed),
        ("<!DOCTYPE html><html></html>", FailureKind::Malformed),
        ("{}", FailureKind::Malformed),
        ("{\"type\":", FailureKind::Malformed),
        ("data: hello\n\n", FailureKind::Malformed),
        (": ping\n\n: ping\n\n", FailureKind::CutStream),
    ];
    for speaker in &ALL {
        for (body, kind) in cases {
            for script in [stream(&[body.as_bytes()]), answer(200, "Content-Type: text/html\r\n", body)] {
                let actual = ask_server(speaker, script).await.0;
                assert_eq!(actual.map_err(|error| error.kind), Err(kind), "{} {body:?}", speaker.protocol);
            }
        }
    }
}

#[tokio::test]
async fn a_reply_of_more_than_ten_mebibytes_is_refused() {
    const PART: usize = REPLY_BYTES_MAX / 16;
    let part: &'static str = Box::leak("x".repeat(PART).into_boxed_str());
    for speaker in &ALL {
        let events = speaker.events(&[Say::Text(part)], Ending::Stop, true);
        let says = events.iter().position(|event| event.contains(part)).unwrap();
        let (begin, rest) = events.split_at(says);
        let body = [begin.concat(), rest[0].repeat(17), rest[1..].concat()].concat();
        let error = ask_server(speaker, stream(&[body.as_bytes()])).await.0.unwrap_err();
        assert_eq!(error.kind, FailureKind::TooLarge, "{}", speaker.protocol);
        assert!(error.partial.unwrap().len() >= REPLY_BYTES_MAX, "{}", speaker.protocol);
    }
}

#[tokio::test]
async fn dropping_a_request_closes_its_connection() {
    for speaker in &ALL {
        let events = speaker.events(&[Say::Text("Half"), Say::Text("more")], Ending::Stop, true);
        let begun = [stream_head(), piece(events[..2].concat().as_bytes())].concat();
        for script in [vec![Act::AwaitClose], vec![Act::Send(begun), Act::AwaitClose]] {
            let mut server = Server::start(vec![script]).await;
            let model: Arc<Api> = Arc::new(speaker.model(&server));
            let asking = tokio::spawn(async move { ask(&model).await.0.is_ok() });
            server.received.recv().await.expect("the request has arrived");
            asking.abort();
            server.closed.recv().await.expect("the connection is closed");
            assert!(asking.await.unwrap_err().is_cancelled());
        }
    }
}

#[tokio::test]
async fn a_model_that_falls_silent_is_given_up() {
    let timeouts = Timeouts { idle: std::time::Duration::from_millis(50), ..Timeouts::default() };
    for speaker in &ALL {
        let events = speaker.events(&[Say::Text("Half")], Ending::Stop, true);
        let begun = [stream_head(), piece(events[0].as_bytes())].concat();
        let mut server = Server::start(vec![vec![Act::Send(begun), Act::AwaitClose]]).await;
        let model = Api::new(
            client(timeouts),
            endpoint(format!("http://{}{}", server.address, speaker.base)),
            speaker.protocol,
        )
        .unwrap();
        assert_eq!(ask(&model).await.0.unwrap_err().kind, FailureKind::Timeout, "{}", speaker.protocol);
        server.closed.recv().await.expect("the connection is closed");
    }
}

#[tokio::test]
async fn a_request_carries_its_length_and_its_key_where_the_protocol_wants_it() {
    for speaker in &ALL {
        let body = speaker.reply(&[Say::Text("Yes")], Ending::Stop);
        let mut server = Server::start(vec![stream(&[body.as_bytes()])]).await;
        ask(&speaker.model(&server)).await.0.unwrap();
        let received = server.received.recv().await.unwrap();
        assert!(received.head.starts_with(speaker.request_line), "{}", received.head);
        assert_eq!(header(&received.head, "content-length"), Some(received.body.len().to_string().as_str()));
        let (name, value) = speaker.key_header;
        assert_eq!(header(&received.head, name), Some(value), "{}", speaker.protocol);
        let keys = ["authorization", "x-api-key", "x-goog-api-key"]
            .iter()
            .filter(|name| header(&received.head, name).is_some());
        assert_eq!(keys.count(), 1, "{}", received.head);
    }
}
