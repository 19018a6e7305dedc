//! What commands in the sandbox can do, and how they and what they start come to an end.

use std::process::Stdio;
use std::time::{Duration, Instant};

use locum::sandbox::{Level, Sandbox};
use locum::settings::Places;
use locum::settings::environment::Environment;
use serde_json::{Value, json};

use crate::home::{Home, PATIENCE};

/// The levels that shut commands in.
pub(crate) const LEVELS: [&str; 2] = ["full", "landlock"];

/// What a refused command is answered with.
const REFUSED: &str = "the command was not run, because its sandbox is not possible here: ";

/// The script and the agent of a task that makes these calls, each list in one turn.
pub(crate) fn script(home: &Home, turns: &[Vec<Value>]) -> String {
    let agents = home.root().join("agents");
    std::fs::create_dir_all(&agents).unwrap();
    std::fs::write(agents.join("sh.md"), "---\nname: sh\ndescription: Runs.\ntools: bash, job\n---\nRun.\n").unwrap();
    let turns = turns.iter().map(|calls| json!({ "tool_calls": calls }));
    let replies: Vec<Value> = turns.chain([json!({"text": "done"})]).collect();
    home.script(&json!({ "sh": replies }))
}

/// A call of `bash`.
pub(crate) fn bash(command: &str) -> Value {
    json!({"name": "bash", "input": {"command": command}})
}

/// Makes the calls in one task at a level, and returns what each was answered.
pub(crate) fn answers(home: &Home, level: &str, turns: &[Vec<Value>]) -> Vec<String> {
    let model = script(home, turns);
    let agents = home.root().join("agents");
    let agents = agents.to_str().unwrap();
    let said = ["run", "sh", "go", "--json", "--sandbox", level, "--agents", agents, "--model", &model];
    let ran = home.locum(&said);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(answer["receipt"]["sandbox"], level);
    outputs(home, answer["task_id"].as_str().unwrap())
}

/// What every tool call of a task was answered.
fn outputs(home: &Home, task: &str) -> Vec<String> {
    let logs = home.locum(&["logs", task, "--json"]);
    let records = logs.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let texts = records.filter_map(|record| Some(record["event"]["output"]["text"].as_str()?.to_owned()));
    texts.collect()
}

/// Whether a level is possible here. Where it is not, a command is refused and has not run.
pub(crate) fn is_possible(home: &Home, level: &str) -> bool {
    let answers = answers(home, level, &[vec![bash("echo ran > ran.txt; echo ran")]]);
    let [answer] = answers.as_slice() else { panic!("{answers:?}") };
    let ran = home.project().join("ran.txt").exists();
    match answer.strip_prefix(REFUSED) {
        Some(why) => assert!(!why.is_empty() && !ran, "{answer}"),
        None => assert!(answer == "ran" && ran, "{answer}"),
    }
    ran
}

