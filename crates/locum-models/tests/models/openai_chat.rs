//! What is understood of what Chat Completions servers send.

use std::sync::Arc;

use locum_core::task::event::FailureKind;
use locum_core::transcript::{Message, Reply, Stop, ToolCall, ToolUse};
use locum_core::usage::TokenCount;
use locum_models::api::Api;
use locum_models::http::{Endpoint, HttpClient};
use locum_models::providers::{Dialect, Protocol};
use locum_models::{ModelError, Prefix};
use serde_json::{Value, json};

use crate::asking::{self, Question, ask, ask_all, model_in, tools};
use crate::server::{Act, Server, answer, stream};

pub(crate) fn chat(client: Arc<HttpClient>, endpoint: Endpoint) -> Result<Api, ModelError> {
    Api::new(client, endpoint, Protocol::OpenaiChat)
}

pub(crate) fn model(base_url: String) -> Api {
    asking::model(Protocol::OpenaiChat, base_url)
}

/// What a server answers for a model of this name.
pub(crate) async fn ask_model(model: &Api, id: &'static str) -> Result<Reply, ModelError> {
    let messages = [Message::User("Do it.".to_owned())];
    ask_all(model, &Question { model: id, ..Question::default() }, &messages, &mut Prefix::default()).await.0
}

pub(crate) async fn ask_with(
    model: &Api,
    messages: &[Message],
    prefix: &mut Prefix,
) -> (Result<Reply, ModelError>, String) {
    ask_all(model, &Question::default(), messages, prefix).await
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

/// Asks with a tool, in a dialect, and returns the reply, what was shown and what was sent.
async fn ask_with_tools(dialect: Dialect, question: &Question, content: &str) -> (Reply, String, Value) {
    let body = [text(content), finish("stop"), usage(), DONE.to_owned()].concat();
    let mut server = Server::start(vec![stream(&[body.as_bytes()])]).await;
    let model = model_in(dialect, Protocol::OpenaiChat, server.base_url());
    let call = ToolCall { id: "x".to_owned(), name: "read".to_owned(), input: json!({"path": "a"}) };
    let earlier = Reply { tool_calls: vec![call], ..reply("", &[], Stop::ToolUse) };
    let output = locum_core::transcript::ToolOutput::ok("found");
    let messages = [
        Message::User("Do it.".to_owned()),
        Message::Assistant(earlier),
        Message::Tool { call_id: "x".to_owned(), name: "read".to_owned(), output },
    ];
    let (actual, shown) = ask_all(&model, question, &messages, &mut Prefix::default()).await;
    let sent = serde_json::from_slice(&server.received.recv().await.unwrap().body).unwrap();
    (actual.unwrap(), shown, sent)
}

#[tokio::test]
async fn a_call_in_the_text_is_a_call_where_tools_are_allowed() {
    let content = "I read it.\n<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"b\"}}\n</tool_call>";
    let mut question = Question { tools: tools(), ..Question::default() };
    let (actual, _, _) = ask_with_tools(Dialect::default(), &question, content).await;
    assert_eq!(actual, reply("I read it.", &[("call_1", "read", json!({"path": "b"}))], Stop::ToolUse));
    question.tool_use = ToolUse::Forbidden;
    let (actual, _, _) = ask_with_tools(Dialect::default(), &question, content).await;
    assert_eq!(actual, reply(content, &[], Stop::End));
}

#[tokio::test]
async fn tools_may_be_asked_for_as_a_schema() {
    let dialect = || Dialect { tools_as_schema: true, ..Dialect::default() };
    let mut question = Question { tools: tools(), ..Question::default() };
    let called = r#"{"tool": "read", "input": {"path": "b"}}"#;
    let (actual, shown, sent) = ask_with_tools(dialect(), &question, called).await;
    assert_eq!(actual, reply("", &[("call_1", "read", json!({"path": "b"}))], Stop::ToolUse));
    assert_eq!(shown.replace('.', ""), "[read]");
    let choices = &sent["response_format"]["json_schema"]["schema"]["anyOf"];
    assert_eq!(choices[0]["required"], json!(["answer"]));
    assert_eq!(choices[1]["properties"]["tool"]["const"], "read");
    assert_eq!((sent.get("tools"), sent.get("tool_choice")), (None, None));
    assert!(sent["messages"][0]["content"].as_str().unwrap().contains("read: Reads a file."));
    assert_eq!(sent["messages"][2]["content"], r#"{"input":{"path":"a"},"tool":"read"}"#);
    assert_eq!(sent["messages"][3], json!({"role": "user", "content": "Result of read:\nfound"}));

    let (actual, shown, _) = ask_with_tools(dialect(), &question, r#"{"answer": "It is there."}"#).await;
    assert_eq!(actual, reply("It is there.", &[], Stop::End));
    assert!(shown.ends_with("It is there."), "{shown}");
    let (actual, _, _) = ask_with_tools(dialect(), &question, "Plain words.").await;
    assert_eq!(actual, reply("Plain words.", &[], Stop::End));
    question.tool_use = ToolUse::Forbidden;
    let (_, _, sent) = ask_with_tools(dialect(), &question, r#"{"answer": "x"}"#).await;
    assert_eq!(sent["response_format"]["json_schema"]["schema"]["anyOf"].as_array().unwrap().len(), 1);
}
