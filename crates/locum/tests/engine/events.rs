//! Streams of events: from any entry on, each entry once, at the reader's own pace, and across processes.

use std::sync::Arc;
use std::time::Duration;

use locum::Desk;
use locum::events::{Events, Position};
use locum::models::scripted::{Say, Scripted};
use locum::progress::News;
use locum::store::sqlite::SqliteStore;
use locum::task::{Record, TaskEvent};
use locum::transcript::Repeat;
use serde_json::{Value, json};

use crate::stage::{Ledger, agent, ask, ask_as_person, builder, check, noting_tool, run, spawn};

fn script() -> Scripted {
    let slowly = Duration::from_secs(1);
    let eve = [Say::calls([("look", json!({}))]).with_text("I look.").after(slowly), Say::text("Seen.").after(slowly)];
    Scripted::new().agent("eve", eve).agent("ann", [Say::text("Late.").after(Duration::from_secs(9))])
}

fn desk() -> Desk {
    let look = noting_tool("look", Repeat::Safe, &Ledger::default());
    builder(script()).tool(look).agent(agent("eve", &["look"])).build().unwrap()
}

/// The entries that are told until a stream ends.
async fn entries(mut events: Events) -> Vec<Record> {
    let mut entries = Vec::new();
    while let Some(progress) = events.next().await.unwrap() {
        if let News::Event(record) = progress.news {
            entries.push((*record).clone());
        }
    }
    entries
}

/// What is told before nothing has happened for a minute, as task and number.
async fn told(events: &mut Events) -> Vec<(String, u64)> {
    let mut told = Vec::new();
    while let Ok(progress) = tokio::time::timeout(Duration::from_secs(60), events.next()).await {
        let Some(progress) = progress.unwrap() else { break };
        if let News::Event(record) = &progress.news {
            told.push((progress.task_id.to_string(), record.seq));
        }
    }
    told
}

#[tokio::test(start_paused = true)]
async fn a_task_is_told_from_any_entry_on_before_during_and_after() {
    let desk = desk();
    let id = spawn(&desk, "eve", "Look.").await;
    let during: Vec<_> = {
        let mut streams = Vec::new();
        for after in 0..4 {
            streams.push(desk.events_of(&id, after).await.unwrap());
        }
        futures_util::future::join_all(streams.into_iter().map(entries)).await
    };
    let log = desk.log_of(&id).await.unwrap();
    assert!(matches!(log.last().unwrap().event, TaskEvent::Ended { .. }));
    for (after, told) in during.into_iter().enumerate() {
        assert_eq!(told, log[after..], "after {after}");
    }
    for after in 0..=log.len() {
        let told = entries(desk.events_of(&id, after as u64).await.unwrap()).await;
        assert_eq!(told, log[after..], "after {after}, when it had ended");
    }
    assert!(desk.events_of("t_99", 0).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn text_comes_between_the_entries_where_it_belongs() {
    let desk = desk();
    let id = spawn(&desk, "eve", "Look.").await;
    let mut events = desk.events_of(&id, 0).await.unwrap();
    let (mut text, mut last) = (String::new(), 0);
    while let Some(progress) = events.next().await.unwrap() {
        match progress.news {
            News::Event(record) => last = record.seq,
            News::Text { after, text: more, .. } => {
                assert_eq!(after, last);
                text.push_str(&more);
            }
        }
    }
    assert_eq!(text, "I look.Seen.");
}

#[tokio::test(start_paused = true)]
async fn a_session_is_told_whole_and_goes_on_from_any_position() {
    let desk = desk();
    let mut whole = desk.events(&Position::default());
    let mut slow = desk.events(&Position::default());
    let entries: Vec<Value> =
        (0..40).map(|place| json!({"agent": if place % 2 == 0 { "eve" } else { "ann" }, "task": "Go."})).collect();
    let answer = ask_as_person(&desk, Some(7), json!({"action": "parallel", "tasks": entries})).await;
    check(&answer, &json!({"completed": 40}));
    // Another session is nobody's business here.
    run(&desk.in_session(locum::SessionId::parse("other").unwrap()), "eve", "Look.").await;
    let all = told(&mut whole).await;
    let mut expected = Vec::new();
    for number in 1..=40 {
        let id = format!("t_{number:02}");
        let length = desk.log_of(&id).await.unwrap().len() as u64;
        expected.extend((1..=length).map(|seq| (id.clone(), seq)));
    }
    let sorted = |mut told: Vec<(String, u64)>| {
        told.sort();
        told
    };
    assert_eq!(sorted(all.clone()), sorted(expected.clone()), "each once");
    assert_eq!(whole.position().to_string(), "40");
    // A reader that reads now and then goes on where it was, also as another one.
    let mut heard = Vec::new();
    for _ in 0..10 {
        for _ in 0..9 {
            let progress = slow.next().await.unwrap().unwrap();
            if let News::Event(record) = &progress.news {
                heard.push((progress.task_id.to_string(), record.seq));
            }
        }
        let position: Position = slow.position().to_string().parse().unwrap();
        slow = desk.events(&position);
    }
    heard.extend(told(&mut slow).await);
    assert_eq!(sorted(heard), sorted(expected));
    // And is told what comes.
    let id = spawn(&desk, "ann", "Once more.").await;
    assert_eq!(told(&mut whole).await, (1..=4).map(|seq| (id.clone(), seq)).collect::<Vec<_>>());
    assert_eq!(whole.position().to_string(), "41");
}

#[test]
fn a_position_is_read_as_it_is_written_and_nothing_else_is() {
    for text in ["0", "12", "12 14:3 15:7"] {
        assert_eq!(text.parse::<Position>().unwrap().to_string(), text);
    }
    for text in ["", "x", "12 ", "12 14", "12 14:x", "-1", "12,14:3"] {
        assert!(text.parse::<Position>().is_err(), "{text}");
    }
}

/// Two engines on one database are two processes to each other.
#[tokio::test]
async fn the_tasks_of_another_process_are_told_too() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("locum.db");
    let open = || {
        let store = Arc::new(SqliteStore::open(&path).unwrap());
        let look = noting_tool("look", Repeat::Safe, &Ledger::default());
        builder(script()).store(store).tool(look).agent(agent("eve", &["look"])).root(directory.path()).build().unwrap()
    };
    let (works, watches) = (open(), open());
    let mut session = watches.events(&Position::default());
    let spawned = ask(&works, json!({"action": "spawn", "agent": "eve", "task": "Look."})).await;
    let id = spawned["task_id"].as_str().unwrap();
    let first = session.next().await.unwrap().unwrap();
    assert_eq!(first.task_id.to_string(), id);
    let told = entries(watches.events_of(id, 0).await.unwrap()).await;
    assert_eq!(told, works.log_of(id).await.unwrap());
}
