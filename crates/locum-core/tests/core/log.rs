//! What a log may not say, and what a task has spent when its log was cut.

use std::sync::Arc;

use locum_core::task::event::{FailureKind, ModelFailure, StopCause};
use locum_core::task::{Misfit, Outcome, Record, Step, Task, TaskEvent};
use locum_core::transcript::{Repeat, Reply, Stop, ToolOutput};
use locum_core::usage::TokenCount;

use crate::script::Script;
use crate::stage::{Ends, play, record, resume};

/// Its log: accepted, turn, reply, tool started, tool ended, turn, reply, ended.
const WRITES: &str = "agent tools=write\ntask Go\n> calls write {}\n< write: done\n> says done";

fn log_of(text: &str) -> Vec<Record> {
    play(&Script::parse(text), Ends::InOrder).log
}

fn turn(turn: u32) -> TaskEvent {
    TaskEvent::TurnStarted { turn, reserved: TokenCount::default(), closing: None }
}

fn reply(turn: u32) -> TaskEvent {
    let reply =
        Reply { text: "hm".into(), tool_calls: vec![], stop: Stop::End, tokens: TokenCount::default(), opaque: None };
    TaskEvent::Replied { turn, reply }
}

fn failure(turn: u32) -> TaskEvent {
    let failure = ModelFailure { kind: FailureKind::Server, message: "500".into(), partial: None };
    TaskEvent::ModelFailed { turn, failure, retry_in_ms: None, tokens: TokenCount::default() }
}

fn tool_started(turn: u32, call_id: &str) -> TaskEvent {
    TaskEvent::ToolStarted {
        turn,
        call_id: call_id.into(),
        name: "write".into(),
        repeat: Repeat::Unsafe,
        intent: None,
        consent: None,
    }
}

fn tool_ended(turn: u32, call_id: &str) -> TaskEvent {
    TaskEvent::ToolEnded { turn, call_id: call_id.into(), output: ToolOutput::ok("x"), duration_ms: 0 }
}

/// Each entry does not fit after so many entries of the log of [`WRITES`].
#[test]
fn entries_that_cannot_follow_are_misfits() {
    let log = log_of(WRITES);
    let cancelled = || TaskEvent::Stopped { cause: StopCause::Cancelled, partial: None };
    let cases = [
        (1, log[0].event.clone(), "the task was accepted before"),
        (1, TaskEvent::Released { inputs: vec![] }, "the task was not waiting"),
        (1, turn(0), "the turn does not follow"),
        (1, turn(2), "the turn does not follow"),
        (1, reply(0), "nothing was asked"),
        (1, failure(0), "nothing was asked"),
        (1, tool_started(0, "call_0_0"), "no such tool call"),
        (2, turn(2), "the turn does not follow"),
        (2, reply(2), "nothing was asked"),
        (2, failure(2), "nothing was asked"),
        (2, tool_ended(1, "call_0_0"), "no such tool call"),
        (3, turn(1), "the turn does not follow"),
        (3, turn(2), "the turn does not follow"),
        (3, tool_started(2, "call_0_0"), "no such tool call"),
        (3, tool_started(1, "other"), "no such tool call"),
        (4, tool_started(1, "call_0_0"), "an unrepeatable tool call was started twice"),
        (4, tool_ended(2, "call_0_0"), "no such tool call"),
        (5, tool_ended(1, "call_0_0"), "no such tool call"),
        (7, turn(2), "the turn does not follow"),
        (7, reply(2), "nothing was asked"),
        (8, turn(2), "the task had ended"),
        (8, cancelled(), "the task had ended"),
        (8, log[7].event.clone(), "the task had ended"),
    ];
    for (entries, event, why) in cases {
        let mut task = Task::replay(log[..entries].to_vec()).unwrap();
        let (seq, before) = (task.seq() + 1, format!("{task:?}"));
        assert_eq!(task.apply(record(seq, event.clone())), Err(Misfit { seq, why }), "after {entries}: {event:?}");
        assert_eq!(format!("{task:?}"), before, "a misfit changes nothing");
    }
}

#[test]
fn a_stopped_task_is_not_brought_back_by_a_turn() {
    let mut task = Task::replay(log_of(WRITES)[..2].to_vec()).unwrap();
    task.apply(record(3, TaskEvent::Stopped { cause: StopCause::Cancelled, partial: None })).unwrap();
    assert!(task.apply(record(4, turn(1))).is_err());
    assert_eq!(task.next_step(), Step::Record(TaskEvent::Ended { outcome: Outcome::Cancelled { partial: None } }));
}

