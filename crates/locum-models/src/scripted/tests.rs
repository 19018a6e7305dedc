//! What a script says, as a caller of the model sees it.

use std::sync::Arc;

use locum_core::ids::AgentName;
use locum_core::transcript::{Message, ToolSpec, ToolUse};
use serde_json::json;

use super::*;

type Answered = (Result<Reply, ModelError>, Vec<String>);

async fn ask(model: &Scripted, agent: &str, call: u32) -> Answered {
    let agent = AgentName::parse(agent).unwrap();
    let tools: Arc<[ToolSpec]> = Arc::new([]);
    let messages = [Message::User("count the files".to_owned())];
    let prompt = Prompt {
        agent: &agent,
        task: "count the files",
        model: "scripted",
        system: "system",
        messages: &messages,
        notice: None,
        tools: &tools,
        tool_use: ToolUse::Allowed,
        max_output_tokens: None,
        temperature: None,
        effort: None,
        call,
    };
    let mut shown = Vec::new();
    let mut prefix = Prefix::default();
    let mut deltas = |delta: Delta<'_>| {
        shown.push(match delta {
            Delta::Text(text) => text.to_owned(),
            Delta::ToolCall { name } => format!("<{name}>"),
            Delta::Alive | Delta::Held { .. } => "<alive>".to_owned(),
        });
    };
    let answer = model.respond(&prompt, &mut prefix, &mut deltas).await;
    (answer, shown)
}

fn one(reply: &serde_json::Value) -> Scripted {
    Scripted::parse(&json!({"agents": {"*": [reply]}}).to_string()).unwrap()
}

#[tokio::test]
async fn a_text_is_filled_in_streamed_and_counted() {
    let (answer, shown) = ask(&one(&json!({"text": "Done: {{task}}!"})), "a", 0).await;
    let reply = answer.unwrap();
    assert_eq!(reply.text, "Done: count the files!");
    assert_eq!(reply.stop, Stop::End);
    assert!(shown.len() > 1, "{shown:?}");
    assert_eq!(shown.concat(), reply.text);
    // 6 characters of system prompt and 15 of task; 22 of answer.
    assert_eq!(reply.tokens, TokenCount { input: 6, output: 6, ..TokenCount::default() });
}

#[tokio::test]
async fn tool_calls_have_ids_that_are_unique_within_the_task() {
    let call = json!({"text": "looking", "tool_calls": [{"name": "ls", "input": {"path": "."}}, {"name": "tree"}]});
    let model = Scripted::parse(&json!({"agents": {"*": [call, call]}}).to_string()).unwrap();
    let (first, shown) = ask(&model, "a", 0).await;
    let (second, _) = ask(&model, "a", 1).await;
    let (first, second) = (first.unwrap(), second.unwrap());
    let ids: Vec<&str> = first.tool_calls.iter().chain(&second.tool_calls).map(|call| call.id.as_str()).collect();
    assert_eq!(ids, ["call_0_0", "call_0_1", "call_1_0", "call_1_1"]);
    assert_eq!(first.tool_calls[0].input, json!({"path": "."}));
    assert_eq!(first.tool_calls[1].input, json!({}));
    assert_eq!(first.stop, Stop::ToolUse);
    assert_eq!(first.text, "looking");
    assert_eq!(shown.concat(), "looking<ls><tree>");
}

#[tokio::test]
async fn usage_and_stop_are_reported_as_written() {
    let usage = json!({"input_tokens": 900, "output_tokens": 12, "cache_read_tokens": 3, "cache_write_tokens": 4});
    let (answer, _) = ask(&one(&json!({"text": "half", "stop": "length", "usage": usage})), "a", 0).await;
    let reply = answer.unwrap();
    assert_eq!(reply.stop, Stop::Length);
    assert_eq!(reply.tokens, TokenCount { input: 900, output: 12, cache_read: 3, cache_write: 4 });
    let (answer, _) = ask(&one(&json!({"text": "I may not.", "stop": "refused"})), "a", 0).await;
    assert_eq!(answer.unwrap().stop, Stop::Refused("I may not.".to_owned()));
}

#[tokio::test]
async fn a_list_is_found_by_name_then_by_star_and_ends() {
    let model = Scripted::new().agent("a", [Say::text("one"), Say::text("two")]).agent("*", [Say::text("any")]);
    assert_eq!(ask(&model, "a", 1).await.0.unwrap().text, "two");
    assert_eq!(ask(&model, "b", 0).await.0.unwrap().text, "any");
    let ended = ask(&model, "a", 2).await.0.unwrap_err();
    assert_eq!(ended, ModelError::new(FailureKind::BadRequest, "script ended"));
    assert!(ask(&model, "a", u32::MAX).await.0.is_err());
    let model = Scripted::new().agent("a", []).agent("b", []);
    let error = ask(&model, "c", 0).await.0.unwrap_err();
    assert_eq!(error.message, "the script has no replies for agent c; it has some for: a, b");
    let error = ask(&Scripted::new(), "c", 0).await.0.unwrap_err();
    assert_eq!(error.message, "the script has no replies for agent c; it has none at all");
}

