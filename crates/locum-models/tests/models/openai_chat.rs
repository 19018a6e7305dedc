//! What is understood of what Chat Completions servers send.

use std::sync::Arc;

use locum_core::ids::AgentName;
use locum_core::task::event::FailureKind;
use locum_core::transcript::{Message, Prompt, Reply, Stop, ToolCall, ToolSpec, ToolUse};
use locum_core::usage::TokenCount;
use locum_models::api::Api;
use locum_models::http::{Endpoint, HttpClient, Proxy, Timeouts};
use locum_models::providers::Protocol;
use locum_models::{Delta, Model as _, ModelError, Prefix};
use serde_json::{Value, json};

use crate::server::{Act, Server, answer, broken_stream, stream};

pub(crate) fn endpoint(base_url: String) -> Endpoint {
    let key = Some("sk-secret-key".to_owned().into());
    Endpoint { base_url, key, key_name: "OPENAI_API_KEY".to_owned(), headers: Vec::new() }
}

pub(crate) fn client(timeouts: Timeouts) -> Arc<HttpClient> {
    Arc::new(HttpClient::new(timeouts, &Proxy::default()))
}

pub(crate) fn chat(client: Arc<HttpClient>, endpoint: Endpoint) -> Result<Api, ModelError> {
    Api::new(client, endpoint, Protocol::OpenaiChat)
}

pub(crate) fn model(base_url: String) -> Api {
    chat(client(Timeouts::default()), endpoint(base_url)).unwrap()
}

/// What a model answered and what was shown meanwhile: text as it is, `[name]` for a tool call, `.` for a sign of life.
pub(crate) async fn ask(model: &Api) -> (Result<Reply, ModelError>, String) {
    let messages = [Message::User("Do it.".to_owned())];
    ask_with(model, &messages, &mut Prefix::default()).await
}

/// What a server answers for a model of this name.
pub(crate) async fn ask_model(model: &Api, id: &str) -> Result<Reply, ModelError> {
    let messages = [Message::User("Do it.".to_owned())];
    ask_named(model, id, &messages, &mut Prefix::default()).await.0
}

pub(crate) async fn ask_with(
    model: &Api,
    messages: &[Message],
    prefix: &mut Prefix,
) -> (Result<Reply, ModelError>, String) {
    ask_named(model, "some-model", messages, prefix).await
}

async fn ask_named(
    model: &Api,
    id: &str,
    messages: &[Message],
    prefix: &mut Prefix,
) -> (Result<Reply, ModelError>, String) {
    let agent = AgentName::parse("tester").unwrap();
    let tools: Arc<[ToolSpec]> = Arc::new([]);
    let prompt = Prompt {
        agent: &agent,
        task: "Do it.",
        model: id,
        system: "Be brief.",
        messages,
        notice: None,
        tools: &tools,
        tool_use: ToolUse::Allowed,
        max_output_tokens: Some(100),
        temperature: None,
        effort: None,
        call: 0,
    };
    let mut shown = String::new();
    let mut deltas = |delta: Delta<'_>| match delta {
        Delta::Text(text) => shown.push_str(text),
        Delta::ToolCall { name } => shown.push_str(&format!("[{name}]")),
        Delta::Alive => shown.push('.'),
    };
    let reply = model.respond(&prompt, prefix, &mut deltas).await;
    (reply, shown)
}

/// Asks a server that gives one answer.
pub(crate) async fn ask_server(script: Vec<Act>) -> (Result<Reply, ModelError>, String) {
    let server = Server::start(vec![script]).await;
    ask(&model(server.base_url())).await
}

pub(crate) fn event(value: &Value) -> String {
    format!("data: {value}\n\n")
}

pub(crate) fn delta(delta: &Value) -> String {
    event(&json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]}))
}

pub(crate) fn text(content: &str) -> String {
    delta(&json!({"content": content}))
}

fn call(call: &Value) -> String {
    delta(&json!({"tool_calls": [call]}))
}

pub(crate) fn finish(reason: &str) -> String {
    event(&json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}))
}

pub(crate) fn usage() -> String {
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 4}});
    event(&json!({"choices": [], "usage": usage}))
}

pub(crate) const DONE: &str = "data: [DONE]\n\n";

const TOKENS: TokenCount = TokenCount { input: 6, output: 5, cache_read: 4, cache_write: 0 };

/// A tool call: its id, name and input.
type Call<'a> = (&'a str, &'a str, Value);

fn reply(text: &str, calls: &[Call<'_>], stop: Stop) -> Reply {
    let call = |(id, name, input): &Call<'_>| ToolCall {
        id: (*id).to_owned(),
        name: (*name).to_owned(),
        input: input.clone(),
    };
    let tool_calls = calls.iter().map(call).collect();
    Reply { text: text.to_owned(), tool_calls, stop, tokens: TOKENS, opaque: None }
}

