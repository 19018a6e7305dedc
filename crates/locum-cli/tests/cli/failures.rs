//! How tasks fail, word for word, and that what they had said is kept.

use serde_json::{Value, json};

use crate::conversation::Conversation;
use crate::home::Home;

/// What a script says, how its task is started beyond agent and task, and how it must end.
struct Case {
    name: &'static str,
    replies: Value,
    options: Value,
    error: &'static str,
    reason: &'static str,
    partial: Option<&'static str>,
    turns: u32,
}

/// Runs all cases at once, as one `parallel` in the background, and compares how each ended.
fn check(cases: &[Case]) {
    let home = Home::new().with("LOCUM_MAX_RUNNING", "100").with("LOCUM_SUBAGENT_STARTUP_TIMEOUT_MS", "60000");
    let scripts: serde_json::Map<String, Value> =
        cases.iter().map(|case| (case.name.to_owned(), case.replies.clone())).collect();
    let mut conversation = Conversation::open(&home, &home.script(&Value::Object(scripts)));
    let entries: Vec<Value> = cases
        .iter()
        .map(|case| {
            let define = json!({
                "action": "define", "name": case.name, "description": "d", "system_prompt": "p",
                "tools": ["ls"], "max_turns": 2,
            });
            conversation.ask("subagent", &define);
            let mut entry = json!({"agent": case.name, "task": "t"});
            entry.as_object_mut().unwrap().extend(case.options.as_object().unwrap().clone());
            entry
        })
        .collect();
    let answer = conversation.ask("subagent", &json!({"action": "parallel", "tasks": entries}));
    conversation.close();
    assert_eq!((&answer["failed"], &answer["completed"]), (&json!(cases.len()), &json!(0)), "{answer}");
    for (case, ended) in cases.iter().zip(answer["results"].as_array().unwrap()) {
        let seen = json!([
            ended["status"],
            ended["error"],
            ended["reason"],
            ended["partial_result"],
            ended["turns_used"],
            ended["result"]
        ]);
        let expected = json!(["failed", case.error, case.reason, case.partial, case.turns, null]);
        assert_eq!(seen, expected, "{}", case.name);
    }
}

/// A case that says nothing, in one turn, without options.
fn model_failure(name: &'static str, replies: Value, error: &'static str) -> Case {
    Case { name, replies, options: json!({}), error, reason: "model", partial: None, turns: 1 }
}

fn look() -> Value {
    json!({"text": "So far.", "tool_calls": [{"name": "ls"}], "usage": {"output_tokens": 5}})
}

#[test]
fn models_fail_with_their_own_words() {
    // Six failures are the first call and its five retries; the seventh entry would be an answer.
    let again = |kind: &str| {
        let failure = json!({"error": {"kind": kind, "retry_after_ms": 1}});
        Value::Array([vec![failure; 6], vec![json!({"text": "too late"})]].concat())
    };
    let once = |kind: &str| json!([{"error": {"kind": kind}}, {"text": "never asked again"}]);
    let said = |kind: &str| json!([{"error": {"kind": kind, "message": "no luck"}}]);
    check(&[
        model_failure("rate_limit", again("rate_limit"), "Model API error: too many requests"),
        model_failure("overloaded", again("overloaded"), "Model API error: overloaded"),
        model_failure("server", again("server"), "Model API error: internal server error"),
        model_failure("network", again("network"), "Model API error: connection refused"),
        model_failure("malformed", again("malformed"), "Model API error: the answer makes no sense"),
        model_failure("auth", once("auth"), "Model API error: invalid API key"),
        model_failure("bad_request", once("bad_request"), "Model API error: bad request"),
        model_failure("not_found", once("not_found"), "Model API error: model not found"),
        model_failure(
            "context_overflow",
            once("context_overflow"),
            "Model API error: the conversation is too long for the model",
        ),
        model_failure("message", said("auth"), "Model API error: no luck"),
        model_failure("ended", json!([]), "Model API error: script ended"),
        Case {
            partial: Some("the stream ended be"),
            ..model_failure(
                "cut_stream",
                again("cut_stream"),
                "Model API error: the stream ended before the answer did",
            )
        },
        Case {
            partial: Some("So far."),
            turns: 2,
            ..model_failure("ended-later", json!([look()]), "Model API error: script ended")
        },
    ]);
}

