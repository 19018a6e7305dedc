//! What no honest caller sends through `call -`: each line is answered with a typed error, in order, and it goes on.

use serde_json::{Value, json};

use crate::home::Home;

/// A line that is answered, and its answer's code, or what stands in `keys` of a good one.
struct Line {
    name: &'static str,
    bytes: Vec<u8>,
    code: &'static str,
}

fn line(name: &'static str, bytes: impl Into<Vec<u8>>) -> Line {
    Line { name, bytes: bytes.into(), code: "INVALID_REQUEST" }
}

/// A line that is well formed, and refused for what it says.
fn refused(name: &'static str, code: &'static str, input: &Value) -> Line {
    let bytes = json!({"tool": "subagent", "input": input}).to_string().into_bytes();
    Line { name, bytes, code }
}

/// Sends all lines at once, each followed by a good one.
fn check(lines: &[Line]) {
    let home = Home::new();
    let good = br#"{"tool": "shared_context", "input": {"action": "list_keys"}}"#;
    let input: Vec<u8> =
        lines.iter().flat_map(|line| [&line.bytes, good.as_slice()]).flat_map(|line| [line, b"\n"].concat()).collect();
    let answers = home.call("offline", &input);
    assert_eq!(answers.len(), 2 * lines.len());
    for (line, answers) in lines.iter().zip(answers.chunks(2)) {
        let [answer, good] = answers else { panic!("two answers belong together") };
        assert_eq!(answer["error"], line.code, "{}: {answer}", line.name);
        let fields: Vec<&str> = answer.as_object().unwrap().keys().map(String::as_str).collect();
        assert!(fields == ["error", "message"] || fields == ["error", "hint", "message"], "{}: {answer}", line.name);
        assert!(answer["message"].as_str().unwrap().len() < 2000, "{}: a long message", line.name);
        assert_eq!(good, &json!({"keys": [], "total_size_tokens": 0}), "after {}", line.name);
    }
}