/// Sends these events, a count of tokens and the end, and compares the reply.
async fn check(name: &str, events: &[String], expected: Reply) {
    let body = [events.concat(), usage(), DONE.to_owned()].concat();
    let (actual, _) = ask_server(stream(&[body.as_bytes()])).await;
    assert_eq!(actual, Ok(expected), "{name}");
}

#[tokio::test]
async fn text_is_shown_as_it_comes() {
    let body = [delta(&json!({"role": "assistant", "content": ""})), text("Grüß"), text(" \"dich\"\n"), finish("stop")];
    let body = [body.concat(), usage(), DONE.to_owned()].concat();
    let (actual, shown) = ask_server(stream(&[body.as_bytes()])).await;
    assert_eq!(actual, Ok(reply("Grüß \"dich\"\n", &[], Stop::End)));
    assert_eq!(shown, ".Grüß \"dich\"\n..");
}

#[tokio::test]
async fn why_a_model_stopped() {
    let cases = [
        ("stop", Stop::End),
        ("length", Stop::Length),
        ("content_filter", Stop::Refused("content filter".to_owned())),
        ("tool_calls", Stop::End),
        ("a_new_word", Stop::End),
    ];
    for (reason, stop) in cases {
        check(reason, &[text("Hm"), finish(reason)], reply("Hm", &[], stop)).await;
    }
    let refusal = [delta(&json!({"refusal": "I will "})), delta(&json!({"refusal": "not."})), finish("stop")];
    check("refusal", &refusal, reply("", &[], Stop::Refused("I will not.".to_owned()))).await;
    check("no reason, but an end", &[text("Hm")], reply("Hm", &[], Stop::End)).await;
}

