//! Logs: compare-and-append, and reading them.

use locum_core::task::outcome::Status;
use locum_core::task::{Record, Task, TaskEvent};

use super::fixture::*;
use crate::store::{Appended, Error, Lease, OwnerId, Position, Store};

/// The task after one more event, and that event's record.
async fn next(store: &dyn Store, name: &str, event: TaskEvent) -> (Task, Record) {
    let mut task = Task::replay(log(store, name).await).unwrap();
    let record = Record { seq: task.seq() + 1, at: at(100), event };
    task.apply(record.clone()).unwrap();
    (task, record)
}

pub(super) async fn appends_continue_the_log(store: &dyn Store) {
    spawn(store, "main", vec![order("a")]).await;
    let (mut task, first) = next(store, "a", turn()).await;
    let second = Record { seq: 3, at: at(101), event: reply("Done.".to_owned()) };
    task.apply(second.clone()).unwrap();
    let appended = store.append(&lease("a"), [first.clone(), second.clone()].into(), task.standing()).await.unwrap();
    assert_eq!(appended, Appended::default());
    assert_eq!(log(store, "a").await[1..], [first, second]);
    assert_eq!(row(store, "a").await.summary, task.summary());
}

pub(super) async fn an_append_needs_the_lease_and_the_next_number(store: &dyn Store) {
    spawn(store, "main", vec![order("a")]).await;
    let (task, record) = next(store, "a", turn()).await;
    let try_append = async |lease: Lease, seq| {
        let record = Record { seq, ..record.clone() };
        store.append(&lease, [record].into(), task.standing()).await
    };
    let good = lease("a");
    assert!(matches!(try_append(Lease { epoch: 2, ..good.clone() }, 2).await, Err(Error::Conflict)));
    assert!(matches!(try_append(Lease { owner: OwnerId(8), ..good.clone() }, 2).await, Err(Error::Conflict)));
    assert!(matches!(try_append(good.clone(), 1).await, Err(Error::Conflict)));
    assert!(matches!(try_append(good.clone(), 3).await, Err(Error::Conflict)));
    assert!(matches!(try_append(lease("unknown"), 2).await, Err(Error::NotFound)));
    assert_eq!(log(store, "a").await.len(), 1);
    try_append(good.clone(), 2).await.unwrap();
    assert!(matches!(try_append(good, 2).await, Err(Error::Conflict)));
    assert_eq!(row(store, "a").await.summary.seq, 2);
}

pub(super) async fn nothing_follows_the_end(store: &dyn Store) {
    spawn(store, "main", vec![order("a")]).await;
    let (running, mut record) = next(store, "a", turn()).await;
    complete(store, "a", "done").await;
    record.seq = 3;
    let late = store.append(&lease("a"), [record].into(), running.standing()).await;
    assert!(matches!(late, Err(Error::Conflict)), "{late:?}");
    assert_eq!((log(store, "a").await.len(), row(store, "a").await.owner), (2, None));
    assert_eq!(row(store, "a").await.summary.standing.status, Status::Completed);
}

pub(super) async fn contradicting_records_are_refused(store: &dyn Store) {
    spawn(store, "main", vec![order("a")]).await;
    let (running, record) = next(store, "a", turn()).await;
    let ended = TaskEvent::Ended { outcome: failed() };
    let (over, end) = next(store, "a", ended).await;
    let with_seq = |record: &Record, seq| Record { seq, ..record.clone() };
    for (records, standing) in [
        (vec![record.clone()], over.standing()),
        (vec![end.clone()], running.standing()),
        (vec![record.clone(), with_seq(&record, 4)], running.standing()),
        (vec![end.clone(), with_seq(&end, 3)], over.standing()),
    ] {
        let refused = store.append(&lease("a"), records.into(), standing).await;
        assert!(matches!(refused, Err(Error::Corrupt(_))), "{refused:?}");
    }
    assert_eq!(log(store, "a").await.len(), 1);
}

pub(super) async fn an_empty_append_does_nothing(store: &dyn Store) {
    spawn(store, "main", vec![order("a")]).await;
    let before = row(store, "a").await;
    let standing = before.summary.standing.clone();
    assert_eq!(store.append(&lease("a"), [].into(), standing).await.unwrap(), Appended::default());
    assert_eq!(row(store, "a").await, before);
}

pub(super) async fn records_are_read_page_by_page(store: &dyn Store) {
    spawn(store, "main", vec![order("a"), order("b")]).await;
    append(store, &lease("a"), turn()).await.unwrap();
    append(store, &lease("b"), turn()).await.unwrap();
    append(store, &lease("a"), reply("Done.".to_owned())).await.unwrap();
    let page = async |after, most| -> Vec<u64> {
        let records = store.records(&uid("a"), after, most).await.unwrap();
        records.iter().map(|record| record.seq).collect()
    };
    assert_eq!(page(0, 2).await, [1, 2]);
    assert_eq!(page(2, 2).await, [3]);
    assert_eq!(page(1, usize::MAX).await, [2, 3]);
    assert_eq!(page(3, 9).await, [0; 0]);
    assert_eq!(page(u64::MAX, 9).await, [0; 0]);
    assert_eq!(page(0, 0).await, [0; 0]);
    assert!(matches!(store.records(&uid("unknown"), 0, 1).await, Err(Error::NotFound)));
}

