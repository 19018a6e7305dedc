//! Events: in order, each once, from any position on, for as many readers as there are and at their own pace.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use crate::home::{Home, wait_until};
use crate::served::Served;

/// A reader of events.
struct Events {
    lines: BufReader<TcpStream>,
    status: u16,
}

/// One event: its id and what it says.
type Event = (String, Value);

impl Events {
    fn open(server: &Served, path: &str, last: Option<&str>) -> Self {
        let mut stream = server.connect();
        let last = last.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
        write!(stream, "{}{last}\r\n", server.head("GET", path)).unwrap();
        let mut lines = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(lines.read_line(&mut head).unwrap(), 0, "{head}");
        }
        Self { lines, status: head.split(' ').nth(1).unwrap().parse().unwrap() }
    }

    /// The next event; none at the end of the stream. Sizes of chunks and signs of life are passed over.
    fn next(&mut self) -> Option<Event> {
        let (mut id, mut data) = (String::new(), None);
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            let line = line.trim_end();
            if let Some(found) = line.strip_prefix("id: ") {
                found.clone_into(&mut id);
            } else if let Some(found) = line.strip_prefix("data: ") {
                data = Some(serde_json::from_str(found).unwrap());
            } else if line.is_empty() && data.is_some() {
                return Some((id, data.unwrap_or_default()));
            }
        }
    }

    fn take(&mut self, count: usize) -> Vec<Event> {
        (0..count).map(|_| self.next().unwrap()).collect()
    }

    /// Everything up to the end of so many tasks.
    fn until_ended(&mut self, tasks: usize) -> Vec<Event> {
        let (mut read, mut ended) = (Vec::new(), 0);
        while ended < tasks {
            let event = self.next().unwrap();
            ended += usize::from(event.1["event"]["event"] == "ended");
            read.push(event);
        }
        read
    }

    fn rest(mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.next()).collect()
    }
}

fn name(event: &Event) -> String {
    format!(
        "{}.{} {}",
        event.1["task_id"].as_str().unwrap_or(""),
        event.1["seq"],
        event.1["event"]["event"].as_str().unwrap()
    )
}

fn numbers(events: &[Event]) -> Vec<String> {
    events.iter().map(|(id, _)| id.clone()).collect()
}

#[test]
fn the_events_of_a_task_are_its_log_and_end_with_it() {
    let home = Home::new();
    let turn = json!({"tool_calls": [{"name": "ls", "input": {}}], "delay_ms": 100});
    let server = Served::start(&home, &home.script(&json!({"*": [turn, {"text": "Done."}]})));
    let spawned = server.subagent(&json!({"action": "spawn", "agent": "explore", "task": "t"}));
    let path = format!("/v1/tasks/{}/events", spawned["uid"].as_str().unwrap());
    // One that reads while it happens.
    let whole = Events::open(&server, &path, None).rest();
    let log = server.get("/v1/tasks/t_01/log?session=test").json();
    let told: Vec<&Value> = whole.iter().map(|(_, record)| record).collect();
    assert_eq!(json!(told), log["records"]);
    let ids: Vec<String> = (1..=whole.len()).map(|number| number.to_string()).collect();
    assert_eq!(numbers(&whole), ids);
    // Whoever comes back goes on where it was; at the end there is no more.
    for (last, header) in [(0, true), (2, true), (2, false), (whole.len() - 1, true)] {
        let last_id = last.to_string();
        let rest = match header {
            true => Events::open(&server, &path, Some(&last_id)).rest(),
            false => Events::open(&server, &format!("{path}?after={last}"), None).rest(),
        };
        assert_eq!(rest, whole[last..], "{last}");
    }
    assert_eq!(Events::open(&server, &path, Some(&whole.len().to_string())).status, 204);
    assert_eq!(server.get(&format!("{path}?after=x")).status, 400);
    assert_eq!(server.get("/v1/tasks/nothing/events").status, 404);
}

