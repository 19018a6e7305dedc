//! Pi: the tool `subagent`.

use std::time::Duration;

use locum::faces::{Face, FaceSettings};
use locum::models::scripted::{Say, Scripted};
use locum::transcript::{Repeat, ToolOutput};
use locum::{Desk, DeskBuilder, Limits};
use locum_core::task::event::FailureKind;
use locum_core::usage::TokenCount;
use serde_json::{Value, json};

use super::{call, text};
use crate::cast::{Beat, Speaker, Witness};
use crate::stage::{agent, builder, check, pass, tool};

async fn subagent(desk: &Desk, agent: &str, task: &str) -> Value {
    call(desk, Face::Pi, "subagent", json!({"agent": agent, "task": task})).await
}

fn scripted(says: impl IntoIterator<Item = Say>) -> DeskBuilder {
    builder(Scripted::new().agent("ann", says))
}

/// A refusal before a run: its code, its message and the text.
#[track_caller]
fn check_refused(answer: &Value, code: &str, message: &str) {
    check(answer, &json!({"details": {"mode": "management", "results": [], "error": {"code": code}}}));
    assert_eq!(answer["details"].get("runId"), None);
    let said = answer["details"]["error"]["message"].as_str().unwrap();
    assert!(said.contains(message), "{said}");
    assert!(text(answer).contains(said), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_run_answers_with_its_output_and_its_details() {
    let tokens = TokenCount { input: 100, output: 20, cache_read: 7, cache_write: 3 };
    let desk = scripted([
        Say::calls([("ls", json!({"path": "."}))]).with_text("I look.").using(tokens),
        Say::text("Found: {{task}}").using(tokens),
    ]);
    let desk = desk.agent(agent("ann", &["ls"])).build().unwrap();
    let answer = subagent(&desk, "ann", "it").await;
    assert_eq!(text(&answer), "Found: it");
    let expected = json!({
        "mode": "single",
        "results": [{
            "agent": "ann", "task": "it", "exitCode": 0, "output": "Found: it",
            "usage": {"input": 200, "output": 40, "cacheRead": 14, "cacheWrite": 6, "turns": 2},
            "displayItems": [
                {"type": "text", "text": "I look."},
                {"type": "toolCall", "name": "ls", "args": {"path": "."}},
                {"type": "text", "text": "Found: it"},
            ],
        }],
    });
    check(&answer["details"], &expected);
    let result = &answer["details"]["results"][0];
    assert!(result["usage"]["cost"].is_number() && result.get("error").is_none(), "{result}");
    assert_eq!(answer["details"]["runId"].as_str().unwrap().len(), 26);
    assert!(answer["details"].get("error").is_none());
    assert_eq!(answer.as_object().unwrap().len(), 2, "content and details");
}

#[tokio::test(start_paused = true)]
async fn both_fields_are_needed_and_no_other_is_taken() {
    let desk = scripted([Say::text("Never.")]).build().unwrap();
    for input in [
        json!({"agent": "ann"}),
        json!({"task": "t"}),
        json!({"agent": "", "task": "t"}),
        json!({"agent": "ann", "task": ""}),
    ] {
        let answer = call(&desk, Face::Pi, "subagent", input).await;
        check_refused(&answer, "INVALID_INPUT", "invalid input");
    }
    let legacy =
        ["chain", "tasks", "async", "share", "worktree", "action", "id", "sessionDir", "control", "model", "skills"];
    for field in legacy {
        let mut input = json!({"agent": "ann", "task": "t"});
        input[field] = json!("x");
        let answer = call(&desk, Face::Pi, "subagent", input).await;
        check_refused(&answer, "INVALID_INPUT", &format!("`{field}`"));
    }
    let schema = Face::Pi.tools(&desk.muster().roster).remove(0).input_schema;
    check(
        &schema,
        &json!({
            "properties": {"agent": {"type": "string", "minLength": 1}, "task": {"type": "string", "minLength": 1}},
            "required": ["agent", "task"],
            "additionalProperties": false,
        }),
    );
}

#[tokio::test(start_paused = true)]
async fn what_cannot_run_is_an_answer_with_a_code() {
    let desk = scripted([]).build().unwrap();
    let unknown = subagent(&desk, "zed", "t").await;
    check_refused(&unknown, "UNKNOWN_AGENT", "Unknown agent: \"zed\". Available agents: ann, bob");
    let large = subagent(&desk, "ann", &"x".repeat(100_001)).await;
    check_refused(&large, "INVALID_INPUT", "tokens");
    let off = scripted([]).enabled(false).build().unwrap();
    check_refused(&subagent(&off, "ann", "t").await, "SUBAGENTS_DISABLED", "");
    let shallow = scripted([]).limits(Limits { max_depth: Some(0), ..Limits::default() }).build().unwrap();
    check_refused(&subagent(&shallow, "ann", "t").await, "SUBAGENT_DEPTH_EXCEEDED", "depth");
    let spent = scripted([]).limits(Limits { max_spawns: 0, ..Limits::default() }).build().unwrap();
    check_refused(&subagent(&spent, "ann", "t").await, "SUBAGENT_FAILED", "tasks");
}

#[tokio::test(start_paused = true)]
async fn a_failed_run_tells_its_exit_code_its_error_and_what_was_said() {
    let says = [Say::calls([("ls", json!({}))]).with_text("So far."), Say::error(FailureKind::Auth, "no key")];
    let desk = scripted(says).agent(agent("ann", &["ls"])).build().unwrap();
    let answer = subagent(&desk, "ann", "t").await;
    let error = "Model API error: no key";
    let expected = json!({
        "mode": "single",
        "error": {"code": "SUBAGENT_FAILED", "message": error},
        "results": [{"exitCode": 1, "error": error, "output": "So far."}],
    });
    check(&answer["details"], &expected);
    assert_eq!(text(&answer), format!("SUBAGENT_FAILED (exit code 1): {error}\n\nPartial output:\nSo far."));
}

#[tokio::test(start_paused = true)]
async fn a_run_ends_after_fifteen_minutes_or_three_of_silence_and_says_which() {
    let alive = std::iter::repeat_n([Beat::Silence(60_000), Beat::Lives], 30).flatten();
    let busy = Speaker::once(std::iter::once(Beat::Says("Busy.")).chain(alive).chain([Beat::Ends]));
    let mut patient = agent("patient", &[]);
    patient.timeout_s = Some(3600);
    let desk = builder(busy).agent(patient).build().unwrap();
    for name in ["ann", "patient"] {
        let started = tokio::time::Instant::now();
        let answer = subagent(&desk, name, "t").await;
        let message = "hard time limit: Timed out after 900 s";
        let expected =
            json!({"error": {"code": "SUBAGENT_TIMEOUT", "message": message}, "results": [{"exitCode": 124}]});
        check(&answer["details"], &expected);
        assert_eq!(answer["details"]["results"][0]["output"], "Busy.");
        assert_eq!(started.elapsed().as_secs(), 900);
    }
    // A tool is not given more time than a model.
    let slow = tool("read", Repeat::Safe, |_, _| async {
        pass(599.0).await;
        Ok(ToolOutput::ok("late"))
    });
    let desk = scripted([Say::calls([("read", json!({}))]), Say::text("Never.")]);
    let desk = desk.tool(slow).agent(agent("ann", &["read"])).build().unwrap();
    let started = tokio::time::Instant::now();
    let answer = subagent(&desk, "ann", "t").await;
    let message = "idle time limit: Stalled: no activity for 180 s during tool";
    check(
        &answer["details"],
        &json!({"error": {"code": "SUBAGENT_TIMEOUT", "message": message}, "results": [{"exitCode": 124}]}),
    );
    assert_eq!(started.elapsed().as_secs(), 180);
}

#[tokio::test(start_paused = true)]
async fn a_long_output_is_cut_in_the_text_and_whole_in_the_details() {
    let lines = |count: usize| vec!["x"; count].join("\n");
    for (output, shown_bytes) in [
        ("é".repeat(100 * 1024), None),
        (format!("{}a", "é".repeat(100 * 1024)), Some(200 * 1024)),
        (lines(5000), None),
        (lines(5001), Some(2 * 5000 - 1)),
    ] {
        let desk = scripted([Say::text(output.clone())]).build().unwrap();
        let answer = subagent(&desk, "ann", "t").await;
        check(&answer["details"]["results"], &json!([{"exitCode": 0, "output": output}]));
        let notice = "\n[output truncated: details.results[0].output has all of it]";
        match shown_bytes {
            None => {
                assert_eq!(text(&answer), output);
                assert!(answer["details"].get("error").is_none());
            }
            Some(bytes) => {
                assert_eq!(text(&answer), format!("{}{notice}", &output[..bytes]));
                assert_eq!(answer["details"]["error"]["code"], "SUBAGENT_OUTPUT_TRUNCATED");
                let given = Face::Pi.handle(&desk, "subagent", json!({"agent": "ann", "task": "t"})).await;
                assert!(!given.is_error, "it is still a success");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn agents_only_read_unless_the_settings_allow_more() {
    let all = ["read", "write", "edit", "bash", "grep", "web_fetch", "subagent"];
    for (allow_write, named, unnamed) in [
        (
            false,
            vec!["read", "grep", "web_fetch"],
            vec!["read", "grep", "find", "ls", "tree", "think", "shared_context"],
        ),
        (
            true,
            vec!["read", "write", "edit", "bash", "grep", "web_fetch"],
            vec!["read", "grep", "find", "ls", "tree", "think", "shared_context"],
        ),
    ] {
        let model = Witness::new(Scripted::new().agent("*", [Say::text("Seen.")]));
        let mut plain = agent("plain", &[]);
        plain.tools = None;
        let faces = FaceSettings { allow_write, ..FaceSettings::default() };
        let desk = builder(model.clone()).faces(faces).agent(agent("ann", &all)).agent(plain);
        let desk = desk.agent(agent("writer", &["write", "bash"])).build().unwrap();
        for name in ["ann", "plain", "writer"] {
            subagent(&desk, name, "t").await;
        }
        let asked = model.asked();
        assert_eq!(asked[0].tools, named);
        assert_eq!(asked[1].tools, unnamed);
        assert_eq!(asked[2].tools.is_empty(), !allow_write, "an empty intersection is no tools");
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_file_is_there_when_it_is_named_and_home_and_keys_are_not_shown() {
    let place = tempfile::tempdir().unwrap();
    let transcripts = place.path().join("transcripts");
    let key = format!("ghp_{}", "a1".repeat(18));
    let said = format!("In {}/src the token {key} is used.", place.path().display());
    let look = Say::calls([("ls", json!({"path": format!("{}/src", place.path().display())}))]);
    let desk = scripted([look, Say::text(said.clone())]).agent(agent("ann", &["ls"]));
    let faces = FaceSettings {
        transcripts: Some(transcripts.clone()),
        home: Some(place.path().to_owned()),
        ..FaceSettings::default()
    };
    let desk = desk.faces(faces).build().unwrap();
    let answer = subagent(&desk, "ann", "Look.").await;
    assert_eq!(text(&answer), "In ~/src the token [redacted] is used.");
    let result = &answer["details"]["results"][0];
    assert_eq!(result["output"], "In ~/src the token [redacted] is used.");
    assert_eq!(result["displayItems"][0]["args"], json!({"path": "~/src"}));
    let file = result["sessionFile"].as_str().unwrap();
    assert!(file.starts_with(transcripts.to_str().unwrap()), "{file}");
    let lines: Vec<Value> =
        std::fs::read_to_string(file).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    check(&lines[0], &json!({"type": "session", "agent": "ann", "task": "Look.", "runId": answer["details"]["runId"]}));
    let roles: Vec<&str> = lines[1..].iter().map(|line| line["message"]["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "toolResult", "assistant"]);
    use std::os::unix::fs::PermissionsExt as _;
    assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test(start_paused = true)]
async fn a_failed_run_names_its_session_file_too() {
    let place = tempfile::tempdir().unwrap();
    let faces = FaceSettings { transcripts: Some(place.path().to_owned()), ..FaceSettings::default() };
    let slow = Say::error(FailureKind::Auth, "no key").after(Duration::from_secs(1));
    let desk = scripted([slow]).faces(faces).build().unwrap();
    let answer = subagent(&desk, "ann", "t").await;
    let file = answer["details"]["results"][0]["sessionFile"].as_str().unwrap();
    assert!(std::path::Path::new(file).is_file());
    assert!(text(&answer).ends_with(&format!("Session file: {file}")), "{answer}");
    // Without a place for it there is none, and none is named.
    let desk = scripted([Say::text("Seen.")]).build().unwrap();
    let answer = subagent(&desk, "ann", "t").await;
    assert!(answer["details"]["results"][0].get("sessionFile").is_none());
}