#[test]
fn a_waiting_task_takes_no_turn() {
    let log = log_of("agent\nafter t_01 reader: x\ntask Go\n> says done");
    let mut task = Task::replay(log[..1].to_vec()).unwrap();
    assert_eq!(task.next_step(), Step::Park);
    assert!(task.apply(record(2, turn(0))).is_err());
    assert!(task.apply(record(2, turn(1))).is_err());
}

#[test]
fn a_log_begins_with_an_acceptance_numbered_1() {
    let log = log_of(WRITES);
    let why = |log: Vec<Record>| Task::replay(log).unwrap_err().to_string();
    let at = |seq, event: &TaskEvent| vec![record(seq, event.clone())];
    insta::assert_snapshot!(why(vec![]), @"the log of the task does not fit at entry 0: it is empty");
    insta::assert_snapshot!(why(at(1, &log[1].event)), @"the log of the task does not fit at entry 1: it does not begin with an acceptance");
    insta::assert_snapshot!(why(at(2, &log[0].event)), @"the log of the task does not fit at entry 2: its first number is not 1");
    insta::assert_snapshot!(why(vec![log[0].clone(), log[2].clone()]), @"the log of the task does not fit at entry 3: its number does not follow");
    let TaskEvent::Accepted { mut plan, parked } = log[0].event.clone() else { panic!("{log:?}") };
    Arc::make_mut(&mut plan).log_version += 1;
    insta::assert_snapshot!(why(at(1, &TaskEvent::Accepted { plan, parked })), @"the log of the task does not fit at entry 1: it was written by a newer version of locum");
}

fn reserved(record: &Record) -> u64 {
    let TaskEvent::TurnStarted { reserved, .. } = &record.event else { panic!("{record:?}") };
    reserved.input
}

#[test]
fn a_lost_call_counts_as_spent_once() {
    let script = Script::parse("agent\ntask Go\n> says done @7/3");
    let log = play(&script, Ends::InOrder).log;
    let rest = resume(&script, &log[..2], Ends::InOrder);
    assert_eq!(rest.task.usage().input_tokens, reserved(&log[1]) + 7);
    assert_eq!(rest.task.usage().output_tokens, 3);
    assert_eq!(rest.task.usage().turns, 1);
}

#[test]
fn a_lost_call_is_announced_again_only_within_the_budget() {
    let mut script = Script::parse("agent\ntask Go\n> says done");
    let cost = reserved(&play(&script, Ends::InOrder).log[1]);
    for (max_input, fits) in [(cost * 2, true), (cost * 2 - 1, false)] {
        script.plan.bounds.budget.max_input_tokens = Some(max_input);
        let log = play(&script, Ends::InOrder).log;
        let rest = resume(&script, &log[..2], Ends::InOrder);
        assert_eq!(rest.outcome().error().is_none(), fits, "{:?}", rest.outcome());
        assert!(rest.task.usage().input_total() <= max_input);
    }
}

#[test]
fn a_call_that_was_cut_off_counts_as_spent() {
    let stopped = play(&Script::parse("agent\ntask Go\n! cancelled"), Ends::InOrder);
    assert_eq!(stopped.task.usage().input_tokens, reserved(&stopped.log[1]));
    let failed = play(&Script::parse("agent\ntask Go\n> fails server: 500\n> gives up auth: no"), Ends::InOrder);
    assert_eq!(failed.task.usage().input_tokens, 0, "a call that was answered with an error costs nothing");
}

#[test]
fn a_finished_task_holds_no_transcript() {
    let played = play(&Script::parse(WRITES), Ends::InOrder);
    assert_eq!(played.task.messages(), []);
    assert_eq!(played.task.next_step(), Step::Done);
    assert_eq!(played.task.usage().duration_ms, 7000, "from the first entry to the last, a second each");
}

#[test]
fn a_batch_cut_after_its_second_call_runs_only_the_open_ones() {
    let text = "agent tools=read,grep\ntask Go\n> calls read {\"n\":1}; grep {\"n\":2}; read {\"n\":3}\n> says done";
    let mut log = log_of(text);
    log.truncate(6);
    let TaskEvent::ToolStarted { call_id, .. } = &log[4].event else { panic!("{log:?}") };
    log.push(record(7, tool_ended(1, &call_id.clone())));
    let Step::CallTools { calls, .. } = Task::replay(log).unwrap().next_step() else { panic!("no tools") };
    let ids: Vec<&str> = calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(ids, ["call_0_0", "call_0_2"]);
}
