//! What an MCP client may write: every line gets an answer or none, and the connection goes on.

use serde_json::{Value, json};

use crate::home::Home;
use crate::raw::Raw;

/// Lines that are no messages, and the code that answers them.
const NO_MESSAGES: [(&[u8], i64); 8] = [
    (b"nonsense\n", -32700),
    (b"{\"jsonrpc\": \n", -32700),
    (b"\xff\xfe{}\n", -32700),
    (b"{}\n", -32600),
    (b"[]\n", -32600),
    (b"7\n", -32600),
    (b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}\n", -32600),
    (b"{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"tools/list\"}\n", -32600),
];

fn assert_answered(raw: &mut Raw) {
    for (line, code) in NO_MESSAGES {
        raw.write(line);
        let answer = raw.next();
        let text = String::from_utf8_lossy(line);
        assert_eq!(answer["error"]["code"], code, "{text}: {answer}");
        assert!(answer["error"]["message"].is_string() && answer.get("id").is_none(), "{text}: {answer}");
    }
}

#[test]
fn lines_that_are_no_messages_are_answered_and_the_next_is_read() {
    let home = Home::new();
    let mut raw = Raw::start(&home, &["--model", "offline"]);
    assert_answered(&mut raw);
    raw.hello();
    assert_answered(&mut raw);
    raw.assert_silent();
    let end = raw.leave();
    assert_eq!((end.code, end.messages), (Some(0), Vec::new()));
}

#[test]
fn what_needs_no_answer_gets_none() {
    let home = Home::new();
    let mut raw = Raw::start(&home, &["--model", "offline"]);
    let lines = [
        "\n",
        " \r\n",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1}}\n",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":7}\n",
        "{\"jsonrpc\":\"2.0\",\"method\":\"textDocument/didOpen\",\"params\":{}}\n",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":1,\"message\":\"m\"}}\n",
    ];
    for line in lines {
        raw.write(line.as_bytes());
    }
    raw.hello();
    for line in lines {
        raw.write(line.as_bytes());
    }
    raw.assert_silent();
    assert_eq!(raw.leave().code, Some(0));
}

#[test]
fn a_line_that_is_too_long_is_refused_and_the_next_is_read() {
    let home = Home::new();
    let mut raw = Raw::open(&home, "offline");
    let refused = |raw: &Raw| {
        let answer = raw.next();
        assert_eq!(answer["error"]["code"], -32600, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("longer than 4194304 bytes"), "{answer}");
    };
    raw.write(&vec![b'x'; 4 * 1024 * 1024 + 1]);
    raw.write(b"\n");
    refused(&raw);
    let much = "y".repeat(5 * 1024 * 1024);
    raw.call(1, "shared_context", &json!({"action": "write", "key": "k", "value": much}));
    refused(&raw);
    // As long as may be: this one is read, and refused for what it says.
    let value = "z".repeat(4 * 1024 * 1024 - 1000);
    raw.call(2, "shared_context", &json!({"action": "write", "key": "k", "value": value}));
    assert_eq!(raw.answer(2)["error"], "VALUE_TOO_LARGE");
    raw.assert_silent();
    assert_eq!(raw.leave().code, Some(0));
}

#[test]
fn a_line_without_an_end_is_read_when_the_input_ends() {
    let home = Home::new();
    let mut raw = Raw::open(&home, "offline");
    raw.write(b"{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\"}");
    assert_eq!(raw.leave().messages, [json!({"jsonrpc": "2.0", "id": 9, "result": {}})]);
}

#[test]
fn requests_that_do_not_fit_have_typed_errors() {
    let home = Home::new();
    let mut raw = Raw::open(&home, "offline");
    let cases = [
        ("nothing", json!({}), -32601),
        ("resources/read", json!({"uri": "file:///a"}), -32002),
        ("resources/read", json!({}), -32602),
        ("tools/call", json!({}), -32602),
        ("tools/call", json!({"name": 7}), -32602),
        ("tools/call", json!({"name": "subagent", "arguments": [1]}), -32602),
        ("tools/call", json!({"name": "subagent", "arguments": "status"}), -32602),
        ("tools/call", json!([1]), -32600),
        ("initialize", json!({"protocolVersion": 1}), -32602),
    ];
    for (place, (method, params, code)) in cases.into_iter().enumerate() {
        raw.ask(&json!(place), method, &params);
        let answer = raw.next();
        assert_eq!(answer["error"]["code"], code, "{method} {params}: {answer}");
        assert_eq!(answer["id"], json!(place), "{method} {params}: {answer}");
    }
    let long = "m".repeat(100_000);
    raw.ask(&json!("long"), &long, &Value::Null);
    assert!(raw.next().to_string().len() < 1000);
    raw.assert_silent();
    assert_eq!(raw.leave().code, Some(0));
}
