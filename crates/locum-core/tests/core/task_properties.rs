//! The task machine under random logs and random models: it never panics, and it always comes to one end.

use std::sync::Arc;

use locum_core::ids::TaskId;
use locum_core::protocol::face::TurnRule;
use locum_core::task::event::{Activity, FailureKind, HandedOn, ModelFailure, Parked, StopCause};
use locum_core::task::plan::ModelName;
use locum_core::task::{Outcome, Record, Task, TaskEvent};
use locum_core::transcript::{Repeat, Reply, Stop, ToolCall, ToolOutput};
use locum_core::usage::TokenCount;
use proptest::prelude::{BoxedStrategy, Strategy, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::sample::select;
use proptest::strategy::Just;
use serde_json::{Value, json};

use crate::script::{Answer, ModelCall, Script};
use crate::stage::{Ends, Played, play, record, resume};
use crate::world::agent_name;

fn tokens() -> impl Strategy<Value = TokenCount> {
    let number = || prop_oneof![0u64..500, Just(u64::MAX), Just(u64::MAX - 1)];
    (number(), number(), number(), number()).prop_map(|(input, output, cache_read, cache_write)| TokenCount {
        input,
        output,
        cache_read,
        cache_write,
    })
}

fn call() -> impl Strategy<Value = ToolCall> {
    let id = select(vec!["a", "b", "c", ""]);
    let name = select(vec!["read", "grep", "write", "bash", "fly"]);
    let input = prop_oneof![
        4 => (0..1000).prop_map(|number| json!({"n": number})),
        1 => Just(json!([])),
        1 => Just(Value::String("{".to_owned())),
    ];
    (id, name, input).prop_map(|(id, name, input)| ToolCall { id: id.into(), name: name.into(), input })
}

fn reply() -> impl Strategy<Value = Reply> {
    let text = select(vec!["", " ", "text", "{{task}}"]);
    let stop = prop_oneof![Just(Stop::End), Just(Stop::ToolUse), Just(Stop::Length), Just(Stop::Refused("no".into()))];
    let calls = prop_oneof![
        1 => Just(Vec::new()),
        3 => prop::collection::vec(call(), 1..6),
        1 => prop::collection::vec(call(), 60..70),
    ];
    (text, calls, stop, tokens()).prop_map(|(text, tool_calls, stop, tokens)| Reply {
        text: text.into(),
        tool_calls,
        stop,
        tokens,
        opaque: None,
    })
}

fn failure() -> impl Strategy<Value = ModelFailure> {
    let kind = select(vec![FailureKind::Server, FailureKind::Auth, FailureKind::CutStream]);
    let partial = prop::option::of(Just("part".to_owned()));
    (kind, partial).prop_map(|(kind, partial)| ModelFailure { kind, message: "m".into(), partial })
}

fn cause() -> impl Strategy<Value = StopCause> {
    select(vec![
        StopCause::Cancelled,
        StopCause::TimedOut { after_s: u64::MAX },
        StopCause::Stalled { after_s: 1, during: Activity::Tool },
        StopCause::ToolLayer { turn: u32::MAX, details: "d".into() },
        StopCause::Internal { details: "d".into() },
    ])
}

fn script_model(id: &str) -> ModelName {
    ModelName { provider: "acme".to_owned(), id: id.to_owned() }
}

/// Any entry but an acceptance, with numbers that are near what would fit.
fn event() -> BoxedStrategy<TaskEvent> {
    let turn = || prop_oneof![8 => 0u32..4, 1 => Just(u32::MAX)];
    let call_id = || select(vec!["a", "b", "c", "", "other"]).prop_map(str::to_owned);
    let repeat = select(vec![Repeat::Safe, Repeat::Unsafe]);
    let inputs = prop::collection::vec(Just("text".to_owned()), 0..3).prop_map(|texts| {
        let hand = |text| HandedOn { task_id: TaskId::new(1), agent: agent_name("reader"), text };
        texts.into_iter().map(hand).collect::<Vec<_>>()
    });
    let outputs = select(vec![ToolOutput::ok("o"), ToolOutput::failed("f"), ToolOutput::denied("d")]);
    prop_oneof![
        1 => inputs.prop_map(|inputs| TaskEvent::Released { inputs }),
        4 => (turn(), tokens()).prop_map(|(turn, reserved)| TaskEvent::TurnStarted { turn, reserved, closing: None }),
        4 => (turn(), reply()).prop_map(|(turn, reply)| TaskEvent::Replied { turn, reply }),
        2 => (turn(), failure(), any::<Option<u64>>(), tokens()).prop_map(|(turn, failure, retry_in_ms, tokens)| {
            TaskEvent::ModelFailed { turn, failure, retry_in_ms, tokens }
        }),
        1 => turn().prop_map(|turn| TaskEvent::ModelReplaced {
            turn, from: script_model("s"), to: script_model("b"), why: "w".into(),
        }),
        3 => (turn(), call_id(), repeat).prop_map(|(turn, call_id, repeat)| TaskEvent::ToolStarted {
            turn, call_id, name: "read".into(), repeat, intent: None, consent: None,
        }),
        4 => (turn(), call_id(), outputs).prop_map(|(turn, call_id, output)| TaskEvent::ToolEnded {
            turn, call_id, output, duration_ms: u64::MAX,
        }),
        1 => cause().prop_map(|cause| TaskEvent::Stopped { cause, partial: Some("p".into()) }),
        1 => Just(TaskEvent::Ended { outcome: Outcome::Cancelled { partial: None } }),
    ]
    .boxed()
}

/// A plan with all tools, under random bounds.
fn script(answers: Vec<Answer>, turns: u32, rule: TurnRule, budget: Option<u64>) -> Script {
    let mut script = Script::parse("agent tools=read,grep,write,bash fallback=b\ntask Go");
    script.plan.bounds.max_turns = turns;
    script.plan.face.turns = rule;
    script.plan.bounds.budget.max_input_tokens = budget;
    script.plan.bounds.budget.max_output_tokens = budget;
    script.answers = answers;
    script
}

/// Enough answers for every script: the last ones give up.
fn answers() -> impl Strategy<Value = Vec<Answer>> {
    let fails = (failure(), prop_oneof![Just(Some(1u64)), Just(None)]);
    let call = prop_oneof![
        5 => reply().prop_map(ModelCall::Replies),
        1 => fails.prop_map(|(failure, retry_in_ms)| ModelCall::Fails(failure, retry_in_ms)),
    ];
    prop::collection::vec(call, 0..12).prop_map(|mut calls| {
        let failure = ModelFailure { kind: FailureKind::Auth, message: "script ended".into(), partial: None };
        // The model of the plan and the one in its place.
        calls.extend([ModelCall::Fails(failure.clone(), None), ModelCall::Fails(failure, None)]);
        calls.into_iter().map(|call| Answer { call, outputs: Vec::new() }).collect()
    })
}

fn rule() -> impl Strategy<Value = TurnRule> {
    select(vec![TurnRule::ModelCalls, TurnRule::ToolReplies])
}

fn budget() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![Just(None), Just(Some(u64::MAX)), (0u64..2000).prop_map(Some)]
}