/// Sends pieces of tool calls, each in an event of its own and all in one, and compares the calls.
async fn check_calls(name: &str, pieces: &[Value], expected: &[Call<'_>]) {
    for reason in ["tool_calls", "stop"] {
        let events: Vec<String> = pieces.iter().map(call).chain([finish(reason)]).collect();
        check(name, &events, reply("", expected, Stop::ToolUse)).await;
    }
    let one_event = [delta(&json!({"tool_calls": pieces})), finish("tool_calls")];
    check(name, &one_event, reply("", expected, Stop::ToolUse)).await;
}

#[tokio::test]
async fn tool_calls_are_put_together_whatever_servers_repeat_or_number() {
    let a = json!({"a": 1});
    check_calls(
        "by the book, two in parallel",
        &[
            json!({"index": 0, "id": "x", "type": "function", "function": {"name": "one", "arguments": ""}}),
            json!({"index": 0, "function": {"arguments": "{\"a\""}}),
            json!({"index": 1, "id": "y", "type": "function", "function": {"name": "two", "arguments": ""}}),
            json!({"index": 0, "function": {"arguments": ":1}"}}),
            json!({"index": 1, "function": {"arguments": "{}"}}),
        ],
        &[("x", "one", a.clone()), ("y", "two", json!({}))],
    )
    .await;
    check_calls(
        "the name in every piece",
        &[
            json!({"index": 0, "id": "x", "function": {"name": "one", "arguments": "{\"a\""}}),
            json!({"index": 0, "id": "x", "function": {"name": "one", "arguments": ":1"}}),
            json!({"index": 0, "function": {"name": "one", "arguments": "}"}}),
        ],
        &[("x", "one", a.clone())],
    )
    .await;
    check_calls(
        "the name in pieces",
        &[
            json!({"index": 0, "id": "x", "function": {"name": "read_"}}),
            json!({"index": 0, "function": {"name": "file", "arguments": "{\"a\":1}"}}),
        ],
        &[("x", "read_file", a.clone())],
    )
    .await;
    check_calls(
        "every call has the index 0",
        &[
            json!({"index": 0, "id": "x", "function": {"name": "one", "arguments": "{\"a\":1}"}}),
            json!({"index": 0, "id": "y", "function": {"name": "two", "arguments": "{}"}}),
        ],
        &[("x", "one", a.clone()), ("y", "two", json!({}))],
    )
    .await;
    check_calls(
        "indices out of order",
        &[
            json!({"index": 2, "id": "y", "function": {"name": "two", "arguments": "{}"}}),
            json!({"index": 1, "id": "x", "function": {"name": "one", "arguments": "{\"a\":1}"}}),
        ],
        &[("x", "one", a.clone()), ("y", "two", json!({}))],
    )
    .await;
    check_calls(
        "the same id twice, and none",
        &[
            json!({"index": 0, "id": "x", "function": {"name": "one", "arguments": "{}"}}),
            json!({"index": 1, "id": "x", "function": {"name": "two", "arguments": "{}"}}),
            json!({"index": 2, "id": null, "function": {"name": "two", "arguments": "{}"}}),
        ],
        &[("x", "one", json!({})), ("call_2", "two", json!({})), ("call_3", "two", json!({}))],
    )
    .await;
}

#[tokio::test]
async fn tool_calls_are_put_together_whatever_servers_leave_out() {
    let a = json!({"a": 1});
    check_calls(
        "whole calls without index and id",
        &[
            json!({"function": {"name": "one", "arguments": "{\"a\":1}"}}),
            json!({"function": {"name": "one", "arguments": "{\"a\":2}"}}),
            json!({"function": {"name": "two", "arguments": ""}}),
        ],
        &[("call_1", "one", a.clone()), ("call_2", "one", json!({"a": 2})), ("call_3", "two", json!({}))],
    )
    .await;
    check_calls(
        "pieces without index, the name in each",
        &[
            json!({"id": "", "function": {"name": "one", "arguments": "{\"a\""}}),
            json!({"id": "", "function": {"name": "one", "arguments": ":1}"}}),
        ],
        &[("call_1", "one", a.clone())],
    )
    .await;
    check_calls(
        "pieces without index and name",
        &[
            json!({"id": "x", "function": {"name": "one", "arguments": "{\"a\""}}),
            json!({"function": {"arguments": ":1}"}}),
            json!({"id": "y", "function": {"name": "two", "arguments": "{}"}}),
        ],
        &[("x", "one", a.clone()), ("y", "two", json!({}))],
    )
    .await;
    check_calls(
        "an object instead of a string, null, and what is not JSON",
        &[
            json!({"index": 0, "id": "x", "function": {"name": "one", "arguments": {"a": 1}}}),
            json!({"index": 1, "id": "y", "function": {"name": "two", "arguments": null}}),
            json!({"index": 2, "id": "z", "function": {"name": "three", "arguments": "{oops"}}),
            json!({"index": 3, "id": "n", "function": {"name": "four", "arguments": "null"}}),
        ],
        &[("x", "one", a), ("y", "two", json!({})), ("z", "three", json!("{oops")), ("n", "four", json!({}))],
    )
    .await;
}

#[tokio::test]
async fn a_function_call_of_the_older_form_is_a_tool_call() {
    let begin = delta(&json!({"function_call": {"name": "one", "arguments": "{\"a\""}}));
    let end = delta(&json!({"function_call": {"arguments": ":1}"}}));
    let expected = reply("", &[("call_1", "one", json!({"a": 1}))], Stop::ToolUse);
    check("function_call", &[begin, end, finish("function_call")], expected).await;
}

#[tokio::test]
async fn a_call_that_the_output_limit_cut_is_never_returned() {
    let first = call(&json!({"index": 0, "id": "x", "function": {"name": "one", "arguments": "{\"a\":1}"}}));
    for cut in ["", "{", "{\"path\":\"/etc", "{\"a\":{}", "1"] {
        let second = call(&json!({"index": 1, "id": "y", "function": {"name": "two", "arguments": cut}}));
        let expected = reply("", &[("x", "one", json!({"a": 1}))], Stop::Length);
        check(cut, &[first.clone(), second.clone(), finish("length")], expected).await;
        check(cut, &[second, finish("length")], reply("", &[], Stop::Length)).await;
    }
    let filtered = [first, finish("content_filter")];
    check("filter", &filtered, reply("", &[], Stop::Refused("content filter".to_owned()))).await;
}

#[tokio::test]
async fn what_says_nothing_shows_life() {
    let events = [
        ": OPENROUTER PROCESSING\n\n".to_owned(),
        delta(&json!({"reasoning_content": "Let me think"})),
        event(&json!({"object": "something.new", "payload": [1, 2]})),
        "event: ping\ndata: {}\n\n".to_owned(),
        event(&json!({"choices": [{"index": 1, "delta": {"content": "another choice"}}]})),
        text("Yes"),
        finish("stop"),
    ];
    let body = [events.concat(), usage(), DONE.to_owned()].concat();
    let (actual, shown) = ask_server(stream(&[body.as_bytes()])).await;
    assert_eq!(actual, Ok(reply("Yes", &[], Stop::End)));
    assert_eq!(shown, ".....Yes..");
}

#[tokio::test]
async fn content_may_be_a_list_of_parts() {
    let parts = json!([{"type": "thinking", "thinking": []}, {"type": "text", "text": "Yes"}]);
    check("parts", &[delta(&json!({"content": parts})), finish("stop")], reply("Yes", &[], Stop::End)).await;
}

#[tokio::test]
async fn tokens_are_estimated_where_a_server_does_not_count() {
    let zeros = event(&json!({"choices": [], "usage": {"prompt_tokens": 0, "completion_tokens": 0}}));
    for count in [String::new(), zeros] {
        let body = [text(&"x".repeat(400)), finish("stop"), count, DONE.to_owned()].concat();
        let mut server = Server::start(vec![stream(&[body.as_bytes()])]).await;
        let (actual, _) = ask(&model(server.base_url())).await;
        let sent = server.received.recv().await.unwrap().body.len() as u64;
        let expected = TokenCount { input: sent.div_ceil(4), output: 100, ..TokenCount::default() };
        assert_eq!(actual.unwrap().tokens, expected);
    }
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_understood() {
    let call = json!({"id": "x", "type": "function", "function": {"name": "one", "arguments": "{}"}});
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 4}});
    let message = json!({"role": "assistant", "content": "Ja", "tool_calls": [call]});
    let choice = json!({"index": 0, "message": message, "finish_reason": "tool_calls"});
    let body = json!({"object": "chat.completion", "choices": [choice], "usage": usage}).to_string();
    for headers in ["Content-Type: application/json\r\n", "Content-Type: text/event-stream\r\n", ""] {
        let (actual, shown) = ask_server(answer(200, headers, &body)).await;
        assert_eq!(actual, Ok(reply("Ja", &[("x", "one", json!({}))], Stop::ToolUse)));
        assert_eq!(shown, "Ja[one]");
    }
    let error = json!({"error": {"message": "no", "code": 503}}).to_string();
    let cases = [
        (error, FailureKind::Overloaded),
        (r#"{"choices":[]}"#.to_owned(), FailureKind::Malformed),
        (r#"{"choices":"#.to_owned(), FailureKind::Malformed),
    ];
    for (body, kind) in cases {
        let (actual, _) = ask_server(answer(200, "Content-Type: application/json\r\n", &body)).await;
        assert_eq!(actual.unwrap_err().kind, kind, "{body}");
    }
}

/// A reply with everything that can be split: letters of several bytes, escapes, two tool calls, a comment.
fn rich_stream() -> String {
    let one = json!({"index": 0, "id": "x", "function": {"name": "one", "arguments": "{\"a\":\"ü🦀\"}"}});
    let two = json!({"index": 1, "id": "y", "function": {"name": "two", "arguments": "{}"}});
    let events = [text("ä→🦀"), ": ping\r\n\r\n".to_owned(), text("\n\"b\""), call(&one), call(&two)];
    [events.concat(), finish("tool_calls"), usage(), DONE.to_owned()].concat()
}

fn rich_reply() -> Reply {
    reply("ä→🦀\n\"b\"", &[("x", "one", json!({"a": "ü🦀"})), ("y", "two", json!({}))], Stop::ToolUse)
}

#[tokio::test]
async fn a_stream_may_be_split_at_every_byte() {
    let body = rich_stream();
    let bytes = body.as_bytes();
    let mut scripts: Vec<Vec<Act>> = (0..=bytes.len()).map(|at| stream(&[&bytes[..at], &bytes[at..]])).collect();
    scripts.push(stream(&bytes.chunks(1).collect::<Vec<_>>()));
    let count = scripts.len();
    let server = Server::start(scripts).await;
    let model = model(server.base_url());
    for at in 0..count {
        let (actual, shown) = ask(&model).await;
        assert_eq!(actual, Ok(rich_reply()), "split at {at}");
        assert_eq!(shown, "ä→🦀.\n\"b\"[one][two]..", "split at {at}");
    }
}

#[tokio::test]
async fn a_stream_that_is_cut_anywhere_gives_all_of_the_reply_or_none() {
    let body = rich_stream();
    let bytes = body.as_bytes();
    // Without the empty line that should follow it.
    let end_of_finish = body.find(&finish("tool_calls")).unwrap() + finish("tool_calls").len() - 2;
    for at in 1..bytes.len() {
        let cut = &bytes[..at];
        let server = Server::start(vec![broken_stream(&[cut]), stream(&[cut])]).await;
        let model = model(server.base_url());
        for how in ["broken", "ended"] {
            let (actual, shown) = ask(&model).await;
            match actual {
                Ok(actual) => {
                    assert!(at >= end_of_finish, "{how} at {at}: the model had not ended its reply");
                    assert_eq!((actual.tool_calls, actual.text), (rich_reply().tool_calls, rich_reply().text));
                }
                Err(error) => {
                    assert!(at < end_of_finish, "{how} at {at}: the reply was whole");
                    assert_eq!(error.kind, FailureKind::CutStream, "{how} at {at}");
                    let said = error.partial.unwrap_or_default();
                    assert!(
                        rich_reply().text.starts_with(&said) && shown.starts_with(said.split('\n').next().unwrap())
                    );
                }
            }
        }
    }
}