#[test]
fn the_events_of_a_session_are_those_of_its_tasks_in_one_order() {
    let home = Home::new();
    let server = Served::start(&home, &home.script(&json!({"*": [{"text": "Done."}]})));
    let mut live = Events::open(&server, "/v1/events?session=test", None);
    let run = json!({"action": "run", "agent": "explore", "task": "t"});
    server.subagent(&run);
    let per_task = server.get("/v1/tasks/t_01/log?session=test").json()["records"].as_array().unwrap().len();
    let first = live.take(per_task);
    let mut later = Events::open(&server, "/v1/events?session=test&after=now", None);
    server.subagent(&run);
    // Another process writes to the same session; another session is not told of.
    let elsewhere = home.locum(&["run", "explore", "t", "--session", "other", "--model", "offline"]);
    assert_eq!(elsewhere.code, Some(0), "{elsewhere:?}");
    let script = format!("scripted:{}", home.root().join("script.json").display());
    let beside = home.locum(&["run", "explore", "t", "--session", "test", "--model", &script]);
    assert_eq!(beside.code, Some(0), "{beside:?}");
    let rest = live.take(2 * per_task);
    let whole = [first, rest.clone()].concat();
    let names: Vec<String> = whole.iter().map(name).collect();
    assert_eq!(names.first().map(String::as_str), Some("t_01.1 accepted"));
    assert_eq!(names.last().map(String::as_str), Some(format!("t_03.{per_task} ended").as_str()));
    assert_eq!(later.take(2 * per_task), rest);
    for place in [0, 1, per_task, 2 * per_task] {
        let mut again = Events::open(&server, "/v1/events?session=test", Some(&whole[place].0));
        assert_eq!(again.take(whole.len() - place - 1), whole[place + 1..]);
    }
    for path in ["/v1/events", "/v1/events?session=test&after=x", "/v1/events?session=test&colour=red"] {
        assert_eq!(server.get(path).status, 400, "{path}");
    }
    assert!(server.get("/metrics").body.contains("locum_event_readers "), "readers are counted");
    // A server that ends does not wait for readers.
    assert_eq!(server.end(), Some(0));
    assert_eq!(live.next(), None);
}

#[test]
fn a_reader_that_does_not_read_slows_nobody_and_misses_nothing() {
    let home = Home::new();
    let text = "x".repeat(100_000);
    let server = Served::start(&home, &home.script(&json!({"*": [{"text": text}]})));
    let mut lazy = Events::open(&server, "/v1/events?session=test", None);
    // More than any buffer between the two holds.
    let entries = vec![json!({"agent": "explore", "task": "t"}); 100];
    let body = json!({"tool": "subagent", "input": {"action": "parallel", "tasks": entries}}).to_string();
    let answer = server.post("/v1/requests?session=test&face=person", "", body.as_bytes()).json();
    assert_eq!(answer["completed"], 100, "{}", answer["results"][0]);
    let read = lazy.until_ended(100);
    check_whole(&read, 100);
}

/// Every event of every task, in the order of its task, once, to its end.
fn check_whole(events: &[Event], tasks: usize) {
    let mut last: BTreeMap<&str, &Value> = BTreeMap::new();
    for (id, event) in events {
        let before = last.insert(event["uid"].as_str().unwrap(), event);
        assert_eq!(event["seq"], json!(before.map_or(0, |before| before["seq"].as_u64().unwrap()) + 1), "{id}");
    }
    assert_eq!(last.len(), tasks);
    assert!(last.values().all(|event| event["event"]["event"] == "ended"), "{last:?}");
}

/// Readers and tasks of the crowd: few where every change is tested, many where there is time (`ci --full`).
fn crowd_size() -> (usize, usize) {
    let asked = std::env::var("LOCUM_TEST_CROWD").unwrap_or_else(|_| "20x50".to_owned());
    let (readers, tasks) = asked.split_once('x').unwrap();
    (readers.parse().unwrap(), tasks.parse().unwrap())
}

