//! Victims, the moments at which they are killed, and what is checked when all is over.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use std::time::{Duration, Instant};

use fastrand::Rng;
use locum::store::{OwnerId, TaskRow};
use locum::task::plan::HandOn;
use locum::task::{Outcome, TaskEvent};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::home::{Home, kill_now, until, whole_lines};
use crate::log;
use crate::observer::Observer;

const SESSION: &str = "storm";

/// How many processes a task may lose before it is given up.
const LOST_MAX: u32 = 3;

/// A victim that is not seen to get anywhere is killed after this long all the same.
const VICTIM_TIME: Duration = Duration::from_secs(2);

/// Between two looks at a victim: short beside anything that it does.
const LOOK: Duration = Duration::from_micros(300);

/// When a victim is killed.
#[derive(Debug, Clone, Copy)]
pub(super) enum Point {
    /// When this many more events are durable.
    Events(u64),
    /// So many microseconds after it was started, or found.
    Moment(u64),
    /// In the moment of its so many-th answer: whatever was answered must be durable by then.
    Answer(usize),
    /// As soon as a task is held by somebody who has held none before.
    Claimed,
}

/// How every task ends, by id: its text, or its error.
type Texts = BTreeMap<String, Result<String, String>>;

pub(super) struct Campaign {
    home: Home,
    observer: Observer,
    session: String,
    random: Rng,
    /// What every failure names.
    seed: u64,
    pub(super) kills: u32,
    /// Who has held tasks so far.
    holders: BTreeSet<OwnerId>,
    /// Every task that an answer named, and its id everywhere where the answer had it.
    answered: Vec<(String, Option<String>)>,
}

impl Campaign {
    pub(super) fn new() -> Self {
        let quick = |reply: Value| {
            let mut reply = reply;
            reply["delay_ms"] = json!(4);
            reply
        };
        let call = |name: &str, input: Value| json!({"tool_calls": [{"name": name, "input": input}]});
        let delegate = json!({"action": "spawn", "agent": "plain", "task": "delegated", "queue": true});
        let note = json!({"action": "write", "key": "note", "value": "noted"});
        let home = Home::scripted(&json!({
            "lead": [
                quick(call("ls", json!({}))),
                quick(call("subagent", delegate)),
                quick(call("shared_context", note)),
                quick(json!({"text": "lead: {{task}}"})),
            ],
            "plain": [quick(call("think", json!({"thought": "hm"}))), quick(json!({"text": "plain: {{task}}"}))],
            "flaky": [{"error": {"kind": "server", "retry_after_ms": 4}}, quick(json!({"text": "flaky: {{task}}"}))],
            "slow": [{"text": "slow: {{task}}", "delay_ms": 500}],
            "broken": [{"error": {"kind": "auth", "message": "no"}}],
        }));
        home.agent("lead", "tools: ls, subagent, shared_context", "You lead.");
        for name in ["plain", "flaky", "slow", "broken"] {
            home.agent(name, "tools: think", "You work.");
        }
        Self::over(home, SESSION)
    }

    pub(super) fn over(mut home: Home, session: &str) -> Self {
        home.set("LOCUM_SESSION", session);
        home.set("LOCUM_MAX_DEPTH", "2");
        home.set("LOCUM_MAX_SPAWNS", "100000");
        // The first command makes the store that is observed.
        home.json(&["status"]);
        let asked = std::env::var("LOCUM_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = asked.unwrap_or_else(|| fastrand::u64(..));
        println!("seed {seed}");
        let observer = home.observer(session);
        let random = Rng::with_seed(seed);
        let (session, holders) = (session.to_owned(), BTreeSet::new());
        Self { home, observer, session, random, seed, kills: 0, holders, answered: Vec::new() }
    }

    pub(super) fn any_agent(&mut self) -> &'static str {
        ["lead", "lead", "plain", "flaky", "broken"][self.random.usize(..5)]
    }

    pub(super) fn is_lucky(&mut self) -> bool {
        self.random.bool()
    }

    /// A moment in the life of a task: after an event, or at any time.
    pub(super) fn point(&mut self, events_max: u64) -> Point {
        if self.random.bool() { Point::Events(self.random.u64(..events_max)) } else { self.moment(60_000) }
    }

    /// One of the first answers, or any other moment.
    pub(super) fn point_or_answer(&mut self, answers_max: usize) -> Point {
        if self.random.bool() { Point::Answer(self.random.usize(1..=answers_max)) } else { self.point(60) }
    }

    pub(super) fn moment(&mut self, micros_max: u64) -> Point {
        Point::Moment(self.random.u64(..micros_max))
    }

