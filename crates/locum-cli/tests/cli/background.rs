//! Tasks that outlive the command that started them, and commands that are interrupted.

use std::process::Stdio;
use std::time::Instant;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::home::{Home, PATIENCE};
use crate::settle::settle;
use crate::shell::Shell;

fn home() -> Home {
    let home = Home::new();
    let agent = "---\nname: NAME\ndescription: d\ntools: ls\n---\nYou help.\n";
    for name in ["helper", "silent", "talker"] {
        home.write(&format!("agents/{name}.md"), &agent.replace("NAME", name));
    }
    home
}

fn model(home: &Home) -> String {
    let usage = json!({"input_tokens": 10, "output_tokens": 5});
    home.script(&json!({
        "helper": [{"text": "Done: {{task}}", "usage": usage}],
        "silent": [{"error": {"kind": "hang"}}],
        "talker": [{"text": "So far.", "tool_calls": [{"name": "ls"}], "usage": usage}, {"error": {"kind": "hang"}}],
    }))
}

/// Looks at a task until it has used so many turns.
fn until_turns(shell: &Shell<'_>, task_id: &str, turns: u64) {
    let start = Instant::now();
    loop {
        let ran = shell.quiet(&format!("status {task_id} --json"), "");
        let status: Value = serde_json::from_str(&ran.stdout).unwrap();
        if status["turns_used"] == turns {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "{status}");
    }
}

#[test]
fn a_task_from_spawn_to_collect_in_processes_of_their_own() {
    let home = home();
    let mut shell = Shell::new(&home, &model(&home));
    shell.run("spawn helper 'the task' --label first");
    shell.run("wait t_01 -q");
    shell.run("status");
    shell.run("status t_01");
    shell.run("logs t_01");
    shell.run("collect t_01");
    shell.run("collect t_01");
    shell.run("status t_01 --json");
    shell.run("result t_01");
    shell.run("result t_01 --offset 6 --limit 3");
    shell.run("result t_01 --offset 6 --limit 3 --json");
    shell.run("spawn --json helper t --idempotency-key k");
    shell.quiet("wait", "");
    shell.run("spawn helper t --idempotency-key k -q");
    shell.run("spawn helper u --idempotency-key k");
    shell.run("wait --json");
    shell.run("wait t_99");
    shell.run("collect t_02 --json");
    insta::assert_snapshot!("background_spawn", shell.transcript());
}

#[test]
fn a_task_waits_for_another_and_a_wait_that_expires_exits_with_124() {
    let home = home();
    let mut shell = Shell::new(&home, &model(&home));
    shell.run("spawn silent t");
    until_turns(&shell, "t_01", 1);
    shell.run("spawn helper 'after it' --after t_01");
    shell.run("wait --timeout 0");
    shell.run("wait t_01 --timeout 0 --json");
    shell.run("collect t_01");
    shell.run("result t_01");
    shell.run("cancel t_01 -q");
    shell.run("wait t_02");
    shell.run("collect t_02");
    shell.run("collect t_01");
    insta::assert_snapshot!("background_wait", shell.transcript());
}

#[test]
fn cancel_ends_the_process_and_keeps_what_was_said() {
    let home = home();
    let mut shell = Shell::new(&home, &model(&home));
    shell.quiet("spawn talker t", "");
    until_turns(&shell, "t_01", 2);
    shell.run("cancel t_01");
    shell.run("cancel t_01");
    shell.run("status t_01");
    shell.run("collect t_01");
    shell.run("cancel t_01");
    shell.quiet("spawn silent t", "");
    until_turns(&shell, "t_02", 1);
    shell.run("cancel t_02 --json");
    insta::assert_snapshot!("background_cancel", shell.transcript());
}

/// A process was known to others only five seconds after it had taken a task: one that died before was waited for
/// without end, and a cancel did not see it end.
#[test]
fn a_worker_that_dies_in_its_first_seconds_is_replaced() {
    let home = home();
    let shell = Shell::new(&home, &model(&home));
    shell.quiet("spawn silent t", "");
    until_turns(&shell, "t_01", 1);
    home.kill_workers();
    // The call that was lost may or may not have taken its entry.
    home.script(&json!({"*": [{"text": "Done."}, {"text": "Done."}]}));
    assert_eq!(shell.quiet("wait t_01", "").code, Some(0));
    assert_eq!(shell.quiet("collect t_01 -q", "").stdout, "Done.\n");
}

/// Starts a command in the foreground, interrupts it when its task waits for the model, and waits for its end.
fn interrupt(home: &Home, arguments: &[&str]) -> (Option<i32>, String) {
    let model = model(home);
    let arguments = [arguments, &["--agents", "agents", "--model", &model]].concat();
    let mut command = home.command(&arguments);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until_turns(&Shell::new(home, &model), "t_01", 1);
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn an_interrupt_cancels_the_tasks_and_exits_with_130() {
    for arguments in [
        ["run", "silent", "t"].as_slice(),
        &["run", "silent", "t", "--json"],
        &["parallel", "silent=a", "silent=b"],
        &["chain", "silent=a", "helper=b"],
    ] {
        let home = home();
        assert_eq!(interrupt(&home, arguments), (Some(130), String::new()), "{arguments:?}");
        let tasks: Value = serde_json::from_str(&home.locum(&["status", "--json"]).stdout).unwrap();
        let states: Vec<&Value> = tasks["tasks"].as_array().unwrap().iter().map(|task| &task["status"]).collect();
        assert_eq!(states.len(), if arguments[0] == "run" { 1 } else { 2 }, "{tasks}");
        // The second step of a chain may see that the first was cancelled before it is cancelled itself.
        assert_eq!(states[0], "cancelled", "{tasks}");
        assert!(states.iter().all(|state| *state == "cancelled" || *state == "failed"), "{tasks}");
    }
}

#[test]
fn what_is_unfinished_when_a_caller_leaves_is_handed_on() {
    let home = home();
    let model = home.script(&json!({"*": [
        {"text": "So far.", "tool_calls": [{"name": "ls"}], "usage": {}, "delay_ms": 300},
        {"text": "Done.", "usage": {}},
    ]}));
    let spawn = r#"{"action": "spawn", "agent": "writer", "task": "t"}"#;
    // The end of the input, and the end of a single call.
    let answers = home.call(&model, format!("{{\"tool\": \"subagent\", \"input\": {spawn}}}\n").as_bytes());
    assert_eq!(answers[0]["status"], "running");
    let ran = home.locum(&["call", "subagent", spawn, "--model", &model, "--session", "test"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for task_id in ["t_01", "t_02"] {
        let waited = home.locum(&["wait", task_id, "--session", "test"]);
        assert_eq!(waited.code, Some(0), "{waited:?}");
        let collected = home.locum(&["collect", task_id, "--session", "test", "--json"]);
        let answer = settle(serde_json::from_str(&collected.stdout).unwrap(), &home.root());
        let seen =
            json!([answer["status"], answer["result"], answer["turns_used"], answer["receipt"]["model"]["effective"]]);
        assert_eq!(seen, json!(["completed", "Done.", 2, "scripted:ROOT/script.json"]));
    }
}
