//! Traces, from outside: a collector that the standard variables name hears what tasks did, and nothing that was said.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use serde_json::json;

use crate::home::{Home, PATIENCE};

/// A collector on loopback: its address, and each message that it was sent, head and body.
fn collector() -> (String, Receiver<(String, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (sender, messages) = channel();
    // It lives as long as the test's process: there is nothing to be cleaned up after it.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let sender = sender.clone();
            std::thread::spawn(move || {
                while let Some(message) = message(stream.as_ref().unwrap()) {
                    sender.send(message).ok();
                }
            });
        }
    });
    (address, messages)
}

fn message(stream: &TcpStream) -> Option<(String, Vec<u8>)> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        (reader.read_line(&mut head).ok()? > 0).then_some(())?;
    }
    let head = head.to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?.parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let mut writer = stream;
    writer.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").ok()?;
    Some((head, body))
}

/// Reads messages until the span of the session has come, which is the last.
fn spans(messages: &Receiver<(String, Vec<u8>)>) -> (Vec<Span>, Vec<u8>) {
    let (mut spans, mut bytes) = (Vec::new(), Vec::new());
    while !spans.iter().any(|span: &Span| span.name == "session") {
        let (_, body) = messages.recv_timeout(PATIENCE).unwrap();
        let request = ExportTraceServiceRequest::decode(body.as_slice()).unwrap();
        bytes.extend(body);
        spans.extend(request.resource_spans.into_iter().flat_map(|of| of.scope_spans).flat_map(|of| of.spans));
    }
    (spans, bytes)
}

fn attribute<'a>(span: &'a Span, name: &str) -> Option<&'a Value> {
    let found = span.attributes.iter().find(|attribute| attribute.key == name)?;
    found.value.as_ref()?.value.as_ref()
}

/// Each span below its parent, by name, with the type of its error.
fn tree(spans: &[Span]) -> Vec<String> {
    let names: BTreeMap<&[u8], &str> = spans.iter().map(|span| (&span.span_id[..], span.name.as_str())).collect();
    let line = |span: &Span| {
        let parent = names.get(&span.parent_span_id[..]).copied().unwrap_or("nothing");
        match attribute(span, "error.type") {
            Some(Value::StringValue(error)) => format!("{parent} > {} ({error})", span.name),
            _ => format!("{parent} > {}", span.name),
        }
    };
    let mut lines: Vec<String> = spans.iter().map(line).collect();
    lines.sort();
    lines
}

fn home(collector: &str) -> (Home, String) {
    let home = Home::new().with("OTEL_EXPORTER_OTLP_ENDPOINT", collector);
    let home = home.with("LOCUM_MAX_DEPTH", "2");
    let home = home.with("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20canary-of-the-collector");
    home.write("agents/helper.md", "---\nname: helper\ndescription: d\ntools: ls, subagent\n---\nYou help.\n");
    let look = json!({"tool_calls": [{"name": "ls", "input": {"path": "canary-of-a-path"}}]});
    let delegate = json!({"action": "run", "agent": "second", "task": "canary of a task"});
    let delegate = json!({"text": "canary of a reply", "tool_calls": [{"name": "subagent", "input": delegate}]});
    let script = home.script(&json!({
        "helper": [look, delegate, {"text": "canary of an answer"}],
        "second": [{"text": "canary of another"}],
    }));
    // A model that is named for one call is not that of what is delegated below it.
    home.write(
        "agents/second.md",
        &format!("---\nname: second\ndescription: d\nmodel: {script}\n---\nYou help too.\n"),
    );
    (home, script)
}

/// What a run of two tasks shows.
const TREE: [&str; 9] = [
    "invoke_agent helper > turn 1",
    "invoke_agent helper > turn 2",
    "invoke_agent helper > turn 3",
    "turn 1 > chat MODEL",
    "turn 1 > execute_tool ls (failed)",
    "turn 2 > chat MODEL",
    "turn 2 > execute_tool subagent",
    "turn 3 > chat MODEL",
    "session > invoke_agent helper",
];

