//! The language in which conversations are written. A conversation is what goes in and what comes out at once: its
//! inputs are read from the text, played, and the log is written in the same language; both texts must be equal.
//!
//! ```text
//! agent tools=read,write turns=3      also: rule=tool_replies, max_input=N, max_output=N, chained
//! prompt Instructions, if they matter; then the system prompt's first line is compared
//! after t_01 reader: a result that is handed on
//! task What is asked
//! user What the model is told first
//! last turn                           in front of a reply: the model was told so and may call no tools
//! last answer                         the same, because a budget ends
//! told text                           in front of a reply: something else that the model was told
//! > says text @10/5                   a reply, with tokens in and out
//! > calls read {"path":"a"}; write#id {} | says text beside them | cut
//! > refuses why · > cuts text · > fails overloaded: why (is tried again) · > gives up auth: why | partial text
//! ~ read grep                         calls that run at once
//! < read: output                      also: failed, denied, unknown
//! ! cancelled                         also: timed_out 30, stalled 180 model, tool_layer 1 why, internal why
//! = completed: text                   also: failed(reason): error | partial text; cancelled | partial text
//! used 2 turns, 1 tool calls, 0 denials
//! ```

use std::sync::Arc;

use locum_core::ids::TaskId;
use locum_core::protocol::face::TurnRule;
use locum_core::task::event::{Activity, FailureKind, HandedOn, ModelFailure, Parked, StopCause};
use locum_core::task::plan::{HandOn, ModelName, PricedModel};
use locum_core::task::{Plan, TaskEvent};
use locum_core::transcript::{Reply, Stop, ToolCall, ToolEnd, ToolOutput};
use locum_core::usage::TokenCount;
use serde_json::{Value, json};

use crate::world::{World, agent_name};

/// A conversation, ready to be played.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) plan: Plan,
    /// Results that the task waits for.
    pub(crate) inputs: Vec<HandedOn>,
    pub(crate) answers: Vec<Answer>,
    pub(crate) stop: Option<StopLine>,
    /// Whether the text compares the system prompt.
    pub(crate) shows_system: bool,
}

/// What one model call comes to, and what the tools that it calls return.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) call: ModelCall,
    /// In the order of the text, each with its tool.
    pub(crate) outputs: Vec<(String, ToolOutput)>,
}

#[derive(Debug, Clone)]
pub(crate) enum ModelCall {
    Replies(Reply),
    /// With the wait before the next attempt, if there is one.
    Fails(ModelFailure, Option<u64>),
}

/// Something from outside, after this many answers and this many outputs of the last of them.
#[derive(Debug, Clone)]
pub(crate) struct StopLine {
    pub(crate) answers: usize,
    pub(crate) outputs: usize,
    pub(crate) cause: StopCause,
}

impl Script {
    pub(crate) fn parse(text: &str) -> Self {
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(unescape);
        let prompt = field("prompt ");
        let plan = plan(&field("agent").unwrap(), &field("task ").unwrap(), prompt.as_deref());
        let mut script =
            Self { plan, inputs: Vec::new(), answers: Vec::new(), stop: None, shows_system: prompt.is_some() };
        for line in text.lines() {
            script.take_line(line);
        }
        script.plan.start.depends_on = script.inputs.iter().map(|input| input.task_id).collect();
        script
    }

    /// How the task is accepted.
    pub(crate) fn accepted(&self) -> TaskEvent {
        let parked = (!self.inputs.is_empty()).then_some(Parked::Waiting);
        TaskEvent::Accepted { plan: Arc::new(self.plan.clone()), parked }
    }

    /// What a tool returns to a call of an answer: the output line of its place among the calls of the same tool.
    pub(crate) fn output(&self, answer: usize, call: &ToolCall) -> ToolOutput {
        let Some(Answer { call: ModelCall::Replies(reply), outputs }) = self.answers.get(answer) else {
            panic!("answer {answer} calls no tools")
        };
        let mut same_tool = reply.tool_calls.iter().filter(|other| other.name == call.name);
        let place = same_tool.position(|other| other == call).unwrap();
        let output = outputs.iter().filter(|(name, _)| *name == call.name).nth(place);
        output.map_or_else(|| ToolOutput::ok("fine"), |(_, output)| output.clone())
    }

    fn take_line(&mut self, line: &str) {
        if let Some(rest) = line.strip_prefix("> ") {
            let call = parse_answer(rest, self.answers.len());
            self.answers.push(Answer { call, outputs: Vec::new() });
        } else if let Some(rest) = line.strip_prefix("< ") {
            self.answers.last_mut().unwrap().outputs.push(parse_output(rest));
        } else if let Some(rest) = line.strip_prefix("! ") {
            let outputs = self.answers.last().map_or(0, |answer| answer.outputs.len());
            self.stop = Some(StopLine { answers: self.answers.len(), outputs, cause: parse_stop(rest) });
        } else if let Some(rest) = line.strip_prefix("after ") {
            let (who, text) = rest.split_once(": ").unwrap();
            let (task_id, agent) = who.split_once(' ').unwrap();
            let task_id = TaskId::parse(task_id).unwrap();
            self.inputs.push(HandedOn { task_id, agent: agent_name(agent), text: unescape(text) });
        }
    }
}

