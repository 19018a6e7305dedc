//! A project, agents that work in worktrees of it, and what happens to their processes.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use fastrand::Rng;
use serde_json::{Value, json};

use super::verdict;
use crate::home::{Home, kill_now, until};
use crate::observer::Observer;

/// Lives at once.
const AT_ONCE: u32 = 8;

/// The session that they are in.
const SESSION: &str = "woods";

/// Longer than the end of everything takes on a machine that does many other things.
const PATIENCE: Duration = Duration::from_secs(120);

/// A process that works on a task.
struct Victim {
    process: Child,
    /// When its task was accepted, as far as was seen.
    begun: Option<Instant>,
    /// When it is killed.
    due: Option<Instant>,
}

/// The campaign.
pub(super) struct Woods {
    home: Home,
    observer: Observer,
    random: Rng,
    before: BTreeMap<PathBuf, Vec<u8>>,
    /// How long a life takes here that nobody ends.
    span: Duration,
    pub(super) seed: u64,
    /// Processes that were killed while they worked on a task that was accepted.
    pub(super) kills: u32,
}

impl Woods {
    /// A project with commits, changes that are not committed, and files that are ignored. A sabotage is a case of what
    /// git is asked, with what is done instead.
    pub(super) fn new(sabotage: Option<&str>) -> Self {
        let asked = std::env::var("LOCUM_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = asked.unwrap_or_else(|| fastrand::u64(..));
        println!("seed {seed}");
        let mut home = home();
        let project = home.project();
        if let Some(sabotage) = sabotage {
            let directory = saboteur(&home, &sabotage.replace("{project}", project.to_str().unwrap()));
            home.set("PATH", &format!("{}:/usr/bin:/bin", directory.display()));
        }
        home.json(&["status"]);
        let observer = home.observer(SESSION);
        let before = everything(&project);
        Self { home, observer, random: Rng::with_seed(seed), before, span: Duration::ZERO, seed, kills: 0 }
    }

    /// How many tasks were accepted.
    pub(super) fn born(&self) -> u32 {
        u32::try_from(self.observer.tasks().len()).unwrap()
    }

    /// Begins eight lives in as many processes, and ends each process as `fate` says, counted from the moment in which its
    /// task was accepted; none lets it end by itself. How long those lived that nobody ended, and how many were killed.
    fn live(&mut self, mut fate: impl FnMut(&mut Rng) -> Option<Duration>) -> (Vec<Duration>, u32) {
        let start = |random: &mut Rng| {
            let agent = ["coder", "coder", "keeper", "looker"][random.usize(..4)];
            Victim { process: self.home.start(&["run", agent, "Work", "--json"]), begun: None, due: None }
        };
        let mut victims: Vec<Victim> = (0..AT_ONCE).map(|_| start(&mut self.random)).collect();
        let (mut spans, mut killed) = (Vec::new(), 0);
        until("the end of eight processes", || {
            let holders = self.observer.owners();
            victims.retain_mut(|victim| {
                if victim.process.try_wait().unwrap().is_some() {
                    spans.extend(victim.begun.map(|begun| begun.elapsed()));
                    return false;
                }
                if victim.begun.is_none() && holders.contains(&victim.process.id()) {
                    let now = Instant::now();
                    victim.begun = Some(now);
                    victim.due = fate(&mut self.random).map(|span| now + span);
                }
                let is_due = victim.due.is_some_and(|due| due <= Instant::now());
                if is_due {
                    killed += 1;
                    kill_now(victim.process.id());
                    victim.process.wait().unwrap();
                }
                !is_due
            });
            victims.is_empty().then_some(())
        });
        (spans, killed)
    }

    /// Lets eight lives come to their end, to know how long that takes here.
    pub(super) fn measure(&mut self) {
        let (spans, _) = self.live(|_| None);
        assert!(!spans.is_empty(), "seed {}: no task was accepted", self.seed);
        self.span = spans.iter().sum::<Duration>() / u32::try_from(spans.len()).unwrap();
    }

    /// Begins eight lives and kills their processes, then those that take over.
    pub(super) fn live_and_die(&mut self) {
        let span = u64::try_from(self.span.as_micros()).unwrap().max(1_000);
        let (_, killed) = self.live(|random| Some(Duration::from_micros(random.u64(..span))));
        self.kills += killed;
        // The machine may do more or less besides than it did when it was measured.
        self.span = if killed < AT_ONCE / 2 { self.span * 3 / 4 } else { self.span * 21 / 20 };
        if self.random.bool() {
            return;
        }
        // Somebody looks, a process takes over, and is killed in its turn.
        self.home.json(&["status"]);
        std::thread::sleep(Duration::from_micros(self.random.u64(..span)));
        for worker in self.home.workers() {
            self.kills += 1;
            kill_now(worker);
        }
    }

    /// Lets everything end, and says what is not as it must be.
    pub(super) fn verdict(&self) -> Vec<String> {
        let begun = Instant::now();
        while !self.observer.unfinished().is_empty() {
            assert!(begun.elapsed() < PATIENCE, "seed {}: {:?}", self.seed, self.observer.unfinished());
            self.home.answer(&["wait", "--timeout", "2"]);
        }
        self.home.wait_for_no_worker();
        let project = self.home.project();
        let ledger = fs::read_to_string(ledger(&self.home)).unwrap_or_default();
        let mut complaints = Vec::new();
        for row in self.observer.tasks() {
            let name = row.summary.task_id.to_string();
            let noted = ledger.lines().filter_map(|line| line.strip_prefix(&format!("{name} "))).collect::<Vec<_>>();
            let found = verdict::of_life(&project, &name, &self.observer.log(&row), &noted);
            complaints.extend(found.into_iter().map(|complaint| format!("{name}: {complaint}")));
        }
        complaints.extend(verdict::of_repository(&project));
        let after = everything(&project);
        if after != self.before {
            let differs = |path: &&PathBuf| after.get(*path) != self.before.get(*path);
            let names: Vec<&PathBuf> = after.keys().chain(self.before.keys()).filter(differs).collect();
            complaints.push(format!("the checkout has changed: {names:?}"));
        }
        complaints
    }
}

/// What commands note that have written a file: whatever is said here is somebody's work.
fn ledger(home: &Home) -> PathBuf {
    home.own().join("ledger")
}

fn home() -> Home {
    let place = Home::new();
    let ledger = ledger(&place);
    let write = |name: &str| {
        let command = format!(
            "printf 'work of %s\\n' $LOCUM_TASK > {name} && echo more >> a.txt && echo $LOCUM_TASK {name} >> {}",
            ledger.display()
        );
        json!({"tool_calls": [{"name": "bash", "input": {"command": command}}], "delay_ms": 10})
    };
    let look = json!({"tool_calls": [{"name": "read", "input": {"path": "a.txt"}}], "delay_ms": 10});
    let done: Value = json!({"text": "done", "delay_ms": 10});
    let mut home = place.with_script(&json!({
        "coder": [write("one.txt"), write("two.txt"), done],
        "keeper": [write("kept.log"), done],
        "looker": [look, done],
    }));
    home.set("LOCUM_SESSION", SESSION);
    home.set("LOCUM_SANDBOX", "none");
    home.set("LOCUM_MAX_RUNNING", "100");
    home.agent("coder", "tools: bash\nisolation: worktree", "You code.");
    home.agent("keeper", "tools: bash\nisolation: worktree", "You write what git ignores.");
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

/// Runs git as the user would.
pub(super) fn git(directory: &Path, verb: &[&str]) -> String {
    let said = try_git(directory, verb);
    said.unwrap_or_else(|why| panic!("git {verb:?}: {why}"))
}

/// The same, where it may fail.
pub(super) fn try_git(directory: &Path, verb: &[&str]) -> Result<String, String> {
    let output = Command::new("git")
        .args(["-c", "user.name=Tester", "-c", "user.email=tester@localhost"])
        .args(verb)
        .current_dir(directory)
        // Looking at the checkout must not change it.
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .unwrap();
    match output.status.success() {
        true => Ok(String::from_utf8(output.stdout).unwrap().trim_end().to_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// Every file of the project and its repository, but for what worktrees need there.
fn everything(project: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let repository = project.join(".git");
    let ours = ["objects", "worktrees", "refs/heads/locum", "logs/refs/heads/locum"].map(|name| repository.join(name));
    let mut found = BTreeMap::new();
    let mut open = vec![project.to_owned()];
    while let Some(directory) = open.pop() {
        for path in fs::read_dir(directory).unwrap().flatten().map(|entry| entry.path()) {
            match path.is_dir() {
                true if ours.contains(&path) => {}
                true => open.push(path),
                false => {
                    found.insert(path.clone(), fs::read(path).unwrap());
                }
            }
        }
    }
    found
}

/// The git of this machine.
pub(super) fn real_git() -> String {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|directory| directory.join("git")).find(|git| git.is_file());
    found.unwrap().to_string_lossy().into_owned()
}

/// A directory with a git in it that does something else in one case.
fn saboteur(home: &Home, case: &str) -> PathBuf {
    let directory = home.own().join("saboteur");
    fs::create_dir_all(&directory).unwrap();
    let path = directory.join("git");
    fs::write(&path, format!("#!/bin/sh\ncase \"$*\" in\n{case}\n*) exec {} \"$@\" ;;\nesac\n", real_git())).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    directory
}