#[test]
fn a_collector_hears_who_did_what_and_nothing_that_was_said() {
    let (address, messages) = collector();
    let (home, script) = home(&address);
    let ran = home.locum(&["run", "helper", "canary of the first task", "--agents", "agents", "--model", &script]);
    assert_eq!((ran.code, ran.stderr.contains("traces")), (Some(0), false), "{}", ran.stderr);
    let (spans, bytes) = spans(&messages);
    let model = script.strip_prefix("scripted:").unwrap();
    let mut expected: Vec<String> = TREE.iter().map(|line| line.replace("MODEL", model)).collect();
    let of_second = ["invoke_agent helper > invoke_agent second", "invoke_agent second > turn 1", "nothing > session"];
    expected.extend(of_second.map(str::to_owned));
    // The second task's only turn is called as the first one's is.
    expected.push(format!("turn 1 > chat {model}"));
    expected.sort();
    assert_eq!(tree(&spans), expected);
    let traces: std::collections::BTreeSet<&[u8]> = spans.iter().map(|span| &span.trace_id[..]).collect();
    assert_eq!(traces.len(), 1);
    for span in &spans {
        assert!(span.start_time_unix_nano > 0 && span.end_time_unix_nano >= span.start_time_unix_nano, "{span:?}");
        let is_call = span.name.starts_with("chat ");
        assert_eq!(attribute(span, "gen_ai.request.model").is_some(), is_call || span.name.starts_with("invoke_agent"));
    }
    assert!(!String::from_utf8_lossy(&bytes).contains("canary"), "{}", String::from_utf8_lossy(&bytes));
}

#[test]
fn the_collector_is_reached_as_the_variables_say() {
    let (address, messages) = collector();
    let (home, script) = home(&address);
    assert_eq!(home.locum(&["run", "second", "it", "--agents", "agents", "--model", &script]).code, Some(0));
    let (head, body) = messages.recv_timeout(PATIENCE).unwrap();
    for expected in
        ["post /v1/traces http/1.1", "content-type: application/x-protobuf", "bearer canary-of-the-collector"]
    {
        assert!(head.contains(expected), "{expected}: {head}");
    }
    let request = ExportTraceServiceRequest::decode(body.as_slice()).unwrap();
    let resource = request.resource_spans[0].resource.clone().unwrap();
    let service = resource.attributes.iter().find(|attribute| attribute.key == "service.name").unwrap();
    assert_eq!(service.value.clone().unwrap().value, Some(Value::StringValue("locum".to_owned())));
}

#[test]
fn a_worker_of_its_own_tells_too() {
    let (address, messages) = collector();
    let (home, script) = home(&address);
    assert_eq!(home.locum(&["spawn", "second", "it", "--agents", "agents", "--model", &script]).code, Some(0));
    assert_eq!(home.locum(&["wait", "t_01"]).code, Some(0));
    let (spans, _) = spans(&messages);
    assert!(tree(&spans).contains(&"session > invoke_agent second".to_owned()), "{:?}", tree(&spans));
}

/// A collector that is not there costs a warning, not a task; a variable that cannot be followed is said at once.
#[test]
fn a_collector_that_cannot_be_used() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", closed.local_addr().unwrap());
    drop(closed);
    for (collector, code, said) in [
        (address.as_str(), 0, "traces could not be sent: http://127.0.0.1:"),
        ("collector:4317", 1, "must begin with http://"),
    ] {
        let (home, script) = home(collector);
        let ran = home.locum(&["run", "second", "it", "--agents", "agents", "--model", &script]);
        assert_eq!(ran.code, Some(code), "{}", ran.stderr);
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
        assert!(!ran.stderr.contains("canary-of"), "{}", ran.stderr);
    }
}
