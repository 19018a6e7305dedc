//! The command line as a client: verbs that go to a server answer as they do without one.

use serde_json::{Value, json};

use crate::home::{Home, Ran, wait_until};
use crate::served::Served;

fn script(home: &Home) -> String {
    home.script(&json!({
        "broken": [{"error": {"kind": "auth"}}],
        "hanging": [{"error": {"kind": "hang"}}],
        "*": [{"text": "Done: {{task}}", "usage": {}}],
    }))
}

/// What differs from run to run and from process to process is left out.
fn settled(ran: &Ran, home: &Home) -> (Option<i32>, String, String) {
    let clean = |text: &str| -> String {
        let text = text.replace(&home.root().display().to_string(), "ROOT");
        let words = text.split_inclusive([' ', '\n', ',', '"']).map(|word| {
            let is_figure = word.starts_with(|c: char| c.is_ascii_digit()) || word.starts_with("duration_ms");
            if is_figure || word.trim_matches(|c: char| !c.is_alphanumeric()).len() == 26 { "N " } else { word }
        });
        words.collect()
    };
    let stdout = match serde_json::from_str::<Value>(&ran.stdout) {
        Ok(value) => clean(&without_figures(value).to_string()),
        Err(_) => clean(&ran.stdout),
    };
    (ran.code, stdout, clean(&ran.stderr))
}

fn without_figures(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let known =
                |name: &str| !["uid", "created_at", "completed_at", "written_at", "duration_ms", "why"].contains(&name);
            fields
                .into_iter()
                .filter(|(name, _)| known(name))
                .map(|(name, field)| (name, without_figures(field)))
                .collect()
        }
        Value::Array(items) => items.into_iter().map(without_figures).collect(),
        other => other,
    }
}

/// What is typed, in this order.
const VERBS: &[&[&str]] = &[
    &["agents", "list", "--json"],
    &["run", "explore", "hello"],
    &["run", "explore", "hello", "--json"],
    &["run", "nobody", "hello"],
    &["run", "nobody", "hello", "--json"],
    &["parallel", "explore=a", "explore=b", "nobody=c"],
    &["parallel", "explore=a", "explore=b", "--concurrency", "1", "--json"],
    &["chain", "explore=a", "explore={previous} b", "--json"],
    &["result", "t_01"],
    &["result", "t_01", "--offset", "2", "--limit", "3", "--json"],
    &["result", "t_99"],
    &["status", "--json"],
    &["status"],
    &["collect", "t_99"],
    &["wait", "--json"],
    &["cancel", "t_01", "--json"],
    &["context", "write", "goal", "ship"],
    &["context", "read", "goal"],
    &["context", "history", "goal", "--json"],
    &["context", "list", "--json"],
    &["context", "read", "nothing"],
];

#[test]
fn verbs_answer_the_same_with_a_server_and_without_one() {
    let (here, there) = (Home::new(), Home::new());
    let model = script(&here);
    let server = Served::start(&there, &script(&there));
    let there_too = |arguments: &[&str]| there.locum(&[arguments, &["--server", &server.url()]].concat());
    let here = here.with("LOCUM_MODEL", &model);
    for arguments in VERBS {
        assert_eq!(settled(&there_too(arguments), &there), settled(&here.locum(arguments), &here), "{arguments:?}");
    }
    // A log is told entry by entry.
    let events = |ran: &Ran| -> Vec<Value> {
        let records = ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        records.map(|record| json!([record["seq"], record["event"]["event"]])).collect()
    };
    let (told, expected) = (there_too(&["logs", "t_01", "--json"]), here.locum(&["logs", "t_01", "--json"]));
    assert_eq!(events(&told), events(&expected));
    // In the background, too.
    let id = there_too(&["spawn", "explore", "later", "--quiet"]).stdout;
    let id = id.trim();
    assert_eq!(there_too(&["wait", id]).code, Some(0));
    assert_eq!(there_too(&["collect", id, "--quiet"]).stdout, "Done: later\n");
    assert_eq!(server.end(), Some(0));
}

#[test]
fn the_server_and_its_token_can_be_in_the_environment() {
    let home = Home::new();
    let server = Served::start(&home, &script(&home));
    // Another home has no token of its own.
    let elsewhere = Home::new().with("LOCUM_SERVER", &server.url());
    let refused = elsewhere.locum(&["status"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("set LOCUM_TOKEN"), "{refused:?}");
    let elsewhere = elsewhere.with("LOCUM_TOKEN", &server.token);
    let ran = elsewhere.locum(&["run", "explore", "hello", "--quiet"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Done: hello\n"), "{ran:?}");
    // What a server does not do is done here, unless one was asked for.
    assert_eq!(elsewhere.locum(&["prompt"]).code, Some(0));
    let wrong = elsewhere.with("LOCUM_TOKEN", &"0".repeat(64)).locum(&["status"]);
    assert!(wrong.stderr.contains("the token is missing or wrong"), "{wrong:?}");
}

#[test]
fn what_cannot_be_asked_of_a_server_is_said() {
    let home = Home::new();
    let server = Served::start(&home, "offline");
    let url = server.url();
    for (arguments, complaint) in [
        (vec!["prompt", "--server", &url], "a server does not do this for others"),
        (vec!["context", "session", "list", "--server", &url], "a server does not do this for others"),
        (vec!["run", "explore", "t", "--agents", "dir", "--server", &url], "--agents is for the process"),
        (vec!["status", "--server", "https://127.0.0.1:1"], "as http://HOST:PORT"),
        (vec!["status", "--server", "http://127.0.0.1:1/path"], "as http://HOST:PORT"),
        (vec!["status", "--server", "nothing at all"], "no address of a server"),
        (vec!["status", "--server", "http://127.0.0.1:1"], "cannot be asked"),
    ] {
        let ran = home.locum(&arguments);
        assert_eq!(ran.code, Some(1), "{arguments:?}: {ran:?}");
        assert!(ran.stderr.contains(complaint), "{arguments:?}: {ran:?}");
    }
}

#[test]
fn a_person_who_interrupts_a_run_stops_it_on_the_server() {
    let home = Home::new();
    let server = Served::start(&home, &home.script(&json!({"*": [{"error": {"kind": "hang"}}]})));
    let url = server.url();
    let mut command = home.command(&["run", "explore", "t", "--server", &url, "--session", "test"]);
    let mut child = command.spawn().unwrap();
    let status = || server.subagent(&json!({"action": "status"}))["tasks"][0]["status"].clone();
    wait_until(|| status() == "running");
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap()),
        nix::sys::signal::Signal::SIGINT,
    )
    .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    wait_until(|| status() == "cancelled");
    assert_eq!(server.end(), Some(0));
}
