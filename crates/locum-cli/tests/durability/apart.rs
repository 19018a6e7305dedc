//! Tasks in worker processes: the same answers, no keys, and an end whatever happens to either side.

use std::fs;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::home::{Home, kill_now, until, whole_lines};
use crate::model_server::{Answer, ModelServer};

/// What happens at once, on a machine that does many other things.
const SOON: Duration = Duration::from_secs(20);

/// The worker processes that are attached to another one.
fn attached(home: &Home) -> Vec<u32> {
    home.workers().into_iter().filter(|pid| arguments(*pid).contains(&"attached".to_owned())).collect()
}

fn arguments(pid: u32) -> Vec<String> {
    let text = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    text.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z') && !rest.starts_with('X'))
}

/// The one worker, once it is there.
fn worker(home: &Home) -> u32 {
    until("a worker", || attached(home).first().copied())
}

fn events(home: &Home, task: &str) -> Vec<Value> {
    whole_lines(&home.output(&["logs", task, "--json"]).stdout)
}

fn names(events: &[Value]) -> Vec<&str> {
    events.iter().filter_map(|record| record["event"]["event"].as_str()).collect()
}

/// A process of a test's command, found by the file that it wrote.
fn pid_in(home: &Home, file: &str) -> u32 {
    let path = home.project().join(file);
    until("a process id", || fs::read_to_string(&path).ok()?.trim().parse().ok())
}

#[test]
fn a_task_in_a_process_of_its_own_is_answered_as_everywhere() {
    let home = Home::scripted(&json!({
        "busy": [
            {"tool_calls": [
                {"name": "read", "input": {"path": "note.txt"}},
                {"name": "grep", "input": {"pattern": "secret"}},
                {"name": "shared_context", "input": {"action": "write", "key": "k", "value": "v"}},
            ], "text": "Looking."},
            {"tool_calls": [
                {"name": "write", "input": {"path": "made.txt", "content": "made"}},
                {"name": "nonsense", "input": {}},
            ]},
            {"tool_calls": [{"name": "subagent", "input": {"action": "run", "agent": "below", "task": "help"}}]},
            {"error": {"kind": "server"}},
            {"text": "Done: {{task}}"},
        ],
        "below": [{"text": "helped"}],
    }));
    home.agent("busy", "tools: read, grep, write, shared_context, subagent", "You are busy.");
    home.agent("below", "tools: []", "You help.");
    let told = |isolation: &str| {
        let (made, note) = (home.project().join("made.txt"), home.project().join("note.txt"));
        fs::remove_file(made).ok();
        fs::write(note, "a secret note\n").unwrap();
        let session = format!("s-{isolation}");
        let run = ["run", "busy", "it", "--session", &session, "--isolation", isolation];
        let mut command = home.command(&[run.as_slice(), &["--json"]].concat());
        let output = command.env("LOCUM_MAX_DEPTH", "2").output().unwrap();
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
        assert_eq!(answer["receipt"]["isolation"], isolation, "{answer}");
        assert_eq!(fs::read_to_string(home.project().join("made.txt")).unwrap(), "made");
        let log = whole_lines(&home.output(&["logs", "t_01", "--json", "--session", &session]).stdout);
        let outputs = log.iter().filter_map(|record| record["event"]["output"]["text"].as_str());
        // What the task below answers has an id of its own, and a write has a time.
        let outputs: Vec<String> = outputs
            .filter(|text| !text.contains("task_id") && !text.contains("written_at"))
            .map(str::to_owned)
            .collect();
        let names: Vec<String> =
            names(&log).into_iter().filter(|name| *name != "processes_ended").map(str::to_owned).collect();
        let usage = ["turns", "tool_calls", "input_tokens", "output_tokens"].map(|name| answer["usage"][name].clone());
        (answer["result"].clone(), answer["status"].clone(), usage, names, outputs)
    };
    let inside = told("none");
    assert_eq!(inside.0, "Done: it");
    assert_eq!(told("process"), inside);
    assert_eq!(attached(&home), [0; 0], "the worker ends with its task");
}