#[test]
fn lines_that_are_no_request() {
    let deep = |open: &str, close: &str| format!("{}{}", open.repeat(100_000), close.repeat(100_000));
    check(&[
        line("not JSON", "nonsense"),
        line("half an object", r#"{"tool": "subagent", "input": {"action": "#),
        line("two objects", r#"{"tool": "subagent", "input": {}} {"tool": "subagent", "input": {}}"#),
        line("an array", "[]"),
        line("an array in the right order", r#"["subagent", {"action": "status"}]"#),
        line("a string", r#""subagent""#),
        line("a number", "1e400"),
        line("null", "null"),
        line("nothing in it", "{}"),
        line("no input", r#"{"tool": "subagent"}"#),
        line("no tool", r#"{"input": {"action": "status"}}"#),
        line("a tool that is a number", r#"{"tool": 1, "input": {}}"#),
        line("an unknown tool", r#"{"tool": "manage", "input": {}}"#),
        line("a tool with another case", r#"{"tool": "Subagent", "input": {"action": "status"}}"#),
        line("a further field", r#"{"tool": "subagent", "input": {"action": "status"}, "id": 1}"#),
        line("a field twice", r#"{"tool": "subagent", "tool": "subagent", "input": {"action": "status"}}"#),
        line("an input that is a list", r#"{"tool": "subagent", "input": []}"#),
        line("an input that is text", r#"{"tool": "subagent", "input": "{\"action\": \"status\"}"}"#),
        line("an input that is null", r#"{"tool": "subagent", "input": null}"#),
        line("bytes that are not UTF-8", b"{\"tool\": \"subagent\", \"input\": {\"action\": \"\xff\xfe\"}}".as_slice()),
        line("half a character", b"\xe2\x82".as_slice()),
        line("a NUL byte", b"\0".as_slice()),
        line("a NUL byte in a text", b"{\"tool\": \"sub\0agent\", \"input\": {}}".as_slice()),
        line("a byte order mark", "\u{feff}{\"tool\": \"subagent\", \"input\": {\"action\": \"status\"}}"),
        line("half of a surrogate pair", r#"{"tool": "subagent", "input": {"action": "\ud83d"}}"#),
        line("a surrogate pair the wrong way round", r#"{"tool": "\udc00\ud800", "input": {}}"#),
        line("100 000 brackets", deep("[", "]")),
        line("100 000 braces", deep("{\"a\":", "}")),
        line("100 000 brackets in an input", format!(r#"{{"tool": "subagent", "input": {}}}"#, deep("[", "]"))),
        line("a line of 5 MiB", vec![b'x'; 5 << 20]),
        line(
            "a request of 5 MiB",
            format!(r#"{{"tool": "subagent", "input": {{"action": "{}"}}}}"#, "x".repeat(5 << 20)),
        ),
    ]);
}

#[test]
fn requests_that_make_no_sense() {
    let long = "x".repeat(1 << 20);
    let spawn = |field: &str, value: Value| {
        let mut spawn = json!({"action": "spawn", "agent": "writer", "task": "t"});
        spawn[field] = value;
        spawn
    };
    check(&[
        refused("a field of another action", "INVALID_REQUEST", &spawn("task_ids", json!([]))),
        refused("an unknown field", "INVALID_REQUEST", &spawn("colour", json!("red"))),
        refused("an unknown field of a megabyte", "INVALID_REQUEST", &spawn(&long, json!(1))),
        refused("an agent that is a list", "INVALID_REQUEST", &spawn("agent", json!(["writer"]))),
        refused("a task that is an object", "INVALID_REQUEST", &spawn("task", json!({"text": "t"}))),
        refused("a task that is null", "INVALID_REQUEST", &spawn("task", json!(null))),
        refused("a switch that is text", "INVALID_REQUEST", &spawn("queue", json!("true"))),
        refused("a timeout below zero", "INVALID_REQUEST", &spawn("timeout", json!(-1))),
        refused("a timeout with a fraction", "INVALID_REQUEST", &spawn("timeout", json!(0.5))),
        refused("ids that are a text", "INVALID_REQUEST", &spawn("depends_on", json!("t_01"))),
        refused("an unknown isolation", "INVALID_REQUEST", &spawn("isolation", json!("moon"))),
        refused("a directory above the project", "INVALID_REQUEST", &spawn("cwd", json!("a/../../b"))),
        refused("an absolute directory", "INVALID_REQUEST", &spawn("cwd", json!("/etc"))),
        refused("a megabyte as the task", "TASK_TOO_LARGE", &spawn("task", json!(long))),
        refused("a megabyte as the agent", "AGENT_NOT_FOUND", &spawn("agent", json!(long))),
        refused("a megabyte as the model", "MODEL_NOT_FOUND", &spawn("model", json!(long))),
        refused("a megabyte as the label", "INVALID_REQUEST", &spawn("label", json!(long))),
        refused("a megabyte as the key", "INVALID_REQUEST", &spawn("idempotency_key", json!(long))),
        refused("a megabyte as a dependency", "TASK_NOT_FOUND", &spawn("depends_on", json!([long]))),
        refused("a megabyte as the action", "INVALID_ACTION", &json!({"action": long})),
        refused(
            "a megabyte as a name",
            "INVALID_AGENT_NAME",
            &json!({"action": "define", "name": long, "description": "d", "system_prompt": "p"}),
        ),
        refused("a megabyte as a base", "AGENT_NOT_FOUND", &json!({"action": "define", "name": "a", "extends": long})),
        refused(
            "a megabyte as a tool",
            "INVALID_TOOL",
            &json!({"action": "define", "name": "a", "description": "d", "system_prompt": "p", "tools": [long]}),
        ),
        refused("a megabyte as a task id", "TASK_NOT_FOUND", &json!({"action": "status", "task_id": long})),
        refused("a task as a list", "INVALID_REQUEST", &json!({"action": "parallel", "tasks": [["writer", "t"]]})),
        refused("a step as a text", "INVALID_REQUEST", &json!({"action": "chain", "tasks": ["writer"]})),
        refused(
            "1001 tasks",
            "INVALID_REQUEST",
            &json!({"action": "parallel", "tasks": vec![json!({"agent": "a", "task": "t"}); 1001]}),
        ),
        refused(
            "1001 steps",
            "INVALID_REQUEST",
            &json!({"action": "chain", "tasks": vec![json!({"agent": "a", "task": "t"}); 1001]}),
        ),
        refused("1001 ids", "INVALID_REQUEST", &json!({"action": "wait", "task_ids": vec!["t_01"; 1001]})),
        refused(
            "ids that overflow",
            "TASK_NOT_FOUND",
            &json!({"action": "status", "task_id": "t_99999999999999999999"}),
        ),
        refused("the id that is none", "TASK_NOT_FOUND", &json!({"action": "status", "task_id": "t_00"})),
        refused("a path as an id", "TASK_NOT_FOUND", &json!({"action": "status", "task_id": "../t_01"})),
        refused(
            "a text with quotes as an id",
            "TASK_NOT_FOUND",
            &json!({"action": "status", "task_id": "t_01' OR '1'='1"}),
        ),
    ]);
}

#[test]
fn blank_lines_and_carriage_returns_are_no_fault() {
    let home = Home::new();
    let list = r#"{"tool": "shared_context", "input": {"action": "list_keys"}}"#;
    let spread = "\r\n\n  \t \n\u{20}{\"tool\": \"shared_context\",\t\"input\" : {\"action\" : \"list_keys\"}}  \r\n";
    let input = format!("{list}\r\n{spread}\n{list}");
    let empty = json!({"keys": [], "total_size_tokens": 0});
    assert_eq!(home.call("offline", input.as_bytes()), [empty.clone(), empty.clone(), empty]);
    assert!(home.call("offline", b"").is_empty());
    assert!(home.call("offline", b"\n\n").is_empty());
}

#[test]
fn text_of_any_kind_is_kept_as_it_is() {
    let home = Home::new();
    let model = home.script(&json!({"*": [{"text": "{{task}}", "usage": {}}]}));
    let texts = [
        "nul \u{0} inside",
        "🦀 \u{10ffff} é",
        "tab\tand \"quotes\" \\ /",
        "-- '; DROP TABLE tasks;",
        "{{task}} {previous}",
        "a\u{2028}b\u{85}c",
    ];
    let lines: Vec<String> = texts
        .iter()
        .enumerate()
        .flat_map(|(place, text)| {
            let run = json!({"tool": "subagent", "input": {"action": "run", "agent": "writer", "task": text}});
            let id = format!("t_{:02}", place + 1);
            let result = json!({"tool": "subagent", "input": {"action": "result", "task_id": id}});
            [run.to_string(), result.to_string()]
        })
        .collect();
    let answers = home.call(&model, lines.join("\n").as_bytes());
    for (text, answers) in texts.iter().zip(answers.chunks(2)) {
        assert_eq!(answers[0]["status"], "completed", "{text:?}: {}", answers[0]);
        assert_eq!(answers[1]["text"], *text);
    }
}
