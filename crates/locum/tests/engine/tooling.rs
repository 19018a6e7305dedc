//! Tools of an application: what they answer reaches the model, what breaks in them does not break a task.

use locum::Desk;
use locum::models::scripted::{Say, Scripted};
use locum::tools::{Tool, ToolFuture, ToolLayerError, ToolScope};
use locum::transcript::{Repeat, ToolOutput, ToolSpec};
use serde_json::{Value, json};
use std::sync::Arc;

use crate::cast::Witness;
use crate::stage::{Ledger, agent, builder, check, noting_tool, pass, run, tool};

/// A desk whose `eve` calls one tool and then answers.
fn desk_with(tool: Arc<dyn Tool>) -> (Desk, Witness) {
    let name = tool.spec().name.clone();
    let script = [Say::calls([(name.clone(), json!({"n": 1}))]), Say::text("I have read the answer.")];
    let model = Witness::new(Scripted::new().agent("eve", script));
    (builder(model.clone()).tool(tool).agent(agent("eve", &[&name])).build().unwrap(), model)
}

#[tokio::test(start_paused = true)]
async fn what_a_tool_answers_or_how_it_fails_is_read_by_the_model() {
    let most = locum::limits::TOOL_RESULT_BYTES_MAX;
    let long = format!("{}é", "x".repeat(most - 1));
    let cases: [(Arc<dyn Tool>, String); 4] = [
        (
            tool("plain", Repeat::Safe, |input, _| async move { Ok(ToolOutput::ok(format!("got {input}"))) }),
            r#"got {"n":1}"#.to_owned(),
        ),
        (
            tool("fails", Repeat::Unsafe, |_, _| async { Ok(ToolOutput::failed("no such metric")) }),
            "no such metric".to_owned(),
        ),
        (tool("breaks", Repeat::Unsafe, |_, _| async { panic!("a bug in a tool") }), broke("breaks")),
        (
            tool("long", Repeat::Safe, move |_, _| std::future::ready(Ok(ToolOutput::ok(long.clone())))),
            format!("{}\n[2 more bytes not shown]", "x".repeat(most - 1)),
        ),
    ];
    for (tool, expected) in cases {
        let (desk, model) = desk_with(tool);
        check(&run(&desk, "eve", "Call it.").await, &json!({"status": "completed", "usage": {"tool_calls": 1}}));
        assert_eq!(model.asked()[1].tool_answers(), [expected]);
    }
}

fn broke(name: &str) -> String {
    format!("The tool `{name}` failed inside and gave no answer.")
}

/// A tool that breaks before its future exists.
struct BreaksAtOnce(ToolSpec);

impl Tool for BreaksAtOnce {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call<'a>(&'a self, _input: Value, _scope: &'a ToolScope) -> ToolFuture<'a> {
        panic!("a bug before the first await")
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_breaks_before_its_first_await_is_answered_like_any_other() {
    let spec = ToolSpec {
        name: "early".to_owned(),
        description: "Breaks.".to_owned(),
        input_schema: json!({"type": "object"}),
        repeat: Repeat::Unsafe,
    };
    let (desk, model) = desk_with(Arc::new(BreaksAtOnce(spec)));
    check(&run(&desk, "eve", "Call it.").await, &json!({"status": "completed"}));
    assert_eq!(model.asked()[1].tool_answers(), [broke("early")]);
}

#[tokio::test(start_paused = true)]
async fn a_tool_layer_that_cannot_be_used_ends_the_task_and_names_the_turn() {
    let broken = tool("broken", Repeat::Safe, |_, _| async { Err(ToolLayerError("the server is gone".to_owned())) });
    let look = noting_tool("look", Repeat::Safe, &Ledger::default());
    let script = [Say::calls([("look", json!({}))]), Say::calls([("broken", json!({}))]).with_text("Now this.")];
    let model = Scripted::new().agent("eve", script);
    let desk = builder(model).tool(broken).tool(look).agent(agent("eve", &["look", "broken"])).build().unwrap();
    let expected = json!({
        "status": "failed",
        "reason": "tool",
        "error": "Tool execution error in turn 2: the server is gone",
        "partial_result": "Now this.",
    });
    check(&run(&desk, "eve", "Call it.").await, &expected);
}

#[tokio::test(start_paused = true)]
async fn repeatable_calls_of_a_reply_run_at_once_and_others_one_by_one_in_order() {
    for (repeat, seconds, order) in [(Repeat::Safe, 3, ["c", "b", "a"]), (Repeat::Unsafe, 6, ["a", "b", "c"])] {
        let ledger = Ledger::default();
        let noted = ledger.clone();
        let wait = tool("wait", repeat, move |input, _| {
            let noted = noted.clone();
            async move {
                pass(input["s"].as_f64().unwrap()).await;
                noted.note(input["name"].as_str().unwrap());
                Ok(ToolOutput::ok(input["name"].as_str().unwrap()))
            }
        });
        let calls = [("a", 3), ("b", 2), ("c", 1)].map(|(name, s)| ("wait", json!({"name": name, "s": s})));
        let model = Witness::new(Scripted::new().agent("eve", [Say::calls(calls), Say::text("Waited.")]));
        let desk = builder(model.clone()).tool(wait).agent(agent("eve", &["wait"])).build().unwrap();
        let started = tokio::time::Instant::now();
        check(&run(&desk, "eve", "Wait.").await, &json!({"status": "completed", "usage": {"tool_calls": 3}}));
        assert_eq!(started.elapsed().as_secs(), seconds);
        assert_eq!(ledger.lines(), order);
        assert_eq!(model.asked()[1].tool_answers(), ["a", "b", "c"], "answers keep the order of the calls");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_the_agent_does_not_have_is_denied_and_not_run() {
    let ledger = Ledger::default();
    let script = [Say::calls([("act", json!({}))]), Say::text("I may not.")];
    let model = Witness::new(Scripted::new().agent("ann", script));
    let desk = builder(model.clone()).tool(noting_tool("act", Repeat::Safe, &ledger)).build().unwrap();
    let expected = json!({"status": "completed", "usage": {"tool_calls": 1, "denials": 1}});
    check(&run(&desk, "ann", "Act.").await, &expected);
    assert_eq!(model.asked()[1].tool_answers(), ["You have no tool named `act`. You have no tools."]);
    assert!(model.asked()[0].tools.is_empty(), "an empty list means no tools");
    assert!(ledger.lines().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_tool_knows_who_calls_it_and_sits_at_the_desk_of_its_session() {
    let who = tool("who", Repeat::Safe, |_, scope| async move {
        Ok(ToolOutput::ok(format!("{} in {}", scope.identity, scope.desk.session().id)))
    });
    let (desk, model) = desk_with(who);
    let elsewhere = desk.in_session(locum::SessionId::parse("elsewhere").unwrap());
    run(&elsewhere, "eve", "Who are you?").await;
    assert_eq!(model.asked()[1].tool_answers(), ["subagent:eve:t_01 in elsewhere"]);
}
