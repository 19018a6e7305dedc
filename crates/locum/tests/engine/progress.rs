//! News about tasks: numbered without gaps, and never in the way of the work.

use std::collections::BTreeMap;
use std::sync::Arc;

use locum::Desk;
use locum::desk::{Heard, SessionTail, TaskTail};
use locum::ids::Seq;
use locum::models::scripted::{Say, Scripted};
use locum::progress::{News, Progress};
use locum::store::Position;
use locum::task::{Record, TaskEvent};
use locum::transcript::Repeat;
use locum_core::task::event::FailureKind;
use serde_json::json;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::TryRecvError;

use crate::faulty::FaultyStore;
use crate::stage::{Ledger, agent, ask, ask_as_person, builder, check, collect, noting_tool, pass, run, spawn};

fn desk() -> Desk {
    let eve = [Say::calls([("look", json!({}))]).with_text("I look."), Say::text("Gesehen: ein Wörterbuch.")];
    let script = Scripted::new()
        .agent("eve", eve)
        .agent("ann", [Say::text("<{{task}}>")])
        .agent("bob", [Say::error(FailureKind::Auth, "no key")]);
    let look = noting_tool("look", Repeat::Safe, &Ledger::default());
    builder(script).tool(look).agent(agent("eve", &["look"])).build().unwrap()
}

/// Everything that was told so far, by task.
fn told(news: &mut Receiver<Arc<Progress>>) -> BTreeMap<String, Vec<News>> {
    let mut told: BTreeMap<String, Vec<News>> = BTreeMap::new();
    while let Ok(progress) = news.try_recv() {
        told.entry(progress.task_id.to_string()).or_default().push(progress.news.clone());
    }
    told
}