#[test]
fn commands_can_work_in_their_sandbox() {
    // What is done, and what is said to it; both levels can do it all.
    let cases = [
        ("echo out; echo err >&2", "out\nerr"),
        ("true", "[no output]"),
        ("exit 3", "[exit code 3]"),
        ("kill -9 $$", "[ended by signal 9]"),
        ("cat", "[no output]"),
        ("pwd -P | sed 's|.*/||'", "project"),
        ("cat README.md | head -1", "# Clock"),
        ("mkdir -p made/deep && echo x > made/deep/file && mv made kept && cat kept/deep/file", "x"),
        ("echo x > /dev/null && head -c3 /dev/zero | wc -c", "3"),
        ("echo t > $TMPDIR/kept; echo ok", "ok"),
        ("cat $TMPDIR/kept", "t"),
        ("cat <(echo sub)", "sub"),
        ("f=$(mktemp) && echo temp > $f && cat $f", "temp"),
        ("seq 3 | sort -r | tr '\\n' ' '", "3 2 1 "),
        ("cat ~/.cargo/bin/tool", "tool"),
        ("echo $LOCUM_SUBAGENT_CHILD $LOCUM_TASK $LOCUM_DEPTH", "1 t_02 1"),
        ("(sleep 1000 &) ; echo left", "left"),
        ("ln -s README.md link && head -1 link", "# Clock"),
    ];
    for level in LEVELS {
        let home = Home::new();
        std::fs::create_dir_all(home.root().join(".cargo/bin")).unwrap();
        std::fs::write(home.root().join(".cargo/bin/tool"), "tool").unwrap();
        if !is_possible(&home, level) {
            continue;
        }
        let calls = cases.iter().map(|(command, _)| bash(command)).collect();
        let answers = answers(&home, level, &[calls]);
        for ((command, expected), answer) in cases.iter().zip(answers) {
            assert_eq!(answer, *expected, "{level}: {command}");
        }
        assert_eq!(std::fs::read_to_string(home.project().join("kept/deep/file")).unwrap(), "x\n");
        for name in [".locum", ".claude", ".acai", ".pi", ".tallow"] {
            assert!(!home.project().join(name).exists(), "{name} stood there for the commands alone");
        }
        let private = home.locum_home().join("state/private");
        assert_eq!(std::fs::read_dir(private).unwrap().count(), 0, "a task's private directory ends with it");
    }
}

#[test]
fn a_server_can_be_tested_without_a_network() {
    let home = Home::new();
    if !is_possible(&home, "full") {
        return;
    }
    let serve = r#"perl -e 'use Socket; socket(S, PF_INET, SOCK_STREAM, 0); bind(S, sockaddr_in(0, INADDR_LOOPBACK));
        listen(S, 1); ($port) = sockaddr_in(getsockname(S));
        if (!fork()) { socket(C, PF_INET, SOCK_STREAM, 0); connect(C, sockaddr_in($port, INADDR_LOOPBACK)); exit }
        accept(A, S) and print "connected"'"#;
    assert_eq!(answers(&home, "full", &[vec![bash(serve)]]), ["connected"]);
}

#[test]
fn long_outputs_are_kept_whole_for_the_next_command() {
    for level in LEVELS {
        let home = Home::new();
        if !is_possible(&home, level) {
            continue;
        }
        let first = answers(&home, level, &[vec![bash("seq 100000")]]).remove(0);
        assert!(first.starts_with("1\n2\n") && first.ends_with("\n100000"), "{level}");
        let file = first.split("the whole is in ").nth(1).unwrap().split(' ').next().unwrap();
        // The file is the task's own: ask for it in the same task, where it has the same name.
        let name = file.rsplit('/').next().unwrap();
        let look =
            format!("f=$(ls /run/locum/{name} ${{TMPDIR%/tmp}}/output/{name} 2>/dev/null); wc -l < $f; echo x > $f");
        let again = answers(&home, level, &[vec![bash("seq 100000"), bash(&look)]]).remove(1);
        assert!(again.starts_with("100000\n") && again.contains("[exit code 1]"), "{level}: {again}");
    }
}

#[test]
fn jobs_go_on_between_calls_and_end_with_their_task() {
    for level in LEVELS {
        let home = Home::new();
        if !is_possible(&home, level) {
            continue;
        }
        let job = |input: Value| json!({"name": "job", "input": input});
        let start = json!({"name": "bash", "input": {"command": "echo begun > begun; echo said; exec sleep 1000", "background": true}});
        let turns = [
            vec![start.clone(), bash("until test -e begun; do sleep 0.01; done; rm begun"), job(json!({"job": 1}))],
            vec![job(json!({"job": 1, "stop": true}))],
            vec![job(json!({"job": 1})), job(json!({"job": 7})), start],
        ];
        let answers = answers(&home, level, &turns);
        assert_eq!(
            answers,
            [
                "started as job 1; `job` shows how it goes",
                "[no output]",
                "job 1: running\nsaid",
                "job 1: ended by signal 15\nsaid",
                "job 1: ended by signal 15\nsaid",
                "there is no job 7 of this task",
                "started as job 2; `job` shows how it goes",
            ],
            "{level}"
        );
    }
}

