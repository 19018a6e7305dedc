//! What every test begins with: agents, tools, a clock that stands still, and a desk to ask.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use locum::clock::Clock;
use locum::models::Model;
use locum::protocol::parse;
use locum::tools::{Tool, ToolFuture, ToolLayerError, ToolScope};
use locum::transcript::{Repeat, ToolOutput, ToolSpec};
use locum::{AgentName, AgentSpec, Desk, DeskBuilder, Request, Timestamp};
use serde_json::{Value, json};
use tokio::time::Instant;

/// An agent with these tools.
pub(crate) fn agent(name: &str, tools: &[&str]) -> AgentSpec {
    let mut agent = AgentSpec::new(AgentName::parse(name).unwrap(), format!("The {name}"), format!("You are {name}."));
    agent.tools = Some(tools.iter().map(|tool| (*tool).to_owned()).collect());
    agent
}

/// A desk on the paused clock, with this model and two agents without tools, `ann` and `bob`.
pub(crate) fn builder(model: impl Model + 'static) -> DeskBuilder {
    scene().model("cast", Arc::new(model))
}

/// The same without a model.
pub(crate) fn scene() -> DeskBuilder {
    Desk::builder()
        .standard_tools()
        .clock(Arc::new(StageClock { since: Instant::now() }))
        .agent(agent("ann", &[]))
        .agent(agent("bob", &[]))
}

/// The same, built.
pub(crate) fn desk(model: impl Model + 'static) -> Desk {
    builder(model).build().unwrap()
}

/// The time of day as tokio's clock tells it.
struct StageClock {
    since: Instant,
}

impl Clock for StageClock {
    fn now(&self) -> Timestamp {
        let passed = i64::try_from(self.since.elapsed().as_millis()).unwrap();
        Timestamp::from_millis(1_771_372_800_000 + passed)
    }
}

/// Asks the tool `subagent`; the answer or the refusal, as a door would show it.
pub(crate) async fn ask(desk: &Desk, input: Value) -> Value {
    shown(desk.call("subagent", input).await)
}

/// Asks as a person who types a verb.
pub(crate) async fn ask_as_person(desk: &Desk, concurrency: Option<u32>, input: Value) -> Value {
    let mut request = Request::person(parse::tool_request("subagent", input).unwrap());
    request.face.concurrency = concurrency;
    shown(desk.handle(request).await)
}

/// Asks the tool `shared_context`.
pub(crate) async fn context(desk: &Desk, input: Value) -> Value {
    shown(desk.call("shared_context", input).await)
}

/// An answer or a refusal, as a door would show it.
pub(crate) fn shown(answer: Result<locum::Response, locum::Refusal>) -> Value {
    match answer {
        Ok(response) => json!(response),
        Err(refusal) => json!(refusal),
    }
}

/// Runs a task in the foreground.
pub(crate) async fn run(desk: &Desk, agent: &str, task: &str) -> Value {
    ask(desk, json!({"action": "run", "agent": agent, "task": task})).await
}

/// Starts a task; its id.
pub(crate) async fn spawn(desk: &Desk, agent: &str, task: &str) -> String {
    let spawned = ask(desk, json!({"action": "spawn", "agent": agent, "task": task})).await;
    text(&spawned["task_id"], &spawned)
}

/// Waits for a task, and collects it.
pub(crate) async fn collect(desk: &Desk, task_id: &str) -> Value {
    // No task of a test takes longer than three hours on the paused clock; one that does is lost.
    for _ in 0..360 {
        if ask(desk, json!({"action": "wait", "task_ids": [task_id]})).await["timed_out"] != true {
            return ask(desk, json!({"action": "collect", "task_id": task_id})).await;
        }
    }
    panic!("{task_id} does not end: {}", status(desk, task_id).await)
}

/// How a task stands.
pub(crate) async fn status(desk: &Desk, task_id: &str) -> Value {
    ask(desk, json!({"action": "status", "task_id": task_id})).await
}

fn text(value: &Value, within: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text where one should be in {within}")).to_owned()
}

/// Lets this much time pass; on the paused clock it takes none.
pub(crate) async fn pass(seconds: f64) {
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
}

/// Checks that an answer has at least these fields. Lists are compared whole, item by item.
#[track_caller]
pub(crate) fn check(actual: &Value, expected: &Value) {
    assert!(has(actual, expected), "\nexpected {expected:#}\n   found {actual:#}");
}

fn has(actual: &Value, expected: &Value) -> bool {
    match (actual, expected) {
        (Value::Object(actual), Value::Object(expected)) => {
            expected.iter().all(|(name, wanted)| match actual.get(name) {
                Some(found) => has(found, wanted),
                // What is null in an expectation may be left out of an answer.
                None => wanted.is_null(),
            })
        }
        (Value::Array(actual), Value::Array(expected)) => {
            actual.len() == expected.len() && actual.iter().zip(expected).all(|(found, wanted)| has(found, wanted))
        }
        (actual, expected) => actual == expected,
    }
}

/// What really happened, kept outside of the engine.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger(Arc<Mutex<Vec<String>>>);

impl Ledger {
    pub(crate) fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// What a tool of a test does.
type Act = dyn Fn(Value, ToolScope) -> BoxFuture<'static, Result<ToolOutput, ToolLayerError>> + Send + Sync;

struct ActingTool {
    spec: ToolSpec,
    act: Box<Act>,
}

impl Tool for ActingTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, input: Value, scope: &'a ToolScope) -> ToolFuture<'a> {
        (self.act)(input, scope.clone())
    }
}

/// A tool that does this.
pub(crate) fn tool<F>(
    name: &str,
    repeat: Repeat,
    act: impl Fn(Value, ToolScope) -> F + Send + Sync + 'static,
) -> Arc<dyn Tool>
where
    F: Future<Output = Result<ToolOutput, ToolLayerError>> + Send + 'static,
{
    let input_schema = json!({"type": "object"});
    let spec = ToolSpec { name: name.to_owned(), description: format!("Does {name}."), input_schema, repeat };
    Arc::new(ActingTool { spec, act: Box::new(move |input, scope| Box::pin(act(input, scope))) })
}

/// A tool that notes its input in a ledger and answers at once.
pub(crate) fn noting_tool(name: &str, repeat: Repeat, ledger: &Ledger) -> Arc<dyn Tool> {
    let (name_noted, ledger) = (name.to_owned(), ledger.clone());
    tool(name, repeat, move |input, _| {
        ledger.note(format!("{name_noted} {input}"));
        let answer = ToolOutput::ok(format!("{name_noted} done"));
        async move { Ok(answer) }
    })
}
