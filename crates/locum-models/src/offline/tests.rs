//! Whole conversations over a small project, with tools that are as simple as they can be.

mod project;

use std::sync::Arc;
use std::time::{Duration, Instant};

use locum_core::ids::AgentName;
use locum_core::transcript::{Message, Repeat, ToolOutput, ToolSpec};
use proptest::prelude::*;
use serde_json::json;

use self::project::Project;
use super::*;
use crate::model::Delta;

const ALL_TOOLS: &[&str] = &["grep", "find", "read", "ls"];

fn specs(names: &[&str]) -> Arc<[ToolSpec]> {
    let spec = |name: &&str| ToolSpec {
        name: (*name).to_owned(),
        description: String::new(),
        input_schema: json!({"type": "object"}),
        repeat: Repeat::Safe,
    };
    names.iter().map(spec).collect()
}

/// Asks once, with what has been said so far.
async fn ask(task: &str, messages: &[Message], tools: &[&str], tool_use: ToolUse) -> Reply {
    let agent = AgentName::parse("explore").unwrap();
    let tools = specs(tools);
    let prompt = Prompt {
        agent: &agent,
        task,
        model: "offline",
        system: "",
        messages,
        notice: None,
        tools: &tools,
        tool_use,
        max_output_tokens: None,
        temperature: None,
        effort: None,
        call: 0,
    };
    let mut said = String::new();
    let mut deltas = |delta: Delta<'_>| {
        if let Delta::Text(text) = delta {
            said.push_str(text);
        }
    };
    let mut prefix = Prefix::default();
    let reply = Offline.respond(&prompt, &mut prefix, &mut deltas).await.unwrap();
    assert_eq!(said, reply.text, "what is streamed is what is answered");
    reply
}

/// Works through a task as the engine does; the answer and how many calls it took.
async fn work(task: &str, tools: &[&str], turns_max: usize) -> (String, usize) {
    let project = Project::sample();
    let mut messages = vec![Message::User(task.to_owned())];
    for turn in 1..=turns_max {
        let tool_use = if turn == turns_max { ToolUse::Forbidden } else { ToolUse::Allowed };
        let reply = ask(task, &messages, tools, tool_use).await;
        let calls = reply.tool_calls.clone();
        if calls.is_empty() {
            assert!(reply.text.chars().count() <= 3500, "{}", reply.text.len());
            return (reply.text, turn);
        }
        assert!(calls.iter().all(|call| tools.contains(&call.name.as_str())), "{calls:?}");
        messages.push(Message::Assistant(reply));
        messages.extend(calls.into_iter().map(|call| {
            let output = project.run(&call.name, &call.input);
            Message::Tool { call_id: call.id, name: call.name, output }
        }));
    }
    panic!("no answer after {turns_max} turns");
}

fn first_place(answer: &str) -> &str {
    answer.split("\n\n").nth(1).and_then(|passage| passage.lines().next()).unwrap_or_default()
}

#[tokio::test]
async fn the_first_passage_is_the_right_one() {
    for (question, line) in [
        ("Where is the retry backoff computed?", "pub fn backoff_delay(failures: u32)"),
        ("what does max_parcel_weight do", "pub const MAX_PARCEL_WEIGHT"),
        ("How does RouteFinder decide to avoid tolls?", "pub fn avoid_tolls(mut self"),
        ("which settings file is read at startup", "/// Reads the settings file once"),
        ("Where are parcels cancelled?", "pub fn cancel_parcel"),
        ("explain ROUTE_NOT_FOUND", "pub const ROUTE_NOT_FOUND"),
        ("where does \"address is incomplete\" come from", "return Err(\"address is incomplete\""),
        ("How do I install it?", "## Install"),
        ("how is the price rounded", "def round_price"),
        ("Where is the environment variable COURIER_TOKEN read?", "std::env::var(\"COURIER_TOKEN\")"),
    ] {
        let (answer, calls) = work(question, ALL_TOOLS, 5).await;
        assert_eq!(first_place(&answer), Project::sample().place_of(line), "{question}\n{answer}");
        assert!(calls <= 4, "{question}: {calls}");
    }
}

#[tokio::test]
async fn an_answer_looks_like_this() {
    let (answer, _) = work("Where is the retry backoff computed?", ALL_TOOLS, 5).await;
    insta::assert_snapshot!(answer);
}

#[tokio::test]
async fn few_turns_are_enough_for_an_honest_answer() {
    let question = "Where is the retry backoff computed?";
    let (answer, calls) = work(question, ALL_TOOLS, 1).await;
    assert_eq!(calls, 1);
    assert!(answer.starts_with("Found nothing for: retry, backoff"), "{answer}");
    let (answer, _) = work(question, ALL_TOOLS, 2).await;
    assert_eq!(first_place(&answer), "src/retry.rs:9", "{answer}");
}

