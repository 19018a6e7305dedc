//! `locum spawn` and what other processes can do about its task.

use std::time::Instant;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::home::{Home, kill_now, until};

fn hanging() -> Home {
    let home = Home::scripted(&json!({
        "stuck": [{"error": {"kind": "hang"}}],
        "quick": [{"text": "quick: {{task}}"}],
    }));
    for name in ["stuck", "quick"] {
        home.agent(name, "tools: []", "You work.");
    }
    home
}

/// The only worker of a home, once its task has begun.
fn holder(home: &Home) -> u32 {
    let observer = home.observer("main");
    // Accepted, asked: from then on the worker only waits.
    until("a worker that waits for its model", || (observer.first_seq() >= 2).then_some(()));
    let workers = home.workers();
    observer.owners().into_iter().find(|pid| workers.contains(pid)).unwrap()
}

fn check_receipt(answer: &Value, status: &str, processes: &[u32]) {
    assert_eq!(answer["status"], status, "{answer}");
    assert_eq!(answer["receipt"]["confirmed"], true, "{answer}");
    let listed: Vec<_> = answer["receipt"]["processes"].as_array().unwrap().iter().collect();
    let pids: Vec<_> = listed.iter().map(|process| process["pid"].as_u64().unwrap()).collect();
    assert_eq!(pids, processes.iter().map(|pid| u64::from(*pid)).collect::<Vec<_>>(), "{answer}");
    assert!(listed.iter().all(|process| process["ended"] == true), "{answer}");
}

#[test]
fn spawn_answers_before_the_model_does_and_cancel_proves_that_nothing_is_left() {
    let home = hanging();
    let spawned = home.json(&["spawn", "stuck", "x"]);
    assert_eq!((spawned["task_id"].as_str(), spawned["status"].as_str()), (Some("t_01"), Some("running")));
    let worker = holder(&home);

    assert_eq!(home.json(&["status", "t_01"])["status"], "running");
    let (waited, code) = home.answer(&["wait", "t_01", "--timeout", "0"]);
    assert_eq!((waited["timed_out"].as_bool(), code), (Some(true), 124));
    let (refused, code) = home.answer(&["collect", "t_01"]);
    assert_eq!((refused["error"].as_str(), code), (Some("TASK_NOT_READY"), 1));

    let cancelled = home.json(&["cancel", "t_01"]);
    check_receipt(&cancelled, "cancelled", &[worker]);
    assert_eq!(home.workers(), [0_u32; 0]);
    let (collected, code) = home.answer(&["collect", "t_01"]);
    assert_eq!((collected["status"].as_str(), code), (Some("cancelled"), 1));
    assert_eq!(collected["result"], Value::Null);
}

#[test]
fn a_worker_ends_with_its_task() {
    let home = hanging();
    home.json(&["spawn", "quick", "x"]);
    assert_eq!(home.json(&["wait", "t_01"])["tasks"][0]["status"], "completed");
    home.wait_for_no_worker();
    assert_eq!(home.json(&["collect", "t_01"])["result"], "quick: x");
}

#[test]
fn what_waits_is_cancelled_without_having_run() {
    let mut home = hanging();
    home.set("LOCUM_MAX_RUNNING", "1");
    home.json(&["spawn", "stuck", "x"]);
    assert_eq!(home.json(&["spawn", "quick", "y", "--queue"])["status"], "queued");
    assert_eq!(home.json(&["spawn", "quick", "z", "--after", "t_01"])["status"], "waiting");
    let workers = until("three workers", || Some(home.workers()).filter(|workers| workers.len() == 3));
    for id in ["t_02", "t_03"] {
        let cancelled = home.json(&["cancel", id]);
        assert_eq!((&cancelled["status"], &cancelled["receipt"]["confirmed"]), (&json!("cancelled"), &json!(true)));
        assert_eq!(cancelled["receipt"]["usage"]["turns"], 0);
    }
    until("the end of the workers of what waited", || (home.workers().len() == 1).then_some(()));
    assert!(workers.contains(&home.workers()[0]));
    home.json(&["cancel", "t_01"]);
    home.wait_for_no_worker();
}

