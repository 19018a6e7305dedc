//! A known secret reaches nobody: no log, no answer, no news, no other task.

use std::sync::Arc;

use locum::models::ModelError;
use locum::models::scripted::{Say, Scripted};
use locum::operation_log::OperationLog;
use locum::progress::News;
use locum::redact::Redactor;
use locum::tools::ToolLayerError;
use locum::transcript::{Repeat, ToolOutput};
use locum::{Desk, DeskBuilder, Timestamp};
use locum_core::task::event::FailureKind;
use serde_json::json;

use crate::cast::{Beat, Speaker, Witness};
use crate::stage::{agent, ask, builder, check, collect, context, pass, run, spawn, tool};

const SECRET: &str = "sk-live-0123456789abcdef";

fn guarded(builder: DeskBuilder) -> DeskBuilder {
    builder.redact(Redactor::new([SECRET]))
}

/// Everything that a desk would show of these tasks, in one text.
async fn everything(desk: &Desk, tasks: usize) -> String {
    let mut shown = String::new();
    for number in 1..=tasks {
        let id = format!("t_{number:02}");
        for action in ["status", "collect", "result"] {
            shown += &ask(desk, json!({"action": action, "task_id": id})).await.to_string();
        }
        shown += &json!(desk.log_of(&id).await.unwrap()).to_string();
    }
    shown += &ask(desk, json!({"action": "list_agents"})).await.to_string();
    shown += &context(desk, json!({"action": "list_keys"})).await.to_string();
    shown
}

#[track_caller]
fn check_clean(shown: &str) {
    let at = shown.find(SECRET).map(|at| &shown[at.saturating_sub(200)..at]);
    assert_eq!(at, None, "a secret follows this");
    assert!(shown.contains("[redacted]"), "{shown}");
}

#[tokio::test(start_paused = true)]
async fn a_secret_in_a_request_an_agent_a_tool_or_an_answer_is_kept_nowhere() {
    let leak = tool("leak", Repeat::Safe, |_, _| async { Ok(ToolOutput::ok(format!("the key is {SECRET}"))) });
    let fall = tool("fall", Repeat::Safe, |_, _| async { Err(ToolLayerError(format!("cannot log in with {SECRET}"))) });
    let mut careless = agent("careless", &["leak", "shared_context"]);
    careless.prompt = format!("Use {SECRET} for everything.");
    careless.description = format!("Knows {SECRET}");
    let note = json!({"action": "write", "key": "note", "value": SECRET});
    let script = Scripted::new()
        .agent(
            "careless",
            [Say::calls([("leak", json!({"with": SECRET})), ("shared_context", note)]), Say::text(SECRET)],
        )
        .agent("faller", [Say::calls([("fall", json!({}))]).with_text(SECRET)])
        .agent("ann", [Say::error(FailureKind::Auth, format!("bad key {SECRET}"))])
        .agent("dora", [Say::text("{{task}}")]);
    let model = Witness::new(script);
    let desk = guarded(builder(model.clone())).tool(leak).tool(fall).agent(careless).agent(agent("faller", &["fall"]));
    let desk = desk.build().unwrap();
    let define =
        json!({"action": "define", "name": "dora", "description": SECRET, "system_prompt": format!("Hide {SECRET}.")});
    check(&ask(&desk, define).await, &json!({"defined": "dora", "description": "[redacted]"}));
    for (agent, task) in [("careless", "Go."), ("faller", "Go."), ("ann", "Go."), ("dora", SECRET)] {
        let spawned = ask(&desk, json!({"action": "spawn", "agent": agent, "task": task, "label": SECRET})).await;
        check(&spawned, &json!({"status": "running"}));
    }
    ask(&desk, json!({"action": "wait"})).await;
    check_clean(&everything(&desk, 4).await);
    check(&context(&desk, json!({"action": "read", "key": "note"})).await, &json!({"value": "[redacted]"}));
    check_clean(&format!("{:?}", model.asked()));
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_arrives_in_pieces_is_neither_told_nor_kept() {
    let pieces = || {
        [Beat::Says("The key is sk-live-"), Beat::Says("0123456789"), Beat::Says("abcdef, as"), Beat::Says(" said.")]
    };
    let ends = |beat: Beat| Speaker::once(pieces().into_iter().chain([beat]));
    let failed = ModelError { partial: Some(format!("It is {SECRET}")), ..ModelError::new(FailureKind::Auth, "no") };
    for (model, expected) in [
        (ends(Beat::Ends), json!({"status": "completed", "result": "The key is [redacted], as said."})),
        (ends(Beat::Panics), json!({"status": "failed", "partial_result": "The key is [redacted], as said."})),
        (ends(Beat::Fails(failed)), json!({"status": "failed", "partial_result": "It is [redacted]"})),
    ] {
        let desk = guarded(builder(model)).build().unwrap();
        let mut news = desk.progress();
        check(&run(&desk, "ann", "Tell.").await, &expected);
        let mut shown = String::new();
        while let Ok(progress) = news.try_recv() {
            if let News::Text { offset, text, .. } = &progress.news {
                assert_eq!(*offset, shown.len());
                shown.push_str(text);
            }
        }
        assert_eq!(shown, "The key is [redacted], as said.");
    }
}

#[tokio::test(start_paused = true)]
async fn text_without_secrets_is_told_as_it_comes() {
    let beats = [
        Beat::Says("Wört"),
        Beat::Silence(1000),
        Beat::Says("er sk-li"),
        Beat::Silence(1000),
        Beat::Says("ve?"),
        Beat::Ends,
    ];
    for (redactor, first) in [(Redactor::default(), "Wört"), (Redactor::new([SECRET]), "")] {
        let desk = builder(Speaker::once(beats.clone())).redact(redactor).build().unwrap();
        let mut news = desk.progress();
        let id = spawn(&desk, "ann", "Tell.").await;
        let mut shown = Vec::new();
        for _ in 0..3 {
            pass(0.9).await;
            while let Ok(progress) = news.try_recv() {
                if let News::Text { text, .. } = &progress.news {
                    shown.push(text.clone());
                }
            }
        }
        assert!(shown.concat().starts_with(first));
        check(&collect(&desk, &id).await, &json!({"result": "Wörter sk-live?"}));
        assert_eq!(shown.concat(), "Wörter sk-live?");
    }
}

#[tokio::test(start_paused = true)]
async fn a_secret_is_in_no_line_of_the_operation_log_payloads_or_not() {
    for payloads in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let redactor = Redactor::new([SECRET]);
        let log = OperationLog::open(directory.path(), Timestamp::from_millis(0), payloads, redactor).unwrap();
        let desk = guarded(builder(Scripted::new().agent("ann", [Say::text(SECRET)]))).log(log).build().unwrap();
        run(&desk, "ann", &format!("Say {SECRET}.")).await;
        ask(&desk, json!({"action": "collect", "task_id": SECRET})).await;
        let lines = std::fs::read_to_string(directory.path().join("2026-02-18.log")).unwrap();
        assert!(!lines.contains(SECRET), "{lines}");
        assert_eq!(lines.contains("[redacted]"), payloads, "{lines}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_whose_name_is_a_secret_cannot_be_had() {
    let build = guarded(Desk::builder().model("cast", Arc::new(Scripted::new()))).agent(agent(SECRET, &[])).build();
    let error = build.err().map(|error| error.to_string()).unwrap();
    assert_eq!(error, "an agent cannot be used: its name holds a secret");
}
