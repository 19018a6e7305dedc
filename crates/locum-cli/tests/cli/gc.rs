//! `locum gc`: what it removes and what it says about it.

use serde_json::{Value, json};

use crate::home::Home;

/// Two tasks of which the first ended long ago: its row and its log are as if it had been made then.
fn aged() -> Home {
    let home = Home::new();
    for _ in 0..2 {
        assert_eq!(home.locum(&["run", "explore", "Where is the clock?", "--model", "offline"]).code, Some(0));
    }
    let database = rusqlite::Connection::open(home.locum_home().join("data/locum.db")).unwrap();
    let older = "UPDATE tasks SET completed_at = completed_at - 31 * 86400000 WHERE number = 1";
    assert_eq!(database.execute(older, []).unwrap(), 1);
    let logs = home.locum_home().join("state/logs");
    std::fs::write(logs.join("2020-01-01.log"), "{}\n").unwrap();
    home
}

#[test]
fn what_is_old_is_shown_then_removed_and_said() {
    let home = aged();
    let old = home.locum_home().join("state/logs/2020-01-01.log");
    let said = home.locum(&["gc", "--dry-run"]);
    assert!(said.stdout.starts_with("would remove 1 task with "), "{said:?}");
    assert!(said.stdout.contains("1 file (3 bytes)") && said.stdout.contains("2020-01-01.log"), "{said:?}");
    assert!(old.exists());
    assert_eq!(home.locum(&["result", "t_01"]).code, Some(0));

    let look: Value = serde_json::from_str(&home.locum(&["gc", "--dry-run", "--json"]).stdout).unwrap();
    assert_eq!((&look["tasks"], &look["dry_run"], &look["bytes"]), (&json!(1), &json!(true), &json!(3)), "{look}");
    let said = home.locum(&["gc"]);
    assert!(said.stdout.starts_with("removed 1 task with "), "{said:?}");
    assert!(!old.exists());
    assert_eq!(home.locum(&["result", "t_01"]).code, Some(1));
    assert_eq!(home.locum(&["result", "t_02"]).code, Some(0), "what is not old stays");
    assert_eq!(home.locum(&["gc"]).stdout, "nothing ended more than 30 days ago\n");
    let next = home.locum(&["run", "explore", "Where is the tide?", "--model", "offline", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&next.stdout).unwrap()["task_id"], "t_03", "ids are never given twice");
}
