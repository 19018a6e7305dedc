//! How a server begins and ends: one for each home, with its token, its orphans, and what becomes of work under way.

use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::home::{Home, wait_until};
use crate::served::Served;

/// Far above what ending takes, far below any wait of a request.
const PROMPTLY: Duration = Duration::from_secs(8);

#[test]
fn a_second_server_is_told_where_the_first_one_listens() {
    let home = Home::new();
    let first = Served::start(&home, "offline");
    let second = home.locum(&["serve", "--listen", "0"]);
    assert_eq!(second.code, Some(1));
    assert!(second.stderr.contains(&format!("locum serves already at {}", first.url())), "{second:?}");
    // One that was killed leaves nothing in the way.
    first.kill();
    let third = Served::start(&home, "offline");
    assert_eq!(third.end(), Some(0));
}

#[test]
fn the_token_is_made_once_and_is_its_users_alone() {
    let home = Home::new();
    let first = Served::start(&home, "offline");
    let token = first.token.clone();
    assert_eq!(first.end(), Some(0));
    let path = home.locum_home().join("state/server.token");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let again = Served::start(&home, "offline");
    assert_eq!(again.token, token);
    assert_eq!(again.end(), Some(0));
    let own = home.root().join("own.token");
    std::fs::write(&own, "a-token-of-my-own-with-32-letters\n").unwrap();
    std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o600)).unwrap();
    let named = Served::start_with(&home, &["--token-file", &own.display().to_string()]);
    assert_eq!(named.token, "a-token-of-my-own-with-32-letters");
    assert_eq!(named.get("/healthz").status, 200);
    assert_eq!(named.end(), Some(0));
    std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o644)).unwrap();
    let refused = home.locum(&["serve", "--listen", "0", "--token-file", &own.display().to_string()]);
    assert!(refused.stderr.contains("others can read the token"), "{refused:?}");
}

#[test]
fn a_server_that_is_told_to_end_answers_who_waits_and_hands_its_tasks_on() {
    let home = Home::new();
    let server = Served::start(&home, &home.script(&json!({"*": [{"error": {"kind": "hang"}}]})));
    std::thread::scope(|scope| {
        let waiting =
            scope.spawn(|| server.call("subagent", &json!({"action": "run", "agent": "explore", "task": "t"})));
        wait_until(|| server.subagent(&json!({"action": "status"}))["tasks"][0]["status"] == "running");
        let started = Instant::now();
        server.ask_to_end();
        let answer = waiting.join().unwrap();
        assert_eq!(answer.status, 503, "{answer:?}");
        assert!(answer.body.contains("goes on"), "{answer:?}");
        assert!(started.elapsed() < PROMPTLY, "{:?}", started.elapsed());
    });
    assert_eq!(server.end(), Some(0));
    let status = home.locum(&["status", "t_01", "--json", "--session", "test"]);
    assert!(status.stdout.contains(r#""status":"running""#), "{status:?}");
    let cancelled = home.locum(&["cancel", "t_01", "--session", "test"]);
    assert_eq!(cancelled.code, Some(0), "{cancelled:?}");
}

#[test]
fn a_server_goes_on_with_what_a_killed_one_left_in_any_session() {
    let home = Home::new();
    let turn = json!({"tool_calls": [{"name": "ls", "input": {}}], "delay_ms": 300});
    let model = home.script(&json!({"*": [turn, turn, {"text": "Done: {{task}}"}]}));
    let server = Served::start(&home, &model);
    assert_eq!(server.subagent(&json!({"action": "spawn", "agent": "explore", "task": "t"}))["status"], "running");
    server.kill();
    let server = Served::start(&home, &model);
    let waited = server.subagent(&json!({"action": "wait", "task_ids": ["t_01"]}));
    assert_eq!(waited["tasks"][0]["status"], "completed", "{waited}");
    assert_eq!(server.end(), Some(0));
}