#[test]
fn other_failures_have_the_words_of_their_reason() {
    let case = |name, replies, error, reason| Case { reason, ..model_failure(name, replies, error) };
    check(&[
        Case {
            partial: Some("So far."),
            turns: 2,
            ..case(
                "max-turns",
                json!([look(), look(), look()]),
                "Max turns exceeded without producing a final response",
                "max_turns",
            )
        },
        Case {
            turns: 2,
            partial: Some("So far."),
            ..case(
                "last-is-empty",
                json!([look(), {"text": " "}]),
                "Max turns exceeded without producing a final response",
                "max_turns",
            )
        },
        Case {
            options: json!({"max_output_tokens": 5}),
            partial: Some("So far."),
            ..case("output", json!([look()]), "Budget exceeded: output tokens would pass 5", "budget")
        },
        Case {
            options: json!({"max_input_tokens": 200}),
            partial: Some("So far."),
            ..case(
                "input",
                json!([{"text": "So far.", "tool_calls": [{"name": "ls"}], "usage": {"input_tokens": 200}}]),
                "Budget exceeded: input tokens would pass 200",
                "budget",
            )
        },
        Case {
            partial: Some("I will not."),
            ..case(
                "refused",
                json!([{"text": "I will not.", "stop": "refused"}]),
                "The model refused to answer: I will not.",
                "refused",
            )
        },
        Case {
            partial: Some("It is beca"),
            ..case(
                "cut",
                json!([{"text": "It is beca", "stop": "length"}]),
                "The answer was cut at the model's output limit",
                "cut",
            )
        },
        case("empty", json!([{"text": " \n"}]), "The model ended without an answer", "empty"),
    ]);
}

#[test]
fn a_timeout_is_named_with_its_seconds() {
    let home = Home::new();
    let model = home.script(&json!({"*": [{"error": {"kind": "hang"}}]}));
    let mut conversation = Conversation::open(&home, &model);
    let run = json!({"action": "run", "agent": "writer", "task": "t", "timeout": 1});
    // How far it came within the second is the machine's affair.
    let ended = conversation.ask("subagent", &run);
    conversation.close();
    let seen = json!([ended["status"], ended["error"], ended["reason"], ended["result"]]);
    assert_eq!(seen, json!(["failed", "Timed out after 1 s", "timeout", null]));
}

#[test]
fn what_passes_is_tried_again_and_then_succeeds() {
    let home = Home::new();
    let fails = |kind: &str| json!({"error": {"kind": kind, "retry_after_ms": 1}});
    let model = home.script(&json!({"*": [
        fails("rate_limit"), fails("overloaded"), fails("server"), fails("network"), fails("cut_stream"),
        {"text": "Done.", "usage": {}},
    ]}));
    let mut conversation = Conversation::open(&home, &model);
    conversation.say(
        r#"
        quiet {"action": "define", "name": "helper", "description": "d", "system_prompt": "p"}
        {"action": "run", "agent": "helper", "task": "t"}
        "#,
    );
    insta::assert_snapshot!("failures_that_pass", conversation.close());
}

#[test]
fn a_task_fails_with_what_it_depends_on() {
    let home = Home::new();
    let model = home.script(&json!({
        "broken": [{"error": {"kind": "auth"}}],
        "silent": [{"error": {"kind": "hang"}}],
        "*": [{"text": "Done."}],
    }));
    let mut conversation = Conversation::open(&home, &model);
    conversation.say(
        r#"
        quiet {"action": "define", "name": "broken", "description": "d", "system_prompt": "p"}
        quiet {"action": "define", "name": "silent", "extends": "broken"}
        quiet {"action": "define", "name": "other", "extends": "broken"}
        quiet {"action": "run", "agent": "broken", "task": "t"}
        quiet {"action": "spawn", "agent": "silent", "task": "t"}
        {"action": "spawn", "agent": "other", "task": "t", "depends_on": ["t_01"]}
        {"action": "spawn", "agent": "other", "task": "t", "depends_on": ["t_03"]}
        {"action": "spawn", "agent": "other", "task": "t", "depends_on": ["t_02"]}
        quiet {"action": "cancel", "task_id": "t_02"}
        {"action": "collect", "task_id": "t_03"}
        {"action": "collect", "task_id": "t_04"}
        quiet {"action": "wait"}
        {"action": "collect", "task_id": "t_05"}
        "#,
    );
    insta::assert_snapshot!("failures_of_dependencies", conversation.close());
}

#[test]
fn a_tool_that_fails_is_something_the_model_reads() {
    let home = Home::new();
    let model = home.script(&json!({"*": [
        {"tool_calls": [
            {"name": "read", "input": {"path": "nowhere.txt"}},
            {"name": "bash", "input": {}},
            {"name": "read", "input": "{not json"},
        ], "usage": {}},
        {"text": "Went on.", "usage": {}},
    ]}));
    let mut conversation = Conversation::open(&home, &model);
    conversation.say(
        r#"
        quiet {"action": "define", "name": "reader", "description": "d", "system_prompt": "p", "tools": ["read"]}
        {"action": "run", "agent": "reader", "task": "t"}
        "#,
    );
    insta::assert_snapshot!("failures_of_tools", conversation.close());
}