fn ends(played: &Played) -> usize {
    played.log.iter().filter(|record| matches!(record.event, TaskEvent::Ended { .. })).count()
}

proptest! {
    #[test]
    fn no_log_makes_the_machine_panic(
        events in prop::collection::vec(event(), 0..40),
        parked in select(vec![None, Some(Parked::Queued), Some(Parked::Waiting)]),
        turns in 0u32..4,
        rule in rule(),
        budget in budget(),
    ) {
        let plan = Arc::new(script(Vec::new(), turns, rule, budget).plan);
        let first = record(1, TaskEvent::Accepted { plan, parked });
        let mut task = Task::accepted(first.clone()).unwrap();
        let mut log: Vec<Record> = vec![first];
        for event in events {
            let entry = record(task.seq() + 1, event);
            if task.apply(entry.clone()).is_ok() {
                log.push(entry);
            }
            prop_assert_eq!(task.next_step(), task.next_step());
            prop_assert_eq!(task.summary().seq, log.len() as u64);
        }
        let again = Task::replay(log).unwrap();
        prop_assert_eq!(again.summary(), task.summary());
        prop_assert_eq!(again.messages(), task.messages());
    }

    #[test]
    fn every_conversation_ends_once_and_within_its_turns(
        answers in answers(),
        turns in 1u32..6,
        rule in rule(),
        budget in budget(),
    ) {
        let script = script(answers, turns, rule, budget);
        let played = play(&script, Ends::Reversed);
        prop_assert_eq!(ends(&played), 1);
        prop_assert!(played.task.usage().turns <= turns + u32::from(rule == TurnRule::ToolReplies));
        let completed = matches!(played.outcome(), Outcome::Completed { text } if !text.trim().is_empty());
        prop_assert_eq!(completed, played.outcome().error().is_none());
    }

    #[test]
    fn a_random_conversation_cut_anywhere_ends_the_same(
        answers in answers(),
        turns in 1u32..6,
        rule in rule(),
        cut in any::<prop::sample::Index>(),
    ) {
        let script = script(answers, turns, rule, None);
        let whole = play(&script, Ends::Reversed);
        let rest = resume(&script, &whole.log[..=cut.index(whole.log.len())], Ends::Reversed);
        prop_assert_eq!(rest.outcome(), whole.outcome());
        prop_assert_eq!(rest.task.usage().turns, whole.task.usage().turns);
        prop_assert_eq!(ends(&rest), 1);
    }
}
