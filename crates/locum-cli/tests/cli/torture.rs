//! Commands that do not want to end, and three ways of ending them. Nothing of them may be left, and nobody else may be
//! signalled.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use crate::commands::{LEVELS, is_possible, script};
use crate::home::{Home, PATIENCE};

/// The grace period of commands, and two seconds for the kernel.
const GRACE: Duration = Duration::from_secs(7);

/// Each keeps `{mark}` among its arguments, and so does everything that it starts. Each says when it is ready.
const VICTIMS: [(&str, &str); 5] = [
    (
        "ignores TERM",
        "trap '' TERM INT HUP; sh -c 'trap \"\" TERM; while :; do sleep 1000; done' {mark} & touch ready; while :; do sleep 1000; done",
    ),
    (
        "forks twice",
        "(setsid sh -c 'trap \"\" TERM; while :; do sleep 1000; done' {mark} </dev/null >/dev/null 2>&1 &); touch ready; sleep 1000",
    ),
    (
        "holds the pipe",
        "(setsid sh -c 'trap \"\" TERM; while :; do sleep 1000; done' {mark} &); touch ready; exec sleep 1000",
    ),
    ("is stopped", "sh -c 'kill -STOP $$; sleep 1000' {mark} & touch ready; kill -STOP $$; sleep 1000"),
    (
        "forks on",
        "sh -c 'trap \"\" TERM; while :; do sh -c \"sleep 0.05; :\" {mark}; done' {mark} & touch ready; sleep 1000",
    ),
];

/// How a command is ended.
#[derive(Debug, Clone, Copy)]
enum End {
    Cancel,
    Timeout,
    KillLocum,
}

/// Processes with this mark among their arguments that have not ended.
fn marked(mark: &str) -> Vec<i32> {
    let pids =
        std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_marked = |pid: &i32| {
        let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        arguments.split(|byte| *byte == 0).any(|argument| argument == mark.as_bytes())
    };
    pids.filter(is_marked).collect()
}

fn wait_until(what: &str, patience: Duration, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + patience;
    while !is_so() {
        assert!(Instant::now() < until, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A process of somebody else, which must not notice anything.
fn bystander() -> Child {
    let mut bystander = Command::new("/bin/sh");
    let traps = "for s in TERM HUP INT CONT URG USR1; do trap \"echo $s\" $s; done; echo ready; read x; echo asked";
    let mut child =
        bystander.args(["-c", traps]).process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut reader = BufReader::with_capacity(1, child.stdout.as_mut().unwrap());
    reader.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    child
}

/// A locum whose agent runs a command.
fn started(home: &Home, level: &str, command: &str, timeout: u64) -> Child {
    let input = json!({"command": command, "timeout": timeout});
    let model = script(home, &[vec![json!({"name": "bash", "input": input})]]);
    let agents = home.root().join("agents");
    let said = ["run", "sh", "go", "--sandbox", level, "--agents", agents.to_str().unwrap(), "--model", &model];
    let mut locum = home.command(&said);
    locum.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn check(level: &str, end: End) {
    let home = Home::new();
    if !is_possible(&home, level) {
        return;
    }
    for (name, command) in VICTIMS {
        let mark = format!("mark-{level}-{}-{}", name.replace(' ', "-"), home.root().display());
        let mut bystander = bystander();
        let ready = home.project().join("ready");
        let command = command.replace("{mark}", &mark);
        // On a busy machine a victim may need longer to be there than it may live: then it is given more.
        let mut timeouts = if matches!(end, End::Timeout) { vec![64, 16, 4, 1] } else { vec![500] };
        let mut locum = loop {
            let timeout = timeouts.pop().unwrap_or_else(|| panic!("{name} is never seen"));
            let mut locum = started(&home, level, &command, timeout);
            let mut is_seen = false;
            wait_until("the victim is ready", PATIENCE, || {
                is_seen = ready.exists() && !marked(&mark).is_empty();
                is_seen || locum.try_wait().unwrap().is_some()
            });
            if is_seen {
                break locum;
            }
            std::fs::remove_file(&ready).ok();
        };
        let pid = Pid::from_raw(locum.id().cast_signed());
        match end {
            End::Cancel => kill(pid, Signal::SIGINT).unwrap(),
            End::KillLocum => kill(pid, Signal::SIGKILL).unwrap(),
            // It ends by itself.
            End::Timeout => {}
        }
        // What the machine is busy with besides counts on top of the promise.
        wait_until(&format!("{name} is gone after {end:?}"), GRACE + PATIENCE / 6, || marked(&mark).is_empty());
        wait_until("locum has ended", PATIENCE, || locum.try_wait().unwrap().is_some());
        std::fs::remove_file(&ready).unwrap();
        drop(bystander.stdin.take());
        let heard = std::io::read_to_string(bystander.stdout.take().unwrap()).unwrap();
        assert_eq!(heard, "asked\n", "{name}: somebody else was signalled");
        bystander.wait().unwrap();
    }
}

#[test]
fn a_cancel_ends_everything_in_the_full_sandbox() {
    check(LEVELS[0], End::Cancel);
}

#[test]
fn a_timeout_ends_everything_in_the_full_sandbox() {
    check(LEVELS[0], End::Timeout);
}

#[test]
fn the_death_of_locum_ends_everything_in_the_full_sandbox() {
    check(LEVELS[0], End::KillLocum);
}

#[test]
fn a_cancel_ends_everything_without_namespaces() {
    check(LEVELS[1], End::Cancel);
}

#[test]
fn a_timeout_ends_everything_without_namespaces() {
    check(LEVELS[1], End::Timeout);
}

#[test]
fn the_death_of_locum_ends_everything_without_namespaces() {
    check(LEVELS[1], End::KillLocum);
}