#[test]
fn a_finished_task_is_not_changed_by_a_cancel() {
    let home = hanging();
    home.json(&["spawn", "quick", "x"]);
    home.json(&["wait"]);
    let before = home.json(&["status", "t_01"]);
    check_receipt(&home.json(&["cancel", "t_01"]), "completed", &[]);
    assert_eq!(home.json(&["status", "t_01"]), before);
    assert_eq!(home.json(&["collect", "t_01"])["result"], "quick: x");
}

#[test]
fn an_orphan_is_cancelled_by_whoever_asks() {
    let home = hanging();
    home.json(&["spawn", "stuck", "x"]);
    let worker = holder(&home);
    kill_now(worker);
    home.wait_for_no_worker();
    check_receipt(&home.json(&["cancel", "t_01"]), "cancelled", &[worker]);
    assert_eq!(home.workers(), [0_u32; 0]);
    assert_eq!(home.json(&["status", "t_01"])["status"], "cancelled");
}

#[test]
fn a_cancel_that_comes_before_the_worker_is_heard() {
    let home = hanging();
    for number in 1..=8 {
        let id = home.json(&["spawn", "stuck", "x"])["task_id"].as_str().unwrap().to_owned();
        let begun = Instant::now();
        let cancelled = home.json(&["cancel", &id]);
        assert_eq!(cancelled["status"], "cancelled", "{number}: {cancelled} after {:?}", begun.elapsed());
    }
    home.wait_for_no_worker();
}

#[test]
fn a_run_in_the_foreground_is_cancelled_from_elsewhere() {
    let home = hanging();
    let run = home.start(&["run", "stuck", "x", "--json"]);
    until("the task of the foreground", || {
        let (status, _) = home.answer(&["status", "t_01"]);
        (status["activity"] == "turn 1: asking the model").then_some(())
    });
    // The process serves a door: it is not the task's own, and may go on.
    let cancelled = home.json(&["cancel", "t_01"]);
    check_receipt(&cancelled, "cancelled", &[]);
    let output = run.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let collected: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(collected["status"], "cancelled");
    assert_eq!(home.workers(), [0_u32; 0]);
}

#[test]
fn a_worker_that_does_not_listen_is_killed_and_its_task_ends() {
    let home = hanging();
    home.json(&["spawn", "stuck", "x"]);
    let worker = holder(&home);
    kill(Pid::from_raw(worker.cast_signed()), Signal::SIGSTOP).unwrap();
    let cancelled = home.json(&["cancel", "t_01"]);
    check_receipt(&cancelled, "cancelled", &[worker]);
    assert_eq!(home.workers(), [0_u32; 0]);
}

/// A worker that was stopped in the middle of a write has the store's lock; here somebody else has it in its stead.
#[test]
fn a_worker_that_keeps_everybody_from_writing_is_killed_too() {
    let home = hanging();
    home.json(&["spawn", "stuck", "x"]);
    let worker = holder(&home);
    kill(Pid::from_raw(worker.cast_signed()), Signal::SIGSTOP).unwrap();
    let store = rusqlite::Connection::open(home.own().join("data/locum.db")).unwrap();
    until("a turn at writing", || store.execute_batch("BEGIN IMMEDIATE").ok());
    let cancel = home.start(&["cancel", "t_01", "--json"]);
    home.wait_for_no_worker();
    store.execute_batch("COMMIT").unwrap();
    let output = cancel.wait_with_output().unwrap();
    check_receipt(&serde_json::from_slice(&output.stdout).unwrap(), "cancelled", &[worker]);
}

#[test]
fn a_door_that_does_not_listen_is_not_killed_and_the_receipt_says_so() {
    let home = hanging();
    let mut run = home.start(&["run", "stuck", "x", "--json"]);
    until("the task of the foreground", || {
        let (status, _) = home.answer(&["status", "t_01"]);
        (status["activity"] == "turn 1: asking the model").then_some(())
    });
    let pid = Pid::from_raw(run.id().cast_signed());
    kill(pid, Signal::SIGSTOP).unwrap();
    let cancelled = home.json(&["cancel", "t_01"]);
    assert_eq!((&cancelled["status"], &cancelled["receipt"]["confirmed"]), (&json!("running"), &json!(false)));
    kill(pid, Signal::SIGCONT).unwrap();
    // What was said to it while it did not listen is heard now.
    assert_eq!(run.wait().unwrap().code(), Some(1));
    assert_eq!(home.output(&["result", "t_01"]).status.code(), Some(0));
}
