//! A process is killed in the middle of its task; other processes answer for it.

use std::io::Write;

use serde_json::{Value, json};

use crate::home::{Home, kill_now, subagent_lines, until};

#[test]
fn after_a_kill_status_wait_and_collect_answer_from_other_processes() {
    let home = Home::scripted(&json!({"plain": [
        {"tool_calls": [{"name": "think", "input": {"thought": "hm"}}]},
        {"text": "plain: {{task}}", "delay_ms": 200},
    ]}));
    home.agent("plain", "tools: think", "You are plain.");
    home.json(&["status"]);
    let observer = home.observer("main");
    let mut run = home.start(&["run", "plain", "x"]);
    // Accepted, asked, answered, a tool started and ended, asked again.
    until("the second turn", || (observer.first_seq() >= 6).then_some(()));
    kill_now(run.id());
    run.wait().unwrap();

    let status = home.json(&["status", "t_01"]);
    assert_eq!((&status["status"], &status["turns_used"]), (&json!("running"), &json!(2)));
    let (refused, code) = home.answer(&["collect", "t_01"]);
    assert_eq!((&refused["error"], code), (&json!("TASK_NOT_READY"), 1));
    let waited = home.json(&["wait", "t_01"]);
    assert_eq!(waited["tasks"][0]["status"], "completed");
    let collected = home.json(&["collect", "t_01"]);
    assert_eq!(collected["result"], "plain: x");
    assert_eq!(collected["turns_used"], 2);
    let (again, code) = home.answer(&["collect", "t_01"]);
    assert_eq!((&again["error"], code), (&json!("TASK_NOT_FOUND"), 1));
    assert_eq!(home.json(&["result", "t_01"])["text"], "plain: x");

    let output = home.output(&["logs", "t_01", "--json"]);
    let log = crate::home::whole_lines(&output.stdout);
    let events: Vec<_> = log.iter().map(|record| record["event"]["event"].as_str().unwrap()).collect();
    let expected = [
        "accepted",
        "turn_started",
        "replied",
        "tool_started",
        "tool_ended",
        "turn_started",
        "worker_lost",
        "turn_started",
        "replied",
        "ended",
    ];
    assert_eq!(events, expected, "the lost call is announced again, nothing else is");
    let seqs: Vec<Value> = log.iter().map(|record| record["seq"].clone()).collect();
    assert_eq!(seqs, (1..=10).map(|seq| json!(seq)).collect::<Vec<_>>());
}

/// The command ends the process that works on its task: a door's own, or one that is detached.
#[test]
fn a_task_that_ends_its_process_three_times_is_not_tried_again() {
    // Its parent is what runs the command, and the parent of that is locum.
    let poison = "read -r _ _ _ parent _ < /proc/$PPID/stat; kill -9 $parent; sleep 600";
    let call = json!({"text": "Trying.", "tool_calls": [{"name": "bash", "input": {"command": poison}}]});
    for verb in ["run", "spawn"] {
        let home = Home::scripted(&json!({"sh": [call, call, call, call, call, {"text": "never"}]}));
        home.agent("sh", "tools: bash", "You run.");
        home.json(&["status"]);
        let observer = home.observer("main");
        home.start(&[verb, "sh", "x", "--sandbox", "none"]).wait().unwrap();
        let ended = until("the end of the task", || {
            // Whoever looks sees to it that somebody goes on.
            home.json(&["status"]);
            observer.tasks().into_iter().find(|row| row.summary.standing.completed_at.is_some())
        });
        let answer = home.json(&["result", "t_01"]);
        assert_eq!((&answer["status"], &answer["text"]), (&json!("failed"), &json!("Trying.")), "{verb}");
        let standing = &ended.summary.standing;
        assert_eq!(standing.reason.map(|reason| reason.as_str()), Some("interrupted"), "{verb}");
        let error = "Interrupted: its worker process ended 3 times before it did";
        assert_eq!(standing.error.as_deref(), Some(error), "{verb}");
        assert_eq!(standing.usage.turns, 3, "{verb}: each process asked once");
        home.wait_for_no_worker();
    }
}

/// A task of the killed worker has a log that nobody can read, at its beginning or later.
#[test]
fn a_log_that_cannot_be_read_keeps_no_other_task_from_going_on() {
    // The first entry of a log, or only the second record in it.
    for spoilt in ["'{\"event\":\"unheard\"}'", "json_set(event, '$[1][1].event', 'unheard')"] {
        let home = Home::scripted(&json!({"plain": [{"text": "plain: {{task}}", "delay_ms": 300}]}));
        home.agent("plain", "tools: []", "You are plain.");
        let spawn = |task: &str| json!({"action": "spawn", "agent": "plain", "task": task});
        home.json(&["status"]);
        let observer = home.observer("main");
        let mut call = home.start(&["call", "-", "--session", "main"]);
        let lines = subagent_lines(&[spawn("x"), spawn("y"), spawn("z")]);
        call.stdin.as_mut().unwrap().write_all(lines.as_bytes()).unwrap();
        until("three tasks", || (observer.events() >= 6).then_some(()));
        kill_now(call.id());
        call.wait().unwrap();
        let connection = rusqlite::Connection::open(home.own().join("data/locum.db")).unwrap();
        let spoil = format!("UPDATE events SET event = {spoilt} WHERE seq = 1 AND task = 1");
        assert_eq!(connection.execute(&spoil, []).unwrap(), 1);

        let (waited, _) = home.answer(&["wait", "t_02", "--timeout", "30"]);
        assert_eq!(waited["tasks"][0]["status"], "completed", "{spoilt}: {waited}");
        let answers =
            home.calls("main", &[json!({"action": "collect", "task_id": "t_03"}), json!({"action": "status"})]);
        assert_eq!(answers[0]["result"], "plain: z", "{spoilt}: {answers:?}");
        assert_eq!(answers[1]["tasks"][0]["status"], "running", "{spoilt}: what is wrong with it can be looked at");
        let (refused, code) = home.answer(&["cancel", "t_01"]);
        assert_eq!((&refused["error"], code), (&json!("INTERNAL"), 1), "{spoilt}");
    }
}