#[test]
fn bad_input_is_answered_with_what_to_do() {
    let home = Home::new();
    let call = |input: Value| json!({"name": "bash", "input": input});
    let calls =
        vec![call(json!({})), call(json!({"command": "x".repeat(200_000)})), call(json!({"command": "echo a\u{0}b"}))];
    let answers = answers(&home, "none", &[calls]);
    assert_eq!(answers[0], "invalid input: missing field `command`");
    assert!(answers[1].ends_with("write a script into a file first"), "{}", answers[1]);
    assert!(answers[2].contains("a zero byte cannot be part of a command"), "{}", answers[2]);
    let ran = home.locum(&["run", "explore", "x", "--sandbox", "off"]);
    assert!(ran.stderr.contains("must be one of full, landlock, none"), "{ran:?}");
}

#[test]
fn a_probe_says_what_is_possible_here() {
    let home = Home::new();
    let environment = Environment::new([], home.project());
    let sandbox = Sandbox::new(Level::Full, &environment, &Places::below(&home.locum_home()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let found = runtime.block_on(sandbox.clone().launcher(env!("CARGO_BIN_EXE_locum")).probe());
    let possible = |level: Level| level == Level::None || is_possible(&home, level.as_str());
    for (level, missing) in &found {
        assert_eq!(missing.is_none(), possible(*level), "{level}: {missing:?}");
        assert_ne!(missing.as_deref(), Some(""));
    }
    assert_eq!(found.len(), 3);
    // This test is no launcher, and nobody told the sandbox of one.
    for (_, missing) in runtime.block_on(sandbox.probe()) {
        assert!(missing.unwrap().contains("call locum::launch::intercept() first in its main"));
    }
}

#[test]
fn a_command_whose_end_is_not_known_is_not_repeated() {
    let home = Home::new();
    if !is_possible(&home, "full") {
        return;
    }
    let ledger = || std::fs::read_to_string(home.project().join("ledger")).unwrap_or_default();
    let model = script(&home, &[vec![bash("echo ran >> ledger; exec sleep 1000")]]);
    let agents = home.root().join("agents");
    let said = ["run", "sh", "go", "--agents", agents.to_str().unwrap(), "--model", &model];
    let mut locum =
        home.command(&said).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let until = Instant::now() + PATIENCE;
    while ledger().is_empty() {
        assert!(Instant::now() < until, "the command does not start");
        std::thread::sleep(Duration::from_millis(5));
    }
    locum.kill().unwrap();
    locum.wait().unwrap();
    // The next task is not this one, and whoever asks finds the orphan.
    let task = "t_02";
    while !home.locum(&["wait", task]).stdout.contains("completed") {
        assert!(Instant::now() < until, "{:?}", home.locum(&["logs", task]));
    }
    assert_eq!(ledger(), "ran\n");
    let told = outputs(&home, task);
    assert!(told.len() == 1 && told[0].contains("unknown"), "{told:?}");
}

#[test]
fn a_project_around_the_home_is_refused() {
    let home = Home::new();
    std::fs::create_dir_all(home.root().join(".git")).unwrap();
    let model = script(&home, &[vec![bash("echo ran > ran.txt")]]);
    let agents = home.root().join("agents");
    let said = ["run", "sh", "go", "--agents", agents.to_str().unwrap(), "--model", &model, "--session", "s"];
    let mut command = home.command(&said);
    command.current_dir(home.root());
    let ran = crate::home::run(command, b"");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!home.root().join("ran.txt").exists());
    let mut logs = home.command(&["logs", "t_01", "--session", "s"]);
    logs.current_dir(home.root());
    let logs = crate::home::run(logs, b"").stdout;
    assert!(logs.contains("which commands must not change"), "{logs}");
}