#[tokio::test]
async fn each_kind_of_error_is_that_failure() {
    for (kind, expected) in [
        ("rate_limit", FailureKind::RateLimit),
        ("overloaded", FailureKind::Overloaded),
        ("server", FailureKind::Server),
        ("network", FailureKind::Network),
        ("auth", FailureKind::Auth),
        ("bad_request", FailureKind::BadRequest),
        ("not_found", FailureKind::NotFound),
        ("context_overflow", FailureKind::ContextOverflow),
        ("cut_stream", FailureKind::CutStream),
        ("malformed", FailureKind::Malformed),
    ] {
        let entry = json!({"error": {"kind": kind, "message": "told so", "retry_after_ms": 20}});
        let error = ask(&one(&entry), "a", 0).await.0.unwrap_err();
        assert_eq!((error.kind, error.message.as_str()), (expected, "told so"));
        assert_eq!(error.retry_after, Some(Duration::from_millis(20)), "{kind}");
        assert!(!ask(&one(&json!({"error": {"kind": kind}})), "a", 0).await.0.unwrap_err().message.is_empty());
    }
}

#[tokio::test]
async fn a_cut_stream_says_half_and_keeps_it() {
    let (answer, shown) = ask(&one(&json!({"text": "zwölf Wörter", "error": {"kind": "cut_stream"}})), "a", 0).await;
    let error = answer.unwrap_err();
    assert_eq!(error.partial.as_deref(), Some("zwölf "));
    assert_eq!(shown, ["zwölf "]);
    let (answer, shown) = ask(&Scripted::new().agent("a", [Say::error(FailureKind::CutStream, "")]), "a", 0).await;
    assert_eq!((answer.unwrap_err().partial, shown), (None, Vec::new()));
}

#[tokio::test(start_paused = true)]
async fn a_delay_is_kept_on_the_clock_of_the_test() {
    let model = one(&json!({"text": "late", "delay_ms": 3_600_000}));
    let started = tokio::time::Instant::now();
    assert_eq!(ask(&model, "a", 0).await.0.unwrap().text, "late");
    assert_eq!(started.elapsed().as_secs(), 3600);
}

#[tokio::test(start_paused = true)]
async fn what_hangs_or_takes_forever_ends_only_when_it_is_dropped() {
    for entry in [json!({"error": {"kind": "hang"}}), json!({"text": "x", "delay_ms": u64::MAX})] {
        let model = one(&entry);
        let waited = tokio::time::timeout(Duration::from_secs(3600), ask(&model, "a", 0)).await;
        assert!(waited.is_err(), "{entry}");
    }
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let entries = [
        (r#"{"tetx": "x"}"#, "agents.x[1]: unknown field `tetx`"),
        (r#"{}"#, "agents.x[1]: a reply has `text`, `tool_calls` or `error`"),
        (r#"{"text": 1}"#, "agents.x[1]: invalid type: integer `1`, expected a string"),
        (r#"{"tool_calls": []}"#, "agents.x[1]: `tool_calls` is empty"),
        (r#"{"tool_calls": [{"nam": "ls"}]}"#, "agents.x[1]: unknown field `nam`"),
        (r#"{"tool_calls": [{"name": "ls"}], "error": {"kind": "auth"}}"#, "agents.x[1]: a reply is an error or"),
        (r#"{"error": {"kind": "gone"}}"#, "agents.x[1]: unknown variant `gone`, expected one of `rate_limit`"),
        (
            r#"{"error": {"kind": "auth"}, "text": "x"}"#,
            "agents.x[1]: of all errors only `cut_stream` and `hang` have `text`",
        ),
        (r#"{"error": {"kind": "auth"}, "stop": "end"}"#, "agents.x[1]: an error has no `stop`"),
        (r#"{"text": "x", "stop": "tool_use"}"#, "agents.x[1]: unknown variant `tool_use`"),
        (r#"{"text": "x", "delay_ms": 1e300}"#, "agents.x[1]: invalid type: floating point"),
        (r#"{"text": "x", "delay_ms": -1}"#, "agents.x[1]: invalid value: integer `-1`"),
        (r#"{"text": "x", "usage": {"input_tokens": 1, "cost": 2}}"#, "agents.x[1]: unknown field `cost`"),
    ];
    let whole =
        entries.map(|(entry, problem)| (format!(r#"{{"agents": {{"x": [{{"text": ""}}, {entry}]}}}}"#), problem));
    let files = [
        ("", "script: EOF while parsing"),
        ("{}", "script: missing field `agents`"),
        (r#"{"agents": {}, "agent": {}}"#, "script: unknown field `agent`"),
        (r#"{"agents": {"x": {}}}"#, "agents.x: an agent has a list of replies"),
        (r#"{"agents": {"x": [{"text": "x", "delay_ms": NaN}]}}"#, "script: expected value at line 1 column 45"),
    ];
    for (text, expected) in whole
        .iter()
        .map(|(text, problem)| (text.as_str(), problem))
        .chain(files.iter().map(|(text, problem)| (*text, problem)))
    {
        let said = Scripted::parse(text).unwrap_err().to_string();
        assert!(said.starts_with(expected), "{text}\n{said}");
    }
}

#[test]
fn the_builder_writes_what_a_file_says() {
    let file = r#"{"agents": {"a": [
        {"tool_calls": [{"name": "ls", "input": {}}], "text": "x", "delay_ms": 5},
        {"error": {"kind": "server", "message": "m", "retry_after_ms": 7}},
        {"error": {"kind": "hang"}},
        {"text": "y", "stop": "length", "usage": {"output_tokens": 2}}
    ]}}"#;
    let built = Scripted::new().agent(
        "a",
        [
            Say::calls([("ls", json!({}))]).with_text("x").after(Duration::from_millis(5)),
            Say::error(FailureKind::Server, "m").retry_after(Duration::from_millis(7)),
            Say::hang(),
            Say::text("y").stopped(Stop::Length).using(TokenCount { output: 2, ..TokenCount::default() }),
        ],
    );
    assert_eq!(Scripted::parse(file).unwrap(), built);
}