#[test]
fn the_setting_makes_every_task_run_in_a_process() {
    let mut home = Home::scripted(&json!({"plain": [{"text": "plain: {{task}}"}]}));
    home.agent("plain", "tools: []", "You are plain.");
    home.set("LOCUM_EXECUTOR", "process");
    let answer = home.json(&["run", "plain", "x"]);
    assert_eq!((&answer["result"], &answer["receipt"]["isolation"]), (&json!("plain: x"), &json!("process")));
    let spawned = home.json(&["spawn", "plain", "y"]);
    home.json(&["wait", spawned["task_id"].as_str().unwrap()]);
    let collected = home.json(&["collect", spawned["task_id"].as_str().unwrap()]);
    assert_eq!(collected["receipt"]["isolation"], "process");
    assert!(names(&events(&home, "t_02")).contains(&"processes_ended"), "a detached worker starts one too");
    let explicit = home.json(&["run", "plain", "z", "--isolation", "none"]);
    assert_eq!(explicit["receipt"]["isolation"], "none");
}

#[test]
fn a_worker_has_no_keys_and_its_models_are_asked_by_its_parent() {
    const KEY: &str = "sk-planted-for-the-parent-alone-0123456789";
    let server = ModelServer::start([Answer::Hold]);
    let mut home = Home::new();
    home.set("OPENAI_API_KEY", KEY);
    home.set("OPENAI_BASE_URL", &server.base_url());
    home.agent("plain", "tools: read", "You are plain.");
    let mut run = home.start(&["run", "plain", "x", "--isolation", "process"]);
    server.wait_for(1);
    let pid = worker(&home);
    for file in ["environ", "cmdline"] {
        let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap();
        assert!(!bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes()), "{file}");
    }
    assert!(!memory_of(pid).windows(KEY.len()).any(|window| window == KEY.as_bytes()), "its memory");
    let sockets = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let sockets = sockets.filter(|handle| fs::read_link(handle.path()).is_ok_and(|to| to.starts_with("socket:")));
    assert_eq!(sockets.count(), 0, "it has no connection to anybody");
    kill_now(run.id());
    run.wait().unwrap();
}

/// Everything that a process can write to.
fn memory_of(pid: u32) -> Vec<u8> {
    use std::os::unix::fs::FileExt;
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let memory = fs::File::open(format!("/proc/{pid}/mem")).unwrap();
    let mut all = Vec::new();
    for line in maps.lines().filter(|line| line.contains(" rw")) {
        let (range, _) = line.split_once(' ').unwrap();
        let (from, to) = range.split_once('-').unwrap();
        let (from, to) = (u64::from_str_radix(from, 16).unwrap(), u64::from_str_radix(to, 16).unwrap());
        let mut bytes = vec![0; usize::try_from(to - from).unwrap().min(64 * 1024 * 1024)];
        if memory.read_exact_at(&mut bytes, from).is_ok() {
            all.extend(bytes);
        }
    }
    all
}

#[test]
fn a_worker_and_its_commands_end_when_the_parent_is_killed_and_the_task_goes_on() {
    let home = Home::scripted(&json!({"sh": [
        {"tool_calls": [{"name": "bash", "input": {"command": "echo $$ > pid.txt; exec sleep 600"}}]},
        {"text": "gone on"},
    ]}));
    home.agent("sh", "tools: bash", "You run.");
    home.json(&["status"]);
    let mut run = home.start(&["run", "sh", "x", "--isolation", "process", "--sandbox", "none"]);
    let (pid, command) = (worker(&home), pid_in(&home, "pid.txt"));
    kill_now(run.id());
    run.wait().unwrap();
    let killed = Instant::now();
    until("the worker's end", || (!is_alive(pid)).then_some(()));
    assert!(killed.elapsed() < SOON, "{:?}", killed.elapsed());
    until("the command's end", || (!is_alive(command)).then_some(()));
    assert!(killed.elapsed() < SOON, "{:?}", killed.elapsed());
    let waited = home.json(&["wait", "t_01"]);
    assert_eq!(waited["tasks"][0]["status"], "completed");
    assert_eq!(home.json(&["collect", "t_01"])["result"], "gone on");
    let outputs = events(&home, "t_01");
    let ends: Vec<&Value> = outputs.iter().map(|record| &record["event"]["output"]["end"]).collect();
    assert!(ends.contains(&&json!("unknown")), "what cannot be repeated was not: {outputs:?}");
    home.wait_for_no_worker();
}

