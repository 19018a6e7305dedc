//! Logs of earlier versions. A file here is written once and never changed: what it holds is on somebody's disk. New
//! kinds of entries get a new file. Each line is one entry; a log begins with its acceptance and ends with its end.

use locum_core::protocol::FaceDefaults;
use locum_core::protocol::face::AgentScope;
use locum_core::task::{Outcome, Record, Task, TaskEvent};

const V1: &str = include_str!("golden/v1.jsonl");
const V1_FACES: &str = include_str!("golden/v1_faces.jsonl");
const V1_REPLACED: &str = include_str!("golden/v1_replaced.jsonl");
const V1_WORKTREE: &str = include_str!("golden/v1_worktree.jsonl");

fn logs(text: &str) -> Vec<Vec<Record>> {
    let mut logs: Vec<Vec<Record>> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let record: Record = serde_json::from_str(line).unwrap_or_else(|error| panic!("line {}: {error}", number + 1));
        if record.seq == 1 {
            logs.push(Vec::new());
        }
        logs.last_mut().unwrap().push(record);
    }
    logs
}

/// Replays a log without its end: the machine must decide on the same end again.
fn check(log: &[Record]) -> String {
    let (last, rest) = log.split_last().unwrap();
    let TaskEvent::Ended { outcome } = &last.event else { panic!("no end: {last:?}") };
    let task = Task::replay(log.to_vec()).unwrap();
    assert_eq!(task.outcome(), Some(outcome));
    let decided = Task::replay(rest.to_vec()).unwrap().next_step();
    if task.plan().task_id.number() != ENDED_BY_THE_SESSION {
        assert_eq!(decided, locum_core::task::Step::Record(last.event.clone()));
    }
    let usage = task.usage();
    let end = match outcome {
        Outcome::Completed { text } => text.clone(),
        Outcome::Failed { error, .. } => error.clone(),
        Outcome::Cancelled { partial } => format!("cancelled, {partial:?}"),
    };
    let (id, turns, input) = (task.plan().task_id, usage.turns, usage.input_tokens);
    format!("{id}: {end} ({} entries, {turns} turns, {} calls, {input} tokens in)", log.len(), usage.tool_calls)
}

/// The task of the golden logs that never ran: what it waited for had failed.
const ENDED_BY_THE_SESSION: u32 = 7;

#[test]
fn logs_of_version_1_replay() {
    let lines: Vec<String> = logs(V1).iter().map(|log| check(log)).collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    t_01: It is in `a` (18 entries, 3 turns, 5 calls, 260 tokens in)
    t_02: Model API error: the key is wrong (6 entries, 1 turns, 0 calls, 0 tokens in)
    t_03: cancelled, Some("So far") (8 entries, 1 turns, 1 calls, 10 tokens in)
    t_04: Timed out after 30 s (5 entries, 1 turns, 0 calls, 88 tokens in)
    t_05: built (9 entries, 2 turns, 1 calls, 96 tokens in)
    t_06: Max turns exceeded without producing a final response (10 entries, 2 turns, 2 calls, 20 tokens in)
    t_07: Dependency t_02 failed: Model API error: the key is wrong (2 entries, 0 turns, 0 calls, 0 tokens in)
    t_08: The model refused to answer: it is harmful (5 entries, 1 turns, 0 calls, 10 tokens in)
    t_09: Stalled: no activity for 180 s during model (4 entries, 1 turns, 0 calls, 86 tokens in)
    t_10: Tool execution error in turn 1: the pool is gone (6 entries, 1 turns, 0 calls, 0 tokens in)
    t_11: Budget exceeded: input tokens would pass 150 (6 entries, 1 turns, 1 calls, 90 tokens in)
    "#);
}

#[test]
fn logs_with_a_replaced_model_replay() {
    let log = logs(V1_REPLACED).remove(0);
    assert_eq!(check(&log), "t_01: done (11 entries, 2 turns, 1 calls, 0 tokens in)");
    let task = Task::replay(log).unwrap();
    let model = task.receipt().model;
    let why = "the session's model (a test); acme:b answered in the place of scripted:s: slow down";
    assert_eq!((model.effective.as_str(), model.why.as_str()), ("acme:b", why));
    assert_eq!(task.replacements().len(), 1);
    assert_eq!((task.plan().price.is_some(), task.price()), (true, None), "the price is that of the model");
}

#[test]
fn logs_with_a_worktree_replay() {
    let log = logs(V1_WORKTREE).remove(0);
    assert_eq!(check(&log), "t_01: Well done (12 entries, 2 turns, 2 calls, 0 tokens in)");
    let task = Task::replay(log).unwrap();
    assert_eq!(task.workspace().map(|workspace| workspace.dirty_left_out), Some(2));
    assert_eq!(task.worktree().map(|worktree| worktree.files_changed), Some(1));
    let failed = logs(V1_WORKTREE).remove(1);
    assert_eq!(check(&failed), "t_01: Isolation failed: git was not found (3 entries, 0 turns, 0 calls, 0 tokens in)");
}

#[test]
fn logs_of_version_1_are_written_as_they_were_read() {
    for line in V1.lines().chain(V1_REPLACED.lines()).chain(V1_WORKTREE.lines()) {
        let record: Record = serde_json::from_str(line).unwrap();
        assert_eq!(serde_json::to_string(&record).unwrap(), line);
    }
}

#[test]
fn the_golden_logs_hold_every_kind_of_entry() {
    for kind in [
        "accepted",
        "released",
        "turn_started",
        "replied",
        "model_failed",
        "tool_started",
        "tool_ended",
        "stopped",
        "ended",
    ] {
        assert!(V1.contains(&format!("\"event\":\"{kind}\"")), "{kind}");
    }
    assert!(V1_REPLACED.contains("\"event\":\"model_replaced\""));
    for kind in ["workspace_ready", "workspace_closed"] {
        assert!(V1_WORKTREE.contains(&format!("\"event\":\"{kind}\"")), "{kind}");
    }
}

#[test]
fn logs_of_version_1_with_the_terms_of_faces_replay() {
    let logs = logs(V1_FACES);
    let lines: Vec<String> = logs.iter().map(|log| check(log)).collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    t_09: Stalled: no activity for 180 s during model (4 entries, 1 turns, 0 calls, 86 tokens in)
    t_08: The model refused to answer: it is harmful (5 entries, 1 turns, 0 calls, 10 tokens in)
    "#);
    // What was written then is what these faces say now.
    let faces =
        [FaceDefaults::pi(), FaceDefaults { concurrency: Some(4), scope: AgentScope::User, ..FaceDefaults::tallow() }];
    for (log, face) in logs.iter().zip(faces) {
        assert_eq!(Task::replay(log.to_vec()).unwrap().plan().face, face);
    }
}
