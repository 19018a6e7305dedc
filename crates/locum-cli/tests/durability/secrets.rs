//! A planted key is used, and is then found nowhere: not in processes, not in files, not in answers.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use crate::home::Home;
use crate::model_server::{Answer, ModelServer};

/// A key in which every encoding changes something.
const KEY: &str = "sk-Planted/9+q\"w\\8~Zx=canary?7_";

/// What most programs leave as it is in an address.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The forms in which the key may turn up.
fn forms() -> Vec<String> {
    let json = json!(KEY).to_string();
    let escaped = utf8_percent_encode(KEY, NON_ALPHANUMERIC).to_string();
    let usual = utf8_percent_encode(KEY, UNRESERVED).to_string();
    vec![
        KEY.to_owned(),
        json.trim_matches('"').to_owned(),
        STANDARD.encode(KEY),
        STANDARD_NO_PAD.encode(KEY),
        URL_SAFE.encode(KEY),
        URL_SAFE_NO_PAD.encode(KEY),
        STANDARD_NO_PAD.encode(format!("user:{KEY}")),
        usual.replace("%2F", "/"),
        usual.split('%').enumerate().map(lower_escape).collect::<Vec<_>>().join("%"),
        escaped,
        usual,
    ]
}

/// What follows a percent sign, with its two digits in lower case; the first piece follows none.
fn lower_escape((place, piece): (usize, &str)) -> String {
    let digits = if place == 0 { 0 } else { 2 };
    piece[..digits].to_ascii_lowercase() + &piece[digits..]
}

/// The forms that a text contains, in whatever it is written.
fn found_in(bytes: &[u8]) -> Vec<String> {
    let contains = |form: &String| bytes.windows(form.len()).any(|window| window == form.as_bytes());
    let plain = forms().into_iter().filter(contains);
    // The same once more, as part of a JSON text.
    let quoted = forms().into_iter().map(|form| json!(form).to_string().trim_matches('"').to_owned()).filter(contains);
    plain.chain(quoted).collect()
}

fn files(directory: &Path) -> Vec<std::path::PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() { all.extend(files(&path)) } else { all.push(path) }
    }
    all
}

fn check_files(directory: &Path, except: &Path) {
    for path in files(directory).iter().filter(|path| *path != except) {
        let found = found_in(&fs::read(path).unwrap());
        assert!(found.is_empty(), "{}: {found:?}", path.display());
    }
}

fn home_at(server: &ModelServer) -> Home {
    let mut home = Home::new();
    home.set("OPENAI_API_KEY", KEY);
    home.set("OPENAI_BASE_URL", &server.base_url());
    home.agent("plain", "tools: think, read, shared_context", "You are plain.");
    home
}

fn logs_of(home: &Home) -> String {
    let all = files(&home.own().join("state"));
    all.iter().map(|path| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned()).collect()
}