#[test]
fn a_task_goes_on_in_another_worker_when_one_is_killed_and_ends_when_it_loses_three() {
    let slow = json!({"text": "got there", "delay_ms": 60_000});
    for kills in [1, 3] {
        let delay = if kills == 1 { json!({"text": "got there", "delay_ms": 700}) } else { slow.clone() };
        let home = Home::scripted(&json!({"plain": [delay]}));
        home.agent("plain", "tools: []", "You are plain.");
        home.json(&["status"]);
        let run = home.start(&["run", "plain", "x", "--isolation", "process", "--json"]);
        let mut killed = Vec::new();
        for _ in 0..kills {
            let pid = until("a worker", || attached(&home).into_iter().find(|pid| !killed.contains(pid)));
            killed.push(pid);
            kill_now(pid);
        }
        let output = run.wait_with_output().unwrap();
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        let log = events(&home, "t_01");
        assert_eq!(names(&log).iter().filter(|name| **name == "worker_lost").count(), kills);
        if kills == 1 {
            assert_eq!(answer["result"], "got there", "{answer}");
        } else {
            assert_eq!((&answer["status"], &answer["reason"]), (&json!("failed"), &json!("interrupted")), "{answer}");
            assert_eq!(answer["error"], "Interrupted: its worker process ended 3 times before it did");
        }
    }
}

#[test]
fn a_stopped_worker_is_a_stall_and_is_killed() {
    for (limit, during, replies) in [
        ("LOCUM_SUBAGENT_INACTIVITY_TIMEOUT_MS", "model", json!([{"text": "late", "delay_ms": 60_000}])),
        (
            "LOCUM_SUBAGENT_TOOL_EXECUTION_TIMEOUT_MS",
            "tool",
            json!([{"tool_calls": [{"name": "bash", "input": {"command": "echo $$ > pid.txt; exec sleep 600"}}]}]),
        ),
    ] {
        let mut home = Home::scripted(&json!({ "plain": replies }));
        home.agent("plain", "tools: bash", "You are plain.");
        // Twice its words of life: what is found is the silence, and not a task that takes long.
        home.set(limit, "4000");
        home.set("LOCUM_SUBAGENT_WATCHDOG_KILL_GRACE_MS", "300");
        home.json(&["status"]);
        let observer = home.observer("main");
        let run = home.start(&["run", "plain", "x", "--isolation", "process", "--json", "--sandbox", "none"]);
        let pid = worker(&home);
        until("the model call", || (observer.first_seq() >= 2).then_some(()));
        let command = (during == "tool").then(|| pid_in(&home, "pid.txt"));
        kill(Pid::from_raw(pid.cast_signed()), Signal::SIGSTOP).unwrap();
        let stopped = Instant::now();
        let output = run.wait_with_output().unwrap();
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(answer["error"], format!("Stalled: no activity for 4 s during {during}"), "{answer}");
        assert_eq!(answer["reason"], "stalled");
        assert!(stopped.elapsed() < Duration::from_secs(4) + SOON, "{:?}", stopped.elapsed());
        assert!(!is_alive(pid));
        if let Some(command) = command {
            until("the command's end", || (!is_alive(command)).then_some(()));
        }
    }
}

#[test]
fn a_cancel_names_the_worker_and_its_commands_and_they_are_gone() {
    let home = Home::scripted(&json!({"sh": [
        {"text": "Running.", "tool_calls": [{"name": "bash", "input": {"command": "echo $$ > pid.txt; exec sleep 600"}}]},
    ]}));
    home.agent("sh", "tools: bash", "You run.");
    home.json(&["spawn", "sh", "x", "--isolation", "process", "--sandbox", "none"]);
    let (pid, command) = (worker(&home), pid_in(&home, "pid.txt"));
    let answer = home.json(&["cancel", "t_01"]);
    let alive = (is_alive(pid), is_alive(command));
    assert_eq!((&answer["status"], &answer["receipt"]["confirmed"]), (&json!("cancelled"), &json!(true)), "{answer}");
    assert_eq!(alive, (false, false), "{answer}");
    let processes = answer["receipt"]["processes"].as_array().unwrap();
    assert!(processes.iter().any(|process| process["pid"] == pid && process["ended"] == true), "{answer}");
    // The detached worker, the attached one, and what ran the command.
    assert!(processes.len() >= 3, "{answer}");
    assert_eq!(answer["partial_result"], "Running.");
}
