//! Tasks in worktrees whose processes are killed at random moments, eight at a time. Afterwards every task has ended,
//! everything that an agent wrote is on its branch, and the user's checkout is as it was. Set `LOCUM_TEST_SEED` to the
//! seed of a failure to choose the same moments again.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use fastrand::Rng;
use locum::task::{Record, TaskEvent, Workspace, Worktree};
use locum::transcript::ToolEnd;
use serde_json::json;

use crate::home::{Home, kill_now};

/// Lives of the campaign, if `LOCUM_TEST_LIVES` does not say otherwise: `cargo xtask ci --full` asks for 300.
const LIVES: u32 = 40;

/// Lives at once.
const AT_ONCE: u32 = 8;

/// The session that they are in.
const SESSION: &str = "woods";

/// Within this time after its start a victim is killed: most of them are at work then.
const MICROS_MAX: u64 = 700_000;

/// Longer than the end of everything takes on a machine that does many other things.
const PATIENCE: Duration = Duration::from_secs(120);

fn git(directory: &Path, verb: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=Tester", "-c", "user.email=tester@localhost"])
        .args(verb)
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "git {verb:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

/// A project with commits, changes that are not committed, and files that are ignored.
fn home() -> Home {
    let write =
        |name: &str| json!({"name": "bash", "input": {"command": format!("echo work > {name}; echo more >> a.txt")}});
    let step = |name: &str| json!({"tool_calls": [write(name)], "delay_ms": 10});
    let mut home = Home::scripted(&json!({
        "coder": [step("one.txt"), step("two.txt"), {"text": "done", "delay_ms": 10}],
        "looker": [{"tool_calls": [{"name": "read", "input": {"path": "a.txt"}}], "delay_ms": 10}, {"text": "seen"}],
    }));
    home.set("LOCUM_SESSION", SESSION);
    home.set("LOCUM_SANDBOX", "none");
    home.set("LOCUM_MAX_RUNNING", "100");
    home.agent("coder", "tools: bash\nisolation: worktree", "You code.");
    home.agent("looker", "tools: read\nisolation: worktree\nlocum: {include_dirty: true}", "You look.");
    let project = home.project();
    git(&project, &["init", "-q", "-b", "main"]);
    fs::write(project.join("a.txt"), "one\n").unwrap();
    fs::write(project.join(".gitignore"), "*.log\n").unwrap();
    for number in 0..50 {
        fs::write(project.join(format!("file-{number}.txt")), "text\n".repeat(100)).unwrap();
    }
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-q", "-m", "first"]);
    fs::write(project.join("a.txt"), "mine\n").unwrap();
    fs::write(project.join("untracked.txt"), "mine\n").unwrap();
    fs::write(project.join("x.log"), "mine\n").unwrap();
    home
}

/// Every file of the checkout, its index and what is checked out.
fn everything(project: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = fs::read_dir(project).unwrap().flatten().map(|entry| entry.path()).filter(|path| path.is_file());
    let own = ["index", "HEAD", "refs/heads/main", "config"].map(|name| project.join(".git").join(name));
    files.chain(own).map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

#[test]
fn killed_at_any_moment_no_work_is_lost_and_the_checkout_is_as_it_was() {
    let asked = std::env::var("LOCUM_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = asked.unwrap_or_else(|| fastrand::u64(..));
    println!("seed {seed}");
    let mut random = Rng::with_seed(seed);
    let home = home();
    let project = home.project();
    let before = everything(&project);
    let lives = std::env::var("LOCUM_TEST_LIVES").ok().and_then(|lives| lives.parse().ok()).unwrap_or(LIVES);
    let mut kills = 0;
    for _ in 0..u32::div_ceil(lives, AT_ONCE) {
        let victims: Vec<Child> = (0..AT_ONCE)
            .map(|_| home.start(&["run", if random.u8(..4) == 0 { "looker" } else { "coder" }, "Work", "--json"]))
            .collect();
        let mut moments: Vec<u64> = victims.iter().map(|_| random.u64(..MICROS_MAX)).collect();
        moments.sort_unstable();
        let begun = Instant::now();
        for (mut victim, micros) in victims.into_iter().zip(moments) {
            std::thread::sleep(Duration::from_micros(micros).saturating_sub(begun.elapsed()));
            kills += u32::from(victim.try_wait().unwrap().is_none());
            kill_now(victim.id());
            victim.wait().unwrap();
        }
        // Somebody looks, a process takes over, and is killed in its turn.
        home.json(&["status"]);
        std::thread::sleep(Duration::from_micros(random.u64(..MICROS_MAX / 2)));
        for worker in home.workers() {
            kills += 1;
            kill_now(worker);
        }
    }
    assert!(kills > lives / 2, "seed {seed}: {kills} kills show little");
    let logs = finished(&home, seed);
    println!("{kills} kills, {} tasks", logs.len());
    for (name, log) in &logs {
        check_life(&project, log, &format!("seed {seed}, {name}"));
    }
    assert_eq!(everything(&project), before, "seed {seed}");
    git(&project, &["fsck", "--strict"]);
    let left: Vec<PathBuf> = git_locks(&project);
    assert!(left.is_empty(), "seed {seed}: {left:?}");
}

/// Lets everything end; the log of every task.
fn finished(home: &Home, seed: u64) -> Vec<(String, Vec<Record>)> {
    let observer = home.observer(SESSION);
    let begun = Instant::now();
    while !observer.unfinished().is_empty() {
        assert!(begun.elapsed() < PATIENCE, "seed {seed}: {:?}", observer.unfinished());
        home.answer(&["wait", "--timeout", "2"]);
    }
    home.wait_for_no_worker();
    observer.tasks().iter().map(|row| (row.summary.task_id.to_string(), observer.log(row))).collect()
}

/// Locks that git left in the repository.
fn git_locks(project: &Path) -> Vec<PathBuf> {
    let git_dir = project.join(".git");
    let within = |directory: PathBuf| fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let all = within(git_dir.clone()).chain(within(git_dir.join("refs/heads/locum")));
    all.filter(|path| path.extension().is_some_and(|kind| kind == "lock")).collect()
}

fn check_life(project: &Path, log: &[Record], place: &str) {
    let mut workspaces: Vec<&Workspace> = Vec::new();
    let mut closed: Vec<&Worktree> = Vec::new();
    let mut written = 0;
    for record in log {
        match &record.event {
            TaskEvent::WorkspaceReady { workspace } => workspaces.push(workspace),
            TaskEvent::WorkspaceClosed { worktree } => closed.push(worktree),
            TaskEvent::ToolEnded { output, .. } => written += u32::from(output.end == ToolEnd::Ok),
            TaskEvent::Ended { outcome } => assert_eq!(outcome.error(), None, "{place}"),
            _ => {}
        }
    }
    let ([workspace], [worktree]) = (&workspaces[..], &closed[..]) else { panic!("{place}: {log:#?}") };
    assert_eq!(worktree.problem, None, "{place}");
    let path = Path::new(&workspace.path);
    assert_eq!(path.exists(), !worktree.removed, "{place}");
    let branch = &workspace.branch;
    if git(project, &["branch", "--list", branch]).is_empty() {
        assert!(worktree.removed && worktree.files_changed == 0, "{place}: {worktree:?}");
        return;
    }
    let on_branch = git(project, &["ls-tree", "-r", "--name-only", branch]);
    if path.exists() {
        // Whatever is in the directory is on the branch, byte by byte.
        for entry in fs::read_dir(path).unwrap().flatten().filter(|entry| entry.file_name() != ".git") {
            let name = entry.file_name().into_string().unwrap();
            let committed = git(project, &["show", &format!("{branch}:{name}")]);
            assert_eq!(committed, fs::read_to_string(entry.path()).unwrap().trim_end(), "{place}: {name}");
        }
    }
    if log.iter().any(|record| matches!(&record.event, TaskEvent::ToolStarted { name, .. } if name == "bash")) {
        let files = ["one.txt", "two.txt"].iter().filter(|name| on_branch.lines().any(|line| line == **name)).count();
        assert!(files as u32 >= written, "{place}: {written} were written, of which {files} are on the branch");
    }
}