#[test]
fn many_readers_of_many_tasks_lose_nothing_and_see_nothing_twice() {
    let (readers, tasks) = crowd_size();
    let home = Home::new();
    let server = Served::start(&home, &home.script(&json!({"*": [{"text": "Done."}]})));
    let stays = 2 * tasks;
    std::thread::scope(|scope| {
        for reader in 0..readers {
            let server = &server;
            scope.spawn(move || {
                let (mut read, mut last, mut ended): (Vec<Event>, Option<String>, usize) = (Vec::new(), None, 0);
                // Each leaves after another number of events, and comes back.
                while ended < tasks {
                    let mut events = Events::open(server, "/v1/events?session=test", last.as_deref());
                    for _ in 0..stays + reader {
                        let event = events.next().unwrap();
                        ended += usize::from(event.1["event"]["event"] == "ended");
                        last = Some(event.0.clone());
                        read.push(event);
                        if ended == tasks {
                            break;
                        }
                    }
                }
                check_whole(&read, tasks);
                // There is no more.
                let mut events = Events::open(server, "/v1/events?session=test", last.as_deref());
                events.lines.get_ref().set_read_timeout(Some(Duration::from_millis(50))).unwrap();
                let mut line = String::new();
                assert!(events.lines.read_line(&mut line).is_err(), "{line}");
            });
        }
        // Nobody waits for the end: with many readers it takes longer than a request may.
        let entries = vec![json!({"agent": "explore", "task": "t"}); tasks];
        let input = json!({"action": "parallel", "tasks": entries, "background": true});
        let body = json!({"tool": "subagent", "input": input}).to_string();
        let answer = server.post("/v1/requests?session=test&face=person&concurrency=50", "", body.as_bytes()).json();
        assert_eq!(answer["task_ids"].as_array().map(Vec::len), Some(tasks), "{answer}");
    });
    assert_eq!(server.end(), Some(0));
}

/// What was said in events of text, which must follow each other without a gap.
fn heard(events: &mut Events, whole: &str) {
    let mut said = String::new();
    while said != whole {
        let (id, data) = events.next().unwrap();
        let Some(text) = data["text"].as_str() else { continue };
        assert_eq!((id.as_str(), data["offset"].as_u64()), ("", Some(said.len() as u64)), "{data}");
        said.push_str(text);
        assert!(whole.starts_with(&said), "{said}");
    }
}

#[test]
fn text_is_told_as_it_is_said_to_those_who_ask_for_it() {
    let home = Home::new();
    let whole = "Ebb and flow, says the table: six hours each.";
    let script = home.script(&json!({"*": [{"error": {"kind": "hang"}, "text": whole}]}));
    let server = Served::start(&home, &script);
    let here = server.subagent(&json!({"action": "spawn", "agent": "explore", "task": "t"}));
    // A task that another process works on is heard as well.
    let mut elsewhere = home.command(&["run", "explore", "t", "--session", "test", "--model", &script]);
    let mut elsewhere = elsewhere.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let there = || server.get("/v1/tasks/t_02?session=test").json()["uid"].as_str().map(str::to_owned);
    wait_until(|| there().is_some());
    let there = there().unwrap();
    for uid in [here["uid"].as_str().unwrap(), &there] {
        let path = format!("/v1/tasks/{uid}/events");
        let mut early = Events::open(&server, &format!("{path}?text=true"), None);
        heard(&mut early, whole);
        // Whoever comes in the middle of a reply hears it from its beginning.
        heard(&mut Events::open(&server, &format!("{path}?text=true"), None), whole);
        let plain = Events::open(&server, &path, None);
        server.subagent(
            &json!({"action": "cancel", "task_id": server.get(&format!("/v1/tasks/{uid}")).json()["task_id"]}),
        );
        let rest = early.rest();
        assert_eq!(rest.last().unwrap().1["event"]["event"], "ended");
        assert!(
            plain.rest().iter().all(|(id, record)| !id.is_empty() && record["seq"].is_u64()),
            "records and no text"
        );
    }
    assert_eq!(server.get(&format!("/v1/tasks/{there}/events?text=perhaps")).status, 400);
    elsewhere.wait().unwrap();
}