#[tokio::test]
async fn it_works_with_the_tools_it_has() {
    let question = "Where is the retry backoff computed?";
    for (tools, expected) in [
        (&["grep"][..], "src/retry.rs:9"),
        (&["find", "read"], "src/retry.rs:9"),
        (&["find"], "By name: src/retry.rs"),
        (&["ls"], "Names that do occur: "),
        (&["read"], "README.md:3"),
        (&["bash"], "it has no tools to look with"),
        (&[], "it has no tools to look with"),
    ] {
        let (answer, _) = work(question, tools, 5).await;
        assert!(answer.contains(expected), "{tools:?}\n{answer}");
    }
}

#[tokio::test]
async fn a_line_that_repeats_the_question_is_not_an_answer() {
    let question = "Where is the retry backoff computed?";
    let messages = [
        Message::User(question.to_owned()),
        Message::Assistant(Reply {
            text: String::new(),
            tool_calls: vec![ToolCall { id: "a".to_owned(), name: "grep".to_owned(), input: serde_json::json!({}) }],
            stop: Stop::ToolUse,
            tokens: TokenCount::default(),
            opaque: None,
        }),
        Message::Tool {
            call_id: "a".to_owned(),
            name: "grep".to_owned(),
            output: ToolOutput::ok(format!("README.md:3:run explore \"{question}\"\nsrc/a.rs:9:fn retry_backoff() {{")),
        },
    ];
    let reply = ask(question, &messages, &["grep"], ToolUse::Forbidden).await;
    assert!(reply.text.contains("src/a.rs:9") && !reply.text.contains("README.md"), "{}", reply.text);
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let (answer, calls) = work("Where is the zeppelin hangar heated?", ALL_TOOLS, 5).await;
    assert!(answer.starts_with("Found nothing for: zeppelin, hangar, heated"), "{answer}");
    assert!(answer.contains("README.md"), "{answer}");
    assert!(answer.contains("--model"), "{answer}");
    assert!(calls <= 4);
}

#[tokio::test]
async fn a_question_about_everything_shows_what_there_is() {
    let (answer, _) = work("What does this project do?", ALL_TOOLS, 5).await;
    assert!(answer.contains("README.md:1\n    # Courier"), "{answer}");
}

#[tokio::test]
async fn what_was_handed_on_is_looked_through() {
    let task = "Which courier is cheapest?";
    let said =
        format!("{task}\n\n[t_01 research]\nSome are slow.\nThe cheapest courier is Anna.\n\n[t_02 b]\nNothing.");
    let reply = ask(task, &[Message::User(said)], &[], ToolUse::Allowed).await;
    assert_eq!(first_place(&reply.text), "[t_01 research]:2", "{}", reply.text);
    let said = "Sum it up\n\n[t_01 research]\nAll is well.".to_owned();
    let reply = ask("Sum it up", &[Message::User(said)], &[], ToolUse::Allowed).await;
    assert!(reply.text.contains("[t_01 research]:1\n    All is well."), "{}", reply.text);
}

#[tokio::test]
async fn many_matches_are_ranked_quickly() {
    let task = "where is the retry delay of parcel deliveries computed in RouteFinder";
    let line = |index: usize| {
        format!("src/file_{}.rs:{index}:    let retry = delay(parcel, {index}); // delivery\n", index / 20)
    };
    let output: String = (0..2000).map(line).collect();
    let call = ToolCall { id: "call_0_0".into(), name: "grep".into(), input: json!({"pattern": "x"}) };
    let asked = Reply {
        text: String::new(),
        tool_calls: vec![call],
        stop: Stop::ToolUse,
        tokens: TokenCount::default(),
        opaque: None,
    };
    let output = Message::Tool { call_id: "call_0_0".into(), name: "grep".into(), output: ToolOutput::ok(output) };
    let messages = [Message::User(task.to_owned()), Message::Assistant(asked), output];
    let started = Instant::now();
    ask(task, &messages, ALL_TOOLS, ToolUse::Forbidden).await;
    // A build without optimisation on a busy machine: a release build takes about a hundredth of it.
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_task_and_no_output_is_too_strange(
        task in "(\\PC|[\n`\"./:_-]){0,80}",
        outputs in proptest::collection::vec("([a-z]{1,3}\\.rs:[0-9]{1,10}:)?(\\PC|[:\n\t0-9\u{0}\u{202e}]){0,120}", 0..6),
    ) {
        let tools = ["grep", "find", "read", "ls", "tree"];
        let mut messages = vec![Message::User(task.clone())];
        for (index, output) in outputs.into_iter().enumerate() {
            let name = tools[index % tools.len()].to_owned();
            messages.push(Message::Tool { call_id: "x".into(), name, output: ToolOutput::ok(output) });
        }
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for tool_use in [ToolUse::Allowed, ToolUse::Forbidden] {
            let reply = runtime.block_on(ask(&task, &messages, &tools, tool_use));
            let again = runtime.block_on(ask(&task, &messages, &tools, tool_use));
            prop_assert_eq!(&reply, &again);
            prop_assert!(reply.text.chars().count() <= 3500);
        }
    }
}