fn plan(header: &str, task: &str, prompt: Option<&str>) -> Plan {
    let option = |name: &str| {
        header.split(' ').filter_map(|word| word.split_once('=')).find(|(key, _)| *key == name).map(|(_, value)| value)
    };
    let mut world = World::new();
    world.add("actor", |agent| {
        let tools = option("tools").map(|tools| tools.split(',').map(str::to_owned).collect());
        agent.tools = Some(tools.unwrap_or_default());
        agent.max_turns = option("turns").map(|turns| turns.parse().unwrap());
        if let Some(prompt) = prompt {
            agent.prompt = prompt.to_owned();
        }
    });
    let mut plan = Arc::unwrap_or_clone(world.accept(json!({"agent": "actor", "task": task})).plan);
    plan.bounds.budget.max_input_tokens = option("max_input").map(|most| most.parse().unwrap());
    plan.bounds.budget.max_output_tokens = option("max_output").map(|most| most.parse().unwrap());
    if option("rule") == Some("tool_replies") {
        plan.face.turns = TurnRule::ToolReplies;
    }
    let named = |name: &str| ModelName { provider: "acme".to_owned(), id: name.to_owned() };
    let fallback = option("fallback").into_iter().flat_map(|names| names.split(','));
    plan.fallback = fallback.map(|name| PricedModel { model: named(name), price: None }).collect();
    if header.ends_with(" chained") {
        plan.start.hand_on = HandOn::Previous;
    }
    plan
}

fn parse_answer(line: &str, answer: usize) -> ModelCall {
    let (line, tokens) = match line.rsplit_once(" @") {
        Some((line, tokens)) => (line, parse_tokens(tokens)),
        None => (line, TokenCount::default()),
    };
    for (word, retry_in_ms) in [("fails ", Some(1000)), ("gives up ", None)] {
        if let Some(rest) = line.strip_prefix(word) {
            return ModelCall::Fails(parse_failure(rest), retry_in_ms);
        }
    }
    let mut reply = Reply { text: String::new(), tool_calls: Vec::new(), stop: Stop::End, tokens, opaque: None };
    for part in line.split(" | ") {
        let (word, rest) = part.split_once(' ').unwrap_or((part, ""));
        match word {
            "says" => reply.text = unescape(rest),
            "cuts" => (reply.text, reply.stop) = (unescape(rest), Stop::Length),
            "refuses" => reply.stop = Stop::Refused(rest.to_owned()),
            "calls" => {
                reply.stop = Stop::ToolUse;
                let calls = rest.split("; ").enumerate();
                reply.tool_calls = calls.map(|(place, call)| parse_call(call, answer, place)).collect();
            }
            _ => panic!("not an answer: {line}"),
        }
    }
    ModelCall::Replies(reply)
}

/// `read {"path":"a"}`, or `read#id {…}` where the id matters. What is not JSON is what a model wrote instead.
fn parse_call(text: &str, answer: usize, place: usize) -> ToolCall {
    let (name, input) = text.split_once(' ').unwrap_or((text, "{}"));
    let (name, id) = match name.split_once('#') {
        Some((name, id)) => (name, id.to_owned()),
        None => (name, format!("call_{answer}_{place}")),
    };
    let input = serde_json::from_str(input).unwrap_or_else(|_| Value::String(input.to_owned()));
    ToolCall { id, name: name.to_owned(), input }
}

fn parse_tokens(text: &str) -> TokenCount {
    let (input, output) = text.split_once('/').unwrap();
    TokenCount { input: input.parse().unwrap(), output: output.parse().unwrap(), ..TokenCount::default() }
}

fn parse_failure(text: &str) -> ModelFailure {
    let (kind, message) = text.split_once(": ").unwrap();
    let kind: FailureKind = serde_json::from_value(json!(kind)).unwrap();
    let (message, partial) = match message.split_once(" | ") {
        Some((message, partial)) => (message, Some(partial.to_owned())),
        None => (message, None),
    };
    ModelFailure { kind, message: message.to_owned(), partial }
}

fn parse_output(text: &str) -> (String, ToolOutput) {
    let (head, text) = text.split_once(": ").unwrap();
    let (name, end) = match head.split_once(' ') {
        None => (head, ToolEnd::Ok),
        Some((name, "failed")) => (name, ToolEnd::Failed),
        Some((name, "denied")) => (name, ToolEnd::Denied),
        Some((name, "unknown")) => (name, ToolEnd::Unknown),
        Some((_, other)) => panic!("no tool ends {other}"),
    };
    (name.to_owned(), ToolOutput { text: unescape(text), end, files: Vec::new(), forbidden: None })
}

fn parse_stop(text: &str) -> StopCause {
    let mut words = text.splitn(3, ' ');
    let mut word = || words.next().unwrap_or_default();
    match word() {
        "cancelled" => StopCause::Cancelled,
        "timed_out" => StopCause::TimedOut { after_s: word().parse().unwrap() },
        "stalled" => {
            let after_s = word().parse().unwrap();
            let during: Activity = serde_json::from_value(json!(word())).unwrap();
            StopCause::Stalled { after_s, during }
        }
        "tool_layer" => StopCause::ToolLayer { turn: word().parse().unwrap(), details: word().to_owned() },
        "internal" => StopCause::Internal { details: text["internal ".len()..].to_owned() },
        other => panic!("nothing is stopped by {other}"),
    }
}

/// A text on one line.
pub(crate) fn escape(text: &str) -> String {
    text.replace('\n', "\\n")
}

fn unescape(text: &str) -> String {
    text.replace("\\n", "\n")
}