/// The entries of the log among the news are the log, from its beginning to its end.
async fn check_entries(desk: &Desk, told: &BTreeMap<String, Vec<News>>) {
    for (id, news) in told {
        let entries = news.iter().filter_map(|news| match news {
            News::Event(record) => Some((**record).clone()),
            News::Text { .. } => None,
        });
        let entries: Vec<_> = entries.collect();
        assert_eq!(entries, desk.log_of(id).await.unwrap(), "{id}");
        assert!(matches!(entries.last().unwrap().event, TaskEvent::Ended { .. }), "{id}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_news_of_a_task_are_its_log_in_order_with_its_text_between() {
    let desk = desk();
    let mut news = desk.progress();
    check(&run(&desk, "eve", "Look.").await, &json!({"status": "completed"}));
    let told = told(&mut news);
    check_entries(&desk, &told).await;
    let (mut last_seq, mut shown, mut replies) = (0, String::new(), Vec::new());
    for news in &told["t_01"] {
        match news {
            News::Event(record) => {
                assert_eq!(record.seq, last_seq + 1);
                last_seq = record.seq;
                if let TaskEvent::Replied { reply, .. } = &record.event {
                    assert_eq!(shown, reply.text);
                    replies.push(std::mem::take(&mut shown));
                }
            }
            News::Text { after, offset, text } => {
                assert_eq!((*after, *offset), (last_seq, shown.len()));
                shown.push_str(text);
            }
        }
    }
    assert_eq!(replies, ["I look.", "Gesehen: ein Wörterbuch."]);
}

#[tokio::test(start_paused = true)]
async fn what_the_store_does_to_parked_tasks_is_told_too() {
    let desk = desk();
    let mut news = desk.progress();
    let steps = json!([{"agent": "ann", "task": "a"}, {"agent": "ann", "task": "{previous}"}]);
    check(&ask(&desk, json!({"action": "chain", "tasks": steps})).await, &json!({"result": "<<a>>"}));
    spawn(&desk, "bob", "Fail.").await;
    ask(&desk, json!({"action": "spawn", "agent": "ann", "task": "Wait.", "depends_on": ["t_03"]})).await;
    check(&collect(&desk, "t_04").await, &json!({"reason": "dependency"}));
    // One that fails the moment it is accepted.
    ask(&desk, json!({"action": "spawn", "agent": "ann", "task": "Wait.", "depends_on": ["t_03"]})).await;
    let told = told(&mut news);
    assert_eq!(told.keys().collect::<Vec<_>>(), ["t_01", "t_02", "t_03", "t_04", "t_05"]);
    check_entries(&desk, &told).await;
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_falls_behind_loses_the_oldest_news_and_slows_nobody() {
    let desk = desk();
    let mut slow = desk.progress();
    let entry = json!({"agent": "eve", "task": "Look."});
    let answer = ask_as_person(&desk, None, json!({"action": "parallel", "tasks": vec![entry; 99]})).await;
    check(&answer, &json!({"completed": 99}));
    let Err(TryRecvError::Lagged(lost)) = slow.try_recv() else { panic!("a slow reader is told what it lost") };
    assert!(lost > 0);
    let told = told(&mut slow);
    assert!(told.values().map(Vec::len).sum::<usize>() >= 1000, "the newest are kept");
    assert!(
        told["t_99"]
            .iter()
            .any(|news| matches!(news, News::Event(record) if matches!(record.event, TaskEvent::Ended { .. })))
    );
}

#[tokio::test(start_paused = true)]
async fn who_listens_later_hears_what_comes_and_reads_the_rest_in_the_log() {
    let script = [Say::text("Late.").after(std::time::Duration::from_secs(9))];
    let desk = builder(Scripted::new().agent("ann", script)).build().unwrap();
    spawn(&desk, "ann", "Go.").await;
    pass(5.0).await;
    let mut news = desk.progress();
    collect(&desk, "t_01").await;
    let first = told(&mut news).remove("t_01").unwrap().into_iter().find_map(|news| match news {
        News::Event(record) => Some(record.seq),
        News::Text { .. } => None,
    });
    assert_eq!(first, Some(3), "the acceptance and the turn's start were before");
    assert_eq!(desk.log_of("t_01").await.unwrap().iter().map(|record| record.seq).collect::<Vec<_>>(), [1, 2, 3, 4]);
}

/// What a listener hears of a task until the reply under way is this text: the numbers of the records, then the text.
async fn hear_until(tail: &mut TaskTail, whole: &str) -> Vec<Seq> {
    let (mut seqs, mut said) = (Vec::new(), String::new());
    while said != whole {
        match tail.hear().await.unwrap() {
            Heard::Records(records) => {
                seqs.extend(records.iter().map(|record| record.seq));
                said.clear();
            }
            Heard::Text { after, offset, text } => {
                assert_eq!((Some(&after), offset), (seqs.last(), said.len()), "{text}");
                said.push_str(&text);
            }
        }
    }
    seqs
}

#[tokio::test(start_paused = true)]
async fn who_listens_to_a_task_hears_each_reply_from_its_beginning_between_the_records() {
    let eve =
        [Say::calls([("look", json!({}))]).with_text("I look."), Say::hang().with_text("Gesehen: ein Wörterbuch")];
    let look = noting_tool("look", Repeat::Safe, &Ledger::default());
    let desk = builder(Scripted::new().agent("eve", eve)).tool(look).agent(agent("eve", &["look"])).build().unwrap();
    let spawned = ask(&desk, json!({"action": "spawn", "agent": "eve", "task": "Look."})).await;
    let uid = desk.task("t_01").await.unwrap().uid;
    check(&spawned, &json!({"uid": uid}));
    let mut early = desk.tail_task(uid.clone(), 0);
    let heard = hear_until(&mut early, "Gesehen: ein Wörterbuch").await;
    // Whoever comes in the middle of the reply is told the same.
    let mut late = desk.tail_task(uid, 0);
    assert_eq!(hear_until(&mut late, "Gesehen: ein Wörterbuch").await, heard);
    assert_eq!(heard, (1..=heard.len() as u64).collect::<Vec<_>>());
    ask(&desk, json!({"action": "cancel", "task_id": "t_01"})).await;
    for mut tail in [early, late] {
        let mut records = Vec::new();
        while !records.iter().any(|record: &Record| matches!(record.event, TaskEvent::Ended { .. })) {
            match tail.hear().await.unwrap() {
                Heard::Records(more) => records.extend(more),
                Heard::Text { text, .. } => panic!("{text} was said twice"),
            }
        }
        assert_eq!(records[0].seq, heard.len() as u64 + 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_crowd_of_readers_looks_at_the_store_as_if_it_were_few() {
    const READERS: usize = 50;
    let store = FaultyStore::default();
    let desk = builder(Scripted::new().agent("ann", vec![Say::text("Done."); 20])).store(Arc::new(store.clone()));
    let desk = desk.build().unwrap();
    let mut readers: Vec<SessionTail> = (0..READERS).map(|_| desk.tail(Position::default())).collect();
    let mut read: Vec<Vec<Position>> = vec![Vec::new(); READERS];
    let mut written = 0;
    for _ in 0..20 {
        run(&desk, "ann", "t").await;
        written += 1;
        let log = desk.log_of(&format!("t_{written:02}")).await.unwrap().len();
        for (tail, positions) in readers.iter_mut().zip(&mut read) {
            let until = positions.len() + log;
            while positions.len() < until {
                positions.extend(tail.next().await.unwrap().iter().map(|record| record.position));
            }
        }
    }
    for positions in &read {
        assert_eq!(positions, &read[0]);
        assert!(positions.is_sorted_by(|before, after| before < after), "{positions:?}");
    }
    assert!(store.looks() < 10 * 20, "{} looks of {READERS} readers at 20 tasks", store.looks());
    // Who comes late, and from the middle, reads the same.
    for place in [0, 1, read[0].len() / 2, read[0].len() - 1] {
        let after = if place == 0 { Position::default() } else { read[0][place - 1] };
        let (mut late, mut positions) = (desk.tail(after), Vec::new());
        while positions.len() < read[0].len() - place {
            positions.extend(late.next().await.unwrap().iter().map(|record| record.position));
        }
        assert_eq!(positions, read[0][place..]);
    }
}