pub(super) async fn what_was_appended_together_is_read_one_by_one(store: &dyn Store) {
    spawn(store, "main", vec![order("a")]).await;
    let mut task = Task::replay(log(store, "a").await).unwrap();
    let events = [turn(), turn(), reply("Done.".to_owned())];
    let records: Vec<Record> =
        events.into_iter().zip(2..).map(|(event, seq)| Record { seq, at: at(90 + seq.cast_signed()), event }).collect();
    for record in &records {
        task.apply(record.clone()).unwrap();
    }
    store.append(&lease("a"), records.clone().into(), task.standing()).await.unwrap();
    for after in 0..=5 {
        for most in 0..=5 {
            let expected = log(store, "a").await.into_iter().filter(|record| record.seq > after);
            let expected: Vec<Record> = expected.take(most).collect();
            assert_eq!(store.records(&uid("a"), after, most).await.unwrap(), expected, "{after} {most}");
        }
    }
    assert_eq!(log(store, "a").await[1..], records);
    complete(store, "a", "done").await;
    assert_eq!(log(store, "a").await.len(), 5);
}

pub(super) async fn large_events_survive(store: &dyn Store) {
    spawn(store, "main", vec![order("a")]).await;
    let text = "0123456789abcdé\n".repeat(64 * 1024);
    append(store, &lease("a"), turn()).await.unwrap();
    append(store, &lease("a"), reply(text.clone())).await.unwrap();
    complete(store, "a", &text).await;
    let records = log(store, "a").await;
    assert_eq!(records[2].event, reply(text.clone()));
    let TaskEvent::Ended { outcome } = &records[3].event else { panic!("no end") };
    assert_eq!(outcome.text(), text);
}

pub(super) async fn standings_are_kept_beside_the_log(store: &dyn Store) {
    spawn(store, "main", vec![order("a")]).await;
    let agree = async || {
        let folded = Task::replay(log(store, "a").await).unwrap().summary();
        assert_eq!(row(store, "a").await.summary, folded);
        folded.standing
    };
    append(store, &lease("a"), turn()).await.unwrap();
    assert_eq!(agree().await.activity.as_deref(), Some("turn 1: asking the model"));
    append(store, &lease("a"), reply("Half.".to_owned())).await.unwrap();
    assert_eq!(agree().await.usage.output_tokens, 5);
    end(store, "a", failed()).await;
    let standing = agree().await;
    assert_eq!((standing.status, standing.completed_at), (Status::Failed, Some(at(100))));
    assert_eq!(standing.reason.map(|reason| reason.as_str()), Some("max_turns"));
    assert!(standing.error.is_some() && standing.activity.is_none());
}

pub(super) async fn a_session_is_read_in_the_order_of_its_appends_without_a_gap_or_a_repetition(store: &dyn Store) {
    let tail = async |after, most| store.tail(&session("main"), after, most).await.unwrap();
    assert_eq!(tail(Position::default(), 9).await.records, []);
    spawn(store, "other", vec![order("x")]).await;
    spawn(store, "main", vec![order("a"), order("b")]).await;
    append(store, &lease("b"), turn()).await.unwrap();
    complete(store, "x", "elsewhere").await;
    let now = tail(Position::default(), 0).await.until;
    // Two records of one append, one append of another task after it.
    let (mut task, first) = next(store, "a", turn()).await;
    let second = Record { seq: 3, at: at(101), event: reply("Done.".to_owned()) };
    task.apply(second.clone()).unwrap();
    store.append(&lease("a"), [first, second].into(), task.standing()).await.unwrap();
    complete(store, "b", "done").await;

    let names = |records: &[crate::store::PlacedRecord]| -> Vec<String> {
        records.iter().map(|placed| format!("{}{}", placed.uid, placed.record.seq)).collect()
    };
    let whole = ["a1", "b1", "b2", "a2", "a3", "b3"];
    for most in [1, 2, 3, 100] {
        let (mut read, mut after) = (Vec::new(), Position::default());
        loop {
            let part = tail(after, most).await;
            assert!(part.until >= after);
            after = part.until;
            read.extend(part.records);
            if !part.has_more {
                break;
            }
        }
        assert_eq!(names(&read), whole, "{most} at once");
        assert!(read.is_sorted_by_key(|placed| placed.position));
        assert_eq!(read[0].record, log(store, "a").await[0]);
        assert_eq!((read[1].task_id, read[1].agent.as_str()), (id(2), row(store, "b").await.summary.agent.as_str()));
        // From any record on, what follows it is read and nothing else.
        for (place, placed) in read.iter().enumerate() {
            assert_eq!(names(&tail(placed.position, 100).await.records), whole[place + 1..]);
        }
    }
    assert_eq!(names(&tail(now, 100).await.records), ["a2", "a3", "b3"]);
    assert_eq!(tail(Position { append: u64::MAX, seq: 0 }, 9).await.records, []);
}