    /// Starts a process that will be killed. Its input stays open, or ends at once, as chance will have it.
    pub(super) fn start(&mut self, arguments: &[&str], input: &str) -> Child {
        let mut victim = self.home.start(arguments);
        let mut stdin = victim.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).unwrap();
        if self.random.bool() {
            victim.stdin = Some(stdin);
        }
        victim
    }

    /// Kills a process and notes what it had answered until then.
    pub(super) fn kill(&mut self, mut victim: Child, point: Point) {
        let (pid, mut stdout) = (victim.id(), victim.stdout.take().unwrap());
        let mut said = Vec::new();
        if let Point::Answer(answers) = point {
            while said.iter().filter(|byte| **byte == b'\n').count() < answers {
                let mut more = [0; 4096];
                match stdout.read(&mut more).unwrap() {
                    0 => break,
                    bytes => said.extend(&more[..bytes]),
                }
            }
        } else {
            self.await_point(point, || victim.try_wait().unwrap().is_some());
        }
        kill_now(pid);
        let ended = victim.wait().unwrap();
        self.kills += u32::from(ended.signal() == Some(Signal::SIGKILL as i32));
        stdout.read_to_end(&mut said).unwrap();
        for answer in whole_lines(&said) {
            self.note(&answer);
        }
    }

    /// Kills one of the workers, if there is one.
    pub(super) fn kill_worker(&mut self, point: Point) {
        let workers = self.home.workers();
        let Some(pid) = self.random.choice(workers) else { return };
        let home = &self.home;
        self.await_point(point, || !home.workers().contains(&pid));
        self.kills += u32::from(self.home.workers().contains(&pid));
        kill_now(pid);
        let holders: Vec<OwnerId> = self.holders_now().collect();
        self.holders.extend(holders);
        until("the end of a killed worker", || (!self.home.workers().contains(&pid)).then_some(()));
    }

    fn await_point(&self, point: Point, mut is_gone: impl FnMut() -> bool) {
        let (begun, events) = (Instant::now(), self.observer.events());
        let reached = || match point {
            Point::Moment(micros) => {
                std::thread::sleep(Duration::from_micros(micros));
                true
            }
            Point::Events(more) => self.observer.events() >= events + more,
            Point::Answer(_) => true,
            Point::Claimed => self.holders_now().any(|owner| !self.holders.contains(&owner)),
        };
        while !reached() && !is_gone() && begun.elapsed() < VICTIM_TIME {
            std::thread::sleep(LOOK);
        }
    }

    fn holders_now(&self) -> impl Iterator<Item = OwnerId> + use<> {
        self.observer.unfinished().into_iter().filter_map(|row| row.owner)
    }

    /// A command that is not killed, and what it answers.
    pub(super) fn answered(&mut self, arguments: &[&str]) {
        let (answer, _) = self.home.answer(arguments);
        self.note(&answer);
    }

    fn note(&mut self, answer: &Value) {
        assert_ne!(answer["error"], "INTERNAL", "seed {}: {answer}", self.seed);
        let uid = answer["uid"].as_str().map(str::to_owned);
        let one = answer["task_id"].as_str().map(|id| (id.to_owned(), uid));
        let several = answer["task_ids"].as_array().into_iter().flatten();
        let several = several.map(|id| (id.as_str().unwrap().to_owned(), None));
        self.answered.extend(one.into_iter().chain(several));
    }

    /// A campaign of which nobody lives long enough to answer, or nobody is killed, shows nothing.
    pub(super) fn check_it_meant_something(&self, kills: u32) {
        assert!(self.kills >= kills && !self.answered.is_empty(), "seed {}: {} kills", self.seed, self.kills);
    }

    /// Another process looks, and sees to what was left behind.
    pub(super) fn look(&self) {
        let status = self.home.json(&["status"]);
        assert!(status["tasks"].is_array(), "seed {}: {status}", self.seed);
    }

    /// Lets everything end, then compares it with what was answered and with what the script says.
    pub(super) fn finish(self) {
        let begun = Instant::now();
        while !self.observer.unfinished().is_empty() {
            let line = |row: TaskRow| (row.summary.task_id, row.summary.seq, row.summary.standing.activity, row.owner);
            let open: Vec<_> = self.observer.unfinished().into_iter().map(line).collect();
            assert!(begun.elapsed() < Duration::from_secs(60), "seed {}: never ended: {open:?}", self.seed);
            self.home.answer(&["wait", "--timeout", "2"]);
        }
        let rows = self.observer.tasks();
        println!("{} kills, {} answers, {} tasks", self.kills, self.answered.len(), rows.len());
        self.check_answers(&rows);
        let texts = self.check_logs(&rows);
        let uncollected = |id: &String| rows.iter().any(|row| !row.collected && row.summary.task_id.to_string() == *id);
        self.check_collecting(&texts.into_iter().filter(|(id, _)| uncollected(id)).collect());
        self.home.wait_for_no_worker();
    }

    fn check_answers(&self, rows: &[TaskRow]) {
        let seed = self.seed;
        let by_id: BTreeMap<String, String> =
            rows.iter().map(|row| (row.summary.task_id.to_string(), row.summary.uid.to_string())).collect();
        assert_eq!(by_id.len(), rows.len(), "seed {seed}: no id twice");
        let uids: BTreeSet<&String> = by_id.values().collect();
        assert_eq!(uids.len(), rows.len(), "seed {seed}: no uid twice");
        for (id, uid) in &self.answered {
            let known = by_id.get(id).unwrap_or_else(|| panic!("seed {seed}: {id} was answered and is lost"));
            assert!(uid.as_ref().is_none_or(|uid| uid == known), "seed {seed}: {id} is another task now");
        }
    }

    /// Every task did what its script says, once; their texts by id.
    fn check_logs(&self, rows: &[TaskRow]) -> Texts {
        let mut texts = Texts::new();
        for row in rows {
            let id = row.summary.task_id.to_string();
            let context = format!("seed {}, {id}", self.seed);
            let records = self.observer.log(row);
            let told = log::read(&records, &context);
            let TaskEvent::Accepted { plan, .. } = &records[0].event else { panic!("{context}: not accepted") };
            let mut task = plan.assignment.task.clone();
            if let (HandOn::Previous, Some(before)) = (plan.start.hand_on, plan.start.depends_on.last())
                && let Ok(text) = &texts[&before.to_string()]
            {
                task = task.replace("{previous}", text);
            }
            let agent = row.summary.agent.as_str();
            let failed = plan.start.depends_on.iter().find_map(|before| {
                let error = texts[&before.to_string()].as_ref().err()?;
                Some(format!("Dependency {before} failed: {error}"))
            });
            let (turns, expected) = failed.map_or_else(|| scripted(agent, &task), |error| (0, Err(error)));
            let outcome = match told.outcome.unwrap() {
                Outcome::Completed { text } => Ok(text),
                Outcome::Failed { error, .. } => Err(error),
                Outcome::Cancelled { .. } => Err("cancelled".to_owned()),
            };
            if told.lost >= LOST_MAX {
                // Chance has killed whoever worked on it as often as a task may lose somebody, or once more: the last
                // before it had recorded the end.
                let interrupted = format!("Interrupted: its worker process ended {} times before it did", told.lost);
                let interrupted = Err(interrupted);
                assert_eq!(outcome, interrupted, "{context}");
                texts.insert(id, interrupted);
                continue;
            }
            assert_eq!(outcome, expected, "{context}");
            assert_eq!(row.summary.standing.usage.turns, turns, "{context}: turns as scripted");
            let replies = if agent == "broken" { 0 } else { turns };
            assert_eq!(told.answered, (1..=replies).collect::<Vec<_>>(), "{context}: each turn answered once");
            let children = rows.iter().filter(|child| child.summary.parent.as_ref() == Some(&row.summary.uid)).count();
            let delegated = usize::from(agent == "lead" && turns > 0);
            assert!(children <= delegated, "{context}: delegated {children} times");
            assert!(children + told.unknown >= delegated, "{context}: a delegation is neither there nor in doubt");
            texts.insert(id, expected);
        }
        texts
    }

    /// Every result can be collected, once, and be read afterwards, from a process that has seen nothing of it.
    fn check_collecting(&self, texts: &Texts) {
        let about = |action: &str| {
            let asked = texts.keys().map(|id| json!({"action": action, "task_id": id})).collect::<Vec<_>>();
            self.home.calls(&self.session, &asked)
        };
        let (first, second, read) = (about("collect"), about("collect"), about("result"));
        for (((expected, first), second), read) in texts.values().zip(&first).zip(&second).zip(&read) {
            match expected {
                Ok(text) => assert_eq!(first["result"], json!(text), "seed {}: {first}", self.seed),
                Err(error) => assert_eq!(first["error"], json!(error), "seed {}: {first}", self.seed),
            }
            assert_eq!(second["error"], "TASK_NOT_FOUND");
            assert_eq!(read["text"], json!(expected.as_deref().unwrap_or_default()));
        }
    }
}

/// How many turns the script gives an agent, and how it ends.
fn scripted(agent: &str, task: &str) -> (u32, Result<String, String>) {
    match agent {
        "lead" => (4, Ok(format!("lead: {task}"))),
        "plain" => (2, Ok(format!("plain: {task}"))),
        "flaky" | "slow" => (1, Ok(format!("{agent}: {task}"))),
        _ => (1, Err("Model API error: no".to_owned())),
    }
}
