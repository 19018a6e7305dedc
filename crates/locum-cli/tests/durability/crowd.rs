//! Two processes work in one session at once.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::home::Home;

const LINES: usize = 30;

fn crowded(reply: &Value) -> Home {
    let mut home = Home::scripted(&json!({"plain": [reply]}));
    home.agent("plain", "tools: []", "You are plain.");
    home.set("LOCUM_MAX_SPAWNS", "1000");
    home
}

/// Both processes' answers to the same lines.
fn answers(home: &Home, inputs: &[Value]) -> Vec<Value> {
    std::thread::scope(|scope| {
        let processes: Vec<_> = (0..2).map(|_| scope.spawn(|| home.calls("x", inputs))).collect();
        processes.into_iter().flat_map(|process| process.join().unwrap()).collect()
    })
}

fn ids(answers: &[Value]) -> Vec<String> {
    answers.iter().filter_map(|answer| answer["task_id"].as_str()).map(str::to_owned).collect()
}

#[test]
fn five_places_are_given_five_times_however_many_ask() {
    let home = crowded(&json!({"error": {"kind": "hang"}}));
    let mut inputs = Vec::new();
    for number in 0..LINES {
        inputs.push(json!({"action": "spawn", "agent": "plain", "task": format!("n{number}")}));
        inputs.push(json!({"action": "status"}));
    }
    let answers = answers(&home, &inputs);
    let accepted = ids(&answers);
    assert_eq!(accepted.iter().collect::<BTreeSet<_>>().len(), 5, "{accepted:?}");
    assert_eq!(accepted.len(), 5, "no id twice");
    let refused = answers.iter().filter(|answer| answer["error"] == "MAX_TASKS_EXCEEDED").count();
    assert_eq!(refused, 2 * LINES - 5);
    for snapshot in answers.iter().filter_map(|answer| answer["tasks"].as_array()) {
        let running = snapshot.iter().filter(|task| task["status"] == "running").count();
        assert!(running <= 5, "{snapshot:?}");
    }
    // Both processes have ended; what they left goes on, and still nothing more fits.
    let refused = home.calls("x", &[json!({"action": "spawn", "agent": "plain", "task": "one more"})]);
    assert_eq!(refused[0]["error"], "MAX_TASKS_EXCEEDED");
    for id in accepted {
        home.calls("x", &[json!({"action": "cancel", "task_id": id})]);
    }
}

#[test]
fn queued_tasks_all_complete_and_never_more_than_five_at_once() {
    let home = crowded(&json!({"text": "plain: {{task}}", "delay_ms": 5}));
    let spawn =
        |number: usize| json!({"action": "spawn", "agent": "plain", "task": format!("n{number}"), "queue": true});
    let inputs: Vec<Value> = (0..LINES).map(spawn).collect();
    let accepted = ids(&answers(&home, &inputs));
    assert_eq!(accepted.iter().collect::<BTreeSet<_>>().len(), 2 * LINES);
    home.json(&["wait", "--session", "x"]);

    let observer = home.observer("x");
    let rows = observer.tasks();
    assert_eq!(rows.len(), 2 * LINES);
    assert!(rows.iter().all(|row| row.summary.standing.status.as_str() == "completed"));
    let events = in_order_of_commit(&home);
    let count = |name: &str| events.iter().filter(|event| *event == name).count();
    assert_eq!((count("released"), count("ended")), (2 * LINES, 2 * LINES));
    let mut running = 0;
    for event in events {
        match event.as_str() {
            "released" => running += 1,
            "ended" => running -= 1,
            _ => {}
        }
        assert!(running <= 5);
    }
}

/// The names of all events as they became durable; their times are those of the processes that wrote them.
fn in_order_of_commit(home: &Home) -> Vec<String> {
    let connection = rusqlite::Connection::open(home.own().join("data/locum.db")).unwrap();
    let mut query = connection.prepare("SELECT event FROM events ORDER BY id").unwrap();
    let rows = query.query_map([], |row| row.get::<_, String>(0)).unwrap();
    // A row is one event, or a list of times and events.
    let events = rows.flat_map(|row| match serde_json::from_str(&row.unwrap()).unwrap() {
        Value::Array(timed) => timed.iter().map(|pair| pair[1].clone()).collect(),
        event => vec![event],
    });
    events.map(|event| event["event"].as_str().unwrap().to_owned()).collect()
}