#[test]
fn a_worker_has_its_key_from_a_pipe_and_shows_it_nowhere() {
    let server = ModelServer::start([Answer::Hold]);
    let home = home_at(&server);
    home.json(&["spawn", "plain", "x"]);
    let request = &server.wait_for(1)[0];
    assert_eq!(request.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    let workers = home.workers();
    let [worker] = workers.as_slice() else { panic!("{workers:?}") };
    for file in ["environ", "cmdline"] {
        let bytes = fs::read(format!("/proc/{worker}/{file}")).unwrap();
        assert_eq!(found_in(&bytes), [""; 0], "{file}");
        assert!(!String::from_utf8_lossy(&bytes).contains("OPENAI"), "{file}");
    }
    let arguments = fs::read(format!("/proc/{worker}/cmdline")).unwrap();
    let arguments: Vec<_> = arguments.split(|byte| *byte == 0).skip(1).collect();
    assert_eq!(arguments, [b"__worker".as_slice(), b""]);
    assert_eq!(home.json(&["cancel", "t_01"])["receipt"]["confirmed"], true);
}

/// What a model, a person and a server can do to spread a key.
fn spread(home: &Home, server: &ModelServer, flags: &[&str]) -> Vec<Value> {
    let all = forms().join(" ");
    fs::write(home.project().join("secret.env"), format!("KEY={KEY}\n")).unwrap();
    for answer in [
        Answer::Call("think", json!({"thought": all})),
        Answer::Call("shared_context", json!({"action": "write", "key": "k", "value": all})),
        Answer::Call("read", json!({"path": "secret.env"})),
        Answer::Call(KEY, json!({ KEY: KEY })),
        Answer::Text(format!("It is {all}.")),
        Answer::error(401, "invalid_api_key", &format!("Incorrect API key provided: {all}")),
        Answer::Cut(format!("half of {all}")),
        Answer::error(400, "invalid_request_error", &format!("no {all}")),
    ] {
        server.answer_next(answer);
    }
    let task = format!("A task with marzipan and {all}");
    for label in ["first", "second", KEY] {
        home.answer(&[&["spawn", "plain", &task, "--label", label][..], flags].concat());
        home.answer(&[&["wait"][..], flags].concat());
    }
    home.answer(&[&["context", "write", "mine", &all][..], flags].concat());
    home.answer(&[&["context", "write", KEY, "value"][..], flags].concat());
    ["t_01", "t_02", "t_03"].iter().map(|id| home.json(&["status", id])).collect()
}

#[test]
fn a_key_that_is_said_by_everybody_is_stored_and_shown_nowhere() {
    let server = ModelServer::start([]);
    let home = home_at(&server);
    // As long as somebody has the store open, it also consists of what was written last.
    home.json(&["status"]);
    let _open = home.observer("main");
    let statuses = spread(&home, &server, &[]);
    let ended: Vec<_> = statuses.iter().map(|status| status["status"].as_str().unwrap()).collect();
    assert_eq!(ended, ["completed", "failed", "failed"]);
    assert_eq!(server.received().len(), 8);
    assert!(files(&home.own()).iter().any(|path| path.to_string_lossy().ends_with("-wal")));
    check_files(&home.own(), Path::new(""));
    check_files(&home.project(), &home.project().join("secret.env"));

    let mut asked: Vec<Vec<&str>> = vec![vec!["status"], vec!["context", "list"], vec!["context", "read", "k"]];
    asked.push(vec!["context", "read", "mine"]);
    for id in ["t_01", "t_02", "t_03"] {
        asked.extend([vec!["status", id], vec!["logs", id], vec!["collect", id], vec!["result", id]]);
    }
    for arguments in asked {
        for form in [&[][..], &["--json"]] {
            let output = home.output(&[&arguments[..], form].concat());
            assert_eq!(found_in(&output.stdout), [""; 0], "{arguments:?}");
            assert_eq!(found_in(&output.stderr), [""; 0], "{arguments:?}");
        }
    }
    let logs = logs_of(&home);
    assert!(!logs.contains("marzipan") && !logs.contains("It is"), "{logs}");
    assert!(logs.contains("\"action\":\"spawn\""), "{logs}");
}

#[test]
fn payloads_are_logged_only_when_asked_for_and_without_the_key() {
    let server = ModelServer::start([]);
    let home = home_at(&server);
    spread(&home, &server, &["--log-payloads"]);
    check_files(&home.own(), Path::new(""));
    let logs = logs_of(&home);
    assert!(logs.contains("marzipan") && logs.contains("[redacted]"), "{logs}");
}

#[test]
fn a_refusal_does_not_repeat_a_key() {
    let server = ModelServer::start([]);
    let home = home_at(&server);
    for input in
        [json!({"action": "spawn", KEY: 1}), json!({"action": KEY}), json!({"action": "collect", "task_id": KEY})]
    {
        let (answer, code) = home.answer(&["call", "subagent", &input.to_string()]);
        assert_eq!(code, 1, "{answer}");
        assert_eq!(found_in(answer.to_string().as_bytes()), [""; 0]);
    }
}
